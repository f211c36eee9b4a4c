"""Scores of predictions on the rows of a fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from skdare.bench._fold import Fold
from skdare.bench._record import pack_bits

METRICS = {"classification": "accuracy", "regression": "r2"}


class Predictor(Protocol):
    """All that the bench asks of a fitted head."""

    def predict(self, X: Any, /) -> Any: ...


def score(task: str, y: np.ndarray, predicted: np.ndarray) -> float:
    """Accuracy, or R²; NaN where there is no row, or no variance to explain."""
    if not len(y):
        return float("nan")
    if task == "classification":
        return float(np.mean(y == predicted))
    y = y.astype(np.float64)
    total = float(np.sum((y - y.mean()) ** 2))
    if not total > 0:
        return float("nan")
    return 1.0 - float(np.sum((y - predicted) ** 2)) / total


def evaluate(predictor: Predictor, fold: Fold, tested_on: str) -> dict[str, Any]:
    """The metric on the held-out domain, by its shares, and on every training domain."""
    predicted = np.asarray(predictor.predict(fold.new.X))
    shares = {"20": fold.reserved, "80": ~fold.reserved, "all": np.ones_like(fold.reserved)}
    values: dict[str, Any] = {
        f"score_{name}": score(fold.task, fold.new.y[rows], predicted[rows])
        for name, rows in shares.items()
    }
    tested = shares[tested_on]
    y, predicted = fold.new.y[tested], predicted[tested]
    values |= {"n_train": len(fold.train.y), "n_test": len(y), "tested_on": tested_on}
    values[f"score:{fold.held_out}"] = score(fold.task, y, predicted)
    if fold.task == "classification":
        values["correct"] = pack_bits(y == predicted)
    else:
        values["rmse"] = float(np.sqrt(np.mean((y - predicted) ** 2))) if len(y) else float("nan")
    return values | _training_scores(predictor, fold, fold.seen)


def _training_scores(predictor: Predictor, fold: Fold, domains: Sequence[str]) -> dict[str, float]:
    """The metric on the rows that each training domain set aside."""
    if not len(fold.valid.y):
        return {}
    predicted = np.asarray(predictor.predict(fold.valid.X))
    found = {}
    for domain in domains:
        rows = fold.valid.domains == domain
        found[f"score:{domain}"] = score(fold.task, fold.valid.y[rows], predicted[rows])
    return found
