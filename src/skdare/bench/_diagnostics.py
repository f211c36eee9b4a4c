"""Diagnostics of the paper's appendix: is the guess close, and do adjusted domains agree?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from skdare.arrays import work_dtype
from skdare.bench._fold import Fold
from skdare.bench._heads import HEADS
from skdare.bench._scores import TrialMeasurement
from skdare.bench._settings import Settings
from skdare.diagnosis._geometry import adjusted_variance
from skdare.heads import fit_sharing
from skdare.heads._dare import AS_IN_PAPER
from skdare.whitening.adjustment import Adjustment, adjustment_error, average, trace
from skdare.whitening.whitening import Whitening

GUESSES = ("averaged adjustment", "averaged scalar")
ALIGNMENTS = ("with adjustment", "without adjustment")


def measure_adjustment(
    fold: Fold, which: str, options: Mapping[str, Any], settings: Settings
) -> TrialMeasurement:
    """How far a guess is from the held-out domain's own adjustment (the paper's Table 2).

    The averaged adjustment, or the averaged multiple of the identity, which no whitening at all
    would come to: strong shrinkage makes both errors small.
    """
    whitening = Whitening.of_head(_dare(fold, options, settings))
    adjustable = [
        domain
        for domain in fold.training_domains
        if whitening.can_invert(fold.cache(domain).moments)
    ]
    if not adjustable:
        raise ValueError(
            "in every training domain the rows are all the same; there is nothing to adjust"
        )
    guess = average([_adjustment(fold, domain, whitening) for domain in adjustable])
    if which == "averaged scalar":
        scale = trace(guess.inner) / guess.d
        guess = Adjustment(guess.d, scale, common=guess.common)
    truth = _adjustment(fold, fold.held_out, whitening)
    notes = {"option:shrinkage": whitening.shrinkage, "option:shrinkage_target": whitening.target}
    return TrialMeasurement(adjustment_error(guess, truth), "error", notes)


def _adjustment(fold: Fold, domain: str, whitening: Whitening) -> Adjustment:
    """Adjustment of one domain; a pool is that of the training domains."""
    common = fold.once(
        ("common", whitening),
        lambda: whitening.common(
            [fold.cache(d).moments for d in fold.training_domains], work_dtype(fold.train.X)
        ),
    )
    return fold.cache(domain).adjustment(whitening, common)


def measure_alignment(
    fold: Fold, which: str, options: Mapping[str, Any], settings: Settings
) -> TrialMeasurement:
    """Mean cosine similarity of the training domains' own optimal heads (the paper's Table 3).

    Over all pairs of training domains and the classes that both have, their vectors measured from
    the mean of those classes. One small ridge for both columns, in units of the features' own
    variance before or after whitening: a strong one makes any two heads alike.
    """
    adjust = which == "with adjustment"
    head = _dare(fold, options, settings).set_params(adjust=adjust)
    vectors: list[dict[Any, np.ndarray]] = []
    for domain in fold.training_domains:
        rows = fold.training_rows(domain)
        if fold.task == "classification" and len(np.unique(rows.y)) < 2:
            continue
        if not fold.cache(domain).moments.varies():
            continue
        head.set_params(l2=settings.ceiling_l2 * _spread(fold, domain, Whitening.of_head(head)))
        fit_sharing(head, fold.shared, rows.X, rows.y, rows.domains)
        names = head.classes_ if head.canonical_coef_.shape[0] > 1 else ["all"]
        vectors.append(dict(zip(names, head.canonical_coef_, strict=True)))
    cosines = [c for a, b in combinations(vectors, 2) for c in _cosines(a, b)]
    if not cosines:
        raise ValueError(
            "alignment compares two training domains, and there are not two to compare"
        )
    notes = {"option:l2": settings.ceiling_l2, "pairs": len(cosines)}
    return TrialMeasurement(float(np.mean(cosines)), "cosine", notes)


def _spread(fold: Fold, domain: str, whitening: Whitening) -> float:
    """Mean variance of a feature after whitening by the raw identity, which has no unit; else 1."""
    if not whitening.adjust or whitening.target != "identity":
        return 1.0
    W = _adjustment(fold, domain, whitening)
    return adjusted_variance(W, fold.cache(domain).moments.to_numpy()) / W.d


def _cosines(a: Mapping[Any, np.ndarray], b: Mapping[Any, np.ndarray]) -> list[float]:
    """Cosine similarities of the vectors of each class that both domains have."""
    shared = [name for name in a if name in b]
    if not shared:
        return []
    A, B = (np.stack([side[name] for name in shared]) for side in (a, b))
    if len(shared) > 1:  # softmax vectors are defined up to a common shift
        A = A - A.mean(axis=0)
        B = B - B.mean(axis=0)
    norms = np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)
    return (np.sum(A * B, axis=1) / norms).tolist()


def _dare(fold: Fold, options: Mapping[str, Any], settings: Settings) -> Any:
    """An unconstrained DARE head with the whitening of the protocol."""
    head = HEADS["no-constraint"]
    whitening: dict[str, Any] = {}
    if settings.protocol == "paper":
        whitening = {name: AS_IN_PAPER[name] for name in ("shrinkage", "shrinkage_target")}
    return head.make(fold.task, **{**whitening, **options, "mean_penalty": 0.0})
