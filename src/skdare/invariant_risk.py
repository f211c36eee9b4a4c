"""Invariant risk: the mean of domain losses and their squared gradients in a last layer.

Notation: B (d, k) weights, b (k,) intercept, G a gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.objective import Objective


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
        """Number of parameters."""
        return self.objective.size

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, with one Hessian product for each domain."""
        objective, n = self.objective, len(self.objective.blocks)
        B, b = objective.unpack(theta)
        value, G, g = 0.5 * objective.l2 * float(np.sum(B * B)), objective.l2 * B, np.zeros_like(b)
        for e in range(n):
            loss, G_e, g_e = objective.block_value_and_gradient(e, B, b)
            inner = B.T @ G_e + b[:, None] * g_e[None, :]
            value += (loss + self.penalty * float(np.sum(inner * inner))) / n
            G_c, g_c = objective.block_hessian_product(e, B, b)(B @ inner, b @ inner)
            twice = 2 * self.penalty
            G = G + (G_e + twice * (G_e @ inner.T + G_c)) / n
            g = g + (g_e + twice * (inner @ g_e + g_c)) / n
        return value, objective.chain(G, g)
