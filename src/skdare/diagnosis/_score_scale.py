"""What a prediction is worth, for classes and for numbers: the scale of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import is_regressor

from skdare.arrays import Array, Index, to_numpy
from skdare.fitting.targets import SATURATED
from skdare.objective.scores import linear_scores, probabilities


@dataclass(frozen=True, eq=False)
class Reading:
    """Predictions of one head for some rows.

    Parameters
    ----------
    values : array of shape (n,)
    confidence : float, optional
        Mean probability of the predicted class.
    """

    values: np.ndarray
    confidence: float | None


def read(head: Any, X: Array, index: Index | None = None) -> Reading:
    """Predict some rows, chunk by chunk; they were checked before, and no check speaks twice."""
    V = np.atleast_2d(head.coef_).T
    rows = slice(0, X.shape[0]) if index is None else index
    F = to_numpy(linear_scores(X, rows, V, head.intercept_))
    if is_regressor(head):
        return Reading(F[:, 0], None)
    P = probabilities(F)
    return Reading(head.classes_[P.argmax(axis=1)], float(P.max(axis=1).mean()))


class ScoreScale(Protocol):
    """Scores lie on one scale: 1 is perfect, `floor` is what one gets without features.

    None is below ``least``; held-out domains that score above ``saturated`` were hardly unseen.
    """

    unit: str
    least: float
    saturated: float

    @property
    def floor(self) -> float:
        """The score of guessing."""
        ...

    def score(self, values: np.ndarray, y: np.ndarray) -> float:
        """Score of predictions."""
        ...

    def disagreement(self, a: np.ndarray, b: np.ndarray) -> float:
        """Disagreement between two heads, on the scale of scores."""
        ...


@dataclass(frozen=True)
class AccuracyScale:
    """Accuracy; two heads disagree on a share of the rows.

    Parameters
    ----------
    floor : float
        Share of the commonest class.
    """

    floor: float
    unit = "accuracy"
    least = 0.0
    saturated = SATURATED

    def score(self, values: np.ndarray, y: np.ndarray) -> float:
        """Accuracy."""
        return float(np.mean(values == y))

    def disagreement(self, a: np.ndarray, b: np.ndarray) -> float:
        """Share of rows that are predicted differently."""
        return float(np.mean(a != b))


@dataclass(frozen=True)
class VarianceScale:
    """1 minus the squared error over the variance of the training targets.

    Parameters
    ----------
    variance : float
    """

    variance: float
    floor = 0.0
    unit = "R² in units of the training targets"
    least = float("-inf")
    saturated = float("inf")

    def score(self, values: np.ndarray, y: np.ndarray) -> float:
        """R² by the training variance, so that a domain of little variance is no disaster."""
        return 1.0 - float(np.mean((values - y) ** 2)) / self.variance

    def disagreement(self, a: np.ndarray, b: np.ndarray) -> float:
        """Mean squared difference over the variance."""
        return float(np.mean((a - b) ** 2)) / self.variance
