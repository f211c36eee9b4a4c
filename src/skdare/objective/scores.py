"""Scores of rows, and the predictions and probabilities that follow from them.

Notation: X (n, d) rows, V (d, k) weights, b (k,) intercept, F (n, k) scores.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skdare.arrays import (
    Array,
    Index,
    affine,
    as_float64,
    chunks,
    float64,
    is_foreign,
    like,
    namespace,
    power_of_two_near,
    products_of,
    to_numpy,
    work_dtype,
)
from skdare.objective.losses import softmax

# Weights whose products with float32 rows are sure to fit float32.
_FLOAT32_RANGE = 1e-25, 1e15


def scores_by_class(F: np.ndarray) -> np.ndarray:
    """Scores of every class: the one column of two classes is that of the second."""
    return np.hstack([np.zeros_like(F), F]) if F.shape[1] == 1 else F


def linear_scores(X: Array, index: Index, V: np.ndarray, b: np.ndarray | float) -> Array:
    """X V + b of the indexed rows, (m, k), in float64, in the array library of X."""
    parts = [as_float64(F) for F in score_chunks(X, index, V, b)]
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=0)


def score_chunks(X: Array, index: Index, V: Array, b: np.ndarray | float) -> Iterator[Array]:
    """X V + b, chunk by chunk."""
    unit = _unit_of(V, X)
    V = like(V if unit == 1.0 else V / unit, X)
    b = like(b if is_foreign(b) else np.atleast_1d(b), X, float64(X))
    for _, rows in chunks(X, index, columns=V.shape[1]):
        with products_of(X):
            F = affine(rows, V, b if unit == 1.0 else 0.0 * b)
        yield F if unit == 1.0 else as_float64(F) * unit + b


def _unit_of(V: Array, X: Array) -> float:
    """One, or the power of two in which products with X can hold these weights.

    Weights on float32 rows need not fit float32: those of small features or large targets.
    """
    if not isinstance(V, np.ndarray) or work_dtype(X) == float64(X):
        return 1.0
    top = float(np.max(np.abs(V), initial=0.0))
    return (
        1.0 if _FLOAT32_RANGE[0] < top < _FLOAT32_RANGE[1] or top == 0 else power_of_two_near(top)
    )


def predicted_columns(X: Array, index: Index, V: Array, b: np.ndarray | float) -> np.ndarray:
    """The class with the highest score in each of the indexed rows, on the host."""
    return np.concatenate([class_numbers(F) for F in score_chunks(X, index, V, b)])


def class_numbers(F: Array) -> np.ndarray:
    """The class with the highest score in each row, on the host."""
    if F.shape[1] == 1:
        return to_numpy(F[:, 0] > 0).astype(np.intp)
    return to_numpy(namespace(F).argmax(F, axis=1))


def probabilities(F: Array) -> Array:
    """Class probabilities, (n, k), from scores; one column of scores is that of two classes."""
    xp = namespace(F)
    if F.shape[1] == 1:
        F = xp.concat([xp.zeros_like(F), F], axis=1)
    return softmax(F)
