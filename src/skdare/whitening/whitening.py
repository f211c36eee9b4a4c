"""How a second moment becomes an adjustment: shrinkage, target, and what domains share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdare._validation import check_choice, check_number
from skdare.arrays import Array, like, namespace, rounding_unit, smallest_spread
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments, pooled_second_moment
from skdare.whitening.roots.diagonal import diagonal_root, standardizing
from skdare.whitening.roots.eigen import Spectrum, inverse_sqrt
from skdare.whitening.roots.few_rows import FewRowsSpectrum
from skdare.whitening.shrinkage import (
    SHRINKAGE_RULES,
    SHRINKAGE_TARGETS,
    check_strength,
    ridge_of,
)


class RowsAlike(ValueError):
    """Rows that do not differ, so that there is no second moment to adjust by."""


@dataclass(frozen=True)
class Whitening:
    """How a second moment becomes an adjustment.

    Parameters
    ----------
    adjust : bool
        False: one scalar for all domains, so that l2 means the same with and without whitening.
    centered : bool
        Covariance, or the raw second moment.
    shrinkage : float, "ledoit-wolf" or "oas"
    target : "scaled", "identity", "pooled" or "diagonal"
        See `skdare.whitening.shrinkage`.
    """

    adjust: bool
    centered: bool
    shrinkage: float | str
    target: str

    @classmethod
    def of_head(cls, head: Any) -> Whitening:
        """The whitening that a head's options ask for."""
        return cls(head.adjust, head.centered, head.shrinkage, head.shrinkage_target)

    def strength(self, moments: Moments) -> float:
        """ρ for a domain with these moments: the number, or what the rule estimates."""
        return moments.shrinkage(self.shrinkage, centered=self.centered)

    def ridge(self, moments: Moments) -> float:
        """What shrinkage adds to the diagonal of such a domain's second moment, without a pool."""
        scale = moments.scale(centered=self.centered)
        return ridge_of(self.strength(moments), self.target, scale)

    def can_invert(self, moments: Moments, X: Array | None = None) -> bool:
        """Whether the shrunk second moment has an inverse root that is more than rounding.

        Shrunk towards the raw identity, it has one even where rows do not differ. X, the rows or
        others like them, says what rounding is.
        """
        centered = self.centered
        if self.target == "identity" and self.strength(moments) > 0:
            return True
        if X is None:
            return moments.varies(centered=centered)
        return moments.varies(centered=centered, eps=rounding_unit(X), smallest=smallest_spread(X))

    def adjustment(
        self,
        moments: Moments,
        spectrum: Spectrum | FewRowsSpectrum | None = None,
        common: Array | None = None,
        *,
        dtype: object = None,
        root_weight: np.ndarray | None = None,
    ) -> Adjustment:
        """The adjustment of one domain: the inverse root of its shrunk second moment.

        Parameters
        ----------
        moments : Moments
        spectrum : Spectrum or FewRowsSpectrum, optional
            Of the second moment, where it is known.
        common : array of shape (d, d), optional
            What domains have in common; see `common`.
        dtype : optional
            Of the decomposition; default: float64.
        root_weight : array of shape (n,), optional
            Roots of the rows' weights: few rows then also say what the adjustment does to their
            own scores.
        """
        centered = self.centered
        if not self.can_invert(moments):
            raise RowsAlike(
                "these rows are all the same, or differ by no more than rounding; adjusting needs "
                "rows that differ, so use the head as it is"
            )
        rho = self.strength(moments)
        if self.target == "diagonal":
            if rho == 1.0:
                return standardizing(moments.feature_moments(centered=centered), dtype)
            return diagonal_root(moments.second_moment(centered=centered), rho, dtype)
        target = self.target if common is None else "identity"
        if rho == 1.0:
            ridge = ridge_of(rho, target, moments.scale(centered=centered))
            return Adjustment(moments.d, ridge**-0.5, common=common)
        if spectrum is None:
            spectrum = _spectrum_of(moments, centered=centered, common=common, dtype=dtype)
        ridge = ridge_of(rho, target, spectrum.scale)
        if isinstance(spectrum, FewRowsSpectrum):
            return spectrum.inverse_root(rho, ridge, root_weight=root_weight)
        return replace(spectrum.inverse_root(rho, ridge), common=common)

    def common(self, moments: Sequence[Moments], dtype: object) -> Array | None:
        """What domains have in common, where they are shrunk towards their pool.

        C, the symmetric inverse root of the equal-weight mean of their second moments. Domains
        are adjusted in its coordinates, where the pool is the identity: ``(1 - ρ) S + ρ P`` is
        whitened exactly, few rows need no (d, d) matrix of their own, and a linear change of the
        features changes nothing.
        """
        if not self.adjust or self.target != "pooled":
            return None
        P = pooled_second_moment(moments, centered=self.centered)
        # What is within the rounding of the features' own products is noise.
        rtol = P.shape[0] * float(namespace(P).finfo(dtype or P.dtype).eps)
        return like(inverse_sqrt(P, rtol=rtol), P, dtype or P.dtype)


def _spectrum_of(
    moments: Moments, *, centered: bool, common: Array | None = None, dtype: object = None
) -> Spectrum | FewRowsSpectrum:
    """Spectrum of a second moment, in common coordinates if any; of few rows, through the rows."""
    if moments.factor is not None:
        return FewRowsSpectrum.of_moments(moments, centered=centered, common=common)
    S = moments.second_moment(centered=centered)
    if common is not None:
        C = like(common, S, S.dtype)
        S = C @ S @ C
    return Spectrum.of_matrix(S, dtype)


def check_whitening(head: Any) -> None:
    """Check the constructor values that make a `Whitening`."""
    check_number("shrinkage", head.shrinkage, 0.0, 1.0, also=SHRINKAGE_RULES)
    check_choice("shrinkage_target", head.shrinkage_target, SHRINKAGE_TARGETS)
    check_strength(head.shrinkage, head.shrinkage_target)
    check_choice("centered", head.centered, (True, False))
    check_choice("adjust", head.adjust, (True, False))
