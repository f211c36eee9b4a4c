"""The one objective: a weighted sum of losses over rows, domain by domain.

    L(B, b) = Σ_e Σ_i w_i ℓ((x_i - m_e)ᵀ W_e B + b, t_i) + l2/2 ‖B - C‖²

No adjusted copy of the rows exists: X (W B) forwards, Wᵀ (Xᵀ R) backwards.

Notation: X (n, d) rows, W (d, d) and m (d,) adjustment, B (d, k) weights, b (k,) intercept, V
(d, k) weights on raw features, C (d, k) centre, F (n, k) scores, R (k, n) residuals, G and g
gradients in B and b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skdare.arrays import (
    Array,
    Index,
    Part,
    as_float64,
    beside,
    chunks,
    float32_products,
    like,
    map_reduce,
    namespace,
    on_accelerator,
    product,
    transposed_product,
)
from skdare.objective.losses import Loss
from skdare.whitening.adjustment import Adjustment


class LossSums(NamedTuple):
    """Σ w ℓ, Σ w x rᵀ and Σ w r over rows; those of all rows add up."""

    value: Array
    G: Array
    g: Array

    def __add__(self, other: LossSums) -> LossSums:  # type: ignore[override]
        return LossSums(self.value + other.value, self.G + other.G, self.g + other.g)


class Point(NamedTuple):
    """Weights on raw features, what is added to their scores, and the loss of these."""

    V: Array
    offset: Array
    loss: Loss
    coarse: bool = False


def loss_sums(part: Part, point: Point) -> LossSums:
    """Loss and gradient of some rows at a point."""
    X = part.X
    V = like(point.V, X)
    # The products may be in float32, but a loss in float32 breaks line searches. On an
    # accelerator memory is the limit, and many columns stay as they are until they are summed.
    narrow = V.shape[1] > 1 and on_accelerator(X)
    sums = None
    with float32_products(X, coarse=point.coarse):
        for place, rows in chunks(X, part.index, columns=V.shape[1]):
            T, weight = part.columns
            T = beside(T[place] if T.ndim == 1 else T[place, :], rows)
            weight = beside(weight[place], rows)
            F = product(rows, V)
            F = F if narrow else as_float64(F)
            F += like(point.offset, F)
            losses, R = point.loss.value_and_residual(F.T, T)
            R *= like(weight, R)
            value = as_float64(losses) @ weight
            G = as_float64(transposed_product(rows, like(R.T, rows)))
            g = as_float64(namespace(R).sum(R, axis=-1))
            sums = LossSums(value, G, g) if sums is None else sums + LossSums(value, G, g)
            del F, R  # before the next chunk has scores of its own
    assert sums is not None
    return sums


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that share an adjustment, with their targets and weights."""

    X: Array
    index: Index
    T: Array  # an entry, or a row, for each indexed row
    weight: Array
    adjustment: Adjustment
    intercept: bool = True  # whether it counts for these rows

    @cached_property
    def part(self) -> Part:
        return Part(self.X, self.index, (self.T, self.weight))

    def raw_weights(self, B: Array, b: Array) -> tuple[Array, Array]:
        return self.adjustment.raw_weights(B, b if self.intercept else 0.0 * b)

    def gradients(self, sums: LossSums) -> LossSums:
        """Gradients in B and b from sums over raw rows."""
        G = self.adjustment.gradient(sums.G, sums.g)
        return LossSums(sums.value, G, sums.g if self.intercept else 0.0 * sums.g)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A linear map from flat parameters to B and b, in which the objective is easy to minimise.

    Along the orthonormal columns Q of ``span`` the solver's B is the true one divided by
    ``gains``; gains of zero hold QᵀB = 0 exactly. Its intercept is the score at ``origin``: the
    same minimum, in a third of the iterations where features have a large mean.
    """

    intercept: bool
    origin: Array  # (d,)
    span: Array  # (d, r)
    gains: Array  # (r,)

    @classmethod
    def plain(cls, d: int, *, intercept: bool) -> Coordinates:
        """The parameters are B and b themselves, in NumPy."""
        return cls(intercept, np.zeros(d), np.empty((d, 0)), np.empty(0))

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """B and b; of any number of columns, so that all of a Hessian unpack at once."""
        d = self.origin.shape[0]
        matrix = namespace(theta).reshape(theta, (d + self.intercept, -1))
        B = self._stretch(matrix[:d, :], self.gains)
        return B, (matrix[d, :] - self.origin @ B if self.intercept else 0.0 * matrix[0, :])

    def pack(self, B: Array, b: Array) -> Array:
        """The flat parameters of B and b, or of the nearest under a constraint."""
        xp = namespace(self.gains)
        free = self.gains > 0
        inverse = xp.where(free, 1.0 / xp.where(free, self.gains, 1.0), 0.0)
        return self._flat(self._stretch(B, inverse), b + self.origin @ B)

    def gradient(self, G: Array, g: Array) -> Array:
        """A gradient in B and b as one in the flat parameters: the transpose of `unpack`."""
        if self.intercept:
            G = G - self.origin[:, None] * g
        return self._flat(self._stretch(G, self.gains), g)

    def _stretch(self, B: Array, gains: Array) -> Array:
        """B + Q (diag(gains) - I) QᵀB."""
        if not gains.shape[0]:
            return B
        return B + self.span @ ((gains - 1.0)[:, None] * (self.span.T @ B))

    def _flat(self, B: Array, b: Array) -> Array:
        xp = namespace(B)
        rows = [B, b[None, :]] if self.intercept else [B]
        return xp.reshape(xp.concat(rows, axis=0), (-1,))


@dataclass(frozen=True, eq=False)
class Objective:
    """L as a function of flat float64 parameters, on the device of the rows."""

    blocks: Sequence[Block]
    loss: Loss
    coordinates: Coordinates
    l2: float
    coarse: bool = False  # products with rounded entries, far from the minimum
    centre: Array | None = None  # C, towards which the ridge draws; None is zero

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """L and its gradient."""
        B, b = self.coordinates.unpack(theta)
        away = B if self.centre is None else B - self.centre
        sums = LossSums(0.5 * self.l2 * namespace(B).sum(away * away), self.l2 * away, 0.0 * b)
        for own in self.by_block(B, b):
            sums = sums + own
        return float(sums.value), self.coordinates.gradient(sums.G, sums.g)

    def by_block(self, B: Array, b: Array) -> list[LossSums]:
        """The loss of each block and its gradients in B and b; rows of one X in one pass."""
        sums: dict[int, LossSums] = {}
        with float32_products(self.blocks[0].X, coarse=self.coarse):
            for X in {id(block.X): block.X for block in self.blocks}.values():
                blocks = [block for block in self.blocks if block.X is X]
                weights = [block.raw_weights(B, b) for block in blocks]
                points = [Point(*each, self.loss, self.coarse) for each in weights]
                raw = map_reduce(loss_sums, [block.part for block in blocks], points)
                pairs = zip(blocks, raw, strict=True)
                sums |= {id(block): block.gradients(own) for block, own in pairs}
        return [sums[id(block)] for block in self.blocks]

    def hessian(self, zero: Array) -> Array:
        """The second derivative of a quadratic in one target, all of its columns in one pass."""
        m = zero.shape[0]
        _, gradients = self(beside(np.eye(m).ravel(), zero))
        _, at_zero = self(zero)
        return namespace(zero).reshape(gradients, (m, m)) - at_zero[:, None]
