"""What the domains of a problem have been reduced to, and the units that follow from it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from skdare.arrays import Array, largest_offset, length, rounding_unit, smallest_spread, work_dtype
from skdare.arrays.passes import SpreadRows
from skdare.fitting.problem import Problem
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.cache import (
    DomainCache,
    SharedCaches,
    fetch_feature_moments,
    fetch_moments,
)
from skdare.whitening.moments import Moments
from skdare.whitening.whitening import RowsAlike, Whitening


class ProblemStatistics:
    """What a problem's domains have been reduced to.

    Parameters
    ----------
    problem : Problem
    shared : mutable mapping from domain label to DomainCache, optional
        Consulted first, and filled: fits on the same rows of a domain then compute nothing twice.
    """

    def __init__(self, problem: Problem, shared: SharedCaches | None = None) -> None:
        self.problem = problem
        self._spread = isinstance(problem.X, SpreadRows)
        caches: SharedCaches = {} if shared is None else shared
        for e, label in enumerate(problem.labels):
            if label not in caches or not self._serves(caches[label]):
                index = problem.index[e]
                weight = problem.domain_weight(e)
                caches[label] = DomainCache(problem.X, index, weight)
        self.domains = [caches[label] for label in problem.labels]

    def _serves(self, other: DomainCache) -> bool:
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
        n = self._totals(chosen)
        pairs = [self._mean_and_variances(e) for e in chosen]
        means, within = (np.stack(parts) for parts in zip(*pairs, strict=True))
        centre = self.row_mean(chosen)
        variances = n @ (within + (means - centre) ** 2) / n.sum()
        return np.where(variances > self._noise(centre), variances, 0.0)

    def row_mean(self, chosen: Sequence[int]) -> np.ndarray:
        """Mean of each feature over all rows of the chosen domains."""
        n = self._totals(chosen)
        means = np.stack([self.domain_mean(e) for e in chosen])
        # From the first mean on: where all are the same, the centre is exactly that.
        centre: np.ndarray = means[0] + n @ (means - means[0]) / n.sum()
        return centre

    def _totals(self, chosen: Sequence[int]) -> np.ndarray:
        return np.array([self.problem.domain_weight(e).sum() for e in chosen])

    def _noise(self, mean: np.ndarray) -> np.ndarray:
        """The variance up to which a feature of this mean is constant but for rounding."""
        return (rounding_unit(self.problem.X) * mean) ** 2

    def _mean_and_variances(self, e: int) -> tuple[np.ndarray, ...]:
        if self._spread and not self.domains[e].knows_means:
            fetch_feature_moments(self.domains)
        return self.domains[e].mean_and_variances

    def unit(self, chosen: Sequence[int]) -> float:
        """Mean variance of a feature over all rows of the chosen domains: the unit of l2."""
        unit = float(self.variances(chosen).mean())
        if not unit > self._smallest:
            raise RowsAlike(
                "every feature is constant, or varies by less than its rounding or "
                f"{self._smallest**0.5:.0e}; nothing can be learnt, unless they are that small: "
                "then multiply them by a constant"
            )
        self._check_offset(chosen, unit**0.5)
        return unit

    def _check_offset(self, chosen: Sequence[int], spread: float) -> None:
        """Refuse means that are out of all proportion to what varies: their squares overflow."""
        means = np.max([np.abs(self.domain_mean(e)) for e in chosen], axis=0)
        column = int(means.argmax())
        if means[column] > largest_offset(self.problem.X) * spread:
            raise RowsAlike(
                f"feature {column} is about {means[column]:.0e}, and beside it the features vary "
                f"by {spread:.0e}, which is nothing; subtract its mean, or leave it out"
            )

    @property
    def _smallest(self) -> float:
        """The smallest mean variance that can be inverted."""
        return smallest_spread(self.problem.X) ** 2

    def constant_domains(self) -> list[Hashable]:
        """The domains of several rows that are all the same."""
        constant = []
        for e, label in enumerate(self.problem.labels):
            if length(self.problem.index[e]) > 1:
                mean, variances = self._mean_and_variances(e)
                if not np.any(variances > np.maximum(self._noise(mean), self._smallest)):
                    constant.append(label)
        return constant

    def ridge(self, chosen: Sequence[int], whitening: Whitening, l2: float) -> float:
        """The ridge on canonical weights that is l2 in the common unit.

        Adjustments shrunk towards (tr/d) I divide by the root of a second moment of their own,
        with or without the means; where all domains are alike and ρ = 1, DARE without its penalty
        is then the same problem as ERM. The raw identity has no unit to convert from.
        """
        if not whitening.adjust or whitening.target == "identity":
            return l2
        unit = self.unit(chosen)
        X = self.problem.X
        scales = [
            m.scale(centered=whitening.centered) if whitening.can_invert(m, X) else unit
            for m in map(self.moments, chosen)
        ]
        return l2 * unit / float(np.mean(scales))

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
        varying = [m for m in moments if whitening.can_invert(m, self.problem.X)]
        # Rows that do not differ have no second moment to pool.
        return whitening.common(varying, work_dtype(self.problem.X)) if varying else None

    def adjustment(
        self, e: int, chosen: Sequence[int], whitening: Whitening, common: Array | None
    ) -> Adjustment:
        """The adjustment of one domain, beside the chosen ones."""
        moments = self.moments(e)
        if not whitening.can_invert(moments, self.problem.X):
            # Rows that do not differ say nothing of their scale: take the other domains'.
            scale = 1.0 if common is not None else self.unit(chosen) ** -0.5
            return Adjustment(moments.d, scale, common=common)
        return self.domains[e].adjustment(whitening, common)
