"""Leave-one-domain-out search: moments and spectra once for all folds, warm starts along l2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from skdare.arrays import length
from skdare.arrays.passes import Part, route
from skdare.fitting.domain_fit import (
    Fitted,
    blended_shift,
    fit_adjusted,
    trust_in,
    weights_for_unseen,
)
from skdare.fitting.plan import Plan
from skdare.fitting.predictions import hits, squared_error
from skdare.fitting.problem import Problem
from skdare.fitting.solver import Solving
from skdare.fitting.statistics import Statistics
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.whitening import RowsAlike, Whitening

# From the simplest: within a few standard errors the earlier is preferred.
STRATEGIES = ("erm", "reweighted", "averaged", "raw", "centered")
ADAPTING = ("raw", "centered")
NOWHERE_WORSE = 0.005
Start = tuple[np.ndarray, np.ndarray] | None


@dataclass(frozen=True)
class Candidate:
    """One combination of options under trial, and the problem it stands for."""

    strategy: str
    plan: Plan

    @property
    def adapts(self) -> bool:
        """Whether it needs unlabelled rows of the new domain."""
        return self.strategy in ADAPTING


def domain_scores(
    problem: Problem,
    statistics: Statistics,
    candidates: Sequence[Candidate],
    solving: Solving,
    prior_rows: float,
) -> np.ndarray:
    """Score of every candidate on every domain, trained on the others, (candidates, domains).

    Candidates that differ in l2 alone are solved from the largest down, each from the last.
    """
    scores = np.empty((len(candidates), len(problem.index)))
    order = sorted(range(len(candidates)), key=lambda c: _path_key(candidates[c]))
    for whitening, group in groupby(order, key=lambda c: candidates[c].plan.whitening):
        numbers, folds = list(group), _Folds(problem, statistics, whitening)
        for held_out in range(len(problem.index)):
            try:
                fold = folds.without(held_out)
                for _, path in groupby(numbers, key=lambda c: _path_key(candidates[c])[:-1]):
                    start = None
                    for c in path:
                        fitted = fold.fit(candidates[c].plan, solving, start)
                        start = fitted.start
                        scores[c, held_out] = fold.score(
                            candidates[c], fitted, prior_rows, intercept=solving.intercept
                        )
            except RowsAlike:  # without this domain no feature varies, and nothing is learnt
                scores[numbers, held_out] = np.nan
    return scores


def _path_key(candidate: Candidate) -> tuple[str, bool, str, float]:
    plan = candidate.plan
    return repr(plan.whitening), plan.by_rows, repr(plan.form), -plan.l2


class _Folds:
    """The adjustments of one whitening, shared by every fold."""

    def __init__(self, problem: Problem, statistics: Statistics, whitening: Whitening) -> None:
        self.problem, self.statistics, self.whitening = problem, statistics, whitening
        # A scalar, or a pool of the training domains, depends on who is left out.
        self.shared: list[Adjustment] | None = None
        if self.whitening.adjust and self.whitening.target != "pooled":
            everyone = range(len(problem.index))
            self.shared = statistics.adjustments(everyone, self.whitening)

    def without(self, held_out: int) -> _Fold:
        """Train on every other domain."""
        chosen = [e for e in range(len(self.problem.index)) if e != held_out]
        if self.shared is not None:
            adjustments, own = [self.shared[e] for e in chosen], self.shared[held_out]
        else:
            adjustments = self.statistics.adjustments(chosen, self.whitening)
            given = (held_out, chosen, self.whitening, adjustments[0].common)
            adjust = self.whitening.adjust
            own = self.statistics.adjustment(*given) if adjust else adjustments[0]
        return _Fold(self.problem, self.statistics, held_out, chosen, adjustments, own)


@dataclass(frozen=True, eq=False)
class _Fold:
    problem: Problem
    statistics: Statistics
    held_out: int
    chosen: list[int]
    adjustments: list[Adjustment]
    own: Adjustment

    def fit(self, plan: Plan, solving: Solving, start: Start) -> Fitted:
        data = (self.problem, self.statistics, self.chosen)
        return fit_adjusted(*data, plan, solving, start=start, adjustments=self.adjustments)

    def score(
        self, candidate: Candidate, fitted: Fitted, prior_rows: float, *, intercept: bool
    ) -> float:
        """Accuracy, or R², on the held-out domain as an unseen one, adapted to where it can be."""
        W = average(self.adjustments)
        if candidate.adapts:
            trust = trust_in(length(self.problem.index[self.held_out]), prior_rows)
            own_mean = self.statistics.domain_mean(self.held_out)
            shift = blended_shift(candidate.plan, fitted, own_mean, trust)
            weights = fitted.weights(average([self.own, W], [trust, 1.0 - trust]), shift)
        else:
            means = [self.statistics.domain_mean(e) for e in self.chosen]
            shares = [1.0 / len(means)] * len(means)
            unseen = (fitted, candidate.plan, W, means, shares)
            weights = weights_for_unseen(*unseen, intercept=intercept)
        return score_domain(self.problem, self.held_out, *weights)


def score_domain(problem: Problem, e: int, V: np.ndarray, b: np.ndarray) -> float:
    """Accuracy of classes, R² of numbers, on the rows of a domain, weighted."""
    weight, T = problem.domain_weight(e), problem.T[problem.index[e]]
    part = Part(problem.X, problem.index[e], (T, weight))
    if not problem.loss.constant_curvature:
        return float(sum(route([part]).run(hits, [(V, b)])) / weight.sum())
    total = weight @ (T - np.average(T, weights=weight)) ** 2
    # Targets are standardised, so a domain of one target has only rounding left.
    if not total > 1e-12 * weight.sum():
        return np.nan
    return float(1.0 - sum(route([part]).run(squared_error, [(V, b)])) / total)


def bounded(scores: np.ndarray) -> np.ndarray:
    """Scores of the domains that have one; an R² below -1 counts as -1, so that none drowns all."""
    return np.maximum(scores[:, ~np.isnan(scores).any(axis=0)], -1.0)


def choose(candidates: Sequence[Candidate], scores: np.ndarray, standard_errors: float) -> int:
    """The number of the chosen candidate.

    Each strategy is led by its candidate of the highest mean over held-out domains. From the
    simplest on, a leader is taken that beats every simpler one and comes within so many standard
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
    best, highest = int(means.argmax()), -np.inf
    for strategy in sorted(leaders, key=STRATEGIES.index):
        leader = leaders[strategy]
        gaps = scores[best] - scores[leader]
        error = np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
        luck = np.mean(gaps) <= standard_errors * error and np.min(gaps) < -NOWHERE_WORSE
        if means[leader] >= highest and (np.mean(gaps) <= 0 or luck):
            return leader
        highest = max(highest, means[leader])
    return best
