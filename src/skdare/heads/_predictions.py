"""What passes count of a head's predictions, where the rows lie: classes, hits, squared errors.

Notation: V (d, k) weights on raw features, b (k,) intercept, T targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare._array import Array, to_numpy
from skdare.heads._base import class_numbers
from skdare.objective import linear_scores
from skdare.passes import Part

Weights = tuple[Array, Array]


def _scores(part: Part, weights: Weights) -> np.ndarray:
    return to_numpy(linear_scores(part.X, part.index, *weights))


@dataclass(frozen=True)
class PredictedClasses:
    """The weight of the rows that are given each class; the part's column is their weight."""

    classes: int

    def __call__(self, part: Part, weights: Weights) -> np.ndarray:
        numbers = class_numbers(_scores(part, weights))
        return np.bincount(numbers, to_numpy(part.columns[0]), self.classes)


def hits(part: Part, weights: Weights) -> float:
    """The weight of the rows whose class is right; the part's columns are targets and weights."""
    T, weight = (to_numpy(column) for column in part.columns)
    return float(weight @ (class_numbers(_scores(part, weights)) == T))


def squared_error(part: Part, weights: Weights) -> float:
    """Σ w (t - f)²; the part's columns are targets and weights."""
    T, weight = (to_numpy(column) for column in part.columns)
    return float(weight @ (T - _scores(part, weights)[:, 0]) ** 2)
