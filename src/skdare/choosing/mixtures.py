"""Classes looked for in domains that were left out: how mixtures score, what is found where.

A mixture starts from fits that a search has made already, so that trying one costs no fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs

from skdare.arrays import take
from skdare.arrays.passes import RowPart
from skdare.choosing.folds import Folds
from skdare.choosing.left_out import LeftOut, possible
from skdare.choosing.scoring import HeldOutScore, Scoring
from skdare.choosing.search import Fits, SearchResult
from skdare.choosing.strategies import STRATEGIES, Candidate
from skdare.fitting.guard import covariance_within, log_separation
from skdare.fitting.mixture import (
    ClassFinder,
    ClassPlaces,
    ClassSums,
    NewRows,
    sums_by_class,
)
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.objective.scores import predicted_columns


def starting_point(name: str, candidates: Sequence[Candidate], means: np.ndarray) -> int:
    """The candidate that a mixture of this name starts from: the best of its base."""
    base = STRATEGIES[name].base
    own = [c for c, candidate in enumerate(candidates) if candidate.strategy == base]
    return max(own, key=lambda c: means[c])


def mixture_results(
    problem: Problem,
    statistics: ProblemStatistics,
    candidates: Sequence[Candidate],
    fits: Sequence[Fits],
    folds: Folds,
    *,
    scoring: Scoring = None,
    n_jobs: int | None = None,
    timed: Callable[[Candidate, float], None] | None = None,
) -> SearchResult:
    """Weights and score of every mixture on every domain, from fits without it."""
    score = HeldOutScore(problem.targets, scoring)
    result = SearchResult(
        np.full((len(candidates), len(problem.index)), np.nan), [{} for _ in candidates]
    )
    folds = possible(folds, problem, statistics)
    sums = _class_sums(problem, statistics)

    def try_all_on(base: str | None) -> None:
        start = time.perf_counter()
        own = [c for c in range(len(candidates)) if _base(candidates[c]) == base]
        for left_out in LeftOut.of_folds(problem, statistics, candidates[own[0]], folds):
            for e, found in _classes_found(left_out, sums):
                for c in own:
                    mixture = candidates[c].mixture
                    assert mixture is not None
                    weights = found.weights(mixture, *fits[c][e])
                    result.fits[c][e] = weights
                    result.scores[c, e] = left_out.score(e, weights, score)
        if timed is not None:
            for c in own:
                timed(candidates[c], (time.perf_counter() - start) / len(own))

    with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
        list(pool.map(try_all_on, dict.fromkeys(map(_base, candidates))))
    return result


def separations_found(
    problem: Problem,
    statistics: ProblemStatistics,
    candidate: Candidate,
    weights: Fits,
    folds: Folds,
) -> dict[int, float]:
    """How far apart the classes lie that a candidate finds in each left-out domain."""
    folds = possible(folds, problem, statistics)
    sums = _class_sums(problem, statistics)
    separations = {}
    for left_out in LeftOut.of_folds(problem, statistics, candidate, folds):
        chosen = left_out.chosen
        moments = [statistics.moments(e) for e in chosen]
        within = covariance_within([sums[e] for e in chosen], moments)
        for e in left_out.fold:
            index = problem.index[e]
            numbers = predicted_columns(problem.X, index, *left_out.raw_weights(e, weights[e]))
            part = RowPart(problem.X, index, (problem.domain_weight(e),))
            own = sums_by_class(part, numbers, statistics.domain_mean(e), len(sums[0].weight))
            separations[e] = log_separation(own, statistics.moments(e), within)
    return separations


def _class_sums(problem: Problem, statistics: ProblemStatistics) -> list[ClassSums]:
    means = [statistics.domain_mean(e) for e in range(len(problem.index))]
    return ClassSums.of_problem(problem, means)


def _classes_found(
    left_out: LeftOut, sums: Sequence[ClassSums]
) -> Iterator[tuple[int, ClassFinder]]:
    """Each domain of a fold, and what finds its classes."""
    problem = left_out.problem
    statistics = left_out.statistics
    chosen = left_out.chosen
    places = ClassPlaces.of_domains(
        [sums[e] for e in chosen],
        [statistics.moments(e) for e in chosen],
        [left_out.adjustments[e] for e in chosen],
        left_out.formulation,
    )
    for e in left_out.fold:
        X = take(problem.X, problem.index[e])
        weight = problem.domain_weight(e)
        rows = NewRows.of(X, weight, statistics.moments(e), *left_out.adjusted(e))
        yield e, ClassFinder(places, rows)


def _base(candidate: Candidate) -> str | None:
    return STRATEGIES[candidate.strategy].base
