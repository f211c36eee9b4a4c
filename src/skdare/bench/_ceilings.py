"""Ceilings: what a linear head reaches that has seen labels of the held-out domain."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from scipy import linalg

from skdare.bench._default import common_ridge
from skdare.bench._early import momentum_descent
from skdare.bench._fold import Fold
from skdare.bench._heads import HEADS
from skdare.bench._paper import Linear
from skdare.bench._scores import Fit
from skdare.bench._trial import Settings
from skdare.objective.coordinates import Coordinates
from skdare.objective.losses import LOGISTIC, SOFTMAX, SQUARED, Loss
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock, WeightedRows
from skdare.whitening.adjustment import Adjustment

CEILINGS = ("ceiling-exact", "ceiling-sgd")
RETRAINED = ("retrain", "retrain+sources")
# Apart from the stream that drew the split: labelled rows must not lie near reserved ones.
_LABELLED = 7


def fit_ceiling(fold: Fold, name: str, settings: Settings) -> Fit:
    """A linear head trained on the training rows of all domains, the held-out one included."""
    if name == "ceiling-sgd":
        return _descended(fold, settings)
    rows, l2 = fold.everything(), common_ridge(fold, settings)
    head = HEADS["erm"].make(fold.task, l2=l2).fit(rows.X, rows.y)
    return Fit(head, {"option:l2": l2, "n_iter": int(head.n_iter_)})


def _descended(fold: Fold, settings: Settings) -> Fit:
    """The paper's cheating head: full-batch gradient steps with momentum, no validation.

    Its step is not given; one over a bound on the curvature is stable on any features.
    """
    rows = fold.everything()
    n, d = rows.X.shape
    classes, targets, k = None, rows.y, 1
    loss: Loss = SQUARED
    if fold.task == "classification":
        classes, targets = np.unique(rows.y, return_inverse=True)
        loss, k = (LOGISTIC, 1) if len(classes) == 2 else (SOFTMAX, len(classes))
    all_rows = WeightedRows(rows.X, slice(0, n), targets, np.full(n, 1.0 / n))
    block = DomainBlock(Adjustment(d, 1.0), (all_rows,))
    objective = Objective([block], loss, Coordinates(d, k))
    options: dict[str, Any] = {
        "step": 1.0 / (loss.steepest * (_largest_eigenvalue(fold) + 1.0)),
        "momentum": settings.momentum,
        "steps": settings.sgd_steps,
    }
    theta = momentum_descent(objective, np.zeros(objective.size), **options)
    V, b = objective.coordinates.unpack(theta)
    return Fit(Linear(V, b, classes), {f"option:{name}": v for name, v in options.items()})


def _largest_eigenvalue(fold: Fold) -> float:
    """Of the raw second moment of the training rows of all domains."""
    moments = [fold.statistics(domain).moments for domain in (*fold.seen, fold.held_out)]
    total = moments[0]
    for more in moments[1:]:
        total = total + more
    S = total.second_moment(centered=False)
    d = S.shape[0]
    return float(linalg.eigh(S, eigvals_only=True, subset_by_index=[d - 1, d - 1])[0])


def fit_retrained(fold: Fold, name: str, m: int, seed: int, settings: Settings) -> Fit:
    """The head retrained on m labelled rows of the held-out domain (m of each class).

    Alone, or beside the training domains, as one more domain of equal weight. A larger m has the
    rows of a smaller one.
    """
    own = fold.training_rows(fold.held_out)
    seeds = [seed, crc32(fold.held_out.encode()), _LABELLED]
    chosen = labelled_rows(own.y, m, fold.task, seeds)
    X, y, domains = own.X[chosen], own.y[chosen], own.domains[chosen]
    l2 = common_ridge(fold, settings)
    if name == "retrain":
        head = HEADS["erm"].make(fold.task, l2=l2).fit(X, y)
    else:
        train = fold.train
        head = HEADS["reweighted"].make(fold.task, l2=l2)
        X, y = np.concatenate([train.X, X]), np.concatenate([train.y, y])
        head.fit(X, y, domains=np.concatenate([train.domains, domains]))
    return Fit(head, {"option:l2": l2, "labelled_rows": len(chosen)})


def labelled_rows(y: np.ndarray, m: int, task: str, seed: list[int]) -> np.ndarray:
    """Which rows are labelled: the first m of each class (or of all) in a random order."""
    order = np.random.default_rng(seed).permutation(len(y))
    if task == "regression":
        return order[:m]
    return np.concatenate([order[y[order] == c][:m] for c in np.unique(y)])
