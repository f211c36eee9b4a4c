"""Limited-memory BFGS, lean and safe in float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.arrays import Array, dot, empty, largest, like, to_numpy
from skdare.solvers._solution import Function, Guard, NotFinite, Solution

MEMORY = 20
_ARMIJO = 1e-4
_WOLFE = 0.9
# For a rough function: relative rounding of its value, evaluations that a line search may take,
# and iterations without a visible change.
_ROUGH = 1e-5
_PATIENCE = 4
_WAIT = 5


def lbfgs(
    function: Function,
    start: Array,
    *,
    tol: float,
    max_iter: int,
    reach: float | None = None,
    history: History | None = None,
) -> Solution:
    """Limited-memory BFGS with a weak Wolfe line search, to a gradient tolerance.

    Works where the start lies, on the host or on an accelerator. Not SciPy's bounded variant: with
    100,000 parameters its bookkeeping for bounds cost a third of a fit, and its small
    factorisations make BLAS threads wait for each other.

    Parameters
    ----------
    reach : float, optional
        The function is rough, and this share of its first gradient enough, if more than ``tol``:
        the search ends where the roughness shows.
    history : History, optional
        Curvature to begin with, and to be gone on with: of a similar function.
    """
    guard = Guard(function)
    theta = start
    visible = 1e-15
    wait = MEMORY
    if reach is not None:
        guard = Guard(function, _ROUGH, _PATIENCE)
        visible = 0.1 * _ROUGH
        wait = _WAIT
    history = History(start) if history is None else history
    value, gradient = guard(theta)
    tol = tol if reach is None else max(tol, reach * largest(gradient))
    lowest = value
    improved = 0
    for iteration in range(max_iter):
        point = (value, theta, gradient)
        if value < lowest - visible * abs(lowest):
            lowest = value
            improved = iteration
        if iteration - improved > wait:
            return guard.solution(iteration, tol, limit=False, point=point)
        if largest(gradient) <= tol:
            return guard.solution(iteration, tol, limit=False, point=point)
        direction = -history.inverse_product(gradient)
        slope = dot(gradient, direction)
        if not slope < 0:
            history.forget()
            direction = -gradient
            slope = -dot(gradient, gradient)
        try:
            step = _line_search(guard, theta, value, direction, slope, history.first_step(gradient))
        except NotFinite:
            return guard.solution(iteration, tol, limit=False, finite=False)
        if step is None:
            return guard.solution(iteration, tol, limit=False, point=point)
        history.add(step.theta - theta, step.gradient - gradient)
        theta = step.theta
        value = step.value
        gradient = step.gradient
    return guard.solution(max_iter, tol, limit=True, point=(value, theta, gradient))


class History:
    """The last few steps s and gradient changes y, and the inverse Hessian they imply.

    Only inner products are needed but for the result: with those of all pairs known, a direction
    takes one product of all vectors with the gradient and one with its coefficients, whatever
    holds the vectors.
    """

    def __init__(self, beside: Array) -> None:
        self.vectors = empty((2 * MEMORY, beside.shape[0]), beside)  # s, y, s, y, ...
        self.inner = np.zeros((2 * MEMORY, 2 * MEMORY))
        self.count = 0

    def forget(self) -> None:
        self.count = 0

    def first_step(self, gradient: Array) -> float:
        """One, once there is curvature to go by."""
        return 1.0 if self.count else min(1.0, dot(gradient, gradient) ** -0.5)

    def add(self, s: Array, y: Array) -> None:
        if not dot(s, y) > np.finfo(float).eps * dot(y, y):
            return
        place = 2 * (self.count % MEMORY)
        self.count += 1
        for row, vector in ((place, s), (place + 1, y)):
            self.vectors[row, :] = vector
        for row in (place, place + 1):
            products = to_numpy(self._used @ self.vectors[row, :])
            self.inner[row, : len(products)] = self.inner[: len(products), row] = products

    @property
    def _used(self) -> Array:
        return self.vectors[: 2 * min(self.count, MEMORY), :]

    def inverse_product(self, gradient: Array) -> Array:
        """The two-loop recursion, in coefficients of the gradient and of the vectors."""
        if not self.count:
            return gradient
        products = to_numpy(self._used @ gradient)
        inner = self.inner
        m = len(products)
        weight = {}
        a = np.zeros(m)
        order = [2 * (c % MEMORY) for c in range(max(0, self.count - MEMORY), self.count)]
        for s in reversed(order):
            weight[s] = (products[s] + inner[s, :m] @ a) / inner[s, s + 1]
            a[s + 1] -= weight[s]
        last = order[-1]
        scale = float(inner[last, last + 1] / inner[last + 1, last + 1])
        a *= scale
        for s in order:
            a[s] += weight[s] - (scale * products[s + 1] + inner[s + 1, :m] @ a) / inner[s, s + 1]
        return scale * gradient + like(a, gradient) @ self._used


@dataclass(frozen=True, eq=False)
class _Step:
    theta: Array
    value: float
    gradient: Array


def _line_search(
    guard: Guard,
    theta: Array,
    value: float,
    direction: Array,
    slope: float,
    length: float,
) -> _Step | None:
    """A step with enough decrease and less slope, by bracketing; None where rounding hides both.

    Where the change of the value is within its rounding (float32 features leave about seven
    digits), the slopes at both ends decide instead: they keep their digits longer.
    """
    low = 0.0
    high = np.inf
    noise = guard.noise * abs(value)
    for _ in range(guard.patience):
        point = theta + length * direction
        new, gradient = guard(point)
        new_slope = dot(gradient, direction)
        lower = new <= value + _ARMIJO * length * slope
        if not lower and abs(new - value) <= noise:
            lower = new_slope <= -0.8 * slope
        if not lower:
            high = length
            bend = new - value - length * slope
            best = -slope * length**2 / (2 * bend) if bend > 0 else 0.0
            length = min(max(best, low + 0.1 * (high - low)), low + 0.5 * (high - low))
        elif new_slope < _WOLFE * slope:
            low = length
            # Where the slope would vanish if it went on changing as it did: a first step may be a
            # hundred times too short.
            bend = new_slope / slope
            best = length / (1.0 - bend) if bend < 1.0 else np.inf
            length = (
                min(max(2 * length, best), 64 * length) if high == np.inf else 0.5 * (low + high)
            )
        else:
            return _Step(point, new, gradient)
        if np.isfinite(high) and high - low <= 1e-6 * high:
            break
    return None
