"""Signs, in unlabelled rows, that adapting to them went wrong.

They are two of two hundred that were tried, with the thresholds that half of the sets gave;
docs/decisions.md has what they catch and what they miss. Neither sees other class shares where
centring forces the predicted ones back to those of training.

Notation: n rows, d features, k classes, T (d, d) the scatter of all rows and d times the covariance
within classes in training, U (d, k) class means about the mean of all, times the roots of their
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from skdare.arrays import to_numpy
from skdare.fitting.formulation import RAW, Formulation
from skdare.fitting.mixture import SHRINKAGE, ClassPlaces, ClassSums
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments
from skdare.whitening.roots.cholesky import cholesky
from skdare.whitening.whitening import Whitening

# Predicted class shares may be this far from those in training, in total variation.
_FURTHEST_SHARES = 0.4
# The separation of classes may be this many standard deviations below that on left-out domains.
_LEAST_SEPARATION = 2.5
# Of fewer left-out domains, or fewer rows, no standard deviation is worth its name.
_FEWEST_DOMAINS = 4
_FEWEST_ROWS = 50


def covariance_within(sums: Sequence[ClassSums], moments: Sequence[Moments]) -> np.ndarray:
    """Shrunk covariance within the classes of domains, as their features are."""
    d = moments[0].d
    as_they_are = Formulation(Whitening(False, True, 0.0, "scaled"), RAW, 0.0, by_rows=True)
    places = ClassPlaces.of_domains(sums, moments, [Adjustment(d, 1.0)] * len(sums), as_they_are)
    within = (1.0 - SHRINKAGE) * places.within
    within[np.diag_indices(d)] += SHRINKAGE * np.trace(places.within) / d
    return within


def log_separation(sums: ClassSums, moments: Moments, within: np.ndarray) -> float:
    """How far the classes of some rows lie apart beside how they scatter, as a logarithm.

    ``tr(S_W⁻¹ S_B) / d`` for the scatter between classes S_B and that within them, S_W, in which
    training counts as d rows. With K = Uᵀ T⁻¹ U it is ``(n + d) / (n d) tr(K (I - K)⁻¹)``.
    """
    n = moments.n
    d = moments.d
    total = n * to_numpy(moments.second_moment(centered=True)) + d * within
    weight = np.where(sums.weight > 0, sums.weight, 1.0)
    U = sums.deviations / np.sqrt(weight)
    K = U.T @ linalg.cho_solve(cholesky(total), U, check_finite=False)
    apart = np.trace(np.linalg.solve(np.eye(len(K)) - K, K))
    return float(np.log(max(apart * (n + d) / (n * d), np.finfo(float).tiny)))


@dataclass(frozen=True, eq=False)
class AdaptationGuard:
    """Objects to adapting where the new rows speak against it.

    Parameters
    ----------
    shares : array of shape (k,), optional
        Of the classes in training; None where adapting estimates new ones.
    within : array of shape (d, d)
        Covariance within classes in training.
    separations : array
        Of the classes found in each training domain that was left out, as logarithms.
    """

    shares: np.ndarray | None
    within: np.ndarray
    separations: np.ndarray

    @classmethod
    def of_domains(
        cls,
        sums: Sequence[ClassSums],
        moments: Sequence[Moments],
        separations: np.ndarray,
        *,
        shares_fixed: bool,
    ) -> AdaptationGuard:
        """Guard by the sums and moments of the training domains, on the host."""
        weight = np.sum([own.weight for own in sums], axis=0)
        shares = weight / weight.sum() if shares_fixed else None
        return cls(shares, covariance_within(sums, moments), separations)

    def objection(self, sums: ClassSums, moments: Moments) -> str | None:
        """What speaks against adapting to rows with these sums by predicted class, if anything."""
        n = sums.weight.sum()
        if self.shares is not None:
            shares = sums.weight / n
            distance = 0.5 * float(np.abs(shares - self.shares).sum())
            if distance > _FURTHEST_SHARES + 0.5 * np.sqrt(len(shares) / n):
                return (
                    f"the adapted head would predict class shares {distance:.0%} away from those "
                    "in training"
                )
        if len(self.separations) < _FEWEST_DOMAINS or n < _FEWEST_ROWS:
            return None
        mean = self.separations.mean()
        least = mean - _LEAST_SEPARATION * self.separations.std(ddof=1)
        found = log_separation(sums, moments, self.within)
        if found < least:
            return (
                "the classes that the adapted head finds lie far closer together than those found "
                f"in left-out training domains ({np.exp(found - mean):.0%} of what is usual)"
            )
        return None
