"""Signs, in unlabelled rows, that adapting to them went wrong.

They are two of two hundred that were tried, with the thresholds that half of the sets gave. Neither
notices other class proportions if centring forces the predicted ones back to those of training.

Notation: n rows, d features, k classes, T (d, d) the scatter of all rows and d times the covariance
within classes in training, U (d, k) class means about the mean of all, times the roots of their
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Annotated

import numpy as np
from scipy import linalg

from skdare.fitting.mixture import SHRINKAGE, ClassSums, cholesky
from skdare.whitening.moments import Moments

# Predicted class shares may be this far from those in training, in total variation.
_FURTHEST_SHARES = 0.4
# The separation of classes may be this many standard deviations below that on held-out domains.
_LEAST_SEPARATION = 2.5
# Of fewer held-out domains, or fewer rows, no standard deviation is reliable.
_FEWEST_DOMAINS = 4
_FEWEST_ROWS = 50
# The share that one of many rows must have of the variance to be an outlier.
_OUTLYING = 0.45
_MANY_ROWS = 20


def has_outliers(moments: Moments) -> bool:
    """Whether one or two of many rows hold most of the variance, and decide the adjustment."""
    return moments.n >= _MANY_ROWS and moments.furthest > _OUTLYING * moments.trace > 0


def _distance(shares: np.ndarray, others: np.ndarray) -> float:
    """Total variation."""
    return 0.5 * float(np.abs(shares - others).sum())


def _noise(k: int, n: float) -> float:
    """Expected distance of the shares of k classes in n rows from their mean, at most."""
    return 0.5 * float(np.sqrt(k / n))


def objection_to_mean(moved: float, error: float) -> str | None:
    """Why not to adapt a regressor by which the mean prediction moves so far, if there is a reason.

    ``error`` is how far mean predictions of adapted models are off on held-out domains, as a root
    mean square. What moves by less gains little, and the target itself may differ.
    """
    if moved > error:
        return None
    return (
        f"adapting would move the mean prediction by {moved / error:.2f} times what adapted models "
        "are off by on held-out training domains, and less than once is no sign of a gain"
    )


@dataclass(frozen=True, eq=False)
class SafetyCheck:
    """Objects to adapting if the new rows speak against it."""

    shares: Annotated[np.ndarray, "c"] | None  # in training; None if adapting estimates new ones
    within: Annotated[np.ndarray, "d d"]  # shrunk covariance within classes in training
    # Logarithms, for the classes found in each training domain when it was held out.
    separations: Annotated[np.ndarray, "s"]

    @classmethod
    def of_domains(
        cls,
        sums: Sequence[ClassSums],
        moments: Sequence[Moments],
        separations: np.ndarray,
        *,
        shares_fixed: bool,
    ) -> SafetyCheck:
        weight = np.sum([domain.weight for domain in sums], axis=0)
        shares = weight / weight.sum() if shares_fixed else None
        return cls(shares, covariance_within(sums, moments), separations)

    def objection(self, sums: ClassSums, moments: Moments) -> str | None:
        """Why not to adapt to rows with these sums by predicted class, if there is a reason."""
        n = sums.weight.sum()
        if self.shares is not None:
            distance = _distance(sums.weight / n, self.shares)
            if distance > _FURTHEST_SHARES + _noise(len(self.shares), n):
                return (
                    f"the adapted head would predict class proportions {distance:.0%} away from "
                    "those in training"
                )
        if len(self.separations) < _FEWEST_DOMAINS or n < _FEWEST_ROWS:
            return None
        mean = self.separations.mean()
        least = mean - _LEAST_SEPARATION * self.separations.std(ddof=1)
        separation = log_separation(sums, moments, self.within)
        if separation < least:
            return (
                "the classes that the adapted head finds lie far closer together than those found "
                f"in held-out training domains ({np.exp(separation - mean):.0%} of the usual)"
            )
        return None


def covariance_within(sums: Sequence[ClassSums], moments: Sequence[Moments]) -> np.ndarray:
    """Shrunk covariance within the classes of domains, on raw features."""
    everything = reduce(add, moments)
    pairs = zip(sums, moments, strict=True)
    S = sum(s.deviations + (m.mean - everything.mean)[:, None] * s.weight for s, m in pairs)
    N = sum(s.weight for s in sums)
    between = (S / np.where(N > 0, N, 1.0)) @ S.T / everything.n
    within = everything.second_moment(centered=True) - between
    # Towards each feature's own variance: in other units they give the same separations.
    own = np.diagonal(within)
    varies = own > np.finfo(np.float64).eps * everything.mean**2
    return (1.0 - SHRINKAGE) * within + SHRINKAGE * np.diag(np.where(varies, own, 1.0))


def log_separation(sums: ClassSums, moments: Moments, within: np.ndarray) -> float:
    """How far the classes of some rows lie apart compared with how they scatter, as a logarithm.

    ``tr(S_W⁻¹ S_B) / d`` for the scatter between classes S_B and that within them, S_W, in which
    training counts as d rows. With K = Uᵀ T⁻¹ U it is ``(n + d) / (n d) tr(K (I - K)⁻¹)``.
    """
    n = moments.n
    d = len(within)
    T = n * moments.second_moment(centered=True) + d * within
    U = sums.deviations / np.sqrt(np.where(sums.weight > 0, sums.weight, 1.0))
    K = U.T @ linalg.cho_solve(cholesky(T), U, check_finite=False)
    apart = np.trace(np.linalg.solve(np.eye(len(K)) - K, K))
    return float(np.log(max(apart * (n + d) / (n * d), np.finfo(float).tiny)))
