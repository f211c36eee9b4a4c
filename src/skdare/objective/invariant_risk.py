"""Invariant risk: the mean of domain losses and their squared gradients in a last layer.

Notation: B (d, k) weights, b (k,) intercept, G a gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.objective.objective import Objective


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
        objective = self.objective
        n = len(objective.blocks)
        twice = 2 * self.penalty
        B, b = objective.coordinates.unpack(theta)
        block_sums = list(objective.block_sums(B, b))
        inner = [B.T @ sums.G + b[:, None] * sums.g[None, :] for sums in block_sums]
        along = objective.block_hessian_product(B, b)([(B @ M, b @ M) for M in inner])
        value = 0.5 * objective.l2 * float(np.sum(B * B))
        G = objective.l2 * B
        g = np.zeros_like(b)
        for sums, M, curved in zip(block_sums, inner, along, strict=True):
            value += (float(sums.value) + self.penalty * float(np.sum(M * M))) / n
            G = G + (sums.G + twice * (sums.G @ M.T + curved.G)) / n
            g = g + (sums.g + twice * (M @ sums.g + curved.g)) / n
        return value, objective.coordinates.chain(G, g)
