"""Adjustments: symmetric inverse square roots of second moments, and guesses made of them.

Notation: S (d, d) second moment, W (d, d) its inverse root, U (d, r) orthonormal columns,
Z (m, d) rows minus a point, B (d, k) weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare._array import (
    Array,
    as_float64,
    like,
    namespace,
    on_accelerator,
    product,
    symmetric_eigen,
    to_numpy,
)


@dataclass(frozen=True, eq=False)
class Adjustment:
    """A symmetric matrix ``W = scale I + matrix + U diag(weights) Uᵀ``, applied to weights.

    Whitening multiplies the weights, never the rows: ``(X W) B = X (W B)``. A scalar needs no
    matrix, a domain with fewer rows than features only a thin U.

    Parameters
    ----------
    d : int
    scale : float
    matrix : array of shape (d, d), optional
    U : array of shape (d, r), optional
    weights : array of shape (r,), optional
    """

    d: int
    scale: float
    matrix: Array | None = None
    U: Array | None = None
    weights: Array | None = None

    def like(self, B: Array) -> Array:
        """B in the array library and dtype of this adjustment."""
        known = self.matrix if self.matrix is not None else self.U
        return B if known is None else like(B, known, known.dtype)

    def apply(self, B: Array) -> Array:
        """W B."""
        result = self.scale * B
        if self.matrix is not None:
            result = result + product(self.matrix, B)
        if self.U is not None:
            weights = self.weights[:, None]  # type: ignore[index]
            result = result + self.U @ (weights * (namespace(self.U).matrix_transpose(self.U) @ B))
        return result

    def dense(self, beside: Adjustment | None = None) -> Array:
        """W as a (d, d) array, in the array library of another adjustment where it has none."""
        if not self.scale and self.matrix is not None and self.U is None:
            return self.matrix
        result = (beside or self).like(self.scale * np.eye(self.d))
        if self.matrix is not None:
            result = result + self.matrix
        if self.U is not None:
            result = result + (self.U * self.weights) @ namespace(self.U).matrix_transpose(self.U)
        return result

    def to_numpy(self) -> Adjustment:
        """The same adjustment as NumPy arrays on the host."""
        arrays = (None if a is None else to_numpy(a) for a in (self.matrix, self.U, self.weights))
        return Adjustment(self.d, self.scale, *arrays)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of a second moment; directions not listed have value zero.

    Every strength of shrinkage towards a multiple of the identity shares it, so a path over
    shrinkage costs one decomposition for each domain.

    Parameters
    ----------
    values : array of shape (r,)
        In float64, not negative.
    vectors : array of shape (d, r)
    scale : float
        tr(S) / d.
    """

    values: Array
    vectors: Array
    scale: float

    @classmethod
    def of_matrix(cls, S: Array, dtype: object = None) -> Spectrum:
        """By a full decomposition of S, in ``dtype`` (default: S's own).

        An accelerator decomposes in float64 all the same: it is as quick there.
        """
        xp = namespace(S)
        d = S.shape[0]
        scale = float(xp.linalg.trace(S)) / d
        unit = S / scale if scale > 0 else S
        within = S.dtype if dtype is None or on_accelerator(S) else dtype
        values, vectors = symmetric_eigen(like(unit, S, within))
        vectors = like(vectors, S, dtype or S.dtype)
        values = as_float64(values) * (scale if scale > 0 else 1.0)
        return cls(xp.where(values > 0, values, xp.zeros_like(values)), vectors, scale)

    @classmethod
    def of_rows(cls, Z: Array, n: float) -> Spectrum:
        """Of ``Zᵀ Z / n`` through the thin side: m² d instead of d³ for m rows, m < d."""
        xp = namespace(Z)
        Z64 = as_float64(Z)
        values, Q = symmetric_eigen(Z64 @ xp.matrix_transpose(Z64) / n)
        keep = values > values[-1] * (Z.shape[0] * 2.3e-16)
        values, Q = values[keep], xp.take(Q, xp.nonzero(keep)[0], axis=1)
        vectors = like((xp.matrix_transpose(Z64) @ Q) / (n * values) ** 0.5, Z, Z.dtype)
        return cls(values, vectors, float(xp.sum(values)) / Z.shape[1])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.vectors.shape[0])

    def inverse_root(
        self, shrinkage: float = 0.0, target: str = "scaled", *, rtol: float | None = None
    ) -> Adjustment:
        """Symmetric pseudo-inverse square root of ``(1 - ρ) S + ρ t I``.

        ``t`` is tr(S)/d (``"scaled"``) or 1 (``"identity"``). Directions below ``rtol`` times
        the largest eigenvalue map to zero: a rank-deficient domain is projected, never blown up.
        """
        xp, d = namespace(self.values), self.d
        ridge = shrinkage * (1.0 if target == "identity" else self.scale)
        if shrinkage == 1.0:
            return Adjustment(d, ridge**-0.5)
        values = (1.0 - shrinkage) * self.values + ridge
        if rtol is None:
            # A ridge already bounds the values from below; without one, whatever is within the
            # rounding of the decomposition is noise.
            rtol = d * float(xp.finfo(xp.float64 if ridge > 0 else self.vectors.dtype).eps)
        keep = values > rtol * float(xp.max(values))
        root = xp.where(keep, xp.where(keep, values, xp.ones_like(values)) ** -0.5, values * 0.0)
        rest = ridge**-0.5 if ridge > rtol * float(xp.max(values)) else 0.0
        if self.vectors.shape[1] < d // 2:
            return Adjustment(d, rest, None, self.vectors, like(root - rest, self.vectors))
        # V diag(f) Vᵀ as A Aᵀ, a symmetric product at half the price, and one matrix to apply.
        if self.vectors.shape[1] == d:
            A = self.vectors * like(root**0.5, self.vectors)
            return Adjustment(d, 0.0, A @ xp.matrix_transpose(A))
        A = self.vectors * like((rest - root) ** 0.5, self.vectors) if rest else None
        if A is not None:
            return Adjustment(d, rest, -(A @ xp.matrix_transpose(A)))
        A = self.vectors * like(root**0.5, self.vectors)
        return Adjustment(d, 0.0, A @ xp.matrix_transpose(A))


def inverse_sqrt(S: Array, *, rtol: float | None = None) -> Array:
    """Symmetric pseudo-inverse square root of a covariance.

    Directions with an eigenvalue below ``rtol`` times the largest (default: d times the
    rounding unit) map to zero: a rank-deficient domain is projected, never blown up.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.adjustment import inverse_sqrt
    >>> bool(np.allclose(inverse_sqrt(np.diag([4.0, 0.25, 0.0])), np.diag([0.5, 2.0, 0.0])))
    True
    """
    return Spectrum.of_matrix(S).inverse_root(rtol=rtol).dense()


def average(
    adjustments: Sequence[Adjustment], weights: Sequence[float] | None = None
) -> Adjustment:
    """Weighted mean of adjustments (default: equal weights).

    Average the whiteners, not the covariances: W is what multiplies the features, and with
    symmetric roots the mean does not depend on eigenvector signs.
    """
    if weights is None:
        weights = [1.0 / len(adjustments)] * len(adjustments)
    pairs = list(zip(adjustments, weights, strict=True))
    d, scale = adjustments[0].d, sum(w * a.scale for a, w in pairs)
    known = [a for a in adjustments if a.matrix is not None or a.U is not None]
    if not known:
        return Adjustment(d, scale)
    rank = sum(0 if a.U is None else a.U.shape[1] for a in known)
    if any(a.matrix is not None for a in known) or rank >= d // 2:
        return Adjustment(d, 0.0, sum(w * a.dense(known[0]) for a, w in pairs))
    xp = namespace(known[0].U)
    U = xp.concat([a.U for a in known], axis=1)
    weighted = [w * a.weights for a, w in pairs if a.weights is not None]
    return Adjustment(d, scale, None, U, xp.concat(weighted))


def adjustment_error(guess: Adjustment, true: Adjustment) -> float:
    """``‖Ŵ - W‖² / ‖W‖²`` in the Frobenius norm.

    Examples
    --------
    >>> from skdare.adjustment import Adjustment, adjustment_error
    >>> adjustment_error(Adjustment(3, 1.5), Adjustment(3, 1.0))
    0.25
    """
    W = to_numpy(true.dense()).astype(np.float64)
    return float(np.sum((to_numpy(guess.dense(true)) - W) ** 2) / np.sum(W**2))
