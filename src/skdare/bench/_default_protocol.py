"""The default protocol: every head solved to tolerance, with a ridge they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from skdare.bench._fold import Fold
from skdare.bench._heads import HEADS, BenchHead
from skdare.bench._scores import Fit, score
from skdare.bench._settings import Settings
from skdare.heads import fit_sharing
from skdare.whitening.whitening import RowsAlike

# Looser than the heads' own: only the order of a few strengths matters.
CHOICE_TOL = 1e-4


def fit_default(fold: Fold, name: str, options: Mapping[str, Any], settings: Settings) -> Fit:
    """A head with the fold's ridge, or with the ``l2`` among its options."""
    bench_head = HEADS[name]
    options = dict(options)
    if bench_head.family.endswith("CV"):
        options.setdefault("l2", tuple(settings.l2_grid))
    elif "l2" not in options:
        options["l2"] = ridge(fold, name, options, settings)
    head = bench_head.make(fold.task, **options)
    fit_sharing(head, fold.shared, fold.train.X, fold.train.y, fold.train.domains)
    notes = {f"option:{key}": value for key, value in sorted(head.get_params().items())}
    notes["n_iter"] = int(head.n_iter_)
    if bench_head.adapts:
        head = head.adapt(fold.training_rows(fold.held_out).X)
    return Fit(head, notes)


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
    scores = np.empty((len(grid), len(fold.training_domains)))
    for e, left_out in enumerate(fold.training_domains):
        inner = fold.without(left_out)
        outer = fold.training_rows(left_out)
        head = bench_head.make(fold.task, **{**options, "tol": CHOICE_TOL, "warm_start": True})
        for g, l2 in enumerate(grid):
            head.set_params(l2=l2)
            try:
                fit_sharing(head, fold.shared, inner.X, inner.y, inner.domains)
            except RowsAlike:  # without this domain no feature varies, and it says nothing
                scores[:, e] = np.nan
                break
            fitted = head
            if bench_head.adapts:
                with suppress(RowsAlike):  # nothing can adapt to rows that are all the same
                    fitted = head.adapt(outer.X)
            scores[g, e] = score(fold.task, outer.y, fitted.predict(outer.X))
    # A missing R², or one below -1, counts as -1, so that one domain does not drown the rest.
    bounded = np.maximum(np.nan_to_num(scores, nan=-1.0), -1.0)
    return grid[int(bounded.mean(axis=1).argmax())]
