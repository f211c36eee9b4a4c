"""The way from weights to a score in a search and a rehearsal, and measures that a bench shares.

Notation: T (n,) targets as they are fitted, predicted (n,) likewise, V (d, k) weights, b (k,).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer

from skdare.arrays import Array, scores, take, to_numpy
from skdare.errors import InputError
from skdare.fitting.domain_fit import Weights
from skdare.fitting.problem import Classes, Numbers, Problem, Targets, predicted_numbers

Scoring = str | Callable[..., float] | None

# R² has no lower bound, and one domain of little variance would decide a mean: less counts as this.
R2_FLOOR = -1.0
# Compared with the mean square of the targets; less variance than this is rounding.
_LEAST_VARIANCE = 1e-28
# Of the variance of the targets; a domain that is predicted to the last digit decides no mean.
_LEAST_ERROR = 1e-12


def accuracy(true: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None) -> float:
    return float(np.average(true == predicted, weights=weight))


def balanced_accuracy(true: np.ndarray, predicted: np.ndarray) -> float:
    """Mean accuracy over the classes that occur."""
    right = true == predicted
    return float(np.mean([right[true == label].mean() for label in np.unique(true)]))


def r_squared(
    true: np.ndarray,
    predicted: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    floor: float = R2_FLOOR,
) -> float:
    """R², or the floor if it is lower; NaN for targets that do not vary."""
    variance = np.average((true - np.average(true, weights=weight)) ** 2, weights=weight)
    if not variance > _LEAST_VARIANCE * np.average(true**2, weights=weight):
        return float("nan")
    error = np.average((true - predicted) ** 2, weights=weight)
    return float(max(1.0 - error / variance, floor))


def predictions(targets: Targets, X: Array, weights: Weights) -> np.ndarray:
    """Class numbers, or standardised numbers."""
    F = to_numpy(scores(X, *weights))
    return predicted_numbers(F) if isinstance(targets, Classes) else F[:, 0]


def score(problem: Problem, e: int, weights: Weights, scoring: Scoring = None) -> float:
    """Score of weights on one domain of a problem; NaN if it is not defined on its rows.

    Accuracy or R², or any scorer of scikit-learn, which is given a fitted estimator with these
    weights.
    """
    targets = problem.targets
    index = problem.index[e]
    weight = problem.weight[index]
    X = take(problem.X, index)
    T = problem.T[index]
    if scoring is None:
        measure = accuracy if isinstance(targets, Classes) else r_squared
        return measure(T, predictions(targets, X, weights), weight)
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    # A user's callable need not accept weights.
    unequal = isinstance(scoring, str) and not np.all(weight == weight[0])
    options = {"sample_weight": weight} if unequal else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
            model = linear_model(targets, weights)
            value = float(scorer(model, to_numpy(X), targets.decode(T), **options))
        reason = "the score is not a number"
    except (AttributeError, TypeError, ValueError) as error:
        value = float("nan")
        reason = str(error)
    few = len(np.unique(T)) < (len(targets.classes) if isinstance(targets, Classes) else 2)
    if np.isnan(value) and not few:
        raise InputError(
            f"scoring={scoring!r} cannot score domain {problem.labels[e]!r}: {reason}",
            "use another of scikit-learn's scorers",
        )
    return value


def log_error(problem: Problem, e: int, weights: Weights) -> float:
    """Logarithm of the mean squared error on one domain, for standardised targets."""
    index = problem.index[e]
    predicted = predictions(problem.targets, take(problem.X, index), weights)
    error = np.average((problem.T[index] - predicted) ** 2, weights=problem.weight[index])
    return float(np.log(error + _LEAST_ERROR))


def linear_model(targets: Targets, weights: Weights) -> Any:
    """A fitted estimator of scikit-learn with these weights."""
    model = Ridge()
    if isinstance(targets, Classes):
        model = LogisticRegression()
        model.classes_ = targets.classes
    model.coef_, model.intercept_ = targets.coef_and_intercept(*weights)
    model.n_features_in_ = len(weights[0])
    return model


@dataclass(frozen=True)
class Metric:
    """What a rehearsal scores by: 1 is perfect, ``guessing`` is the score without features."""

    name: Literal["accuracy", "balanced_accuracy", "r2"]
    guessing: float

    @classmethod
    def of(cls, problem: Problem, *, balanced: bool) -> Self:
        if isinstance(problem.targets, Numbers):
            return cls("r2", 0.0)
        k = len(problem.targets.classes)
        if balanced:
            return cls("balanced_accuracy", 1.0 / k)
        counts = np.sum([np.bincount(problem.T[i], minlength=k) for i in problem.index], axis=0)
        return cls("accuracy", float(counts.max() / counts.sum()))

    @property
    def least(self) -> float:
        return R2_FLOOR if self.name == "r2" else 0.0

    def score(self, T: np.ndarray, predicted: np.ndarray) -> float:
        """A domain whose targets are all the same is predicted exactly, or as badly as can be."""
        if self.name == "accuracy":
            return accuracy(T, predicted)
        if self.name == "balanced_accuracy":
            return balanced_accuracy(T, predicted)
        value = r_squared(T, predicted)
        if np.isnan(value):
            return 1.0 if np.allclose(T, predicted) else self.least
        return value

    def disagreement(self, unadapted: np.ndarray, adapted: np.ndarray) -> float:
        """Share of the rows that are predicted differently; for regression, the mean squared
        difference over the variance of the training targets, which are standardised."""
        if self.name == "r2":
            return float(np.mean((unadapted - adapted) ** 2))
        return 1.0 - self.score(adapted, unadapted)

    def both_right(self, T: np.ndarray, first: np.ndarray, second: np.ndarray) -> float | None:
        """Score of predicting right twice; None for regression."""
        if self.name == "r2":
            return None
        return self.score(T, np.where(first == second, first, -1))

    @property
    def words(self) -> str:
        return "R²" if self.name == "r2" else self.name.replace("_", " ")

    def written(self, score: float) -> str:
        """A score in a text, with a no-break space before the percent sign."""
        return f"{round(score, 2) + 0.0:.2f}" if self.name == "r2" else f"{100 * score:.0f}\u00a0%"

    def differences(self, scores: Iterable[float]) -> str:
        """Differences in a text, with their signs, and the unit once."""
        if self.name == "r2":
            return ", ".join(f"{round(score, 2) + 0.0:+.2f}" for score in scores)
        return ", ".join(f"{round(100 * score) + 0:+d}" for score in scores) + " points"
