"""A domain that was left out: how it is adjusted, and how weights score on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skdare.arrays.passes import RowPart
from skdare.choosing.folds import Folds, others
from skdare.choosing.scoring import HeldOutScore
from skdare.choosing.strategies import Candidate
from skdare.fitting.canonical_fit import CanonicalWeights, raw_weights
from skdare.fitting.domain_fit import blended_shift
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.prior import PriorRows
from skdare.whitening.whitening import RowsAlike


def possible(folds: Folds, problem: Problem, statistics: ProblemStatistics) -> list[Sequence[int]]:
    """The folds without which features and classes still vary, so that something can be learnt."""
    kept = []
    for fold in folds:
        try:
            statistics.unit(others(fold, len(statistics.domains)))
        except RowsAlike:
            continue
        if not leaves_one_class(problem, fold):
            kept.append(fold)
    return kept


def leaves_one_class(problem: Problem, fold: Sequence[int]) -> bool:
    """Whether the other domains have a single class, so that there is nothing to learn there."""
    if not isinstance(problem.targets, Classes):
        return False
    rest = [problem.T[problem.index[e]] for e in others(fold, len(problem.index))]
    return len(np.unique(np.concatenate(rest))) == 1


def adjustments_of(
    statistics: ProblemStatistics, candidate: Candidate, folds: Folds
) -> list[Adjustment]:
    """Adjustments of all domains; without whitening, one scalar, by the domains in training.

    A domain that no fold is fitted to may be far larger, and a solver would take the rows of the
    others for nothing.
    """
    everyone = range(len(statistics.domains))
    whitening = candidate.formulation.whitening
    if whitening.adjust:
        return statistics.adjustments(everyone, whitening)
    return statistics.adjustments(trained_in(folds, statistics), whitening)[:1] * len(everyone)


def trained_in(folds: Folds, statistics: ProblemStatistics) -> list[int]:
    """The domains that some fit is fitted to."""
    return sorted({e for fold in folds for e in others(fold, len(statistics.domains))})


class LeftOut:
    """Domains that were left out of a fit to the others.

    Parameters
    ----------
    problem : Problem
    statistics : ProblemStatistics
    candidate : Candidate
    adjustments : sequence of Adjustment
        Of all domains.
    fold : sequence of int
        The domains left out.
    """

    def __init__(
        self,
        problem: Problem,
        statistics: ProblemStatistics,
        candidate: Candidate,
        adjustments: Sequence[Adjustment],
        fold: Sequence[int],
    ) -> None:
        chosen = others(fold, len(statistics.domains))
        self.fold = fold
        self.chosen = chosen
        self.problem = problem
        self.statistics = statistics
        self.formulation = candidate.formulation
        self.adjustments = adjustments
        self._last: tuple[int, Adjustment, np.ndarray | None] | None = None
        self._guess = average([adjustments[e] for e in chosen])
        self._mean = statistics.mean(chosen)
        self._prior_rows = None
        if candidate.adjusts_new:
            moments = [statistics.moments(e) for e in chosen]
            self._prior_rows = PriorRows.of_domains(moments, self.formulation.whitening)

    @classmethod
    def of_folds(
        cls,
        problem: Problem,
        statistics: ProblemStatistics,
        candidate: Candidate,
        folds: Folds,
    ) -> Iterator[LeftOut]:
        """Left-out domains, fold by fold."""
        if not folds:
            return
        adjustments = adjustments_of(statistics, candidate, folds)
        for fold in folds:
            yield cls(problem, statistics, candidate, adjustments, fold)

    def adjusted(self, e: int) -> tuple[Adjustment, np.ndarray | None]:
        """The adjustment of a domain, and what is subtracted from its rows."""
        if self._last is None or self._last[0] != e:
            self._last = e, *self._adjusted(e)
        return self._last[1:]

    def _adjusted(self, e: int) -> tuple[Adjustment, np.ndarray | None]:
        if self._prior_rows is None:
            return self._guess, None
        trust = self._prior_rows.trust(float(self.problem.domain_weight(e).sum()))
        shares = [trust.adjustment, 1.0 - trust.adjustment]
        mean = self.statistics.domain_mean(e)
        shift = blended_shift(self.formulation, self._mean, mean, trust)
        return average([self.adjustments[e], self._guess], shares), shift

    def raw_weights(self, e: int, weights: CanonicalWeights) -> tuple[np.ndarray, np.ndarray]:
        """Canonical weights on the features of a domain."""
        return raw_weights(weights, *self.adjusted(e))

    def score(self, e: int, weights: CanonicalWeights, score: HeldOutScore) -> float:
        """The score of canonical weights on a domain."""
        problem = self.problem
        index = problem.index[e]
        part = RowPart(problem.X, index, (problem.T[index], problem.domain_weight(e)))
        return score(part, self.raw_weights(e, weights))
