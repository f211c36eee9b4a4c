"""Inverse roots of second moments that are shrunk towards their own diagonal.

Notation: S (d, d) second moment, D its diagonal, R = D^-1/2 S D^-1/2 the correlations.
"""

from __future__ import annotations

from skdare.arrays import Array, like, namespace
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.roots.eigen import Spectrum

# Of the mean variance: what a feature varies by at least, so that one that is all but constant in
# a domain is not blown up to noise.
_LEAST_VARIANCE = 1e-2


def standardizing(variances: Array, dtype: object = None) -> Adjustment:
    """D^-1/2, which gives each feature unit variance."""
    return Adjustment(variances.shape[0], 0.0, diagonal=_inverse_scales(variances, dtype))


def diagonal_root(S: Array, rho: float, dtype: object = None) -> Adjustment:
    """``D^-1/2 ((1 - ρ) R + ρ I)^-1/2``: standardise each feature, then whiten what is left.

    Features may be in any units: unlike the symmetric root of ``(1 - ρ) S + ρ D``, it commutes with
    a change of their scales, up to the floor under variances.
    """
    variances = namespace(S).linalg.diagonal(S)
    if rho == 1.0:
        return standardizing(variances, dtype)
    c = _inverse_scales(variances)
    W = Spectrum.of_matrix(c[:, None] * S * c[None, :], dtype).inverse_root(rho, rho).dense()
    return Adjustment(S.shape[0], 0.0, like(c, W, W.dtype)[:, None] * W)


def _inverse_scales(variances: Array, dtype: object = None) -> Array:
    xp = namespace(variances)
    least = _LEAST_VARIANCE * xp.mean(variances)
    c = xp.where(variances > least, variances, least) ** -0.5
    return like(c, c, dtype or c.dtype)
