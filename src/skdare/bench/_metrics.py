"""Metrics of a bench: scikit-learn's, by the names of its scorers; higher is better in all of them.

A held-out domain may lack a class, and is scored all the same: by the classes that it has, and
macro F1, as in scikit-learn, also by those that were predicted for it.

Notation: P (n, k) class probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.metrics import f1_score, mean_absolute_error, recall_score, roc_auc_score

from skdare._validation import InputError


class Predictor(Protocol):
    """All that the bench needs of a fitted head; a classifier also has probabilities."""

    def predict(self, X: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a predictor says of some rows.

    Parameters
    ----------
    values : array of shape (n,)
        Classes or numbers.
    P : array of shape (n, k), optional
        Class probabilities, where a metric needs them.
    classes : array of shape (k,), optional
    """

    values: np.ndarray
    P: np.ndarray | None = None
    classes: np.ndarray | None = None

    @classmethod
    def of(cls, predictor: Predictor, X: Any, metrics: Sequence[str]) -> Predictions:
        """Predictions of these rows, as these metrics need them."""
        values = np.asarray(predictor.predict(X))
        if not any(METRICS[name].of_probabilities for name in metrics):
            return cls(values)
        classifier: Any = predictor
        return cls(values, np.asarray(classifier.predict_proba(X)), np.asarray(classifier.classes_))

    def __getitem__(self, rows: np.ndarray) -> Predictions:
        return Predictions(
            self.values[rows], None if self.P is None else self.P[rows], self.classes
        )


def _accuracy(y: np.ndarray, predicted: Predictions) -> float:
    return float(np.mean(y == predicted.values))


def _balanced_accuracy(y: np.ndarray, predicted: Predictions) -> float:
    present = np.unique(y)
    return float(
        recall_score(y, predicted.values, labels=present, average="macro", zero_division=0.0)
    )


def _f1_macro(y: np.ndarray, predicted: Predictions) -> float:
    """Mean F1 over the classes that occur or are predicted; one only predicted counts as 0."""
    return float(f1_score(y, predicted.values, average="macro", zero_division=0.0))


def _roc_auc(y: np.ndarray, predicted: Predictions) -> float:
    """Area under the curve; of several classes each against the rest, averaged."""
    assert predicted.P is not None
    assert predicted.classes is not None
    classes = list(enumerate(predicted.classes))
    areas = [
        roc_auc_score(y == label, predicted.P[:, j])
        for j, label in (classes[1:] if len(classes) == 2 else classes)
        if 0 < np.sum(y == label) < len(y)
    ]
    return float(np.mean(areas)) if areas else float("nan")


def _log_likelihood(y: np.ndarray, predicted: Predictions) -> float:
    """Mean log-probability of the true classes; one that was never trained on has the least."""
    assert predicted.P is not None
    assert predicted.classes is not None
    true = np.where(y[:, None] == predicted.classes, predicted.P, 0.0).sum(axis=1)
    return float(np.mean(np.log(np.maximum(true, np.finfo(np.float64).eps))))


def _r2(y: np.ndarray, predicted: Predictions) -> float:
    """R²; NaN without variance to explain."""
    y = y.astype(np.float64)
    total = float(np.sum((y - y.mean()) ** 2))
    if not total > 0:
        return float("nan")
    return 1.0 - float(np.sum((y - predicted.values) ** 2)) / total


def _minus_rmse(y: np.ndarray, predicted: Predictions) -> float:
    return -float(np.sqrt(np.mean((y - predicted.values) ** 2)))


def _minus_mae(y: np.ndarray, predicted: Predictions) -> float:
    return -float(mean_absolute_error(y, predicted.values))


@dataclass(frozen=True)
class Metric:
    """A metric of a task.

    Parameters
    ----------
    task : "classification" or "regression"
    measure : callable
        From targets and `Predictions` to a number.
    of_probabilities : bool
    """

    task: str
    measure: Callable[[np.ndarray, Predictions], float]
    of_probabilities: bool = False


# The first of a task is its default.
METRICS = {
    "accuracy": Metric("classification", _accuracy),
    "balanced_accuracy": Metric("classification", _balanced_accuracy),
    "f1_macro": Metric("classification", _f1_macro),
    "roc_auc": Metric("classification", _roc_auc, of_probabilities=True),
    "neg_log_loss": Metric("classification", _log_likelihood, of_probabilities=True),
    "r2": Metric("regression", _r2),
    "neg_root_mean_squared_error": Metric("regression", _minus_rmse),
    "neg_mean_absolute_error": Metric("regression", _minus_mae),
}


def metrics_of(task: str) -> tuple[str, ...]:
    """Names of a task's metrics, its default first."""
    return tuple(name for name, metric in METRICS.items() if metric.task == task)


def check_metrics(metrics: Sequence[str] | None, task: str) -> tuple[str, ...]:
    """The metrics themselves, or the task's default; refused where the task has none so called."""
    available = metrics_of(task)
    if metrics is None:
        return available[:1]
    if not metrics:
        raise InputError("metrics names none", f"use {', '.join(available)}", argument="metrics")
    for name in metrics:
        if name not in available:
            kind = f"a metric of {METRICS[name].task}" if name in METRICS else "no metric"
            raise InputError(
                f"metrics has {name!r}, which is {kind}",
                f"for {task} use {', '.join(available)}",
                argument="metrics",
            )
    return tuple(dict.fromkeys(metrics))


def measure(metric: str, y: np.ndarray, predicted: Predictions) -> float:
    """The metric of some predictions; NaN without rows, or where it is not defined."""
    return METRICS[metric].measure(y, predicted) if len(y) else float("nan")


def scoring_of(metric: str, n_classes: int) -> str | None:
    """What a searching head calls this metric; None is its own default for accuracy and R²."""
    if metric in ("accuracy", "r2"):
        return None
    return "roc_auc_ovr" if metric == "roc_auc" and n_classes > 2 else metric
