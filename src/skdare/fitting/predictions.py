"""What passes count of a head's predictions, where the rows lie: classes, hits, squared errors.

Notation: V (d, k) weights on raw features, b (k,) intercept, T targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.arrays import Array, to_numpy
from skdare.arrays.passes import Part
from skdare.objective.scores import linear_scores, predicted_columns

Weights = tuple[Array, Array]


@dataclass(frozen=True)
class ClassWeights:
    """The weight of the rows that are given each class; the part's column is their weight."""

    classes: int

    def __call__(self, part: Part, weights: Weights) -> np.ndarray:
        numbers = predicted_columns(part.X, part.index, *weights)
        return np.bincount(numbers, to_numpy(part.columns[0]), self.classes)


def hits(part: Part, weights: Weights) -> float:
    """The weight of the rows whose class is right; the part's columns are targets and weights."""
    T, weight = (to_numpy(column) for column in part.columns)
    return float(weight @ (predicted_columns(part.X, part.index, *weights) == T))


def squared_error(part: Part, weights: Weights) -> float:
    """Σ w (t - f)²; the part's columns are targets and weights."""
    T, weight = (to_numpy(column) for column in part.columns)
    F = to_numpy(linear_scores(part.X, part.index, *weights))
    return float(weight @ (T - F[:, 0]) ** 2)
