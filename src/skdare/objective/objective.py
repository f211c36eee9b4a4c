"""The one objective: a weighted sum of losses over rows, domain by domain.

    L(B, b) = Σ_e q_e Σ_i w_i ℓ((x_i - m_e)ᵀ W_e B + b, t_i) + l2/2 ‖B - C‖²

No adjusted copy of the rows exists: ``X_e (W_e B)`` forwards, ``W_e (X_eᵀ R)`` backwards.

Notation: X (n, d) rows, T (n, k) targets, W (d, d) adjustment, B (d, k) weights, b (k,)
intercept, C (d, k) what the ridge draws B towards, V = W B, F (n, k) scores, R (n, k) residuals,
G a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skdare.arrays import (
    Array,
    affine,
    as_float64,
    chunks,
    float64,
    is_cuda_float32,
    like,
    namespace,
    products_of,
    transposed_product,
)
from skdare.arrays.passes import Route, RowPart, Visit, route
from skdare.objective.coordinates import Coordinates
from skdare.objective.few_rows import FewRowsLoss
from skdare.objective.losses import Loss
from skdare.objective.rows import DomainBlock, LossSums

# Below this many parameters a quadratic's (m, m) Hessian is cheaper than its iterations.
DIRECT_SIZE = 1000


_ZERO = LossSums(0.0, 0.0, 0.0)

Residual = Callable[[Array, slice, Array], tuple[Array, Array]]


def _pull_back(part: RowPart, k: int, residuals: Residual) -> LossSums:
    """The sums of a part, for weighted values and residuals made from its rows, by chunk."""
    weights = part.columns[1]
    sums = _ZERO
    for place, rows in chunks(part.X, part.index, columns=k):
        value, R = residuals(rows, place, like(weights[place], rows, float64(rows)))
        G = as_float64(transposed_product(rows, like(R, rows)))
        sums += LossSums(value, G, as_float64(namespace(R).sum(R, axis=0)))
        del R  # before the next chunk has scores of its own
    return sums


@dataclass(frozen=True)
class Residuals:
    """The pass of an evaluation: values and gradients at one point."""

    loss: Loss

    def __call__(self, part: RowPart, points: Sequence[tuple[Array, Array]]) -> LossSums:
        V, offset = points[0]
        T = part.columns[0]

        def residuals(rows: Array, place: slice, weight: Array) -> tuple[Array, Array]:
            targets = T[place] if T.ndim == 1 else T[place, :]
            return self.loss.weighted(affine(rows, V, offset), targets, weight)

        return _pull_back(part, V.shape[1], residuals)


class Curvature:
    """The pass of a Hessian product: derivatives of the gradient at one point along another.

    What the loss remembers of the scores at the point is kept from pass to pass in this process.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self._states: dict[tuple[int, int], Any] = {}

    def __reduce__(self) -> tuple[type[Curvature], tuple[Loss]]:
        return Curvature, (self.loss,)

    def __call__(self, part: RowPart, points: Sequence[tuple[Array, Array]]) -> LossSums:
        (V, offset), (D, along) = points

        def residuals(rows: Array, place: slice, weight: Array) -> tuple[Array, Array]:
            state = None
            if not self.loss.constant_curvature:
                key = id(part), place.start
                if key not in self._states:
                    self._states[key] = self.loss.curvature(affine(rows, V, offset))
                state = self._states[key]
            R = self.loss.curve(state, affine(rows, D, along))
            return 0.0, R * like(weight, R)[:, None]

        return _pull_back(part, V.shape[1], residuals)


@dataclass(frozen=True, eq=False)
class Objective:
    """Value, gradient and Hessian product in flat float64 parameters.

    The parameters may lie on the host or where the rows are; gradients lie beside them.

    Parameters
    ----------
    blocks : sequence of DomainBlock
    loss : Loss
    coordinates : Coordinates
        What the flat parameters stand for.
    l2 : float
    block_weights : sequence of float, optional
        q_e, one for each block; default: one.
    few_rows : FewRowsLoss, optional
        Domains beside the blocks, of weight one, whose rows are visited together.
    coarse : bool
        Products with rounded entries where that is quicker: for iterates far from the minimum.
    route : Route, optional
        How the rows are visited, where another objective of the same rows has it already.
    centre : array of shape (d, k), optional
        C; default: zero.
    """

    blocks: Sequence[DomainBlock]
    loss: Loss
    coordinates: Coordinates
    l2: float = 0.0
    block_weights: Sequence[float] | np.ndarray | None = None
    few_rows: FewRowsLoss | None = None
    coarse: bool = False
    route: Route | None = None
    centre: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of parameters of the objective."""
        return self.coordinates.size

    @property
    def suits_direct(self) -> bool:
        """Whether this is a quadratic small enough for its Hessian to be the cheapest way."""
        return self.loss.constant_curvature and self.size <= DIRECT_SIZE

    @property
    def has_coarse(self) -> bool:
        """Whether there is a quicker, coarser form."""
        return not self.coarse and is_cuda_float32(self._X)

    def coarsened(self) -> Objective:
        """The same objective with coarse products."""
        return replace(self, coarse=True, route=self._route)

    def weighted(self, block_weights: Sequence[float] | np.ndarray) -> Objective:
        """The same objective with other weights on its blocks."""
        return replace(self, block_weights=block_weights, route=self._route)

    def place(self, theta: np.ndarray) -> Array:
        """Flat parameters where the rows are: a solver that starts from them stays there."""
        return like(theta, self._X, float64(self._X))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """L and its gradient."""
        B, b = self.coordinates.unpack(theta)
        xp = namespace(B)
        excess = B if self.centre is None else B - like(self.centre, B)
        value = 0.5 * self.l2 * xp.sum(excess * excess)
        G = self.l2 * excess
        g = xp.zeros_like(b)
        for q, sums in zip(self._weights(), self.block_sums(B, b), strict=True):
            value = value + q * sums.value
            G = G + q * sums.G
            g = g + q * sums.g
        if self.few_rows is not None:
            more = self.few_rows.value_and_gradient(B, b)
            value = value + more.value
            G = G + more.G
            g = g + more.g
        return float(value), self.coordinates.chain(G, g)

    def hessian_product(self, theta: Array) -> Callable[[Array], Array]:
        """The second derivative at theta, as a function of a flat direction."""
        B, b = self.coordinates.unpack(theta)
        product = self.block_hessian_product(B, b)
        few_rows = None if self.few_rows is None else self.few_rows.hessian_product(B, b)

        def apply(direction: Array) -> Array:
            D, c = self.coordinates.unpack(direction)
            G = self.l2 * D
            g = namespace(c).zeros_like(c)
            for q, sums in zip(self._weights(), product([(D, c)] * len(self.blocks)), strict=True):
                G = G + q * sums.G
                g = g + q * sums.g
            if few_rows is not None:
                more = few_rows(D, c)
                G = G + more.G
                g = g + more.g
            return self.coordinates.chain(G, g)

        return apply

    def hessian(self) -> np.ndarray:
        """The (m, m) second derivative of a quadratic, all its columns in one pass."""
        m = self.size
        coordinates = replace(self.coordinates, k=m)
        wide = replace(self, coordinates=coordinates, route=self._route)
        H: np.ndarray = wide.hessian_product(np.zeros(m * m))(np.eye(m).ravel())
        return H.reshape(m, m)

    def block_losses(self, theta: Array) -> np.ndarray:
        """The loss of each block, without its weight and the ridge."""
        return np.array(
            [float(sums.value) for sums in self.block_sums(*self.coordinates.unpack(theta))]
        )

    def block_sums(self, B: Array, b: Array) -> Iterator[LossSums]:
        """Loss of each block, without its weight and the ridge, and its gradients in B and b."""
        return self._visit(Residuals(self.loss), [[(B, b)]] * len(self.blocks))

    def block_hessian_product(
        self, B: Array, b: Array
    ) -> Callable[[Sequence[tuple[Array, Array]]], Iterator[LossSums]]:
        """The second derivative of each block's loss, of a direction in B and b for each."""
        visit = Curvature(self.loss)
        return lambda along: self._visit(visit, [[(B, b), direction] for direction in along])

    def _visit(
        self, visit: Visit, points: Sequence[Sequence[tuple[Array, Array]]]
    ) -> Iterator[LossSums]:
        """The sums of each block, in B and b, at points given in B and b for each block."""
        with products_of(self._X, coarse=self.coarse):
            results = iter(self._route.run(visit, self._raw_weights(points)))
            for block, ((B, _), *_) in zip(self.blocks, points, strict=True):
                sums = _ZERO
                for rows in block.rows:
                    sums = sums + next(results).about(rows)
                X = block.rows[0].X
                G = block.adjustment.back(like(sums.G, X))
                parts = (like(part, B, B.dtype) for part in (sums.value, as_float64(G), sums.g))
                yield LossSums(*parts)

    def _raw_weights(
        self, points: Sequence[Sequence[tuple[Array, Array]]]
    ) -> Iterator[list[tuple[Array, Array]]]:
        """Weights on raw features and offsets, at every point, for each part."""
        for block, at in zip(self.blocks, points, strict=True):
            X = block.rows[0].X
            weights = [(block.adjustment.apply(like(B, X)), b) for B, b in at]
            for rows in block.rows:
                yield [(V, rows.offset(V, b)) for V, b in weights]

    def _weights(self) -> Sequence[float] | np.ndarray:
        return self.block_weights if self.block_weights is not None else [1.0] * len(self.blocks)

    @cached_property
    def _route(self) -> Route:
        parts = [rows.part for block in self.blocks for rows in block.rows]
        return self.route or route(parts)

    @property
    def _X(self) -> Array:
        """Rows that say where parameters may lie."""
        if self.blocks:
            return self.blocks[0].rows[0].X
        assert self.few_rows is not None
        return self.few_rows.X
