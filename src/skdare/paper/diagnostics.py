"""Diagnostics of the paper's appendix: is the guess close, and do adjusted domains agree?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from skdare import ERMClassifier
from skdare.errors import InputError
from skdare.paper.fold import Fold
from skdare.paper.protocol import Settings

GUESSES = ("averaged adjustment", "averaged scalar")
ALIGNMENTS = ("with adjustment", "without adjustment")


def adjustment_error(fold: Fold, which: str, settings: Settings) -> float:
    """``‖Ŵ - W‖² / ‖W‖²``: a guess against the held-out domain's own adjustment (Table 2).

    The averaged adjustment, or the averaged multiple of the identity, which no whitening at all
    would come to: strong shrinkage makes both errors small.
    """
    rho = settings.shrinkage
    guess = np.mean([fold.whitener(domain, rho) for domain in fold.domains], axis=0)
    if which == GUESSES[1]:
        guess = np.trace(guess) / len(guess) * np.eye(len(guess))
    truth = fold.whitener(fold.held_out, rho)
    return float(np.sum((guess - truth) ** 2) / np.sum(truth**2))


def alignment(fold: Fold, which: str, settings: Settings) -> float:
    """Mean cosine similarity of the training domains' own optimal heads (Table 3).

    Over all pairs of training domains and the classes that both have, their vectors measured from
    the mean of those classes. One small ridge for both columns, in units of the features' own
    variance before or after whitening: a strong one makes any two heads alike.
    """
    vectors: list[dict[Any, np.ndarray]] = []
    for domain in fold.domains:
        rows = fold.rows(domain)
        if len(np.unique(rows.y)) < 2:
            continue
        X = np.asarray(rows.X)
        if which == ALIGNMENTS[0]:
            X = X @ fold.whitener(domain, settings.shrinkage).astype(X.dtype)
        head = ERMClassifier(l2=settings.ceiling_l2).fit(X, rows.y)
        names = head.classes_ if len(head.coef_) > 1 else ["all"]
        vectors.append(dict(zip(names, head.coef_, strict=True)))
    cosines = [c for a, b in combinations(vectors, 2) for c in _cosines(a, b)]
    if not cosines:
        raise InputError("alignment compares two training domains", "there are not two to compare")
    return float(np.mean(cosines))


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
