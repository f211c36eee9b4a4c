"""The flat parameters that a solver sees, and the weights and intercept they stand for.

Notation: B (d, k) weights, b (k,) intercept, G and g gradients in them, Q (d, r) orthonormal
columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdare.arrays import Array, like, namespace


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A linear map from flat parameters to B and b.

    The parameters are B, then the intercept where there is one, row by row.

    Parameters
    ----------
    d, k : int
        Shape of B.
    intercept : bool
    span, gains : arrays of shape (d, r) and (r,), optional
        The solver's B is the true one divided by ``gains`` along these orthonormal columns Q:
        small gains take the stiffness out of a penalty, gains of zero hold QᵀB = 0 exactly.
    origin : array of shape (d,), optional
        The solver's intercept is the score at this point, ``b + oᵀB``: the same minimum, and a
        third of the iterations where features have a large mean.
    """

    d: int
    k: int
    intercept: bool = True
    span: np.ndarray | None = None
    gains: np.ndarray | None = None
    origin: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of parameters in these coordinates."""
        return (self.d + self.intercept) * self.k

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
            free = self.gains > 0
            stretch = np.where(free, 1.0 / np.where(free, self.gains, 1.0), 0.0)
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
        span = self._beside("span", B)
        excess = self._beside("gains", B) - 1.0
        return B + span @ (excess[:, None] * (namespace(B).matrix_transpose(span) @ B))

    @cached_property
    def _moved(self) -> dict[tuple[str, type], Array]:
        """Fields as arrays of other libraries."""
        return {}

    def _beside(self, name: str, theta: Array) -> Array:
        """A field as an array beside the parameters, moved there once."""
        key = name, type(theta)
        if key not in self._moved:
            self._moved[key] = like(getattr(self, name), theta)
        return self._moved[key]
