"""Adjustments: a domain's rows become Wᵀ(x - m).

``(X - m) W B = X (W B) - m (W B)``: W multiplies the weights, m changes their intercept, and no
adjusted copy of a large X exists.

Notation: W (d, d), m (d,), U and V (d, r) columns, C (r, r) symmetric core, B (d, k) weights, b
(k,) intercept, G (d, k) and g (k,) gradients in weights on raw features, P (d, p) points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scipy import linalg

from skdare.arrays import Array, as_float64, beside, like, namespace, product, to_numpy


@dataclass(frozen=True, eq=False)
class Adjustment:
    """W = diag(diagonal) + matrix + U C Vᵀ, and the shift m; None subtracts nothing.

    A scalar needs no matrix, standardising a diagonal, a domain of few rows only its rows as U.
    """

    diagonal: float | Annotated[Array, "d"]
    # In the dtype of products, but for the core: in float32 weak directions would be lost in
    # the rounding of strong ones.
    matrix: Annotated[Array, "d d"] | None = None
    U: Annotated[Array, "d r"] | None = None
    core: Annotated[Array, "r r"] | None = None
    V: Annotated[Array, "d r"] | None = None  # None is U
    shift: Annotated[Array, "d"] | None = None

    def rows(self, X: Array) -> Array:
        """(X - m) W in float64: rows of the domain in canonical coordinates."""
        return self.back((X if self.shift is None else X - self.shift).T).T

    def raw_weights(self, B: Array, b: Array) -> tuple[Array, Array]:
        """W B and b - mᵀ W B: weights and intercept on raw features from canonical ones."""
        V = self.apply(B)
        return V, b if self.shift is None else b - self.shift @ V

    def gradient(self, G: Array, g: Array) -> Array:
        """Wᵀ(G - m gᵀ): the gradient in B; the transpose of `raw_weights`."""
        return self.back(G if self.shift is None else G - self.shift[:, None] * g)

    def apply(self, B: Array) -> Array:
        """W B in float64."""
        return self._times(B, self.matrix, self.U, self.U if self.V is None else self.V)

    def back(self, P: Array) -> Array:
        """Wᵀ P in float64."""
        matrix = None if self.matrix is None else self.matrix.T
        return self._times(P, matrix, self.U if self.V is None else self.V, self.U)

    def _times(self, B: Array, matrix: Array | None, left: Array, right: Array) -> Array:
        if matrix is not None:
            result = as_float64(product(matrix, like(B, matrix)))
        if matrix is None or not isinstance(self.diagonal, float) or self.diagonal != 0.0:
            diagonal = self.diagonal if isinstance(self.diagonal, float) else self.diagonal[:, None]
            result = diagonal * B if matrix is None else result + diagonal * B
        if self.core is not None:
            inside = self.core @ as_float64(right.T @ like(B, right))
            result = result + as_float64(left @ like(inside, left))
        return result

    def to_numpy(self) -> Adjustment:
        diagonal = self.diagonal if isinstance(self.diagonal, float) else to_numpy(self.diagonal)
        arrays = [self.matrix, self.U, self.core, self.V, self.shift]
        return Adjustment(diagonal, *[None if a is None else to_numpy(a) for a in arrays])


def average(adjustments: Sequence[Adjustment], shares: Sequence[float]) -> Adjustment:
    """Σ q_e W_e, and the shift Σ q_e m_e.

    Of scales c_e it is Σ q_e c_e m_e / Σ q_e c_e, so that adjusted rows are averaged: a domain that
    records a feature in a far larger unit has a far larger mean, too.

    Average the whiteners, not the covariances: W is what multiplies the features, and with
    symmetric roots the mean does not depend on signs of eigenvectors.
    """
    pairs = list(zip(adjustments, shares, strict=True))
    diagonal = sum([share * W.diagonal for W, share in pairs])
    shift = mean_shift(adjustments, shares)
    dense = [share * W.matrix for W, share in pairs if W.matrix is not None]
    low: list[tuple[Array, Array, Array]] = [
        (W.U, share * W.core, W.V) for W, share in pairs if W.core is not None
    ]
    if not dense and not low:
        if shift is not None and not isinstance(diagonal, float):
            xp = namespace(diagonal)
            total = sum([share * W.diagonal * W.shift for W, share in pairs if W.shift is not None])
            present = diagonal > 0
            shift = xp.where(present, total / xp.where(present, diagonal, 1.0), shift)
        return Adjustment(diagonal, shift=shift)
    if not dense and 2 * sum([core.shape[0] for _, core, _ in low]) < low[0][0].shape[0]:
        U = namespace(low[0][0]).concat([U for U, _, _ in low], axis=1)
        core = beside(linalg.block_diag(*[to_numpy(core) for _, core, _ in low]), U)
        V = None
        if low[0][2] is not None:
            V = namespace(U).concat([U if V is None else V for U, _, V in low], axis=1)
        return Adjustment(diagonal, None, U, core, V, shift)
    matrix = sum(dense[1:], dense[0]) if dense else None
    for U, core, V in low:  # into one accumulator: a (d, d) matrix of each domain may be too much
        square = U @ like(core @ as_float64((U if V is None else V).T), U)
        matrix = square if matrix is None else matrix + square
    return Adjustment(diagonal, matrix, shift=shift)


def mean_shift(adjustments: Sequence[Adjustment], shares: Sequence[float]) -> Array | None:
    """Σ q_e m_e, or None if no rows are shifted."""
    pairs = zip(adjustments, shares, strict=True)
    shifts = [share * W.shift for W, share in pairs if W.shift is not None]
    assert len(shifts) in (0, len(adjustments))
    return sum(shifts[1:], shifts[0]) if shifts else None
