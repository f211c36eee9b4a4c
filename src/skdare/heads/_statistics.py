"""What the domains of a problem have been reduced to, and the units that follow from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skdare._array import Array, work_dtype
from skdare.adjustment import Adjustment
from skdare.domain_statistics import (
    DomainStatistics,
    Shared,
    Whitening,
    fetch_feature_moments,
    fetch_moments,
)
from skdare.heads._problem import Problem
from skdare.moments import Moments
from skdare.passes import SpreadRows


class Statistics:
    """What a problem's domains have been reduced to.

    Parameters
    ----------
    problem : Problem
    shared : mutable mapping from domain label to DomainStatistics, optional
        Consulted first, and filled: fits on the same rows of a domain then compute nothing twice.
    """

    def __init__(self, problem: Problem, shared: Shared | None = None) -> None:
        self.problem, self._spread = problem, isinstance(problem.X, SpreadRows)
        known: Shared = {} if shared is None else shared
        for e, label in enumerate(problem.labels):
            if label not in known or not self._serves(known[label]):
                index, weight = problem.index[e], problem.domain_weight(e)
                known[label] = DomainStatistics(problem.X, index, weight)
        self.domains = [known[label] for label in problem.labels]

    def _serves(self, other: DomainStatistics) -> bool:
        """Whether another fit's statistics are of use: rows with workers end with their fit."""
        X = self.problem.X
        return other.X is X or not (self._spread or isinstance(other.X, SpreadRows))

    def moments(self, e: int) -> Moments:
        """Moments of a domain, in the array library of X."""
        if self._spread and not self.domains[e].knows_moments:
            fetch_moments(self.domains)
        return self.domains[e].moments

    def variances(self, chosen: Sequence[int]) -> np.ndarray:
        """Variance of each feature over all rows of the chosen domains."""
        n = np.array([self.problem.domain_weight(e).sum() for e in chosen])
        pairs = [self._mean_and_variances(e) for e in chosen]
        means, within = (np.stack(parts) for parts in zip(*pairs, strict=True))
        return n @ (within + (means - n @ means / n.sum()) ** 2) / n.sum()

    def _mean_and_variances(self, e: int) -> tuple[np.ndarray, ...]:
        if self._spread and not self.domains[e].knows_means:
            fetch_feature_moments(self.domains)
        return self.domains[e].mean_and_variances

    def unit(self, chosen: Sequence[int]) -> float:
        """Mean variance of a feature over all rows of the chosen domains: the unit of l2."""
        unit = float(self.variances(chosen).mean())
        if not np.isfinite(unit):
            raise ValueError("the squares of the features overflow; divide the features first")
        if unit == 0:
            raise ValueError(
                "every feature is constant, or too small for its square; nothing can be learnt"
            )
        return unit

    def ridge(self, chosen: Sequence[int], whitening: Whitening, l2: float) -> float:
        """The ridge on canonical weights that is l2 in the common unit.

        Adjustments shrunk towards (tr/d) I divide by the root of a second moment of their own,
        with or without the means; where all domains are alike and ρ = 1, DARE without its penalty
        is then the same problem as ERM. The raw identity has no unit to convert from.
        """
        if not whitening.adjust or whitening.target == "identity":
            return l2
        own = [self.moments(e).scale(centered=whitening.centered) for e in chosen]
        return l2 * self.unit(chosen) / float(np.mean(own))

    def domain_mean(self, e: int) -> np.ndarray:
        """Mean of a domain, on the host."""
        return self._mean_and_variances(e)[0]

    def mean(self, chosen: Sequence[int]) -> np.ndarray:
        """Equal-weight mean of the chosen domains' means."""
        return np.mean([self.domain_mean(e) for e in chosen], axis=0)

    def adjustments(self, chosen: Sequence[int], whitening: Whitening) -> list[Adjustment]:
        """One adjustment for each chosen domain; without whitening, one scalar for all."""
        if not whitening.adjust:
            return [Adjustment(self.problem.d, self.unit(chosen) ** -0.5)] * len(chosen)
        common = self.common(chosen, whitening)
        return [self.adjustment(e, chosen, whitening, common) for e in chosen]

    def common(self, chosen: Sequence[int], whitening: Whitening) -> Array | None:
        """What the chosen domains have in common, where they are shrunk towards their pool."""
        moments = [self.moments(e) for e in chosen]
        return whitening.of_pool(moments, work_dtype(self.problem.X))

    def adjustment(
        self, e: int, chosen: Sequence[int], whitening: Whitening, common: Array | None
    ) -> Adjustment:
        """Of one domain, beside the chosen ones."""
        moments = self.moments(e)
        if not moments.scale(centered=whitening.centered) > 0:
            # Rows that do not differ say nothing of their scale: take the other domains'.
            scale = 1.0 if common is not None else self.unit(chosen) ** -0.5
            return Adjustment(moments.d, scale, common=common)
        return self.domains[e].adjustment(whitening, common)
