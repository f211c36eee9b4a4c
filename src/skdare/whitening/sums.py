"""Weighted sums over a chunk of rows, dense or sparse: what moments are made of.

Notation: X (n, d) rows, Z rows minus a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from skdare.arrays import (
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
# Squared lengths of float32 rows within which the sums of their third powers fit float32, and of
# the squares of single features keep their digits.
_FITTING = 1e-20, 1e20


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
        weight = None
        n = rows.shape[0]
    ones = namespace(rows).ones
    return weighted_sum(rows, like(ones(rows.shape[0]), rows) if weight is None else weight) / n


def point_near_mean(rows: Array, weight: Array | None) -> Array:
    """The mean as the rows' dtype has it, in float64: differences to it are then exact.

    Taken from the first row on, so that a feature that is the same in every row has exactly this
    value, and deviates by exactly zero: its variance is then no rounding, and never negative.
    """
    if sparse.issparse(rows):
        first = rows[[0]].toarray().ravel().astype(np.float64)
        if weight is None or not total(weight) > 0:
            weight = np.ones(rows.shape[0])
        offset = FeatureSums.of_sparse(rows, first, weight).linear / total(weight)
    else:
        first = as_float64(rows[0, :])
        offset = weighted_mean(rows - rows[:1, :], weight)
    return as_float64(like(first + offset, rows))


def in_fitting_dtype(deviations: Array) -> tuple[Array, Array]:
    """Deviations, and the square of each one's length in float64.

    Deviations in float32 whose powers it cannot hold come back in float64.
    """
    norms = squared_lengths(deviations)
    if deviations.dtype == float64(deviations):
        return deviations, norms
    top = float(namespace(norms).max(norms))
    if _FITTING[0] < top < _FITTING[1]:
        return deviations, norms
    deviations = as_float64(deviations)
    return deviations, squared_lengths(deviations)


def squared_lengths(rows: Array) -> Array:
    """‖x‖² of each row, in float64."""
    if on_accelerator(rows):  # in one kernel, without a copy of the rows
        return as_float64(namespace(rows).linalg.vector_norm(rows, axis=1)) ** 2
    with np.errstate(over="ignore"):
        return as_float64(namespace(rows).vecdot(rows, rows))


class FeatureSums(NamedTuple):
    """Σ w (x - point) and Σ w (x - point)² of each feature, in float64."""

    linear: Array
    square: Array

    @classmethod
    def of_deviations(cls, Z: Array, weight: Array) -> FeatureSums:
        """Sums of dense rows less the point; in float64 where float32 cannot hold the squares."""
        with np.errstate(over="ignore"):
            square = weighted_sum(Z * Z, weight)
        if Z.dtype != float64(Z):
            top = float(namespace(square).max(square))
            if not _FITTING[0] < top < _FITTING[1]:
                return cls.of_deviations(as_float64(Z), weight)
        return cls(weighted_sum(Z, weight), square)

    @classmethod
    def of_sparse(cls, rows: Array, point: np.ndarray, weight: np.ndarray) -> FeatureSums:
        """Sums of sparse rows, by their entries.

        A feature that is always at the point has exact zeros; expanding the square would leave the
        rounding of the products instead.
        """
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        d = rows.shape[1]
        columns = rows.indices
        each = np.repeat(weight, np.diff(rows.indptr))
        Z = rows.data.astype(np.float64) - point[columns]
        stored = np.bincount(columns, minlength=d)
        absent = np.maximum(weight.sum() - np.bincount(columns, each, d), 0.0)
        absent[stored == rows.shape[0]] = 0.0
        return cls(
            np.bincount(columns, each * Z, d) - absent * point,
            np.bincount(columns, each * Z * Z, d) + absent * point**2,
        )


class _SparseChunk:
    """Sums over sparse rows about a point, without a dense copy of them."""

    def __init__(self, rows: Array, point: np.ndarray, weight: np.ndarray | None) -> None:
        self.rows = rows.astype(np.float64)
        self.point = point
        self.weight = np.ones(rows.shape[0]) if weight is None else weight
        self.sums = FeatureSums.of_sparse(self.rows, point, self.weight)
        squares = np.asarray(self.rows.multiply(self.rows).sum(axis=1)).ravel()
        norms = squares - 2.0 * (self.rows @ point) + point @ point
        self.norms = np.maximum(norms, 0.0)

    def sum(self, weight: np.ndarray) -> np.ndarray:
        """Σ w (x - point)."""
        summed: np.ndarray = self.rows.T @ weight - weight.sum() * self.point
        return summed

    def gram(self) -> np.ndarray:
        """Σ w (x - point)(x - point)ᵀ; its diagonal is that of `FeatureSums`."""
        weight = self.weight
        point = self.point
        outer = (self.rows.T @ weight)[:, None] * point[None, :]
        G: np.ndarray = gram(sparse.diags_array(weight**0.5) @ self.rows)
        G += weight.sum() * (point[:, None] * point[None, :]) - outer - outer.T
        still = self.sums.square == 0
        G[still] = 0.0
        G[:, still] = 0.0
        np.fill_diagonal(G, self.sums.square)
        return G


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
        """Moments of the indexed rows, in one pass."""
        point: Array = 0.0
        n = 0.0
        square = 0.0
        linear = 0.0
        for place, rows in chunks(X, index):
            weight = like(sample_weight[place], X, float64(X))
            point = point_near_mean(rows, weight) if not n else point
            n += total(weight)
            if sparse.issparse(rows):
                sums = FeatureSums.of_sparse(rows, point, weight)
            else:
                sums = FeatureSums.of_deviations(rows - like(point, rows), weight)
            linear = linear + sums.linear
            square = square + sums.square
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

    With z' = z - δ and ‖z'‖² = ‖z‖² - 2 z·δ + ‖δ‖², expand each power and sum. Whatever rounding
    leaves of the quartic sum, it is at least the squared sum of the ‖z'‖² over n.
    """
    square = total(delta * delta)
    cross = total(linear * delta)
    cubic = powers.cubic - 2 * Sd + square * linear - (trace - 2 * cross + n * square) * delta
    quartic = (
        powers.quartic
        + 4 * total(delta * Sd)
        + n * square * square
        - 4 * total(powers.cubic * delta)
        + 2 * square * trace
        - 4 * square * cross
    )
    spread = trace - 2 * cross + n * square
    return Powers(cubic, max(quartic, spread * spread / n))


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
        self.point = point
        self.n = 0.0
        self.quartic = 0.0
        self.linear = point * 0.0
        self.cubic = point * 0.0
        self.square = self.linear[:, None] * self.linear[None, :]

    def add(self, rows: Array, weight: Array | None) -> None:
        """Add a chunk of rows; a sparse chunk stays sparse, a dense one is centred once."""
        if sparse.issparse(rows):
            self._add_sparse(_SparseChunk(rows, self.point, weight))
            return
        Z, norms = in_fitting_dtype(rows - like(self.point, rows))
        ones = norms * 0.0 + 1.0 if weight is None else weight
        heavy = ones * norms
        self.n += total(ones)
        self.linear = self.linear + weighted_sum(Z, ones)
        self.cubic = self.cubic + weighted_sum(Z, heavy)
        self.quartic += total(heavy * norms)
        # A float32 product is added as it is: a float64 copy would be one more (d, d) matrix.
        self.square += gram(Z if weight is None else Z * like(weight**0.5, Z)[:, None])

    def _add_sparse(self, chunk: _SparseChunk) -> None:
        heavy = chunk.weight * chunk.norms
        self.n += total(chunk.weight)
        self.linear = self.linear + chunk.sums.linear
        self.cubic = self.cubic + chunk.sum(heavy)
        self.quartic += total(heavy * chunk.norms)
        self.square += chunk.gram()

    def decay(self, factor: float) -> None:
        """Let every row so far count ``factor`` times what it did."""
        self.n = factor * self.n
        self.quartic = factor * self.quartic
        self.linear = factor * self.linear
        self.cubic = factor * self.cubic
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
        linear = self.linear
        delta = self.linear / self.n
        trace = float(namespace(delta).linalg.trace(self.square))
        Sd = self.square @ delta
        powers = Powers(self.cubic, self.quartic)
        powers = shifted_powers(powers, self.n, trace, linear, Sd, delta)
        # S - zδᵀ - δzᵀ + nδδᵀ with z = nδ.
        root = delta * self.n**0.5
        scatter = self.square - root[:, None] * root[None, :]
        return self.n, self.point + delta, without_negative(scatter), *powers


def without_negative(scatter: Array) -> Array:
    """A scatter whose diagonal rounding made negative somewhere, with zeros there instead."""
    xp = namespace(scatter)
    diagonal = xp.linalg.diagonal(scatter)
    if not float(xp.min(diagonal)) < 0:
        return scatter
    valid = xp.astype(diagonal >= 0, scatter.dtype)
    return scatter * valid[:, None] * valid[None, :]
