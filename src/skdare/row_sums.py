"""Weighted sums over a chunk of rows, dense or sparse: what moments are made of.

Notation: X (n, d) rows, Z rows minus a point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from skdare._array import (
    Array,
    Index,
    as_float64,
    chunks,
    float64,
    gram,
    like,
    namespace,
    to_numpy,
    transposed_product,
)


def total(values: Array) -> float:
    """The sum, on the host."""
    return float(namespace(values).sum(values))


def weighted_sum(rows: Array, weight: Array) -> Array:
    """Σ w x, the product in the rows' dtype, the result in float64."""
    return as_float64(transposed_product(rows, like(weight[:, None], rows))[:, 0])


def weighted_mean(rows: Array, weight: Array | None) -> Array:
    """Σ w x / Σ w in float64."""
    n = rows.shape[0] if weight is None else total(weight)
    if n == 0:  # a chunk of zero weight: any point will do
        weight, n = None, rows.shape[0]
    ones = namespace(rows).ones if not sparse.issparse(rows) else np.ones
    return weighted_sum(rows, like(ones(rows.shape[0]), rows) if weight is None else weight) / n


def squared_distances(rows: Array, point: Array) -> Array:
    """‖x - point‖² of each row, in float64; dense rows are deviations already."""
    if sparse.issparse(rows):
        squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
        return np.maximum(squares - 2.0 * (rows @ point) + point @ point, 0.0)
    return as_float64(namespace(rows).sum(rows * rows, axis=1))


def deviation_sum(rows: Array, point: Array, weight: Array) -> Array:
    """Σ w (x - point); dense rows are deviations already."""
    summed = weighted_sum(rows, weight)
    return summed - total(weight) * point if sparse.issparse(rows) else summed


def deviation_gram(rows: Array, point: Array, weight: Array | None) -> Array:
    """Σ w (x - point)(x - point)ᵀ in float64, the products in the rows' dtype.

    Dense rows are deviations already.
    """
    root = None if weight is None else weight**0.5
    if not sparse.issparse(rows):
        return as_float64(gram(rows if root is None else rows * like(root[:, None], rows)))
    rows = rows.astype(np.float64)
    ones = np.ones(rows.shape[0]) if weight is None else weight
    outer = (rows.T @ ones)[:, None] * point[None, :]
    scaled = rows if root is None else sparse.diags_array(root) @ rows
    return gram(scaled) - outer - outer.T + total(ones) * (point[:, None] * point[None, :])


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Total weight, mean and squared deviations of each feature, on the host; they add up.

    Parameters
    ----------
    n : float
    mean : array of shape (d,)
    squares : array of shape (d,)
        Weighted sum of ``(x - mean)²``.
    """

    n: float
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, X: Array, index: Index, sample_weight: Array) -> FeatureMoments:
        """Of the indexed rows, in one pass."""
        point: Array = 0.0
        n, square, linear = 0.0, 0.0, 0.0
        for place, rows in chunks(X, index):
            weight = like(sample_weight[place], X, float64(X))
            point = weighted_mean(rows, weight) if not n else point
            n += total(weight)
            if sparse.issparse(rows):
                sums = rows.T @ weight
                square = square + rows.multiply(rows).T @ weight - 2 * point * sums
                square = square + total(weight) * point**2
                linear = linear + sums - total(weight) * point
            else:
                Z = rows - like(point, rows)
                square = square + weighted_sum(Z * Z, weight)
                linear = linear + weighted_sum(Z, weight)
        squares = to_numpy(square - linear**2 / n)
        return cls(n, to_numpy(point + linear / n), np.maximum(squares, 0.0))

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        n = self.n + other.n
        gap = other.mean - self.mean
        squares = self.squares + other.squares + (self.n * other.n / n) * gap**2
        return FeatureMoments(n, self.mean + (other.n / n) * gap, squares)

    @property
    def variances(self) -> np.ndarray:
        """Variance of each feature."""
        return self.squares / self.n
