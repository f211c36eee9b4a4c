"""Moments of rows: they add up, so chunks, workers and days are one sum.

Notation: X (n, d) rows, μ (d,) their mean, Z rows minus a point, S (d, d) second moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy import sparse

from skdare.arrays import (
    Array,
    Index,
    Part,
    as_float64,
    beside,
    chunks,
    float32_products,
    gram,
    length,
    like,
    map_reduce,
    namespace,
    take,
    to_numpy,
    transposed_product,
)
from skdare.errors import InputError

# Chunks large enough that adding their (d, d) sums costs little compared with making them.
_CHUNK_BYTES = 8 << 20
# Squared lengths of float32 rows within which it holds sums of squares of their entries.
_FITTING = 1e-20, 1e20
# Relative, of a sum of squares about a point far from the mean.
_ROUNDING = 1e-13
# Rows from which the mean is known well enough to take deviations from it.
_NEAR = 1024
# Powers of what varies by less underflow.
_SMALLEST = 1e-75
# What a mean may be in units of what varies: products hold its square.
_FURTHEST = 1e15


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, mean and scatter of some rows.

    Fewer rows than features are kept as rows, and no (d, d) matrix is made of them.
    """

    n: float  # total weight: a weight of two is equivalent to repeating the row
    mean: Annotated[Array, "d"]
    scatter: Annotated[Array, "d d"] | None  # Σ w (x - μ)(x - μ)ᵀ
    rows: Annotated[Array, "m d"] | None  # in its place: √w (x - μ), and √n μ last
    furthest: float = 0.0  # largest w ‖x - p‖²; p is near the mean of rows that came together

    @classmethod
    def of(cls, X: Array, index: Index | None = None, weight: Array | None = None) -> Moments:
        """Moments of the indexed rows; ``weight`` has an entry for each of them."""
        index = slice(0, X.shape[0]) if index is None else index
        part = Part(X, index, () if weight is None else (weight,))
        return map_reduce(moments_of, [part], [None])[0]

    def __add__(self, other: Moments) -> Moments:
        n = self.n + other.n
        gap = other.mean - self.mean
        mean = self.mean + gap * (other.n / n)
        # The gap between the means is a row of its own, of weight n₁ n₂ / n.
        apart = gap * (self.n * other.n / n) ** 0.5
        # A row that comes alone is away from the others, and not from itself.
        alone = float(apart @ apart) if min(self.n, other.n) <= 1.0 else 0.0
        furthest = max(self.furthest, other.furthest, alone)
        if self.rows is not None and other.rows is not None:
            parts = (self.rows[:-1, :], other.rows[:-1, :], apart[None, :], mean[None, :] * n**0.5)
            if sum(part.shape[0] for part in parts) <= mean.shape[0]:
                rows = namespace(mean).concat([like(part, self.rows) for part in parts], axis=0)
                return Moments(n, mean, None, rows, furthest)
        scatter = self.dense_scatter() + other.dense_scatter()
        scatter += apart[:, None] * apart[None, :]
        return Moments(n, mean, scatter, None, furthest)

    def faded(self, factor: float) -> Moments:
        """The same rows, each of which counts ``factor`` times as much."""
        scatter = None if self.scatter is None else self.scatter * factor
        rows = None if self.rows is None else self.rows * factor**0.5
        return Moments(self.n * factor, self.mean, scatter, rows, self.furthest * factor)

    def dense_scatter(self) -> Array:
        return self.scatter if self.rows is None else gram(as_float64(self.rows[:-1, :]))

    def scatter_times(self, v: Array) -> Array:
        if self.rows is None:
            return self.scatter @ v
        Z = as_float64(self.rows[:-1, :])
        return Z.T @ (Z @ v)

    @cached_property
    def variances(self) -> Array:
        """Variance of each feature, with divisor n."""
        xp = namespace(self.mean)
        if self.rows is None:
            return xp.linalg.diagonal(self.scatter) / self.n
        return xp.sum(as_float64(self.rows[:-1, :]) ** 2, axis=0) / self.n

    @property
    def trace(self) -> float:
        """Sum of squared distances from the mean."""
        return total(self.variances) * self.n

    def second_moment(self, centered: bool) -> Array:
        """The covariance with divisor n, or the raw second moment about the origin."""
        S = self.dense_scatter() / self.n
        if not centered:
            S += self.mean[:, None] * self.mean[None, :]
        return S

    def scale(self, centered: bool) -> float:
        """tr(S) / d."""
        square = 0.0 if centered else float(self.mean @ self.mean)
        return (self.trace / self.n + square) / self.mean.shape[0]

    def to_numpy(self) -> Moments:
        scatter, rows = [None if a is None else to_numpy(a) for a in (self.scatter, self.rows)]
        return Moments(self.n, to_numpy(self.mean), scatter, rows, self.furthest)


def moments_of(part: Part, _: None = None) -> Moments:
    """Moments of the rows of a part, whose column, if there is one, has their weights."""
    X = part.X
    weight = part.columns[0] if part.columns else None
    if length(part.index) < X.shape[1]:
        return _of_few_rows(take(X, part.index), weight)
    n = 0.0
    furthest = 0.0
    linear: Array = 0.0
    for place, rows in chunks(X, part.index, n_bytes=_CHUNK_BYTES):
        w = beside(np.ones(rows.shape[0]) if weight is None else weight[place], rows)
        if sparse.issparse(rows):
            # About the origin, and in float64: only there do zeros stay zeros.
            Z = rows.astype(np.float64)
            point = np.zeros(X.shape[1])
            if n == 0:
                near = transposed_product(Z, w[:, None])[:, 0] / total(w)
            squares = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() - 2.0 * (Z @ near) + near @ near
            rooted = Z if weight is None else sparse.diags_array(w**0.5) @ Z
        else:
            # About the first chunk's mean: that of ReLU features is as large as their spread, and
            # subtracting n μμᵀ afterwards would cost those digits in float32.
            point = point_near_mean(rows, w) if n == 0 else point
            Z, squares = _deviations(rows, point)
            rooted = Z if weight is None else Z * like(w**0.5, Z)[:, None]
        with float32_products(Z):
            linear = linear + as_float64(transposed_product(Z, like(w, Z)[:, None])[:, 0])
            square = gram(rooted)
        if n == 0:
            scatter = as_float64(square)
        else:
            scatter += square  # in its own dtype: a float64 copy would be one more (d, d) matrix
        n += total(w)
        furthest = max(furthest, float(namespace(w).max(w * squares)))
    delta = linear / n
    # S - zδᵀ - δzᵀ + nδδᵀ with z = nδ.
    root = delta * n**0.5
    scatter -= root[:, None] * root[None, :]
    return Moments(n, point + delta, _without_noise(scatter, root**2), None, furthest)


def _of_few_rows(rows: Array, weight: Array | None) -> Moments:
    """Moments of fewer rows than features: their deviations, in the dtype of the rows."""
    rows = rows.toarray() if sparse.issparse(rows) else rows
    w = beside(np.ones(rows.shape[0]) if weight is None else weight, rows)
    n = total(w)
    point = point_near_mean(rows, w)
    Z = rows - like(point, rows)
    # Twice: the rounding of a large mean comes off.
    rest = as_float64(transposed_product(Z, like(w, Z)[:, None])[:, 0]) / n
    Z, squares = _deviations(Z, rest)
    mean = point + rest
    Z = like(Z, rows) if weight is None else like(Z, rows) * like(w**0.5, rows)[:, None]
    kept = namespace(rows).concat([Z, like(mean * n**0.5, rows)[None, :]], axis=0)
    return Moments(n, mean, None, kept, float(namespace(w).max(w * squares)))


def point_near_mean(rows: Array, w: Array) -> Array:
    """About the mean, as the dtype of the rows has it, in float64: differences to it are exact.

    From the first row on, so that a feature that is the same in every row has exactly this mean:
    its variance is then zero, and not rounding noise used as a divisor.
    """
    few = slice(0, min(_NEAR, rows.shape[0]))
    away = rows[few, :] - rows[:1, :]
    offset = as_float64(transposed_product(away, like(w[few], rows)[:, None])[:, 0])
    return as_float64(like(as_float64(rows[0, :]) + offset / total(w[few]), rows))


def total(values: Array) -> float:
    """The sum, on the host."""
    return float(namespace(values).sum(values))


def _deviations(rows: Array, point: Array) -> tuple[Array, Array]:
    """Rows less a point, and their squared lengths in float64.

    Those in float32 whose squares it cannot hold come back in float64.
    """
    xp = namespace(rows)
    Z = rows - like(point, rows)
    with np.errstate(over="ignore"):
        squares = as_float64(xp.linalg.vecdot(Z, Z))
    top = float(xp.max(squares))
    if Z.dtype != xp.float64 and not _FITTING[0] < top < _FITTING[1]:
        Z = as_float64(rows) - point
        squares = xp.linalg.vecdot(Z, Z)
    return Z, squares


def _without_noise(scatter: Array, removed: Array) -> Array:
    """A scatter with zeros for features of which what was subtracted left no more than rounding."""
    xp = namespace(scatter)
    diagonal = xp.linalg.diagonal(scatter)
    present = diagonal > _ROUNDING * removed
    if bool(xp.all(present)):
        return scatter
    present = xp.astype(present, xp.float64)
    return scatter * present[:, None] * present[None, :]


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Weight, mean and variances of some rows, without the (d, d) products of `Moments`."""

    n: float
    mean: Array
    variances: Array

    @classmethod
    def of(cls, X: Array, index: Index, weight: np.ndarray) -> FeatureMoments:
        """``weight`` has an entry for each indexed row."""
        return map_reduce(feature_moments_of, [Part(X, index, (weight,))], [None])[0]

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        n = self.n + other.n
        share = other.n / n
        gap = other.mean - self.mean
        within = (1.0 - share) * self.variances + share * other.variances
        variances = within + share * (1.0 - share) * gap**2
        return FeatureMoments(n, self.mean + share * gap, variances)


def feature_moments_of(part: Part, _: None = None) -> FeatureMoments:
    X = part.X
    n = 0.0
    linear: Array = 0.0
    square: Array = 0.0
    for place, rows in chunks(X, part.index):
        w = beside(part.columns[0][place], rows)
        if sparse.issparse(rows):
            point = np.zeros(X.shape[1])
            Z = rows.astype(np.float64)
            squared = Z.multiply(Z)
        else:
            point = point_near_mean(rows, w) if n == 0 else point
            Z = rows - like(point, rows)
            squared = Z * Z
        column = like(w, Z)[:, None]
        linear = linear + as_float64(transposed_product(Z, column)[:, 0])
        square = square + as_float64(transposed_product(squared, column)[:, 0])
        n += total(w)
    xp = namespace(linear)
    removed = linear**2 / n
    square = square - removed
    variances = xp.where(square > _ROUNDING * removed, square, 0.0 * square) / n
    return FeatureMoments(n, point + linear / n, variances)


AnyMoments = Moments | FeatureMoments


def pooled_variances(moments: Sequence[AnyMoments]) -> np.ndarray:
    """Variance of each feature over the rows of all domains, on the host."""
    n = np.array([m.n for m in moments])
    means = np.stack([to_numpy(m.mean) for m in moments])
    within = np.stack([to_numpy(m.variances) for m in moments])
    # From the first mean on: where all are the same, the centre is exactly that.
    centre = means[0] + n @ (means - means[0]) / n.sum()
    return n @ (within + (means - centre) ** 2) / n.sum()


def mean_variance(moments: Sequence[AnyMoments]) -> float:
    """Mean variance of a feature over the rows of all domains: the unit of l2."""
    return float(pooled_variances(moments).mean())


def overall_variances(moments: Sequence[AnyMoments], dtype: object) -> np.ndarray:
    """Variance of each feature over the rows of all domains, on the host.

    Refused if none varies by more than the rounding of rows in ``dtype``, or if a mean is out of
    all proportion to what varies.
    """
    means = np.stack([to_numpy(m.mean) for m in moments])
    variances = pooled_variances(moments)
    largest = np.abs(means).max(axis=0)
    rounding = float(np.finfo(str(dtype).split(".")[-1]).eps) * largest
    if not np.any(variances > np.maximum(rounding, _SMALLEST) ** 2):
        raise InputError(
            f"every feature is constant, or varies by less than its rounding or {_SMALLEST:.0e}",
            "nothing can be learnt; if they really are this small, rescale them",
        )
    spread = float(variances.mean()) ** 0.5
    column = int(largest.argmax())
    if largest[column] > _FURTHEST * spread:
        raise InputError(
            f"feature {column} is about {largest[column]:.0e}, and features vary by only "
            f"{spread:.0e}, less than its rounding error",
            "subtract its mean, or leave it out",
        )
    return variances
