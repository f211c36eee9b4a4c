"""The one objective: a weighted sum of losses over rows, domain by domain.

    L(B, b) = Σ_e q_e Σ_i w_i ℓ((x_i - m_e)ᵀ W_e B + b, t_i) + l2/2 ‖B‖²

No adjusted copy of the rows exists: ``X_e (W_e B)`` forwards, ``W_e (X_eᵀ R)`` backwards.

Notation: X (n, d) rows, T (n, k) targets, W (d, d) adjustment, B (d, k) weights, b (k,)
intercept, V = W B, F (n, k) scores, R (n, k) residuals, G a gradient, Q (d, r) constraint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdare._array import (
    Array,
    Index,
    as_float64,
    chunks,
    float64,
    like,
    namespace,
    product,
    to_numpy,
    transposed_product,
)
from skdare.adjustment import Adjustment
from skdare.losses import Loss
from skdare.thin_rows import ThinRows

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

    def centered(self, target: float) -> Rows:
        """The same rows with a number subtracted from their targets."""
        return replace(self, T=self.T - target)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that share an adjustment."""

    adjustment: Adjustment
    rows: tuple[Rows, ...]


@dataclass(frozen=True, eq=False)
class Objective:
    """Value, gradient and Hessian product in flat float64 parameters on the host.

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
    thin: ThinRows | None = None

    @property
    def size(self) -> int:
        """Number of parameters."""
        return (self.d + self.intercept) * self.k

    @property
    def suits_direct(self) -> bool:
        """Whether this is a quadratic small enough for its Hessian to be the cheapest way."""
        return self.loss.constant_curvature and self.size <= DIRECT_SIZE

    def weighted(self, block_weights: Sequence[float] | np.ndarray) -> Objective:
        """The same objective with other weights on its blocks."""
        return replace(self, block_weights=block_weights)

    def unpack(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Flat parameters as B (d, k) and b (k,); linear, so directions unpack alike."""
        matrix = np.asarray(theta, dtype=np.float64).reshape(-1, self.k)
        B = self._rescale(matrix[: self.d])
        if not self.intercept:
            return B, np.zeros(self.k)
        return B, matrix[self.d] if self.origin is None else matrix[self.d] - self.origin @ B

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

    def chain(self, G: np.ndarray, g: np.ndarray) -> np.ndarray:
        """A gradient in B and b as one in the flat parameters: the transpose of `unpack`."""
        if not self.intercept:
            return self._rescale(G).ravel()
        if self.origin is not None:
            G = G - self.origin[:, None] * g[None, :]
        return np.concatenate([self._rescale(G).ravel(), g])

    def _rescale(self, B: np.ndarray) -> np.ndarray:
        if self.span is None or self.gains is None:
            return B
        return B + self.span @ ((self.gains - 1.0)[:, None] * (self.span.T @ B))

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """L and its gradient."""
        B, b = self.unpack(theta)
        value, G, g = 0.5 * self.l2 * float(np.sum(B * B)), self.l2 * B, np.zeros(self.k)
        for e, q in enumerate(self._weights()):
            block_value, G_e, g_e = self.block_value_and_gradient(e, B, b)
            value, G, g = value + q * block_value, G + q * G_e, g + q * g_e
        if self.thin is not None:
            thin_value, G_t, g_t = self.thin.value_and_gradient(B, b)
            value, G, g = value + thin_value, G + G_t, g + g_t
        return value, self.chain(G, g)

    def hessian_product(self, theta: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """The second derivative at theta, as a function of a flat direction."""
        B, b = self.unpack(theta)
        products = [self.block_hessian_product(e, B, b) for e in range(len(self.blocks))]
        weights = list(self._weights())
        if self.thin is not None:
            products, weights = [*products, self.thin.hessian_product(B, b)], [*weights, 1.0]

        def apply(direction: np.ndarray) -> np.ndarray:
            D, c = self.unpack(direction)
            G, g = self.l2 * D, np.zeros(self.k)
            for q, block_product in zip(weights, products, strict=True):
                G_e, g_e = block_product(D, c)
                G, g = G + q * G_e, g + q * g_e
            return self.chain(G, g)

        return apply

    def hessian(self) -> np.ndarray:
        """The (m, m) second derivative of a quadratic, all its columns in one pass."""
        m = self.size
        wide = replace(self, k=m)
        return wide.hessian_product(np.zeros(m * m))(np.eye(m).ravel()).reshape(m, m)

    def block_losses(self, theta: np.ndarray) -> np.ndarray:
        """The loss of each block, without its weight and the ridge."""
        B, b = self.unpack(theta)
        blocks = range(len(self.blocks))
        return np.array([self.block_value_and_gradient(e, B, b)[0] for e in blocks])

    def block_value_and_gradient(
        self, e: int, B: np.ndarray, b: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss of one block, without its weight and the ridge, and its gradients in B and b."""
        values = []

        def residual(F: Array, r: int, place: slice) -> Array:
            rows = self.blocks[e].rows[r]
            losses, R = self.loss.value_and_residual(F, _targets(rows.T, place, F))
            values.append(float(namespace(losses).sum(losses * rows.weight[place])))
            return R

        G, g = self._pull_back(self.blocks[e], B, b, residual)
        return math.fsum(values), G, g

    def block_hessian_product(
        self, e: int, B: np.ndarray, b: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """The second derivative of one block's loss, as a function of directions in B and b."""
        block = self.blocks[e]
        states: dict[tuple[int, int], Array] = {}

        def curve(F: Array, r: int, place: slice) -> Array:
            return self.loss.curve(states.get((r, place.start)), F)

        if not self.loss.constant_curvature:
            V = block.adjustment.apply(like(B, block.rows[0].X))
            for r, rows in enumerate(block.rows):
                for place, _, F in self._scores(rows, V, b):
                    states[r, place.start] = self.loss.curvature(F)
        return lambda D, c: self._pull_back(block, D, c, curve)

    def _pull_back(
        self, block: Block, B: np.ndarray, b: np.ndarray, residual: Callable
    ) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i w_i W (x_i - m) r_iᵀ and Σ_i w_i r_i, for residuals made from the scores."""
        V = block.adjustment.apply(like(B, block.rows[0].X))
        G: Array = 0.0
        g = np.zeros(self.k)
        for r, rows in enumerate(block.rows):
            G_rows: Array = 0.0
            g_rows: Array = 0.0
            for place, X, F in self._scores(rows, V, b):
                R = residual(F, r, place) * rows.weight[place][:, None]
                G_rows = G_rows + as_float64(transposed_product(X, like(R, X)))
                g_rows = g_rows + namespace(R).sum(R, axis=0)
            if rows.shift is not None:
                shift = like(rows.shift, g_rows, float64(g_rows))
                G_rows = G_rows - shift[:, None] * g_rows[None, :]
            G = G + G_rows
            g = g + to_numpy(g_rows) if rows.intercept else g
        G = block.adjustment.back(like(G, block.rows[0].X))
        return to_numpy(as_float64(G)), g

    def _scores(self, rows: Rows, V: Array, b: np.ndarray) -> Iterator[tuple[slice, Array, Array]]:
        """Chunk by chunk: place, rows, and scores in float64.

        Float32 products are accurate enough, but a float32 loss breaks line searches.
        """
        offset = self._offset(rows, V, b)
        for place, X in chunks(rows.X, rows.index):
            yield place, X, as_float64(product(X, V)) + offset

    def _offset(self, rows: Rows, V: Array, b: np.ndarray) -> Array:
        """What every score of these rows gains: b - mᵀV."""
        offset = like(b if rows.intercept else np.zeros(self.k), V, float64(V))
        if rows.shift is None:
            return offset[None, :]
        return offset[None, :] - like(rows.shift, V, float64(V))[None, :] @ as_float64(V)

    def _weights(self) -> Sequence[float] | np.ndarray:
        return self.block_weights if self.block_weights is not None else [1.0] * len(self.blocks)


def linear_scores(X: Array, index: Index, V: np.ndarray, b: np.ndarray | float) -> Array:
    """X V + b of the indexed rows, (m, k), in float64, in the array library of X."""
    parts = []
    for _, rows in chunks(X, index):
        F = as_float64(product(rows, like(V, rows)))
        parts.append(F + like(np.atleast_1d(b), F, F.dtype)[None, :])
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=0)


def _targets(T: Array, place: slice, F: Array) -> Array:
    """Targets of a chunk as (m, k): class numbers become indicator rows."""
    if T.ndim == 2:
        return T[place, :]
    T, k = T[place], F.shape[1]
    if k == 1:
        return as_float64(T)[:, None]
    classes = like(np.arange(k), F, T.dtype)
    return namespace(F).astype(T[:, None] == classes[None, :], F.dtype)
