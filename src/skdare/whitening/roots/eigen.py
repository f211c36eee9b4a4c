"""Inverse roots of second moments by eigendecomposition.

Notation: S (d, d) second moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from skdare.arrays import Array, as_float64, like, namespace, on_accelerator, symmetric_eigen
from skdare.whitening.adjustment import Adjustment


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of a second moment.

    Every strength of shrinkage towards a multiple of the identity shares it, so a path over
    shrinkage costs one decomposition for each domain.

    Parameters
    ----------
    values : array of shape (d,)
        In float64, not negative.
    vectors : array of shape (d, d)
    scale : float
        tr(S) / d.
    """

    values: Array
    vectors: Array
    scale: float

    @classmethod
    def of_matrix(cls, S: Array, dtype: object = None) -> Spectrum:
        """Spectrum by a full decomposition of S, in ``dtype`` (default: S's own).

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

    @property
    def d(self) -> int:
        """Number of features of a row."""
        return int(self.vectors.shape[0])

    def inverse_root(
        self, shrinkage: float = 0.0, ridge: float = 0.0, *, rtol: float | None = None
    ) -> Adjustment:
        """Symmetric pseudo-inverse square root of ``(1 - ρ) S + ridge I``.

        Directions below the cut-off map to zero: a rank-deficient domain is projected, never
        blown up.
        """
        xp = namespace(self.values)
        d = self.d
        if shrinkage == 1.0:
            return Adjustment(d, ridge**-0.5)
        values = (1.0 - shrinkage) * self.values + ridge
        keep = values > cut_off(values, d, ridge, self.vectors.dtype, rtol)
        root = xp.where(keep, xp.where(keep, values, xp.ones_like(values)) ** -0.5, values * 0.0)
        # V diag(f) Vᵀ as A Aᵀ, a symmetric product at half the price, and one matrix to apply.
        A = self.vectors * like(root**0.5, self.vectors)
        return Adjustment(d, 0.0, A @ xp.matrix_transpose(A))


def cut_off(values: Array, d: int, ridge: float, dtype: object, rtol: float | None) -> float:
    """Below which eigenvalues are noise: ``rtol`` times the largest, by default d rounding units.

    A ridge already bounds the values from below; without one, whatever is within the rounding of
    the decomposition, in ``dtype``, is noise.
    """
    xp = namespace(values)
    if rtol is None:
        rtol = d * float(xp.finfo(xp.float64 if ridge > 0 else dtype).eps)
    return rtol * float(xp.max(values))


def inverse_sqrt(S: Array, *, rtol: float | None = None) -> Array:
    """Symmetric pseudo-inverse square root of a covariance.

    Directions with an eigenvalue below ``rtol`` times the largest (default: d times the
    rounding unit) map to zero: a rank-deficient domain is projected, never blown up.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.whitening import inverse_sqrt
    >>> bool(np.allclose(inverse_sqrt(np.diag([4.0, 0.25, 0.0])), np.diag([0.5, 2.0, 0.0])))
    True
    """
    return Spectrum.of_matrix(S).inverse_root(rtol=rtol).dense()
