"""Scores of mixtures on domains that were left out.

A mixture starts from fits that a search has made already, so that trying one costs no fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs

from skdare.arrays import take
from skdare.choosing.folds import Folds
from skdare.choosing.left_out import LeftOut, adjustments_of, others, possible
from skdare.choosing.scoring import HeldOutScore, Scoring
from skdare.choosing.search import Fits
from skdare.choosing.strategies import STRATEGIES, Candidate
from skdare.fitting.mixture import ClassesFound, ClassPlaces, ClassSums, NewRows
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics


def starting_point(name: str, candidates: Sequence[Candidate], means: np.ndarray) -> int:
    """The candidate that a mixture of this name starts from: the best of its base."""
    base = STRATEGIES[name].base
    own = [c for c, candidate in enumerate(candidates) if candidate.strategy == base]
    return max(own, key=lambda c: means[c])


def mixture_scores(
    problem: Problem,
    statistics: ProblemStatistics,
    candidates: Sequence[Candidate],
    fits: Sequence[Fits],
    folds: Folds,
    *,
    scoring: Scoring = None,
    n_jobs: int | None = None,
    timed: Callable[[Candidate, float], None] | None = None,
) -> np.ndarray:
    """Score of every mixture on every domain, from fits without it, (candidates, domains)."""
    score = HeldOutScore(problem.targets, scoring)
    scores = np.full((len(candidates), len(problem.index)), np.nan)
    folds = possible(folds, problem, statistics)
    sums = ClassSums.of_problem(problem)

    def score_all_on(base: str | None) -> None:
        start = time.perf_counter()
        own = [c for c in range(len(candidates)) if _base(candidates[c]) == base]
        candidate = candidates[own[0]]
        adjustments = adjustments_of(statistics, candidate, folds)
        for fold in folds:
            chosen = others(fold, statistics)
            left_out = LeftOut(problem, statistics, candidate, adjustments, chosen, score)
            places = ClassPlaces.of_domains(
                [sums[e] for e in chosen],
                [statistics.moments(e) for e in chosen],
                [adjustments[e] for e in chosen],
                candidate.formulation,
            )
            for e in fold:
                X = take(problem.X, problem.index[e])
                weight = problem.domain_weight(e)
                rows = NewRows.of(X, weight, statistics.moments(e), *left_out.adjusted(e))
                found = ClassesFound(places, rows)
                for c in own:
                    mixture = candidates[c].mixture
                    assert mixture is not None
                    scores[c, e] = left_out.score(e, found.weights(mixture, *fits[c][e]))
        if timed is not None:
            for c in own:
                timed(candidates[c], (time.perf_counter() - start) / len(own))

    with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
        list(pool.map(score_all_on, dict.fromkeys(map(_base, candidates))))
    return scores


def _base(candidate: Candidate) -> str | None:
    return STRATEGIES[candidate.strategy].base
