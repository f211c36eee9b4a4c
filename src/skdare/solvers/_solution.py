"""What a solver sees and what it gives: functions in, solutions with a status out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from skdare.arrays import Array, largest


class Function(Protocol):
    """What a solver sees of an objective."""

    @property
    def size(self) -> int: ...

    def value_and_gradient(self, theta: Array, /) -> tuple[float, Array]: ...

    def hessian_product(self, theta: Array, /) -> Callable[[Array], Array]: ...

    def hessian(self) -> np.ndarray: ...


class Status(Enum):
    """How a solve ended: the cause, and the remedy where one is needed."""

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
        "stopped before the duality gap over the domain weights closed; "
        "raise max_iter or step, or leave step out"
    )
    DIVERGED = (
        "the value or its gradient stopped being finite and the last finite iterate was kept; "
        "scale the features, raise l2, or lower the penalty"
    )

    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        # As pickle has it by another method; skops, which MLflow saves heads with, asks for this.
        return Status, (self.value,)


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters and how they were reached.

    Parameters
    ----------
    theta : array of shape (m,)
        Where the start was.
    value : float
    gradient_norm : float
        Largest absolute entry of the gradient.
    n_iter, n_evaluations : int
        Iterations; evaluations of value and gradient, Hessian products counted in.
    status : Status
    n_coarse : int
        How many of the evaluations had coarse products.
    """

    theta: Array
    value: float
    gradient_norm: float
    n_iter: int
    n_evaluations: int
    status: Status
    n_coarse: int = 0

    @property
    def converged(self) -> bool:
        """Whether the remedy in the status can be ignored."""
        return self.status in (Status.CONVERGED, Status.PRECISION)


# Relative rounding of a value computed from float32 features; and the multiple of tol, or of that
# rounding, beyond which a gradient at a standstill is no solution.
NOISE = 1e-7
FAR = 1e3


class Guard:
    """A function that remembers its best finite point and stops where nothing is finite.

    ``noise`` is the relative rounding of its values, ``patience`` the most evaluations of a line
    search.
    """

    def __init__(self, function: Function, noise: float = NOISE, patience: int = 30) -> None:
        self.function = function
        self.noise = noise
        self.patience = patience
        self.calls = 0
        self.best: tuple[float, Array, Array] | None = None

    def __call__(self, theta: Array) -> tuple[float, Array]:
        self.calls += 1
        value, gradient = self.function.value_and_gradient(theta)
        if np.isfinite(value) and np.isfinite(largest(gradient)):
            if self.best is None or value <= self.best[0]:
                self.best = (value, theta, gradient)
            return value, gradient
        if self.best is None:
            raise FloatingPointError("the objective is not finite at the start")
        raise NotFinite

    def solution(
        self,
        n_iter: int,
        tol: float,
        *,
        limit: bool,
        finite: bool = True,
        point: tuple[float, Array, Array] | None = None,
    ) -> Solution:
        """The given point, or the best finite one, with its status."""
        value, theta, gradient = point or self.best  # type: ignore[misc]
        norm = largest(gradient)
        status = Status.PRECISION
        if norm <= tol:
            status = Status.CONVERGED
        elif not finite:
            status = Status.DIVERGED
        elif limit:
            status = Status.ITERATION_LIMIT
        elif norm > FAR * tol and norm > FAR * NOISE:
            status = Status.STALLED
        return Solution(theta, value, norm, n_iter, self.calls, status)


class NotFinite(Exception):
    pass
