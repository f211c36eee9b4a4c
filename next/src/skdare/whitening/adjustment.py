"""Adjustments: the matrix W that a domain's rows are seen through.

``(X W) B = X (W B)``: W multiplies the weights, and no adjusted copy of large X exists.

Notation: W (d, d), U (d, r) columns, C (r, r) core, B (d, k) weights, P (d, m) points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scipy import linalg

from skdare.arrays import Array, as_float64, beside, like, namespace, product, to_numpy


@dataclass(frozen=True, eq=False)
class Adjustment:
    """W = diag(diagonal) + matrix + U C Uᵀ.

    A scalar needs no matrix, standardising a diagonal, a domain of few rows only its rows as U.
    """

    diagonal: float | Annotated[Array, "d"]
    # In the dtype of products, but for the core: in float32 it would lose weak directions beside
    # strong ones.
    matrix: Annotated[Array, "d d"] | None = None
    U: Annotated[Array, "d r"] | None = None
    core: Annotated[Array, "r r"] | None = None

    def apply(self, B: Array) -> Array:
        """W B in float64: weights on raw features from canonical ones."""
        return self._times(B, self.matrix)

    def back(self, P: Array) -> Array:
        """Wᵀ P in float64: points, or gradients in weights on raw features, in canonical ones."""
        return self._times(P, None if self.matrix is None else self.matrix.T)

    def _times(self, B: Array, matrix: Array | None) -> Array:
        if matrix is not None:
            result = as_float64(product(matrix, like(B, matrix)))
        if matrix is None or not isinstance(self.diagonal, float) or self.diagonal != 0.0:
            diagonal = self.diagonal if isinstance(self.diagonal, float) else self.diagonal[:, None]
            result = diagonal * B if matrix is None else result + diagonal * B
        if self.U is not None and self.core is not None:
            inside = self.core @ as_float64(self.U.T @ like(B, self.U))
            result = result + as_float64(self.U @ like(inside, self.U))
        return result

    def to_numpy(self) -> Adjustment:
        parts = (self.matrix, self.U, self.core)
        diagonal = self.diagonal if isinstance(self.diagonal, float) else to_numpy(self.diagonal)
        return Adjustment(diagonal, *(None if part is None else to_numpy(part) for part in parts))


def average(adjustments: Sequence[Adjustment], shares: Sequence[float]) -> Adjustment:
    """Σ q_e W_e.

    Average the whiteners, not the covariances: W is what multiplies the features, and with
    symmetric roots the mean does not depend on signs of eigenvectors.
    """
    pairs = list(zip(adjustments, shares, strict=True))
    diagonal = sum(share * W.diagonal for W, share in pairs)
    dense = [share * W.matrix for W, share in pairs if W.matrix is not None]
    low = [(W.U, share * W.core) for W, share in pairs if W.U is not None and W.core is not None]
    if not dense and not low:
        return Adjustment(diagonal)
    if not dense and 2 * sum(U.shape[1] for U, _ in low) < low[0][0].shape[0]:
        U = namespace(low[0][0]).concat([U for U, _ in low], axis=1)
        core = beside(linalg.block_diag(*(to_numpy(core) for _, core in low)), U)
        return Adjustment(diagonal, None, U, core)
    matrix = sum(dense[1:], dense[0]) if dense else None
    for U, core in low:  # into one accumulator: a (d, d) matrix of each domain may be too much
        square = U @ like(core @ as_float64(U.T), U)
        matrix = square if matrix is None else matrix + square
    return Adjustment(diagonal, matrix)
