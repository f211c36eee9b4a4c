"""All that a search tries: every strategy at every ridge, and mixtures on top of the best."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skdare.arrays import length
from skdare.choosing.folds import Folds, alike, folds_by, folds_of, others
from skdare.choosing.log import SearchLog
from skdare.choosing.mixtures import mixture_results, separations_found, starting_point
from skdare.choosing.rule import mean_scores
from skdare.choosing.sample import rows_to_search
from skdare.choosing.scoring import Scoring
from skdare.choosing.search import Fits, SearchResult, search
from skdare.choosing.strategies import STRATEGIES, Candidate, candidates_of
from skdare.fitting.canonical_fit import CanonicalWeights
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics


@dataclass(frozen=True)
class SearchOptions:
    """What a search tries, and how.

    Parameters
    ----------
    strategies : sequence of str
    shrinkage, l2 : sequences of float
    cv : int, splitter or iterable
    intercept : bool
    scoring : str, callable or None
    n_jobs, verbose : int
    """

    strategies: Sequence[str]
    shrinkage: Sequence[float]
    l2: Sequence[float]
    cv: Any
    intercept: bool
    scoring: Scoring
    n_jobs: int | None
    verbose: int


@dataclass(frozen=True, eq=False)
class SearchPart:
    """Rows, and the folds that they serve."""

    problem: Problem
    statistics: ProblemStatistics
    folds: Folds

    @property
    def left_out(self) -> list[int]:
        """The domains of these folds."""
        return sorted(e for fold in self.folds for e in fold)


class _Parts:
    """All folds: on the same rows, or each on rows whose preparation was fitted without it."""

    def __init__(self, problem: Problem, statistics: ProblemStatistics, folds: Folds) -> None:
        self.problem = problem
        self.folds = folds
        self._shared: list[SearchPart] = []
        if problem.refitted is None and folds:
            rows = rows_to_search(problem, statistics)
            units = [float(statistics.variances(self._others(fold)).mean()) for fold in folds]
            self._shared = [SearchPart(*rows, some) for some in alike(folds, units)]

    def __len__(self) -> int:
        return len(self._shared) if self.problem.refitted is None else len(self.folds)

    def __iter__(self) -> Iterator[SearchPart]:
        yield from self._shared
        if self.problem.refitted is None:
            return
        for fold in self.folds:
            own = replace(self.problem, X=self.problem.refitted(self._others(fold)))
            yield SearchPart(*rows_to_search(own, ProblemStatistics(own)), [fold])

    def _others(self, fold: Sequence[int]) -> list[int]:
        return others(fold, len(self.problem.index))

    def results(self, n: int, run: Callable[[SearchPart], SearchResult]) -> SearchResult:
        """Scores and fits of n candidates on all domains, from those of every part."""
        whole = SearchResult(np.full((n, len(self.problem.index)), np.nan), [{} for _ in range(n)])
        if not n:
            return whole
        with _undefined_scores_ignored():
            for part in self:
                result = run(part)
                whole.scores[:, part.left_out] = result.scores[:, part.left_out]
                for own, more in zip(whole.fits, result.fits, strict=True):
                    own |= more
        return whole


@dataclass(frozen=True, eq=False)
class Trials:
    """Candidates and what came of them.

    Parameters
    ----------
    candidates : list of Candidate
    folds : folds
        The domains that were left out together.
    scores : array of shape (candidates, domains)
        On every domain, without it in the fit; NaN where it could not be left out.
    fits : list of Fits
        Those of each candidate, or those that a mixture started from.
    adapted : list of Fits
        The same, with what a mixture made of them.
    parts
        The rows.
    """

    candidates: list[Candidate]
    folds: Folds
    scores: np.ndarray
    fits: list[Fits]
    adapted: list[Fits]
    parts: _Parts

    def start(self, c: int) -> CanonicalWeights | None:
        """Where a fit of a candidate to all domains can start: the mean of those without some."""
        shapes = {B.shape for B, _ in self.fits[c].values()}
        if len(shapes) != 1:  # none, or a preparation that gives other features in each fold
            return None
        B, b = zip(*self.fits[c].values(), strict=True)
        return np.mean(B, axis=0), np.mean(b, axis=0)

    def separations(self, c: int) -> np.ndarray:
        """How far apart the classes lie that a candidate finds in left-out domains."""
        found: dict[int, float] = {}
        for part in self.parts:
            found |= separations_found(
                part.problem, part.statistics, self.candidates[c], self.adapted[c], part.folds
            )
        return np.array(list(found.values()))


def try_all(problem: Problem, statistics: ProblemStatistics, options: SearchOptions) -> Trials:
    """Score every candidate on every domain of a problem, left out in folds.

    A mixture is tried at the ridge that is best for the strategy it starts from.
    """
    names = list(dict.fromkeys(options.strategies))
    mixtures = [name for name in names if STRATEGIES[name].base is not None]
    bases = [STRATEGIES[name].base or name for name in names]
    candidates = list(candidates_of(bases, options.shrinkage, options.l2))
    sizes = [length(index) for index in problem.index]
    folds: Folds = []
    if len(sizes) > 1 and isinstance(options.cv, int):
        folds = folds_of(sizes, options.cv, problem.units)
    elif len(sizes) > 1:
        folds = folds_by(options.cv, problem.T, problem.labels, problem.index, problem.units)
    parts = _Parts(problem, statistics, folds)
    timed = {(candidate.strategy, candidate.shrinkage) for candidate in candidates}
    log = SearchLog(options.verbose if folds else 0, len(parts) * (len(timed) + len(mixtures)))
    if folds:
        log.begin(len(folds), len(sizes), len(candidates) + len(mixtures))

    def tried(part: SearchPart) -> SearchResult:
        return search(
            part.problem,
            part.statistics,
            candidates,
            part.folds,
            intercept=options.intercept,
            scoring=options.scoring,
            n_jobs=options.n_jobs,
            timed=log.done,
        )

    plain = parts.results(len(candidates), tried)
    means = mean_scores(plain.scores)
    starts = [starting_point(name, candidates, means) for name in mixtures]
    pairs = zip(mixtures, starts, strict=True)
    on_top = [Candidate(name, candidates[c].formulation) for name, c in pairs]

    def mixed(part: SearchPart) -> SearchResult:
        return mixture_results(
            part.problem,
            part.statistics,
            on_top,
            [plain.fits[c] for c in starts],
            part.folds,
            scoring=options.scoring,
            n_jobs=options.n_jobs,
            timed=log.done,
        )

    moved = parts.results(len(on_top), mixed)
    asked = [c for c, candidate in enumerate(candidates) if candidate.strategy in names]
    fits = [plain.fits[c] for c in asked]
    trials = Trials(
        [candidates[c] for c in asked] + on_top,
        folds,
        np.concatenate([plain.scores[asked], moved.scores]),
        fits + [plain.fits[c] for c in starts],
        fits + moved.fits,
        parts,
    )
    if folds:
        log.end(trials.candidates, mean_scores(trials.scores))
    return trials


@contextmanager
def _undefined_scores_ignored() -> Iterator[None]:
    """Silence a metric that says of every candidate anew that a domain lacks a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
        yield
