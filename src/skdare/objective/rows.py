"""Rows that an objective sums over, and the sums.

Notation: X (n, d) rows, T (n, k) targets, V (d, k) weights, b (k,) intercept, G a gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdare.arrays import Array, Index, as_float64, float64, like, to_numpy
from skdare.arrays.passes import RowPart
from skdare.whitening.adjustment import Adjustment


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Features, targets and weights of some rows.

    Parameters
    ----------
    X : array of shape (n, d)
    index : slice or array of int
        The rows of X that are meant.
    T : array of shape (m,) or (m, k)
        Class numbers, or soft targets, one entry for each indexed row.
    weight : array of shape (m,)
    shift : array of shape (d,), optional
        Subtracted from every feature (through its score, not through a copy).
    intercept : bool
        Whether the intercept counts for these rows.
    """

    X: Array
    index: Index
    T: Array
    weight: Array
    shift: np.ndarray | None = None
    intercept: bool = True

    @property
    def part(self) -> RowPart:
        """What a pass visits."""
        return RowPart(self.X, self.index, (self.T, self.weight))

    def offset(self, V: Array, b: Array) -> Array:
        """What every score of these rows gains: b - mᵀV."""
        offset = like(b, V, float64(V))
        if not self.intercept:
            offset = offset * 0.0
        if self.shift is None:
            return offset
        return offset - like(self.shift, V, float64(V)) @ as_float64(V)

    def centered(self, target: float) -> WeightedRows:
        """The same rows with a number subtracted from their targets."""
        return replace(self, T=self.T - target)


@dataclass(frozen=True, eq=False)
class LossSums:
    """Sums over rows: Σ w ℓ, Σ w x rᵀ (d, k) and Σ w r (k,); those of all rows add up."""

    value: Any
    G: Array
    g: Array

    def __add__(self, other: LossSums) -> LossSums:
        return LossSums(self.value + other.value, self.G + other.G, self.g + other.g)

    def about(self, rows: WeightedRows) -> LossSums:
        """The sums with the rows' shift subtracted, and nothing for an intercept they lack."""
        G = self.G
        g = self.g
        if rows.shift is not None:
            G = G - like(rows.shift, g, float64(g))[:, None] * g[None, :]
        return LossSums(self.value, G, g if rows.intercept else g * 0.0)

    def to_numpy(self) -> LossSums:
        """The sums as NumPy arrays on the host."""
        return LossSums(float(self.value), to_numpy(self.G), to_numpy(self.g))


@dataclass(frozen=True, eq=False)
class DomainBlock:
    """Rows that share an adjustment."""

    adjustment: Adjustment
    rows: tuple[WeightedRows, ...]
