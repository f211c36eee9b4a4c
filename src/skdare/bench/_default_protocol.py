"""The default protocol: every head solved to tolerance, with a ridge they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from skdare._validation import InputError, warn
from skdare.bench._fold import Fold
from skdare.bench._heads import HEADS, BenchHead
from skdare.bench._metrics import Predictions, check_metrics, measure, scoring_of
from skdare.bench._preparation import PreparationStep
from skdare.bench._scores import Fit
from skdare.bench._settings import Settings
from skdare.datasets import DomainData
from skdare.heads import fit_sharing
from skdare.whitening.whitening import RowsAlike

# Looser than the heads' own: only the order of a few strengths matters.
CHOICE_TOL = 1e-4


def fit_default(fold: Fold, name: str, options: Mapping[str, Any], settings: Settings) -> Fit:
    """A head with the fold's ridge, or with the ``l2`` among its options."""
    bench_head = HEADS[name]
    options = dict(options)
    if bench_head.searches:
        # As it is and adapted, it is one head: one search serves both.
        key = ("search", bench_head.family, tuple(sorted(options.items())))
        head = fold.once(key, lambda: _searched(fold, bench_head, options, settings))
    else:
        if "l2" not in options:
            options["l2"] = ridge(fold, name, options, settings)
        head = make(fold, bench_head, options, settings)
        fit_sharing(head, fold.shared, fold.train.X, fold.train.y, fold.train.domains)
    notes = {f"option:{key}": value for key, value in sorted(head.get_params().items())}
    notes["n_iter"] = int(head.n_iter_)
    if head.class_weight is not None:
        notes["option:class_weight"] = head.class_weight
    if bench_head.adapts:
        head = head.adapt(fold.training_rows(fold.held_out).X)
    if bench_head.searches:
        results = head.cv_results_
        number = int(results["used_by_predict"].argmax())
        if head.adapted_rows_ is not None:
            number = head.best_index_
        notes |= {"choice": head.choice_, "chosen": results["params"][number]["strategy"]}
    return Fit(head, notes)


def make(fold: Fold, bench_head: BenchHead, options: Mapping[str, Any], settings: Settings) -> Any:
    """A new estimator with these options and the class weights of the settings."""
    head = bench_head.make(fold.task, **options)
    if settings.class_weight is not None and "class_weight" not in options:
        # Every head weighs classes, if told; only the searching ones have a parameter for it.
        head.class_weight = settings.class_weight
    return head


def _searched(
    fold: Fold, bench_head: BenchHead, options: Mapping[str, Any], settings: Settings
) -> Any:
    """A searching head, which prepares rows anew whenever it leaves a domain out.

    What is given is for rows that are prepared already, as those of the fold are.
    """
    metric = check_metrics(settings.metrics, fold.task)[0]
    usual = {
        "l2": tuple(settings.l2_grid),
        "scoring": scoring_of(metric, len(np.unique(fold.train.y))),
    }
    head = make(fold, bench_head, {**usual, **options}, settings)
    train = fold.train
    X = train.X
    prepares = False
    if fold.unprepared is not None and head.preparation is None:
        head.set_params(preparation=PreparationStep(settings.preparation))
        X = fold.unprepared
        prepares = True
    try:
        fit_sharing(head, fold.shared, X, train.y, train.domains, groups=train.groups)
    except InputError as error:
        if error.argument != "groups":
            raise
        warn(f"{error.what}: the choice was made without groups")
        fit_sharing(head, fold.shared, X, train.y, train.domains)
    return head._without_preparation() if prepares else head


def ridge(fold: Fold, name: str, options: Mapping[str, Any], settings: Settings) -> float:
    """Strength of l2 for a head in a fold."""
    if not isinstance(settings.l2, str):
        return float(settings.l2)
    if settings.l2 == "matched":
        return fold.once("l2", lambda: choose_l2(fold, HEADS["erm"], {}, settings))
    key = ("l2", name, tuple(sorted(options.items())))
    return fold.once(key, lambda: choose_l2(fold, HEADS[name], options, settings))


def common_ridge(fold: Fold, settings: Settings) -> float:
    """Ridge of ERM in this fold; of the settings in the paper's protocol, which has none."""
    if settings.protocol == "paper":
        return settings.ceiling_l2
    return ridge(fold, "erm", {}, settings)


def choose_l2(
    fold: Fold, bench_head: BenchHead, options: Mapping[str, Any], settings: Settings
) -> float:
    """The strength with the highest mean score over training domains left out in turn.

    Only the training rows of the training domains are used. From the strongest down, each fit
    starts where the last ended.
    """
    grid = sorted(settings.l2_grid, reverse=True)
    if len(fold.training_domains) < 2 or len(grid) == 1:
        return grid[len(grid) // 2]
    metric = check_metrics(settings.metrics, fold.task)[0]
    scores = np.empty((len(grid), len(fold.training_domains)))
    for e, left_out in enumerate(fold.training_domains):
        inner = fold.without(left_out)
        outer = fold.training_rows(left_out)
        head = make(fold, bench_head, {**options, "tol": CHOICE_TOL, "warm_start": True}, settings)
        for g, l2 in enumerate(grid):
            head.set_params(l2=l2)
            try:
                _fit_inner(head, fold, inner)
            except RowsAlike:  # without this domain no feature varies, and it says nothing
                scores[:, e] = np.nan
                break
            fitted = head
            if bench_head.adapts:
                with suppress(RowsAlike):  # nothing can adapt to rows that are all the same
                    fitted = head.adapt(outer.X)
            predicted = Predictions.of(fitted, outer.X, [metric])
            scores[g, e] = measure(metric, outer.y, predicted)
    return grid[int(_bounded(scores, metric).mean(axis=1).argmax())]


def _bounded(scores: np.ndarray, metric: str) -> np.ndarray:
    """Scores in which a domain that has none counts for nothing.

    A missing R², or one below -1, counts as -1, so that one domain does not drown the rest.
    """
    if metric == "r2":
        return np.maximum(np.nan_to_num(scores, nan=-1.0), -1.0)
    return np.where(np.isnan(scores).any(axis=0), 0.0, scores)


def _fit_inner(head: Any, fold: Fold, inner: DomainData) -> None:
    """Fit a head to the rows without a domain; caches are of all rows of the other domains."""
    if fold.train.groups is None:
        fit_sharing(head, fold.shared, inner.X, inner.y, inner.domains)
    else:
        head.fit(inner.X, inner.y, domains=inner.domains)
