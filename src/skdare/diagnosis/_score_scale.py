"""What a prediction is worth, for classes and for numbers: the scale of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import is_regressor

from skdare._safe_text import typographic
from skdare.arrays import Array, Index, to_numpy
from skdare.fitting.targets import SATURATED
from skdare.objective.scores import class_numbers, linear_scores


@dataclass(frozen=True, eq=False)
class Reading:
    """Predictions of one head for some rows.

    Parameters
    ----------
    values : array of shape (n,)
    scores : array of shape (n, k)
        What they follow from.
    """

    values: np.ndarray
    scores: np.ndarray


def read(head: Any, X: Array, index: Index | None = None) -> Reading:
    """Predict some rows, chunk by chunk; they were checked before, and no check speaks twice."""
    V = np.atleast_2d(head.coef_).T
    rows = slice(0, X.shape[0]) if index is None else index
    F = to_numpy(linear_scores(X, rows, V, head.intercept_))
    if is_regressor(head):
        return Reading(F[:, 0], F)
    return Reading(head.classes_[class_numbers(F)], F)


class ScoreScale(Protocol):
    """Scores lie on one scale: 1 is perfect, `floor` is what one gets without features.

    None is below ``least``; held-out domains that score above ``saturated`` were hardly unseen.
    """

    unit: str
    scoring: str
    points: str
    in_percent: bool
    least: float
    saturated: float
    usual_miss: float

    @property
    def floor(self) -> float:
        """The score of guessing."""
        ...

    def score(self, values: np.ndarray, y: np.ndarray) -> float:
        """Score of predictions."""
        ...

    def disagreement(self, a: np.ndarray, b: np.ndarray) -> float:
        """Disagreement between two heads."""
        ...

    def both_right(self, a: np.ndarray, b: np.ndarray, y: np.ndarray) -> float | None:
        """Share of rows that two heads both predict rightly; None where nothing is just right."""
        ...

    def text(self, score: float) -> str:
        """A score as people read it."""
        ...

    def ends(self, low: float, high: float) -> str:
        """The ends of a range, whose unit stands beside it."""
        ...

    def gain(self, difference: float) -> str:
        """A difference of scores with its sign, without its unit."""
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
    scoring = "accuracy"
    points = " points"
    in_percent = True
    least = 0.0
    saturated = SATURATED
    usual_miss = 0.07

    def score(self, values: np.ndarray, y: np.ndarray) -> float:
        """Accuracy."""
        return float(np.mean(values == y))

    def disagreement(self, a: np.ndarray, b: np.ndarray) -> float:
        """Share of rows that are predicted differently."""
        return float(np.mean(a != b))

    def both_right(self, a: np.ndarray, b: np.ndarray, y: np.ndarray) -> float | None:
        """Share of rows that both predict rightly."""
        return float(np.mean((a == y) & (b == y)))

    def text(self, score: float) -> str:
        """The score in percent; no line ends before the sign."""
        return f"{100 * score:.0f}\u00a0%"

    def ends(self, low: float, high: float) -> str:
        """Both ends in percent, without the sign."""
        return f"{100 * low:.0f} to {100 * high:.0f}"

    def gain(self, difference: float) -> str:
        """The difference in points."""
        return typographic(f"{round(100 * difference):+d}")


@dataclass(frozen=True)
class BalancedAccuracyScale(AccuracyScale):
    """Accuracy in which every class counts the same.

    Where no labels are known, the classes are those that the second of two heads predicts.

    Parameters
    ----------
    floor : float
        One over the number of classes.
    """

    unit = "balanced accuracy"
    scoring = "balanced_accuracy"

    def score(self, values: np.ndarray, y: np.ndarray) -> float:
        """Mean over the classes of how often each is recognised."""
        return _mean_over_classes(values == y, y)

    def disagreement(self, a: np.ndarray, b: np.ndarray) -> float:
        """Share of rows that are predicted differently, mean over the classes that b predicts."""
        return _mean_over_classes(a != b, b)

    def both_right(self, a: np.ndarray, b: np.ndarray, y: np.ndarray) -> float | None:
        """Share of rows that both predict rightly, mean over the classes."""
        return _mean_over_classes((a == y) & (b == y), y)


def _mean_over_classes(holds: np.ndarray, classes: np.ndarray) -> float:
    return float(np.mean([holds[classes == one].mean() for one in np.unique(classes)]))


@dataclass(frozen=True)
class R2Scale:
    """R² on the rows of a domain, as scikit-learn has it; less than −1 counts as −1.

    Parameters
    ----------
    variance : float
        Of the training targets, in which disagreement is counted.
    """

    variance: float
    floor = 0.0
    unit = "R²"
    scoring = "r2"
    points = ""
    in_percent = False
    least = -1.0
    saturated = float("inf")
    usual_miss = 0.2

    def score(self, values: np.ndarray, y: np.ndarray) -> float:
        """R², and −1 for anything below: of a domain of little variance it has no bound.

        Constant targets that are not met exactly score −1, too.
        """
        variance = float(np.var(y))
        error = float(np.mean((values - y) ** 2))
        if variance == 0:
            return 1.0 if error == 0 else self.least
        return max(1.0 - error / variance, self.least)

    def disagreement(self, a: np.ndarray, b: np.ndarray) -> float:
        """Mean squared difference over the variance of the training targets."""
        return float(np.mean((a - b) ** 2)) / self.variance

    def both_right(self, a: np.ndarray, b: np.ndarray, y: np.ndarray) -> float | None:
        """No number is just right."""
        return None

    def text(self, score: float) -> str:
        """The score to two decimals."""
        return typographic(f"{score:.2f}")

    def ends(self, low: float, high: float) -> str:
        """Both ends to two decimals."""
        return f"{self.text(low)} to {self.text(high)}"

    def gain(self, difference: float) -> str:
        """The difference to two decimals."""
        return typographic(f"{difference:+.2f}")
