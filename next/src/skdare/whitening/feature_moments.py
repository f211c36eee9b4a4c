"""Means and variances of features: all that a head needs that whitens nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from skdare.arrays import (
    Array,
    Index,
    Part,
    as_float64,
    beside,
    chunks,
    like,
    namespace,
    to_numpy,
    transposed_product,
    visited,
)
from skdare.errors import InputError
from skdare.whitening.moments import ROUNDING, Moments, point_near_mean, pooled_variances, total

# Powers of what varies by less are no numbers any more.
_SMALLEST = 1e-75
# What a mean may be in units of what varies: products hold its square.
_FURTHEST = 1e15


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Of some rows, in float64, without the (d, d) products that `Moments` costs."""

    n: float  # total weight
    mean: Array
    variances: Array

    @classmethod
    def of(cls, X: Array, index: Index, weight: np.ndarray) -> FeatureMoments:
        """``weight`` has an entry for each indexed row."""
        return visited(_of_part, [Part(X, index, (weight,))], [None])[0]

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        n = self.n + other.n
        share = other.n / n
        gap = other.mean - self.mean
        within = (1.0 - share) * self.variances + share * other.variances
        variances = within + share * (1.0 - share) * gap**2
        return FeatureMoments(n, self.mean + share * gap, variances)


def _of_part(part: Part, _: None) -> FeatureMoments:
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
    variances = xp.where(square > ROUNDING * removed, square, 0.0 * square) / n
    return FeatureMoments(n, point + linear / n, variances)


def overall_variances(moments: Sequence[Moments | FeatureMoments], dtype: object) -> np.ndarray:
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
            "nothing can be learnt, unless they are that small: then multiply them by a constant",
        )
    spread = float(variances.mean()) ** 0.5
    column = int(largest.argmax())
    if largest[column] > _FURTHEST * spread:
        raise InputError(
            f"feature {column} is about {largest[column]:.0e}, and beside it the features vary by "
            f"{spread:.0e}, which is nothing",
            "subtract its mean, or leave it out",
        )
    return variances
