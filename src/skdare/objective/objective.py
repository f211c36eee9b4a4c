"""The one objective: a weighted sum of losses over rows, domain by domain.

    L(B, b) = Σ_e q_e Σ_i w_i ℓ((x_i - m_e)ᵀ W_e B + b, t_i) + l2/2 ‖B‖²

No adjusted copy of the rows exists: ``X_e (W_e B)`` forwards, ``W_e (X_eᵀ R)`` backwards.

Notation: X (n, d) rows, T (n, k) targets, W (d, d) adjustment, B (d, k) weights, b (k,)
intercept, V = W B, F (n, k) scores, R (n, k) residuals, G a gradient, Q (d, r) constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skdare.arrays import (
    Array,
    Index,
    affine,
    as_float64,
    chunks,
    float64,
    is_cuda_float32,
    like,
    namespace,
    products_of,
    to_numpy,
    transposed_product,
)
from skdare.arrays.passes import Part, Route, Visit, route
from skdare.objective.losses import Loss
from skdare.objective.small_domains import ThinRows
from skdare.whitening.adjustment import Adjustment

# Below this many parameters a quadratic's (m, m) Hessian is cheaper than its iterations.
DIRECT_SIZE = 1000


@dataclass(frozen=True, eq=False)
class Rows:
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
    def part(self) -> Part:
        """What a pass visits."""
        return Part(self.X, self.index, (self.T, self.weight))

    def offset(self, V: Array, b: Array) -> Array:
        """What every score of these rows gains: b - mᵀV."""
        own = like(b, V, float64(V))
        offset = own if self.intercept else own * 0.0
        if self.shift is None:
            return offset
        return offset - like(self.shift, V, float64(V)) @ as_float64(V)

    def centered(self, target: float) -> Rows:
        """The same rows with a number subtracted from their targets."""
        return replace(self, T=self.T - target)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows: Σ w ℓ, Σ w x rᵀ (d, k) and Σ w r (k,); those of all rows add up."""

    value: Any
    G: Array
    g: Array

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.value + other.value, self.G + other.G, self.g + other.g)

    def about(self, rows: Rows) -> Sums:
        """The sums with the rows' shift subtracted, and nothing for an intercept they lack."""
        G, g = self.G, self.g
        if rows.shift is not None:
            G = G - like(rows.shift, g, float64(g))[:, None] * g[None, :]
        return Sums(self.value, G, g if rows.intercept else g * 0.0)

    def to_numpy(self) -> Sums:
        """The same sums as NumPy arrays on the host."""
        return Sums(float(self.value), to_numpy(self.G), to_numpy(self.g))


_ZERO = Sums(0.0, 0.0, 0.0)


Residual = Callable[[Array, slice, Array], tuple[Array, Array]]


def _pull_back(part: Part, k: int, residuals: Residual) -> Sums:
    """The sums of a part, for weighted values and residuals made from its rows, by chunk."""
    weights, sums = part.columns[1], _ZERO
    for place, rows in chunks(part.X, part.index, columns=k):
        value, R = residuals(rows, place, like(weights[place], rows, float64(rows)))
        G = as_float64(transposed_product(rows, like(R, rows)))
        sums += Sums(value, G, as_float64(namespace(R).sum(R, axis=0)))
        del R  # before the next chunk has scores of its own
    return sums


@dataclass(frozen=True)
class Residuals:
    """The pass of an evaluation: values and gradients at one point."""

    loss: Loss

    def __call__(self, part: Part, brought: Sequence[tuple[Array, Array]]) -> Sums:
        (V, offset), T = brought[0], part.columns[0]

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

    def __call__(self, part: Part, brought: Sequence[tuple[Array, Array]]) -> Sums:
        (V, offset), (D, along) = brought

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
class Block:
    """Rows that share an adjustment."""

    adjustment: Adjustment
    rows: tuple[Rows, ...]


@dataclass(frozen=True, eq=False)
class Objective:
    """Value, gradient and Hessian product in flat float64 parameters.

    The parameters may lie on the host or where the rows are; gradients lie beside them.

    Parameters
    ----------
    blocks : sequence of Block
    loss : Loss
    d, k : int
        Shape of B. The parameters are B, then the intercept where there is one, row by row.
    l2 : float
    intercept : bool
    span, gains : arrays of shape (d, r) and (r,), optional
        The solver's B is the true one divided by ``gains`` along these orthonormal columns Q:
        small gains take the stiffness out of a penalty, gains of zero hold QᵀB = 0 exactly.
    origin : array of shape (d,), optional
        The solver's intercept is the score at this point, ``b + oᵀB``: the same minimum, and a
        third of the iterations where features have a large mean.
    block_weights : sequence of float, optional
        q_e, one for each block.
    coarse : bool
        Products with rounded entries where that is quicker: for iterates far from the minimum.
    route : Route, optional
        How the rows are visited; made of the blocks, and kept by copies of the objective.
    thin : ThinRows, optional
        Domains beside the blocks, of weight one, whose rows are visited together.
    """

    blocks: Sequence[Block]
    loss: Loss
    d: int
    k: int
    l2: float = 0.0
    intercept: bool = True
    span: np.ndarray | None = None
    gains: np.ndarray | None = None
    origin: np.ndarray | None = None
    block_weights: Sequence[float] | np.ndarray | None = None
    coarse: bool = False
    route: Route = field(default=None)  # type: ignore[assignment]
    thin: ThinRows | None = None
    _moved: dict[tuple[str, type], Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.route is None:
            parts = [rows.part for block in self.blocks for rows in block.rows]
            object.__setattr__(self, "route", route(parts))
        object.__setattr__(self, "_moved", {})

    @property
    def size(self) -> int:
        """Number of parameters."""
        return (self.d + self.intercept) * self.k

    @property
    def suits_direct(self) -> bool:
        """Whether this is a quadratic small enough for its Hessian to be the cheapest way."""
        return self.loss.constant_curvature and self.size <= DIRECT_SIZE

    @property
    def _X(self) -> Array:
        """Rows that say where parameters may lie."""
        return self.blocks[0].rows[0].X if self.blocks else self.thin.X  # type: ignore[union-attr]

    @property
    def has_coarse(self) -> bool:
        """Whether there is a quicker, coarser form."""
        return not self.coarse and is_cuda_float32(self._X)

    def coarsened(self) -> Objective:
        """The same objective with coarse products."""
        return replace(self, coarse=True)

    def weighted(self, block_weights: Sequence[float] | np.ndarray) -> Objective:
        """The same objective with other weights on its blocks."""
        return replace(self, block_weights=block_weights)

    def place(self, theta: np.ndarray) -> Array:
        """Flat parameters where the rows are: a solver that starts from them stays there."""
        return like(theta, self._X, float64(self._X))

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """Flat parameters as B (d, k) and b (k,); linear, so directions unpack alike."""
        xp = namespace(theta)
        matrix = xp.reshape(theta, (-1, self.k))
        B = self._rescale(matrix[: self.d, :])
        if not self.intercept:
            return B, xp.zeros_like(matrix[0, :])
        b = matrix[self.d, :]
        return B, b if self.origin is None else b - self._beside("origin", theta) @ B

    def pack(self, B: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The flat parameters that `unpack` takes to B and b, or near them under a constraint."""
        inner = B
        if self.span is not None and self.gains is not None:
            held = self.gains > 0
            stretch = np.where(held, 1.0 / np.where(held, self.gains, 1.0), 0.0)
            inner = B + self.span @ ((stretch - 1.0)[:, None] * (self.span.T @ B))
        if not self.intercept:
            return inner.ravel()
        return np.concatenate([inner.ravel(), b if self.origin is None else b + self.origin @ B])

    def chain(self, G: Array, g: Array) -> Array:
        """A gradient in B and b as one in the flat parameters: the transpose of `unpack`."""
        xp = namespace(G)
        if not self.intercept:
            return xp.reshape(self._rescale(G), (-1,))
        if self.origin is not None:
            G = G - self._beside("origin", G)[:, None] * g[None, :]
        return xp.concat([xp.reshape(self._rescale(G), (-1,)), g])

    def _rescale(self, B: Array) -> Array:
        if self.span is None or self.gains is None:
            return B
        span, excess = self._beside("span", B), self._beside("gains", B) - 1.0
        return B + span @ (excess[:, None] * (namespace(B).matrix_transpose(span) @ B))

    def _beside(self, name: str, theta: Array) -> Array:
        """A field as an array beside the parameters, moved there once."""
        key = name, type(theta)
        if key not in self._moved:
            self._moved[key] = like(getattr(self, name), theta)
        return self._moved[key]

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """L and its gradient."""
        B, b = self.unpack(theta)
        xp = namespace(B)
        value, G, g = 0.5 * self.l2 * xp.sum(B * B), self.l2 * B, xp.zeros_like(b)
        for q, sums in zip(self._weights(), self.block_sums(B, b), strict=True):
            value, G, g = value + q * sums.value, G + q * sums.G, g + q * sums.g
        if self.thin is not None:
            thin_value, G_thin, g_thin = self.thin.value_and_gradient(B, b)
            value, G, g = value + thin_value, G + G_thin, g + g_thin
        return float(value), self.chain(G, g)

    def hessian_product(self, theta: Array) -> Callable[[Array], Array]:
        """The second derivative at theta, as a function of a flat direction."""
        B, b = self.unpack(theta)
        product = self.block_hessian_product(B, b)
        thin_product = None if self.thin is None else self.thin.hessian_product(B, b)

        def apply(direction: Array) -> Array:
            D, c = self.unpack(direction)
            G, g = self.l2 * D, namespace(c).zeros_like(c)
            for q, sums in zip(self._weights(), product([(D, c)] * len(self.blocks)), strict=True):
                G, g = G + q * sums.G, g + q * sums.g
            if thin_product is not None:
                G_thin, g_thin = thin_product(D, c)
                G, g = G + G_thin, g + g_thin
            return self.chain(G, g)

        return apply

    def hessian(self) -> np.ndarray:
        """The (m, m) second derivative of a quadratic, all its columns in one pass."""
        m = self.size
        wide = replace(self, k=m)
        H: np.ndarray = wide.hessian_product(np.zeros(m * m))(np.eye(m).ravel())
        return H.reshape(m, m)

    def block_losses(self, theta: Array) -> np.ndarray:
        """The loss of each block, without its weight and the ridge."""
        return np.array([float(sums.value) for sums in self.block_sums(*self.unpack(theta))])

    def block_sums(self, B: Array, b: Array) -> Iterator[Sums]:
        """Loss of each block, without its weight and the ridge, and its gradients in B and b."""
        return self._visit(Residuals(self.loss), [[(B, b)]] * len(self.blocks))

    def block_hessian_product(
        self, B: Array, b: Array
    ) -> Callable[[Sequence[tuple[Array, Array]]], Iterator[Sums]]:
        """The second derivative of each block's loss, of a direction in B and b for each."""
        visit = Curvature(self.loss)
        return lambda along: self._visit(visit, [[(B, b), direction] for direction in along])

    def _visit(
        self, visit: Visit, points: Sequence[Sequence[tuple[Array, Array]]]
    ) -> Iterator[Sums]:
        """The sums of each block, in B and b, at points given in B and b for each block."""
        with products_of(self._X, coarse=self.coarse):
            found = iter(self.route.run(visit, self._brought(points)))
            for block, ((B, _), *_) in zip(self.blocks, points, strict=True):
                sums = _ZERO
                for rows in block.rows:
                    sums = sums + next(found).about(rows)
                X = block.rows[0].X
                G = block.adjustment.back(like(sums.G, X))
                parts = (like(part, B, B.dtype) for part in (sums.value, as_float64(G), sums.g))
                yield Sums(*parts)

    def _brought(
        self, points: Sequence[Sequence[tuple[Array, Array]]]
    ) -> Iterator[list[tuple[Array, Array]]]:
        """Weights on raw features and offsets, at every point, for each part."""
        for block, own in zip(self.blocks, points, strict=True):
            X = block.rows[0].X
            weights = [(block.adjustment.apply(like(B, X)), b) for B, b in own]
            for rows in block.rows:
                yield [(V, rows.offset(V, b)) for V, b in weights]

    def _weights(self) -> Sequence[float] | np.ndarray:
        return self.block_weights if self.block_weights is not None else [1.0] * len(self.blocks)
