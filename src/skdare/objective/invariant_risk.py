"""Invariant risk: the mean of domain losses and of their squared gradients in a last layer.

Notation: B (d, k) weights, b (k,) intercept, V (d, k) the same on raw features, F (n, k) scores,
P (k, n) probabilities, R (k, n) residuals, G and g gradients in B and b, N (k, k) the gradient in
the last layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from skdare.arrays import (
    Array,
    Part,
    as_float64,
    beside,
    chunks,
    like,
    map_reduce,
    namespace,
    product,
    transposed_product,
)
from skdare.objective.objective import LossSums, Objective, Point


@dataclass(frozen=True, eq=False)
class InvariantRisk:
    """Mean of the losses of an objective's blocks plus ``penalty ‖ΘᵀG_e‖²``, and the ridge.

    The scores XΘ are the representation and a further (k, k) layer, held at the identity, is the
    classifier on it: ``N = ΘᵀG_e`` is the gradient of domain e's loss in that layer. A free layer
    could shrink the penalty by shrinking Θ.
    """

    objective: Objective  # of classes; each block weighs one
    penalty: float

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """The value and its gradient, with one product of each domain's second derivative."""
        objective = self.objective
        share = 1.0 / len(objective.blocks)
        twice = 2.0 * self.penalty
        B, b = objective.coordinates.unpack(theta)
        xp = namespace(B)
        value = 0.5 * objective.l2 * xp.sum(B * B)
        G = objective.l2 * B
        g = 0.0 * b
        for block, own in zip(objective.blocks, objective.by_block(B, b), strict=True):
            N = B.T @ own.G + b[:, None] * own.g
            point = Point(*block.raw_weights(B, b), objective.loss)
            [curved] = map_reduce(curvature, [block.part], [(point, N)])
            curved = block.gradients(curved)
            value = value + share * (own.value + self.penalty * xp.sum(N * N))
            G = G + share * (own.G + twice * (own.G @ N.T + curved.G))
            g = g + share * (own.g + twice * (N @ own.g + curved.g))
        return float(value), objective.coordinates.gradient(G, g)


def curvature(part: Part, direction: tuple[Point, Array]) -> LossSums:
    """The second derivative of the loss of some rows at a point, in the direction of scores F N."""
    point, N = direction
    V = like(point.V, part.X)
    sums = LossSums(0.0, 0.0, 0.0)
    for place, rows in chunks(part.X, part.index, columns=V.shape[1]):
        weight = beside(part.columns[1][place], rows)
        F = as_float64(product(rows, V)) + point.offset
        xp = namespace(F)
        # Against targets of zero, residuals are the probabilities.
        _, P = point.loss.value_and_residual(F.T, 0.0 * F)
        PD = P * (F @ N).T
        R = (PD - P * xp.sum(PD, axis=0)) * weight
        G = as_float64(transposed_product(rows, like(R.T, rows)))
        sums = sums + LossSums(0.0, G, xp.sum(R, axis=-1))
    return sums
