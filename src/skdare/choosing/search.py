"""Scores of every candidate on domains that it was not fitted to.

Training domains are left out in a few folds of whole domains. The rows of a strategy are adjusted
once; all its folds and ridges are then solved together on them (`lockstep`, `ridge`).

Notation: X (n, d) rows, Z (n, d) adjusted rows, W (d, d) adjustment, B (k, d) weights on adjusted
rows, b (k,) intercept, V (d, k) weights on raw features.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from joblib import effective_n_jobs

from skdare.arrays import length
from skdare.choosing.folds import Folds, others
from skdare.choosing.left_out import LeftOut, adjustments_of, possible, trained_in
from skdare.choosing.lockstep import LogisticProblems
from skdare.choosing.ridge import RidgeProblems
from skdare.choosing.scoring import HeldOutScore, Scoring
from skdare.choosing.strategies import Candidate
from skdare.fitting.adjusted_rows import adjusted_rows
from skdare.fitting.canonical_fit import CanonicalWeights
from skdare.fitting.formulation import MeanTreatment
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes
from skdare.whitening.whitening import Whitening

# Three digits are enough to rank candidates.
_TOL = 4e-4
_MAX_ITER = 200


Fits = dict[int, CanonicalWeights]
"""Canonical weights by domain, fitted without it."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found out.

    Parameters
    ----------
    scores : array of shape (candidates, domains)
        Of every candidate on every domain, fitted without its fold.
    fits : list of Fits
        Of every candidate.
    """

    scores: np.ndarray
    fits: list[Fits]


def search(
    problem: Problem,
    statistics: ProblemStatistics,
    candidates: Sequence[Candidate],
    folds: Folds,
    *,
    intercept: bool,
    scoring: Scoring = None,
    n_jobs: int | None = None,
    timed: Callable[[Candidate, float], None] | None = None,
) -> SearchResult:
    """Fit every candidate without each fold, and score it on the domains left out.

    ``timed`` is told how many seconds a candidate took, together with those that differ from it in
    their ridge alone; strategies that share rows share the time.
    """
    score = HeldOutScore(problem.targets, scoring)
    folds = possible(folds, problem, statistics)
    if not folds:
        scores = np.full((len(candidates), len(problem.index)), np.nan)
        return SearchResult(scores, [{} for _ in candidates])
    groups = [list(group) for _, group in groupby(candidates, key=_rows_key)]

    def result_of(group: Sequence[Candidate]) -> SearchResult:
        start = time.perf_counter()
        result = _Rung(problem, statistics, group, score, folds, intercept=intercept).result()
        if timed is not None:
            strategies = {candidate.strategy: candidate for candidate in group}
            for candidate in strategies.values():
                timed(candidate, (time.perf_counter() - start) / len(strategies))
        return result

    with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
        results = list(pool.map(result_of, groups))
    return SearchResult(
        np.concatenate([result.scores for result in results]),
        [fits for result in results for fits in result.fits],
    )


def _rows_key(candidate: Candidate) -> tuple[Whitening, MeanTreatment, bool]:
    formulation = candidate.formulation
    return formulation.whitening, formulation.means, candidate.adjusts_new


class _Rung:
    """The candidates of the same adjusted rows, which differ in ridges and in what rows weigh."""

    def __init__(
        self,
        problem: Problem,
        statistics: ProblemStatistics,
        candidates: Sequence[Candidate],
        score: HeldOutScore,
        folds: Folds,
        *,
        intercept: bool,
    ) -> None:
        self.problem = problem
        self.statistics = statistics
        self.candidates = candidates
        self.formulation = candidates[0].formulation
        self.score = score
        self.folds = folds
        self.intercept = intercept
        self.adjustments = adjustments_of(statistics, candidates[0], folds)
        self.order = np.concatenate([np.arange(len(problem.T))[i] for i in problem.index])
        self.starts = np.cumsum([0, *(length(i) for i in problem.index)])
        domains = range(len(problem.index))
        means: list[np.ndarray | None] = [None] * len(domains)
        if self.formulation.means.center_in_training:
            means = [statistics.domain_mean(e) for e in domains]
        self.Z = adjusted_rows(problem, domains, self.adjustments, means)
        self.centre = np.zeros(problem.d)
        if intercept:  # which then is the score at this point: a solver is quicker with it
            trained = trained_in(folds, statistics)
            rows = np.concatenate([np.r_[self.starts[e] : self.starts[e + 1]] for e in trained])
            fitted = self.Z if len(rows) == len(self.Z) else self.Z[rows]
            self.centre = fitted.mean(axis=0, dtype=np.float64)
            self.Z -= self.centre.astype(self.Z.dtype)

    def result(self) -> SearchResult:
        """Scores of the candidates on every left-out domain, and their fits."""
        candidates = self.candidates
        chosen = [others(fold, len(self.problem.index)) for fold in self.folds]
        weighings = sorted({candidate.formulation.by_rows for candidate in candidates})
        weights = [self._row_weights(some, by_rows) for some in chosen for by_rows in weighings]
        weighing = [weighings.index(candidate.formulation.by_rows) for candidate in candidates]
        group = np.add.outer(len(weighings) * np.arange(len(chosen)), weighing)
        units = [self._ridge(some, 1.0) for some in chosen]
        ridge = np.outer(units, [candidate.formulation.l2 for candidate in candidates])
        B, b = self._solve(np.stack(weights), group.ravel(), ridge.ravel())
        B = B.reshape(*group.shape, *B.shape[1:])
        b = b.reshape(*group.shape, -1) - B @ self.centre
        scores = np.full((len(candidates), len(self.problem.index)), np.nan)
        fits: list[Fits] = [{} for _ in candidates]
        for f, fold in enumerate(self.folds):
            left_out = LeftOut(
                self.problem,
                self.statistics,
                candidates[0],
                self.adjustments,
                fold,
            )
            for e in fold:
                for c in range(len(candidates)):
                    fits[c][e] = B[f, c].T, b[f, c]
                    scores[c, e] = left_out.score(e, fits[c][e], self.score)
        return SearchResult(scores, fits)

    def _solve(
        self, weights: np.ndarray, group: np.ndarray, ridge: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """B (p, k, d) and b (p, k) of all folds and candidates."""
        T = self.problem.T[self.order]
        if not isinstance(self.problem.targets, Classes):
            return RidgeProblems(self.Z, T, weights, group, ridge, self.intercept).solve()
        k = self.problem.k
        candidate = np.arange(len(group)) % len(self.candidates)
        problems = LogisticProblems(self.Z, T, k, weights, group, ridge, self.intercept, candidate)
        return problems.solve(tol=_TOL, max_iter=_MAX_ITER)

    def _row_weights(self, chosen: Sequence[int], by_rows: bool) -> np.ndarray:
        """Weights of all rows that sum to one over the chosen domains."""
        weight = np.zeros(len(self.order), dtype=self.Z.dtype)
        loss_weight = self.problem.loss_weight_among(chosen)
        for e in chosen:
            own = loss_weight[self.problem.index[e]]
            share = 1.0 if by_rows else 1.0 / own.sum()
            weight[self.starts[e] : self.starts[e + 1]] = share * own
        weight /= weight.sum()
        return weight

    def _ridge(self, chosen: Sequence[int], l2: float) -> float:
        """l2 in the unit of the adjusted rows of the chosen domains."""
        whitening = self.formulation.whitening
        if not whitening.adjust:
            return l2 * self.statistics.unit(chosen) * self.adjustments[0].scale ** 2
        return self.statistics.ridge(chosen, whitening, l2)
