"""Invariant risk: the mean of domain losses and their squared gradients in a last layer.

Notation: B (d, k) weights, b (k,) intercept, M (k, k) last layer, G a gradient, N (k, k) a gradient
in the last layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.objective.objective import Objective
from skdare.objective.rows import LossSums


@dataclass(frozen=True, eq=False)
class InvariantRisk:
    """Equal-weight mean of domain losses plus ``penalty ‖ΘᵀG_e‖²``, its squared gradient.

    The scores XΘ are the representation and a further (k, k) layer, held at the identity, is the
    classifier on it: ``ΘᵀG_e`` is the gradient of domain e's loss in that layer, the full-batch
    form of the invariance penalty. A free layer could shrink the penalty by shrinking Θ.
    """

    objective: Objective
    penalty: float

    @property
    def size(self) -> int:
        """Number of parameters of the objective."""
        return self.objective.size

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, with one Hessian product for each domain."""
        coordinates = self.objective.coordinates
        sums, _ = self.at(*coordinates.unpack(theta), np.eye(coordinates.k))
        return sums.value, coordinates.chain(sums.G, sums.g)

    def at(self, B: np.ndarray, b: np.ndarray, M: np.ndarray) -> tuple[LossSums, np.ndarray]:
        """Value and gradients in B and b, and the gradient in the last layer M."""
        objective = self.objective
        n = len(objective.blocks)
        twice = 2 * self.penalty
        V = B @ M
        offset = b @ M
        block_sums = list(objective.block_sums(V, offset))
        inner = [B.T @ sums.G + b[:, None] * sums.g[None, :] for sums in block_sums]
        along = objective.block_hessian_product(V, offset)([(B @ N, b @ N) for N in inner])
        value = 0.5 * objective.l2 * float(np.sum(B * B))
        G = objective.l2 * B
        g = np.zeros_like(b)
        in_layer = np.zeros_like(M)
        for sums, N, curved in zip(block_sums, inner, along, strict=True):
            value += (float(sums.value) + self.penalty * float(np.sum(N * N))) / n
            G = G + (sums.G @ M.T + twice * (sums.G @ N.T + curved.G @ M.T)) / n
            g = g + (M @ sums.g + twice * (N @ sums.g + M @ curved.g)) / n
            in_layer += (N + twice * (B.T @ curved.G + b[:, None] * curved.g[None, :])) / n
        return LossSums(value, G, g), in_layer


@dataclass(frozen=True, eq=False)
class FreeLayerRisk:
    """Invariant risk whose last layer is free: its entries follow the other parameters."""

    risk: InvariantRisk

    @property
    def size(self) -> int:
        """Number of parameters, those of the layer included."""
        return self.risk.size + self._k**2

    @property
    def start(self) -> np.ndarray:
        """Zeros, and the identity for the layer: with both at zero no gradient leads away."""
        return np.concatenate([np.zeros(self.risk.size), np.eye(self._k).ravel()])

    def weights(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercept of the two layers together."""
        B, b, M = self._unpack(theta)
        return B @ M, b @ M

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in all parameters."""
        sums, in_layer = self.risk.at(*self._unpack(theta))
        chained = self.risk.objective.coordinates.chain(sums.G, sums.g)
        return sums.value, np.concatenate([chained, in_layer.ravel()])

    @property
    def _k(self) -> int:
        return self.risk.objective.coordinates.k

    def _unpack(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first = theta[: self.risk.size]
        M = theta[self.risk.size :].reshape(self._k, self._k)
        return *self.risk.objective.coordinates.unpack(first), M
