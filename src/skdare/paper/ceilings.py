"""Ceilings: what a linear head reaches with labels of the held-out domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from skdare import ERMClassifier
from skdare.paper.fold import Fold
from skdare.paper.protocol import Block, Function, Linear, Settings, WeightedRisk

EXACT = "ceiling-exact"
DESCENT = "ceiling-sgd"


def fit_ceiling(fold: Fold, name: str, settings: Settings) -> Any:
    """A linear head trained on the training rows of all domains, the held-out one included."""
    more = fold.rows(fold.held_out)
    X = np.concatenate([fold.train.X, more.X])
    y = np.concatenate([fold.train.y, more.y])
    if name == EXACT:
        return ERMClassifier(l2=settings.ceiling_l2).fit(X, y)
    return _fit_by_descent(X, y, settings)


def _fit_by_descent(X: np.ndarray, y: np.ndarray, settings: Settings) -> Linear:
    """The paper's head with all labels: full-batch gradient steps with momentum, no validation.

    The paper does not give its step; one over a bound on the curvature is stable on any features.
    """
    classes, codes = np.unique(y, return_inverse=True)
    k = 1 if len(classes) == 2 else len(classes)
    d = X.shape[1]
    risk = WeightedRisk([Block(X, codes, k)], np.ones(1))
    S = (X.T @ X).astype(np.float64) / len(X)
    largest = float(linalg.eigh(S, eigvals_only=True, subset_by_index=[d - 1, d - 1])[0])
    steepest = 0.25 if k == 1 else 0.5
    theta = momentum_descent(
        risk,
        np.zeros(d * k + k),
        step=1.0 / (steepest * (largest + 1.0)),
        momentum=settings.momentum,
        steps=settings.descent_steps,
    )
    return Linear(*risk.unpack(theta), classes)


def momentum_descent(
    function: Function, theta: np.ndarray, *, step: float, momentum: float, steps: int
) -> np.ndarray:
    """Full-batch gradient steps with heavy-ball momentum."""
    velocity = np.zeros_like(theta)
    for _ in range(steps):
        velocity = momentum * velocity + function.value_and_gradient(theta)[1]
        theta = theta - step * velocity
    return theta
