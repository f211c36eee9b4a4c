"""Ceilings: what a linear head reaches with labels of the held-out domain."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from scipy import linalg

from skdare.bench._default_protocol import common_ridge, make
from skdare.bench._fold import Fold
from skdare.bench._heads import HEADS
from skdare.bench._paper_protocol import Linear
from skdare.bench._scores import Fit
from skdare.bench._settings import Settings
from skdare.fitting.targets import Classes, Numbers, Targets
from skdare.objective.coordinates import Coordinates
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock, WeightedRows
from skdare.solvers import Function
from skdare.whitening.adjustment import Adjustment

CEILINGS = ("ceiling-exact", "ceiling-sgd")
RETRAINED = ("retrain", "retrain+sources")
# Another stream than the split's: labelled rows must not depend on which rows were set aside.
_LABELLED = 7


def fit_ceiling(fold: Fold, name: str, settings: Settings) -> Fit:
    """A linear head trained on the training rows of all domains, the held-out one included."""
    if name == "ceiling-sgd":
        return _fit_by_descent(fold, settings)
    rows = fold.train_with_held_out()
    l2 = common_ridge(fold, settings)
    head = make(fold, HEADS["erm"], {"l2": l2}, settings).fit(rows.X, rows.y)
    return Fit(head, {"option:l2": l2, "n_iter": int(head.n_iter_)})


def _fit_by_descent(fold: Fold, settings: Settings) -> Fit:
    """The paper's head with all labels: full-batch gradient steps with momentum, no validation.

    The paper does not give its step; one over a bound on the curvature is stable on any features.
    """
    rows = fold.train_with_held_out()
    n, d = rows.X.shape
    classes = None
    targets: Targets = Numbers(0.0, 1.0)
    T = rows.y
    if fold.task == "classification":
        classes, T = np.unique(rows.y, return_inverse=True)
        targets = Classes(classes)
    loss = targets.loss
    all_rows = WeightedRows(rows.X, slice(0, n), T, np.full(n, 1.0 / n))
    block = DomainBlock(Adjustment(d, 1.0), (all_rows,))
    objective = Objective([block], loss, Coordinates(d, targets.columns))
    options: dict[str, Any] = {
        "step": 1.0 / (loss.steepest * (_largest_eigenvalue(fold) + 1.0)),
        "momentum": settings.momentum,
        "steps": settings.sgd_steps,
    }
    theta = momentum_descent(objective, np.zeros(objective.size), **options)
    V, b = objective.coordinates.unpack(theta)
    return Fit(Linear(V, b, classes), {f"option:{name}": v for name, v in options.items()})


def momentum_descent(
    function: Function, theta: np.ndarray, *, step: float, momentum: float, steps: int
) -> np.ndarray:
    """Full-batch gradient steps with heavy-ball momentum."""
    velocity = np.zeros_like(theta)
    for _ in range(steps):
        velocity = momentum * velocity + function.value_and_gradient(theta)[1]
        theta = theta - step * velocity
    return theta


def _largest_eigenvalue(fold: Fold) -> float:
    """Largest eigenvalue of the raw second moment of the training rows of all domains."""
    domains = (*fold.training_domains, fold.held_out)
    total, *others = [fold.cache(domain).moments for domain in domains]
    for moments in others:
        total = total + moments
    S = total.second_moment(centered=False)
    d = S.shape[0]
    return float(linalg.eigh(S, eigvals_only=True, subset_by_index=[d - 1, d - 1])[0])


def fit_retrained(fold: Fold, name: str, m: int, seed: int, settings: Settings) -> Fit:
    """The head retrained on m labelled rows of the held-out domain (m of each class).

    Alone, or beside the training domains, as one more domain of equal weight. The rows of a
    smaller m are among those of a larger one.
    """
    rows = fold.training_rows(fold.held_out)
    seeds = [seed, crc32(fold.held_out.encode()), _LABELLED]
    labelled = labelled_rows(rows.y, m, fold.task, seeds)
    X = rows.X[labelled]
    y = rows.y[labelled]
    l2 = common_ridge(fold, settings)
    if name == "retrain":
        head = make(fold, HEADS["erm"], {"l2": l2}, settings).fit(X, y)
    else:
        train = fold.train
        head = make(fold, HEADS["reweighted"], {"l2": l2}, settings)
        head.fit(
            np.concatenate([train.X, X]),
            np.concatenate([train.y, y]),
            domains=np.concatenate([train.domains, rows.domains[labelled]]),
        )
    return Fit(head, {"option:l2": l2, "labelled_rows": len(labelled)})


def labelled_rows(y: np.ndarray, m: int, task: str, seed: list[int]) -> np.ndarray:
    """Rows that are labelled: the first m of each class (or of all) in a random order."""
    order = np.random.default_rng(seed).permutation(len(y))
    if task == "regression":
        return order[:m]
    return np.concatenate([order[y[order] == c][:m] for c in np.unique(y)])
