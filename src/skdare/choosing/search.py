"""Scores of every candidate on domains that it was not fitted to.

Training domains are left out in a few folds of whole domains. The rows of a strategy are adjusted
once; all its folds and ridges are then solved together on them (`lockstep`, `ridge`).

Notation: X (n, d) rows, Z (n, d) adjusted rows, W (d, d) adjustment, B (k, d) weights on adjusted
rows, b (k,) intercept, V (d, k) weights on raw features.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np
from joblib import effective_n_jobs

from skdare.arrays import length, take
from skdare.arrays.passes import RowPart
from skdare.choosing.folds import Folds
from skdare.choosing.lockstep import LogisticProblems
from skdare.choosing.ridge import RidgeProblems
from skdare.choosing.scoring import HeldOutScore, Scoring
from skdare.choosing.strategies import Candidate
from skdare.fitting.canonical_fit import raw_weights
from skdare.fitting.domain_fit import blended_shift
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes
from skdare.whitening.adjustment import average
from skdare.whitening.prior import PriorRows
from skdare.whitening.whitening import RowsAlike, Whitening

# Three digits are enough to rank candidates.
_TOL = 5e-4
_MAX_ITER = 200


def held_out_scores(
    problem: Problem,
    statistics: ProblemStatistics,
    candidates: Sequence[Candidate],
    folds: Folds,
    *,
    intercept: bool,
    scoring: Scoring = None,
    n_jobs: int | None = None,
    timed: Callable[[Candidate, float], None] | None = None,
) -> np.ndarray:
    """Score of every candidate on every domain, fitted without its fold, (candidates, domains).

    ``timed`` is told how many seconds a candidate took, together with those that differ from it in
    their ridge alone.
    """
    score = HeldOutScore(problem.targets, scoring)
    everyone = range(len(problem.index))
    folds = [
        fold
        for fold in folds
        if _can_leave_out(statistics, fold) and not leaves_one_class(problem, fold)
    ]
    if not folds:
        return np.full((len(candidates), len(everyone)), np.nan)
    trained = sorted({e for fold in folds for e in everyone if e not in fold})
    groups = [list(group) for _, group in groupby(candidates, key=_rows_key)]

    def scores_of(group: Sequence[Candidate]) -> np.ndarray:
        start = time.perf_counter()
        rung = _Rung(problem, statistics, group[0], score, trained, intercept=intercept)
        scores = rung.scores([candidate.formulation.l2 for candidate in group], folds)
        if timed is not None:
            timed(group[0], time.perf_counter() - start)
        return scores

    with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
        return np.concatenate(list(pool.map(scores_of, groups)))


def _can_leave_out(statistics: ProblemStatistics, fold: Sequence[int]) -> bool:
    """Whether the features vary without these domains, and something can be learnt."""
    try:
        statistics.unit([e for e in range(len(statistics.domains)) if e not in fold])
    except RowsAlike:
        return False
    return True


def leaves_one_class(problem: Problem, fold: Sequence[int]) -> bool:
    """Whether the other domains have a single class, so that there is nothing to learn there."""
    if not isinstance(problem.targets, Classes):
        return False
    others = [problem.T[i] for e, i in enumerate(problem.index) if e not in fold]
    return len(np.unique(np.concatenate(others))) == 1


def _rows_key(candidate: Candidate) -> tuple[Whitening, bool, bool]:
    formulation = candidate.formulation
    return formulation.whitening, formulation.by_rows, candidate.adapts


class _Rung:
    """The candidates that differ in their ridge alone."""

    def __init__(
        self,
        problem: Problem,
        statistics: ProblemStatistics,
        candidate: Candidate,
        score: HeldOutScore,
        trained: Sequence[int],
        *,
        intercept: bool,
    ) -> None:
        self.problem = problem
        self.statistics = statistics
        self.formulation = candidate.formulation
        self.adapts = candidate.adapts
        self.score = score
        self.intercept = intercept
        everyone = range(len(problem.index))
        self.adjustments = statistics.adjustments(everyone, self.formulation.whitening)
        if not self.formulation.whitening.adjust:
            # One scalar for all: a domain that no fold is fitted to may be far larger, and a solver
            # would take the rows of the others for nothing.
            self.adjustments = statistics.adjustments(trained, self.formulation.whitening)[:1]
            self.adjustments *= len(everyone)
        self.order = np.concatenate([np.arange(len(problem.T))[i] for i in problem.index])
        self.starts = np.cumsum([0, *(length(i) for i in problem.index)])
        self.Z = self._adjusted_rows()
        self.centre = np.zeros(problem.d)
        if intercept:  # which then is the score at this point: a solver is quicker with it
            rows = np.concatenate([np.r_[self.starts[e] : self.starts[e + 1]] for e in trained])
            fitted = self.Z if len(rows) == len(self.Z) else self.Z[rows]
            self.centre = fitted.mean(axis=0, dtype=np.float64)
            self.Z -= self.centre.astype(self.Z.dtype)

    def _adjusted_rows(self) -> np.ndarray:
        """All rows, domain after domain."""
        problem = self.problem
        Z = np.empty((len(self.order), problem.d), dtype=problem.X.dtype)
        for e, index in enumerate(problem.index):
            rows = take(problem.X, index)
            if self.formulation.means.center_in_training:
                rows = rows - self.statistics.domain_mean(e).astype(rows.dtype)
            W = self.adjustments[e]
            scaled = rows * rows.dtype.type(W.scale) if W.is_scalar else W.back(rows.T).T
            Z[self.starts[e] : self.starts[e + 1]] = scaled
        return Z

    def scores(self, l2s: Sequence[float], folds: Folds) -> np.ndarray:
        """Scores of the fits with these ridges on every left-out domain, (ridges, domains)."""
        everyone = range(len(self.problem.index))
        scores = np.full((len(l2s), len(everyone)), np.nan)
        chosen = [[e for e in everyone if e not in fold] for fold in folds]
        group = np.repeat(np.arange(len(folds)), len(l2s))
        weights = np.stack([self._row_weights(others) for others in chosen])
        ridge = np.array([self._ridge(others, l2) for others in chosen for l2 in l2s])
        B, b = self._solve(weights, group, ridge)
        b = b - B @ self.centre
        for f, fold in enumerate(folds):
            fits = [(B[p], b[p]) for p in np.flatnonzero(group == f)]
            for e, domain_scores in self._fold_scores(fits, chosen[f], fold):
                scores[:, e] = domain_scores
        return scores

    def _solve(
        self, weights: np.ndarray, group: np.ndarray, ridge: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """B (p, k, d) and b (p, k) of all folds and ridges."""
        T = self.problem.T[self.order]
        if not isinstance(self.problem.targets, Classes):
            return RidgeProblems(self.Z, T, weights, group, ridge, self.intercept).solve()
        k = self.problem.k
        problems = LogisticProblems(self.Z, T, k, weights, group, ridge, self.intercept)
        return problems.solve(tol=_TOL, max_iter=_MAX_ITER)

    def _row_weights(self, chosen: Sequence[int]) -> np.ndarray:
        """Weights of all rows that sum to one over the chosen domains."""
        weight = np.zeros(len(self.order), dtype=self.Z.dtype)
        loss_weight = self.problem.loss_weight_among(chosen)
        for e in chosen:
            own = loss_weight[self.problem.index[e]]
            share = 1.0 if self.formulation.by_rows else 1.0 / own.sum()
            weight[self.starts[e] : self.starts[e + 1]] = share * own
        weight /= weight.sum()
        return weight

    def _ridge(self, chosen: Sequence[int], l2: float) -> float:
        """l2 in the unit of the adjusted rows of the chosen domains."""
        whitening = self.formulation.whitening
        if not whitening.adjust:
            return l2 * self.statistics.unit(chosen) * self.adjustments[0].scale ** 2
        return self.statistics.ridge(chosen, whitening, l2)

    def _fold_scores(
        self,
        fits: Sequence[tuple[np.ndarray, np.ndarray]],
        chosen: Sequence[int],
        fold: Sequence[int],
    ) -> Iterator[tuple[int, list[float]]]:
        """Each domain of a fold with its scores by fits to the chosen domains."""
        problem = self.problem
        guess = average([self.adjustments[e] for e in chosen])
        mean = self.statistics.mean(chosen)
        prior_rows = None
        if self.adapts:
            moments = [self.statistics.moments(e) for e in chosen]
            prior_rows = PriorRows.of_domains(moments, self.formulation.whitening)
        for e in fold:
            W = guess
            shift = None
            if prior_rows is not None:
                trust = prior_rows.trust(float(problem.domain_weight(e).sum()))
                shares = [trust.adjustment, 1.0 - trust.adjustment]
                W = average([self.adjustments[e], guess], shares)
                shift = blended_shift(self.formulation, mean, self.statistics.domain_mean(e), trust)
            columns = (problem.T[problem.index[e]], problem.domain_weight(e))
            part = RowPart(problem.X, problem.index[e], columns)
            weights = [raw_weights((B.T, b), W, shift) for B, b in fits]
            yield e, [self.score(part, pair) for pair in weights]
