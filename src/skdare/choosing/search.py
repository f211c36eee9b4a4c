"""Every strategy at every ridge, scored on domains that it was not fitted to.

Training domains are held out in a few folds. The rows of a strategy are adjusted once, and all its
folds and ridges are solved together on them. A mixture starts from these fits, so that trying one
costs no fit.

Notation: X (n, d) rows, Z (n, d) adjusted rows, W (d, d) adjustment, B (d, k) weights on adjusted
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from scipy import sparse

from skdare.arrays import take, to_numpy, work_dtype
from skdare.choosing.batched import Batch
from skdare.choosing.rule import mean_scores
from skdare.choosing.strategies import STRATEGIES, Candidate, candidates_of
from skdare.fitting.domain_fit import Adaptation, CanonicalFit, Weights, moments_by_domain
from skdare.fitting.hold_out import HeldOut, folds_of, hold_out
from skdare.fitting.mixture import ClassPlaces, ClassSums
from skdare.fitting.problem import Numbers, Problem
from skdare.fitting.safety_check import covariance_within, log_separation
from skdare.fitting.score import Scoring, log_error, predictions, score
from skdare.progress import reached
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.moments import Moments, mean_variance
from skdare.whitening.prior import PriorRows

# Numbers of the rows that are held, those of all folds together.
_CELLS = 1 << 26
_TRUSTED = PriorRows(0.0, 0.0)  # the training domains' average counts as no row
# Variance compared with the usual one, below which a fold is searched alone: at 1e-6 its scores
# were off by 0.1 to 0.2 when it was not.
_SMALL = 0.1


@dataclass(frozen=True)
class Grid:
    """Candidates of a search, and how they are scored."""

    strategies: Sequence[str]
    shrinkage: Sequence[float]
    l2: Sequence[float]
    cv: Any
    scoring: Scoring
    intercept: bool


@dataclass(frozen=True, eq=False)
class FoldFit:
    """A candidate fitted without a fold."""

    adaptation: Adaptation
    adjustments: list[Adjustment]  # of all domains

    def weights(self, held: HeldOut, e: int, *, adapts: bool) -> Weights:
        """For a domain of the fold, by its rows if the candidate adapts."""
        if not adapts:
            return self.adaptation.fit.raw_weights()
        moments = held.moments[e]
        trust = self.adaptation.trust(moments.n)
        sample = None if self.adaptation.mixture is None else held.sample(e)
        adjustment = self.adjustments[e]
        return self.adaptation.adapted(moments.n, adjustment, trust, sample).raw_weights()


@dataclass(frozen=True, eq=False)
class Trials:
    """Candidates, their fits without each fold, and their scores."""

    candidates: list[Candidate]
    folds: list[HeldOut]  # with rows in memory
    fits: list[list[FoldFit]]  # of each candidate, by fold
    scores: np.ndarray  # (candidates, domains); NaN where a domain was not held out
    log_errors: np.ndarray | None  # for regression

    def start(self, c: int) -> Weights | None:
        """Where a fit of a candidate to all domains can start: the mean of those without some."""
        fits = [fit.adaptation.fit for fit in self.fits[c]]
        if len({fit.B.shape for fit in fits}) != 1:  # none, or other features in each fold
            return None
        return np.mean([fit.B for fit in fits], axis=0), np.mean([fit.b for fit in fits], axis=0)

    def mean_error(self, c: int) -> float:
        """Root mean square of how far mean predictions of a candidate are off, by held-out domain.

        It adapts to the rows of each; targets are standardised.
        """
        errors = []
        for held, fit in zip(self.folds, self.fits[c], strict=True):
            problem = held.problem
            for e in held.domains:
                index = problem.index[e]
                weights = fit.weights(held, e, adapts=True)
                predicted = predictions(problem.targets, take(problem.X, index), weights)
                off = problem.T[index] - predicted
                errors.append(np.average(off, weights=problem.weight[index]))
        return float(np.sqrt(np.mean(np.square(errors))))

    def separations(self, c: int) -> np.ndarray:
        """Logarithms of how far apart a candidate finds the classes of each held-out domain."""
        result = []
        sums_by_domain: dict[int, list[ClassSums]] = {}
        for held, fit in zip(self.folds, self.fits[c], strict=True):
            problem = held.problem
            sums = _class_sums(held, sums_by_domain)
            within = covariance_within(held.among_others(sums), held.among_others(held.moments))
            for e in held.domains:
                index = problem.index[e]
                weights = fit.weights(held, e, adapts=True)
                codes = predictions(problem.targets, take(problem.X, index), weights)
                moments = held.moments[e]
                k = len(sums[e].weight)
                adapted = ClassSums.of_rows(
                    problem.X, index, codes, problem.weight[index], moments.mean, k
                )
                result.append(log_separation(adapted, moments, within))
        return np.array(result)


def search(problem: Problem, grid: Grid) -> Trials:
    """Fit every candidate without each fold, and score it on the domains of the fold.

    A mixture is tried at the ridge that is best for the strategy it starts from.
    """
    names = [STRATEGIES[name].base or name for name in grid.strategies]
    candidates = list(candidates_of(names, grid.shrinkage, grid.l2))
    numbers = range(len(candidates))
    same_rows = [list(cs) for _, cs in groupby(numbers, lambda c: _rows_key(candidates[c]))]
    chosen = folds_of(problem, grid.cv)
    steps = len(chosen) * len(same_rows)
    done = 0
    folds: list[HeldOut] = []
    fits: list[list[FoldFit]] = [[] for _ in candidates]
    for together in _folds_on_the_same_rows(problem, chosen):
        folds += together
        for cs in same_rows:
            reached("searching", done, steps)
            done += len(together)
            group = [candidates[c] for c in cs]
            # Scales of all rows would leak those that are held out.
            each_alone = not group[0].whitening.adjusts and group[0].whitening.target == "diagonal"
            for batch in [[held] for held in together] if each_alone else [together]:
                for c, by_fold in zip(cs, _fitted(group, batch, grid), strict=True):
                    fits[c] += by_fold
    reached("searching", steps, steps)

    def scored(c: int, measure: Callable[[Problem, int, Weights], float]) -> np.ndarray:
        """Scores of a candidate on every domain, fitted without it."""
        result = np.full(len(problem.index), np.nan)
        for held, fit in zip(folds, fits[c], strict=True):
            for e in held.domains:
                weights = fit.weights(held, e, adapts=candidates[c].strategy.adapts)
                result[e] = measure(held.problem, e, weights)
        return result

    measure = partial(score, scoring=grid.scoring)
    scores = [scored(c, measure) for c in numbers]
    log_errors = None
    if isinstance(problem.targets, Numbers):  # without mixtures
        log_errors = np.stack([scored(c, log_error) for c in numbers])
    sums_by_domain: dict[int, list[ClassSums]] = {}
    for name in grid.strategies:
        strategy = STRATEGIES[name]
        if strategy.mixture is None:
            continue
        means = mean_scores(np.stack(scores))
        bases = [c for c, candidate in enumerate(candidates) if candidate.name == strategy.base]
        start = max(bases, key=lambda c: means[c])
        candidate = replace(candidates[start], name=name)
        pairs = zip(folds, fits[start], strict=True)
        fits.append([_with_mixture(candidate, held, fit, sums_by_domain) for held, fit in pairs])
        candidates.append(candidate)
        scores.append(scored(len(candidates) - 1, measure))
    # Some bases of mixtures were not to be tried by themselves.
    tried = [c for c, candidate in enumerate(candidates) if candidate.name in grid.strategies]
    return Trials(
        [candidates[c] for c in tried],
        folds,
        [fits[c] for c in tried],
        np.stack([scores[c] for c in tried]),
        log_errors,
    )


def _folds_on_the_same_rows(
    problem: Problem, folds: Sequence[Sequence[int]]
) -> Iterator[list[HeldOut]]:
    """Folds that are solved together; one whose preparation changes the rows is solved alone."""
    shared = []
    for fold in folds:
        held = hold_out(problem, fold)
        if held.problem.X is problem.X:  # also one that found nothing to prepare
            shared.append(held)
            continue
        # Targets stay as all domains have standardised them, here and below: in any other unit a
        # ridge predicts the same, and squared errors have the same ratios.
        rows = _in_memory(replace(problem, X=held.problem.X), _CELLS // len(folds))
        moments = moments_by_domain(rows)
        if _alike([held.others], moments):
            yield [replace(held, problem=rows, moments=moments)]
    if shared:
        rows = _in_memory(problem, _CELLS)
        moments = moments_by_domain(rows)
        for numbers in _alike([held.others for held in shared], moments):
            yield [replace(shared[f], problem=rows, moments=moments) for f in numbers]


def _alike(others: Sequence[Sequence[int]], moments: Sequence[Moments]) -> list[list[int]]:
    """Folds, by number, that can be solved together, as the other domains are of one scale.

    Without a domain of far larger features the others are small in the unit that all folds share,
    and a solver with one gradient tolerance for all would stop there at once. A fold without which
    no feature varies is left out.
    """
    scales = np.array([mean_variance([moments[e] for e in chosen]) for chosen in others])
    usual = np.median(scales)
    together = [f for f, scale in enumerate(scales) if scale >= _SMALL * usual and scale > 0]
    alone = [[f] for f, scale in enumerate(scales) if 0 < scale < _SMALL * usual]
    return [folds for folds in (together, *alone) if folds]


def _in_memory(problem: Problem, most: int) -> Problem:
    """The problem itself if its rows are in memory and few enough, else one of some rows.

    Rows that are on disk, on a GPU or sparse are brought here.
    """
    thinned = problem.thinned(most)
    X = problem.X
    if type(X) is np.ndarray and X.dtype == work_dtype(X) and thinned is problem:
        return problem
    everyone = np.arange(X.shape[0])
    rows = [everyone[index] for index in thinned.index]
    parts = [take(X, part) for part in rows]
    host = [part.toarray() if sparse.issparse(part) else to_numpy(part) for part in parts]
    order = np.concatenate(rows)
    bounds = np.cumsum([0, *map(len, rows)]).tolist()
    return replace(
        problem,
        X=np.concatenate(host).astype(work_dtype(host[0]), copy=False),
        T=problem.T[order],
        weight=problem.weight[order],
        index=[slice(a, b) for a, b in pairwise(bounds)],
        groups=None,
        preparation=None,
    )


def _rows_key(candidate: Candidate) -> tuple[Any, ...]:
    """Candidates with the same key have the same adjusted rows."""
    return candidate.whitening, candidate.strategy.adjusts_new


def _fitted(
    candidates: Sequence[Candidate], folds: Sequence[HeldOut], grid: Grid
) -> list[list[FoldFit]]:
    """Fits of candidates with the same adjusted rows, by candidate and fold."""
    problem = folds[0].problem
    moments = folds[0].moments
    X = problem.X
    whitening = candidates[0].whitening
    E = len(problem.index)
    trained = sorted({e for fold in folds for e in fold.others})
    if whitening.adjusts:
        adjustments = whitening.adjustments(moments, work_dtype(X))
    else:
        # By the domains that some fit is fitted to: another may be far larger.
        overall = whitening.adjustments([moments[e] for e in trained], work_dtype(X))[0]
        adjustments = whitening.shifted([overall] * E, moments)
    parts = []
    for e, index in enumerate(problem.index):
        rows = take(X, index)
        parts.append(adjustments[e].rows(rows).astype(rows.dtype, copy=False))
    bounds = np.cumsum([0, *map(len, parts)])
    Z = np.concatenate(parts)
    centre = np.zeros(Z.shape[1])
    if grid.intercept:  # which then is the score at this point: a solver is quicker with it
        centre = np.concatenate([parts[e] for e in trained]).mean(axis=0, dtype=np.float64)
        Z = Z - centre.astype(Z.dtype)
    weighings = sorted({candidate.strategy.by_rows for candidate in candidates})
    row_weights = np.zeros((len(folds), len(weighings), len(Z)), Z.dtype)
    ridge = np.empty((len(folds), len(candidates)))
    for f, fold in enumerate(folds):
        loss_weight = fold.rest.loss_weight
        for e in fold.others:
            weight = loss_weight[problem.index[e]]
            for way, by_rows in enumerate(weighings):
                share = weight if by_rows else weight / weight.sum()
                row_weights[f, way, bounds[e] : bounds[e + 1]] = share
        row_weights[f] /= row_weights[f].sum(axis=1, keepdims=True)
        unit = whitening.ridge(fold.among_others(moments), 1.0)
        if not whitening.adjusts and whitening.target == "scaled":
            alone = whitening.adjustments(fold.among_others(moments), work_dtype(X))[0]
            unit = float((adjustments[0].diagonal / alone.diagonal) ** 2)
        ridge[f] = [unit * candidate.l2 for candidate in candidates]
    weighing = np.array([weighings.index(candidate.strategy.by_rows) for candidate in candidates])
    T = np.concatenate([problem.T[index] for index in problem.index])
    loss = problem.targets.loss
    k = problem.targets.columns
    B, b = Batch(Z, T, loss, k, row_weights, weighing, ridge, grid.intercept).solve()
    b = b - np.einsum("d,fcdk->fck", centre, B)
    fits: list[list[FoldFit]] = [[] for _ in candidates]
    for f, fold in enumerate(folds):
        trained_with = fold.among_others(adjustments)
        guess = average(trained_with, [1.0 / len(trained_with)] * len(trained_with))
        prior_rows = _TRUSTED
        if candidates[0].strategy.adjusts_new:
            prior_rows = PriorRows.of_domains(fold.among_others(moments), whitening)
        for c, candidate in enumerate(candidates):
            # The limits of a solver are not used: it is solved.
            formulation = candidate.formulation(intercept=grid.intercept, tol=0.0, max_iter=0)
            fit = CanonicalFit(formulation, B[f, c], b[f, c], guess, None)
            fits[c].append(FoldFit(Adaptation(fit, prior_rows), adjustments))
    return fits


def _class_sums(held: HeldOut, sums_by_domain: dict[int, list[ClassSums]]) -> list[ClassSums]:
    """Sums by class of all domains; they are kept, as folds share their rows."""
    key = id(held.problem)
    if key not in sums_by_domain:
        sums_by_domain[key] = [ClassSums.of(held.problem, e, m) for e, m in enumerate(held.moments)]
    return sums_by_domain[key]


def _with_mixture(
    candidate: Candidate, held: HeldOut, fit: FoldFit, sums_by_domain: dict[int, list[ClassSums]]
) -> FoldFit:
    """A fit with a mixture on top of it."""
    places = ClassPlaces.of_domains(
        held.among_others(_class_sums(held, sums_by_domain)),
        held.among_others(held.moments),
        held.among_others(fit.adjustments),
        fit.adaptation.fit.formulation,
    )
    mixture = candidate.strategy.mixture
    return replace(fit, adaptation=replace(fit.adaptation, mixture=mixture, places=places))
