"""Diagnostics of the paper's appendix: is the guess near, and do adjusted domains agree?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from skdare._array import to_numpy
from skdare.adjustment import Adjustment, average
from skdare.bench._ceilings import common_ridge
from skdare.bench._fold import Fold
from skdare.bench._heads import HEADS
from skdare.bench._paper import OPTIONS
from skdare.bench._trial import Settings
from skdare.domain_statistics import Whitening
from skdare.heads import fit_sharing

ALIGNMENTS = ("with adjustment", "without adjustment")


def adjustment_error(guess: Adjustment, true: Adjustment) -> float:
    """``‖Ŵ - W‖² / ‖W‖²`` in the Frobenius norm.

    Examples
    --------
    >>> from skdare.adjustment import Adjustment
    >>> from skdare.bench import adjustment_error
    >>> adjustment_error(Adjustment(3, 1.5), Adjustment(3, 1.0))
    0.25
    """
    W = to_numpy(true.dense()).astype(np.float64)
    return float(np.sum((to_numpy(guess.dense(true)) - W) ** 2) / np.sum(W**2))


def measure_adjustment(
    fold: Fold, options: Mapping[str, Any], settings: Settings
) -> tuple[float, dict[str, Any]]:
    """How far the averaged adjustment is from the held-out domain's own (the paper's Table 2)."""
    whitening = Whitening.of_head(_dare(fold, options, settings))
    seen = [fold.statistics(domain).adjustment(whitening) for domain in fold.seen]
    own = fold.statistics(fold.held_out).adjustment(whitening)
    notes = {"option:shrinkage": whitening.shrinkage, "option:shrinkage_target": whitening.target}
    return adjustment_error(average(seen), own), notes


def measure_alignment(
    fold: Fold, which: str, options: Mapping[str, Any], settings: Settings
) -> tuple[float, dict[str, Any]]:
    """Mean cosine similarity of the training domains' own optimal heads (the paper's Table 3).

    Over all pairs of training domains and all class vectors; a domain that lacks a class has no
    vector for it. The heads are logistic regressions with the fold's common ridge.
    """
    head = _dare(fold, options, settings)
    head.set_params(l2=common_ridge(fold, settings), adjust=which == "with adjustment")
    vectors: list[dict[Any, np.ndarray]] = []
    for domain in fold.seen:
        rows = fold.training_rows(domain)
        if fold.task == "classification" and len(np.unique(rows.y)) < 2:
            continue
        fit_sharing(head, fold.shared, rows.X, rows.y, rows.domains)
        names = head.classes_ if head.canonical_coef_.shape[0] > 1 else ["all"]
        vectors.append(dict(zip(names, head.canonical_coef_, strict=True)))
    cosines = [
        float(a[name] @ b[name] / (np.linalg.norm(a[name]) * np.linalg.norm(b[name])))
        for a, b in combinations(vectors, 2)
        for name in a
        if name in b
    ]
    if not cosines:
        raise ValueError("alignment compares two training domains, and there are none to compare")
    return float(np.mean(cosines)), {"option:l2": head.l2, "pairs": len(cosines)}


def _dare(fold: Fold, options: Mapping[str, Any], settings: Settings) -> Any:
    """An unconstrained DARE head with the whitening of the protocol."""
    paper = {"shrinkage": OPTIONS["dare"]["shrinkage"], "shrinkage_target": "identity"}
    chosen = {**(paper if settings.protocol == "paper" else {}), **options}
    return HEADS["no-constraint"].make(fold.task, **{**chosen, "mean_penalty": 0.0})
