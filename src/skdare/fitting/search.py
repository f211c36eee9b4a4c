"""Leave-one-domain-out search: moments and spectra once for all folds, warm starts along l2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from skdare.arrays import length
from skdare.arrays.passes import RowPart
from skdare.fitting.canonical_fit import CanonicalFit, CanonicalWeights, fit_canonical
from skdare.fitting.domain_fit import blended_shift
from skdare.fitting.formulation import Formulation
from skdare.fitting.problem import Problem
from skdare.fitting.solver_options import SolverOptions
from skdare.fitting.statistics import ProblemStatistics
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.prior import PriorRows
from skdare.whitening.whitening import RowsAlike, Whitening

# From the simplest: within a few standard errors the earlier is preferred.
STRATEGIES = ("erm", "reweighted", "averaged", "raw", "centered")
ADAPTING = ("raw", "centered")
NOWHERE_WORSE = 0.005


@dataclass(frozen=True)
class Candidate:
    """One combination of options under trial, and the problem it stands for."""

    strategy: str
    formulation: Formulation

    @property
    def adapts(self) -> bool:
        """Whether it needs unlabelled rows of the new domain."""
        return self.strategy in ADAPTING


def domain_scores(
    problem: Problem,
    statistics: ProblemStatistics,
    candidates: Sequence[Candidate],
    options: SolverOptions,
    prior_rows: float,
) -> np.ndarray:
    """Score of every candidate on every domain, trained on the others, (candidates, domains).

    Candidates that differ in l2 alone are solved from the largest down, each from the last.
    """
    scores = np.empty((len(candidates), len(problem.index)))
    order = sorted(range(len(candidates)), key=lambda c: _path_key(candidates[c]))
    for whitening, group in groupby(order, key=lambda c: candidates[c].formulation.whitening):
        numbers = list(group)
        folds = _Folds(problem, statistics, whitening)
        for held_out in range(len(problem.index)):
            try:
                fold = folds.without(held_out)
                for _, path in groupby(numbers, key=lambda c: _path_key(candidates[c])[:-1]):
                    start = None
                    for c in path:
                        fit = fold.fit(candidates[c].formulation, options, start)
                        start = fit.weights
                        scores[c, held_out] = fold.score(
                            candidates[c], fit, prior_rows, intercept=options.intercept
                        )
            except RowsAlike:  # without this domain no feature varies, and nothing is learnt
                scores[numbers, held_out] = np.nan
    return scores


def _path_key(candidate: Candidate) -> tuple[str, bool, str, float]:
    formulation = candidate.formulation
    whitening = repr(formulation.whitening)
    return whitening, formulation.by_rows, repr(formulation.means), -formulation.l2


class _Folds:
    """The adjustments of one whitening, shared by every fold."""

    def __init__(
        self, problem: Problem, statistics: ProblemStatistics, whitening: Whitening
    ) -> None:
        self.problem = problem
        self.statistics = statistics
        self.whitening = whitening
        # A scalar, or a pool of the training domains, depends on who is left out.
        self.shared: list[Adjustment] | None = None
        if whitening.adjust and whitening.target != "pooled":
            self.shared = statistics.adjustments(range(len(problem.index)), whitening)

    def without(self, held_out: int) -> _Fold:
        """Train on every other domain."""
        chosen = [e for e in range(len(self.problem.index)) if e != held_out]
        if self.shared is not None:
            adjustments = [self.shared[e] for e in chosen]
            adjustment = self.shared[held_out]
        else:
            adjustments = self.statistics.adjustments(chosen, self.whitening)
            adjustment = adjustments[0]
            if self.whitening.adjust:
                adjustment = self.statistics.adjustment(
                    held_out, chosen, self.whitening, adjustment.common
                )
        return _Fold(self.problem, self.statistics, held_out, chosen, adjustments, adjustment)


@dataclass(frozen=True, eq=False)
class _Fold:
    """One domain held out, with its adjustment, and the adjustments of the chosen others."""

    problem: Problem
    statistics: ProblemStatistics
    held_out: int
    chosen: list[int]
    adjustments: list[Adjustment]
    adjustment: Adjustment

    def fit(
        self, formulation: Formulation, options: SolverOptions, start: CanonicalWeights | None
    ) -> CanonicalFit:
        return fit_canonical(
            self.problem,
            self.statistics,
            self.chosen,
            formulation,
            options,
            start=start,
            adjustments=self.adjustments,
        )

    def score(
        self, candidate: Candidate, fit: CanonicalFit, prior_rows: float, *, intercept: bool
    ) -> float:
        """Accuracy, or R², on the held-out domain as an unseen one, adapted to where it can be."""
        problem = self.problem
        e = self.held_out
        guess = average(self.adjustments)
        if candidate.adapts:
            trust = PriorRows(prior_rows, prior_rows).trust(length(problem.index[e]))
            mean = self.statistics.domain_mean(e)
            shift = blended_shift(candidate.formulation, fit.mean, mean, trust)
            W = average([self.adjustment, guess], [trust.adjustment, 1.0 - trust.adjustment])
            weights = fit.raw_weights(W, shift)
        else:
            means = [self.statistics.domain_mean(o) for o in self.chosen]
            shares = [1.0 / len(means)] * len(means)
            weights = fit.raw_weights_for_unseen(guess, means, shares, intercept=intercept)
        columns = (problem.T[problem.index[e]], problem.domain_weight(e))
        return problem.targets.score(RowPart(problem.X, problem.index[e], columns), weights)


def bounded(scores: np.ndarray) -> np.ndarray:
    """Scores of the domains that have one; an R² below -1 counts as -1, so that none drowns all."""
    return np.maximum(scores[:, ~np.isnan(scores).any(axis=0)], -1.0)


def choose(candidates: Sequence[Candidate], scores: np.ndarray, standard_errors: float) -> int:
    """The number of the chosen candidate.

    Each strategy is led by its candidate of the highest mean over held-out domains. From the
    simplest on, a leader is taken that beats every simpler one and comes within that many standard
    errors of the best, by paired differences: with few domains the highest mean is often luck.
    It is not taken where the best is nowhere worse (by more than half a point): then nothing
    speaks for luck, however uneven the gains.
    """
    scores = bounded(scores)
    if not scores.shape[1]:
        return 0
    means = scores.mean(axis=1)
    leaders: dict[str, int] = {}
    for c in sorted(range(len(candidates)), key=lambda c: means[c], reverse=True):
        leaders.setdefault(candidates[c].strategy, c)
    best = int(means.argmax())
    highest = -np.inf
    for strategy in sorted(leaders, key=STRATEGIES.index):
        leader = leaders[strategy]
        gaps = scores[best] - scores[leader]
        error = np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
        luck = np.mean(gaps) <= standard_errors * error and np.min(gaps) < -NOWHERE_WORSE
        if means[leader] >= highest and (np.mean(gaps) <= 0 or luck):
            return leader
        highest = max(highest, means[leader])
    return best
