"""What a solver gives back: parameters, and a status that names cause and remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from skdare.arrays import Array


class Status(Enum):
    CONVERGED = "converged: the gradient is below tol"
    PRECISION = "converged to rounding: the value cannot be lowered further at this precision"
    STALLED = (
        "stopped where rounding hides any further progress, far from tol; "
        "centre or scale the features, or pass them in float64"
    )
    ITERATION_LIMIT = (
        "stopped at max_iter before the gradient fell below tol; "
        "raise max_iter, raise l2, or loosen tol"
    )
    GAP = (
        "stopped before the gap between the worst domain's loss and the weighted one closed; "
        "raise max_iter"
    )


@dataclass(frozen=True, eq=False)
class Solution:
    theta: Annotated[Array, "p"]
    value: float
    gradient_norm: float  # largest absolute entry
    n_iter: int
    status: Status

    @property
    def converged(self) -> bool:
        return self.status in (Status.CONVERGED, Status.PRECISION)
