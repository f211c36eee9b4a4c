"""Scores of a fitted head on the rows of a fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from skdare.bench._fold import Fold
from skdare.bench._record import METRICS, pack_bits


class Predictor(Protocol):
    """All that the bench needs of a fitted head."""

    def predict(self, X: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted head, and notes for the record of how it was fitted."""

    predictor: Predictor
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialMeasurement:
    """A number, what it measures, and notes for the record."""

    score: float
    metric: str
    notes: dict[str, Any] = field(default_factory=dict)


def score(task: str, y: np.ndarray, predicted: np.ndarray) -> float:
    """Accuracy, or R²; NaN without rows, or without variance to explain."""
    if not len(y):
        return float("nan")
    if task == "classification":
        return float(np.mean(y == predicted))
    y = y.astype(np.float64)
    total = float(np.sum((y - y.mean()) ** 2))
    if not total > 0:
        return float("nan")
    return 1.0 - float(np.sum((y - predicted) ** 2)) / total


def evaluate(fit: Fit, fold: Fold, tested_on: str) -> TrialMeasurement:
    """The metric on the held-out domain, by its shares, and on every training domain."""
    predicted = np.asarray(fit.predictor.predict(fold.test.X))
    shares = {
        "reserved": fold.reserved,
        "rest": ~fold.reserved,
        "all": np.ones_like(fold.reserved),
    }
    notes: dict[str, Any] = {
        f"score_{name}": score(fold.task, fold.test.y[rows], predicted[rows])
        for name, rows in shares.items()
    }
    tested = shares[tested_on]
    y = fold.test.y[tested]
    predicted = predicted[tested]
    notes |= {"n_train": len(fold.train.y), "n_test": len(y), "tested_on": tested_on}
    notes[f"score:{fold.held_out}"] = notes[f"score_{tested_on}"]
    if fold.task == "classification":
        notes["correct"] = pack_bits(y == predicted)
    else:
        notes["rmse"] = float(np.sqrt(np.mean((y - predicted) ** 2))) if len(y) else float("nan")
    notes |= _validation_scores(fit.predictor, fold) | fit.notes
    return TrialMeasurement(notes[f"score_{tested_on}"], METRICS[fold.task], notes)


def _validation_scores(predictor: Predictor, fold: Fold) -> dict[str, float]:
    """The metric on the rows that each training domain set aside."""
    valid = fold.valid
    if not len(valid.y):
        return {}
    predicted = np.asarray(predictor.predict(valid.X))
    scores = {}
    for domain in fold.training_domains:
        rows = valid.domains == domain
        scores[f"score:{domain}"] = score(fold.task, valid.y[rows], predicted[rows])
    return scores
