"""Scores of a fitted head on the rows of a fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdare.bench._fold import Fold
from skdare.bench._metrics import Predictions, Predictor, measure
from skdare.bench._record import METRIC, pack_bits


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


def evaluate(fit: Fit, fold: Fold, tested_on: str, metrics: Sequence[str]) -> TrialMeasurement:
    """The metrics on the held-out domain; the first by its shares and on all training domains."""
    first, *further = metrics
    predicted = Predictions.of(fit.predictor, fold.test.X, metrics)
    shares = {
        "reserved": fold.reserved,
        "rest": ~fold.reserved,
        "all": np.ones_like(fold.reserved),
    }
    notes: dict[str, Any] = {
        f"score_{name}": measure(first, fold.test.y[rows], predicted[rows])
        for name, rows in shares.items()
    }
    tested = shares[tested_on]
    y = fold.test.y[tested]
    predicted = predicted[tested]
    notes |= {"n_train": len(fold.train.y), "n_test": len(y), "tested_on": tested_on}
    notes |= {f"{METRIC}{name}": measure(name, y, predicted) for name in further}
    if fold.test.groups is not None:
        notes["n_groups"] = len(np.unique(fold.test.groups[tested]))
    if fold.left_out_rows:
        notes["left_out_rows"] = fold.left_out_rows
    notes[f"score:{fold.held_out}"] = notes[f"score_{tested_on}"]
    if fold.task == "classification":
        notes["majority"] = _majority(fold, y)
        if first == "accuracy":
            notes["correct"] = pack_bits(y == predicted.values)
    else:
        errors = (y - predicted.values) ** 2
        notes["rmse"] = float(np.sqrt(np.mean(errors))) if len(y) else float("nan")
    notes |= _validation_scores(fit.predictor, fold, first) | fit.notes
    return TrialMeasurement(notes[f"score_{tested_on}"], first, notes)


def _majority(fold: Fold, y: np.ndarray) -> float:
    """Accuracy of always naming the class that most training rows have."""
    classes, counts = np.unique(fold.train.y, return_counts=True)
    return float(np.mean(y == classes[counts.argmax()])) if len(y) else float("nan")


def _validation_scores(predictor: Predictor, fold: Fold, metric: str) -> dict[str, float]:
    """The metric on the rows that each training domain set aside."""
    valid = fold.valid
    if not len(valid.y):
        return {}
    predicted = Predictions.of(predictor, valid.X, [metric])
    scores = {}
    for domain in fold.training_domains:
        rows = valid.domains == domain
        scores[f"score:{domain}"] = measure(metric, valid.y[rows], predicted[rows])
    return scores
