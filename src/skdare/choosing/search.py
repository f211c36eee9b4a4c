"""Scores of every candidate on domains that it was not fitted to.

Training domains are left out in a few folds of whole domains. The rows of a strategy are adjusted
once; all its folds and ridges are then solved together on them (`lockstep`, `ridge`).

Notation: X (n, d) rows, Z (n, d) adjusted rows, W (d, d) adjustment, B (k, d) weights on adjusted
rows, b (k,) intercept, V (d, k) weights on raw features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from joblib import effective_n_jobs

from skdare.arrays import length
from skdare.arrays.passes import RowPart
from skdare.choosing.lockstep import LogisticProblems
from skdare.choosing.ridge import RidgeProblems
from skdare.choosing.scoring import HeldOutScore, Scoring
from skdare.choosing.strategies import Candidate
from skdare.fitting.adjusted_rows import adjusted_rows
from skdare.fitting.canonical_fit import CanonicalWeights, raw_weights
from skdare.fitting.domain_fit import blended_shift
from skdare.fitting.formulation import MeanTreatment
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes
from skdare.whitening.adjustment import average
from skdare.whitening.prior import PriorRows
from skdare.whitening.whitening import RowsAlike, Whitening

# Three digits are enough to rank candidates.
_TOL = 4e-4
_MAX_ITER = 200

Folds = Sequence[Sequence[int]]
"""The numbers of the domains that are left out together."""


def folds_of(sizes: Sequence[int], at_most: int) -> list[list[int]]:
    """Whole domains in folds of about as many rows; each alone where there are few."""
    folds: list[list[int]] = [[] for _ in range(min(at_most, len(sizes)))]
    rows = np.zeros(len(folds))
    for e in sorted(range(len(sizes)), key=lambda e: -sizes[e]):
        smallest = int(rows.argmin())
        folds[smallest].append(e)
        rows[smallest] += sizes[e]
    return [sorted(fold) for fold in folds]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found out.

    Parameters
    ----------
    scores : array of shape (candidates, domains)
        Of every candidate on every domain, fitted without its fold.
    weights : list of canonical weights, or None
        Of every candidate, averaged over its fits: where one to all domains can start.
    """

    scores: np.ndarray
    weights: list[CanonicalWeights | None]


def search(
    problem: Problem,
    statistics: ProblemStatistics,
    candidates: Sequence[Candidate],
    folds: Folds,
    *,
    intercept: bool,
    scoring: Scoring = None,
    n_jobs: int | None = None,
) -> SearchResult:
    """Fit every candidate without each fold, and score it on the domains left out."""
    score = HeldOutScore(problem.targets, scoring)
    rungs = [list(group) for _, group in groupby(candidates, key=_rows_key)]

    def result_of(group: Sequence[Candidate]) -> SearchResult:
        return _Rung(problem, statistics, group, score, intercept=intercept).result(folds)

    with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
        results = list(pool.map(result_of, rungs))
    return SearchResult(
        np.concatenate([result.scores for result in results]),
        [weights for result in results for weights in result.weights],
    )


def _rows_key(candidate: Candidate) -> tuple[Whitening, MeanTreatment, bool]:
    formulation = candidate.formulation
    return formulation.whitening, formulation.means, candidate.adapts


class _Rung:
    """The candidates of the same adjusted rows, which differ in ridges and in what rows weigh."""

    def __init__(
        self,
        problem: Problem,
        statistics: ProblemStatistics,
        candidates: Sequence[Candidate],
        score: HeldOutScore,
        *,
        intercept: bool,
    ) -> None:
        self.problem = problem
        self.statistics = statistics
        self.candidates = candidates
        self.formulation = candidates[0].formulation
        self.adapts = candidates[0].adapts
        self.score = score
        self.intercept = intercept
        # Without whitening, one scalar for all.
        self.adjustments = statistics.adjustments(
            range(len(problem.index)), self.formulation.whitening
        )
        self.order = np.concatenate([np.arange(len(problem.T))[i] for i in problem.index])
        self.starts = np.cumsum([0, *(length(i) for i in problem.index)])
        domains = range(len(problem.index))
        means: list[np.ndarray | None] = [None] * len(domains)
        if self.formulation.means.center_in_training:
            means = [statistics.domain_mean(e) for e in domains]
        self.Z = adjusted_rows(problem, domains, self.adjustments, means)
        self.centre = np.zeros(problem.d)
        if intercept:  # which then is the score at this point: a solver is quicker with it
            self.centre = self.Z.mean(axis=0, dtype=np.float64)
            self.Z -= self.centre.astype(self.Z.dtype)

    def result(self, folds: Folds) -> SearchResult:
        """Scores of the candidates on every left-out domain, and their averaged fits."""
        everyone = range(len(self.problem.index))
        candidates = self.candidates
        scores = np.full((len(candidates), len(everyone)), np.nan)
        folds = [fold for fold in folds if self._can_leave_out(fold)]
        if not folds:
            return SearchResult(scores, [None] * len(candidates))
        chosen = [[e for e in everyone if e not in fold] for fold in folds]
        weighings = sorted({candidate.formulation.by_rows for candidate in candidates})
        weights = [self._row_weights(others, by_rows) for others in chosen for by_rows in weighings]
        weighing = [weighings.index(candidate.formulation.by_rows) for candidate in candidates]
        group = np.add.outer(len(weighings) * np.arange(len(folds)), weighing)
        units = [self._ridge(others, 1.0) for others in chosen]
        ridge = np.outer(units, [candidate.formulation.l2 for candidate in candidates])
        B, b = self._solve(np.stack(weights), group.ravel(), ridge.ravel())
        B = B.reshape(*group.shape, *B.shape[1:])
        b = b.reshape(*group.shape, -1) - B @ self.centre
        for f, fold in enumerate(folds):
            fits = list(zip(B[f], b[f], strict=True))
            for e, domain_scores in self._fold_scores(fits, chosen[f], fold):
                scores[:, e] = domain_scores
        averages = zip(B.mean(axis=0), b.mean(axis=0), strict=True)
        return SearchResult(scores, [(B.T, b) for B, b in averages])

    def _can_leave_out(self, fold: Sequence[int]) -> bool:
        """Whether the features vary without these domains, and something can be learnt."""
        try:
            self.statistics.unit([e for e in range(len(self.problem.index)) if e not in fold])
        except RowsAlike:
            return False
        return True

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
        for e in chosen:
            own = self.problem.domain_weight(e)
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
