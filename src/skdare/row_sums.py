"""Weighted sums over a chunk of rows, dense or sparse: what moments are made of.

Notation: X (n, d) rows, Z rows minus a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
    on_accelerator,
    same_place,
    to_numpy,
    transposed_product,
)

# Rows of several domains that are multiplied together: one large product, little memory.
STACK = 2048


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


def point_near_mean(rows: Array, weight: Array | None) -> Array:
    """The mean as the rows' dtype has it, in float64: differences to it are then exact."""
    return as_float64(like(weighted_mean(rows, weight), rows))


def squared_distances(rows: Array, point: Array) -> Array:
    """‖x - point‖² of each row, in float64; dense rows are deviations already."""
    if sparse.issparse(rows):
        squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
        return np.maximum(squares - 2.0 * (rows @ point) + point @ point, 0.0)
    if on_accelerator(rows):  # in one kernel, without a copy of the rows
        return as_float64(namespace(rows).linalg.vector_norm(rows, axis=1)) ** 2
    return as_float64(namespace(rows).vecdot(rows, rows))


def deviation_sum(rows: Array, point: Array, weight: Array) -> Array:
    """Σ w (x - point); dense rows are deviations already."""
    summed = weighted_sum(rows, weight)
    return summed - total(weight) * point if sparse.issparse(rows) else summed


def deviation_gram(rows: Array, point: Array, weight: Array | None) -> Array:
    """Σ w (x - point)(x - point)ᵀ in the rows' dtype, of sparse rows in float64.

    Dense rows are deviations already.
    """
    root = None if weight is None else weight**0.5
    if not sparse.issparse(rows):
        return gram(rows if root is None else rows * like(root[:, None], rows))
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
            point = point_near_mean(rows, weight) if not n else point
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


class Powers(NamedTuple):
    """Sums of the third and fourth power about a point."""

    cubic: Array
    quartic: float


def shifted_powers(
    powers: Powers, n: float, trace: float, linear: Array, Sd: Array, delta: Array
) -> Powers:
    """The same about ``point + δ``; ``linear`` is Σ z and ``Sd`` is Σ z zᵀδ about the old point.

    With z' = z - δ and ‖z'‖² = ‖z‖² - 2 z·δ + ‖δ‖², expand each power and sum.
    """
    square, cross = total(delta * delta), total(linear * delta)
    cubic = powers.cubic - 2 * Sd + square * linear - (trace - 2 * cross + n * square) * delta
    quartic = (
        powers.quartic
        + 4 * total(delta * Sd)
        + n * square * square
        - 4 * total(powers.cubic * delta)
        + 2 * square * trace
        - 4 * square * cross
    )
    return Powers(cubic, quartic)


class RunningSums:
    """Running sums about a fixed point near the mean: one (d, d) accumulator, added to in place.

    About the first chunk's mean, not the origin: the mean of ReLU features is as large as their
    spread, and subtracting n μμᵀ afterwards would cost those digits in float32.

    Parameters
    ----------
    point : array of shape (d,)
        In float64; the sums stay in its array library and on its device.
    """

    def __init__(self, point: Array) -> None:
        self.point, self.n, self.quartic = point, 0.0, 0.0
        self.linear, self.cubic = point * 0.0, point * 0.0
        self.square = self.linear[:, None] * self.linear[None, :]

    def add(self, rows: Array, weight: Array | None) -> None:
        """Add a chunk of rows; a sparse chunk stays sparse, a dense one is centred once."""
        point = self.point
        if not sparse.issparse(rows):
            rows, point = rows - like(point, rows), point * 0.0
        norms = squared_distances(rows, point)
        ones = norms * 0.0 + 1.0 if weight is None else weight
        heavy = ones * norms
        self.n += total(ones)
        self.linear = self.linear + deviation_sum(rows, point, ones)
        self.cubic = self.cubic + deviation_sum(rows, point, heavy)
        self.quartic += total(heavy * norms)
        # A float32 product is added as it is: a float64 copy would be one more (d, d) matrix.
        self.square += deviation_gram(rows, point, weight)

    def decay(self, factor: float) -> None:
        """Let every row so far count ``factor`` times what it did."""
        self.n, self.quartic = factor * self.n, factor * self.quartic
        self.linear, self.cubic = factor * self.linear, factor * self.cubic
        self.square *= factor

    def follow(self) -> None:
        """Move the point to the mean, once they are further apart than the rows are spread."""
        offset = total(self.linear * self.linear) / self.n
        if offset > 0.5 * float(namespace(self.point).linalg.trace(self.square)):
            _, self.point, self.square, self.cubic, self.quartic = self.about_mean()
            self.linear = self.linear * 0.0

    def move_beside(self, rows: Array) -> None:
        """Go on in the array library and on the device of these rows."""
        if not same_place(self.point, rows):
            for name in ("point", "linear", "cubic", "square"):
                setattr(self, name, like(to_numpy(getattr(self, name)), rows, float64(rows)))

    def about_mean(self) -> tuple[float, Array, Array, Array, float]:
        """Moved to the mean they imply: n, mean, scatter, and the cubic and quartic sums."""
        linear, delta = self.linear, self.linear / self.n
        trace, Sd = float(namespace(delta).linalg.trace(self.square)), self.square @ delta
        powers = Powers(self.cubic, self.quartic)
        powers = shifted_powers(powers, self.n, trace, linear, Sd, delta)
        # S - zδᵀ - δzᵀ + nδδᵀ with z = nδ.
        root = delta * self.n**0.5
        scatter = self.square - root[:, None] * root[None, :]
        return self.n, self.point + delta, scatter, *powers
