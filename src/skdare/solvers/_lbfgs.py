"""Limited-memory BFGS, lean and safe in float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.solvers._solution import NOISE, Function, Guard, NotFinite, Solution

MEMORY = 20
_ARMIJO, _WOLFE = 1e-4, 0.9


def lbfgs(function: Function, start: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """Limited-memory BFGS with a weak Wolfe line search, to a gradient tolerance.

    Not SciPy's bounded variant: with 100,000 parameters its bookkeeping for bounds cost a third
    of a fit, and its small factorisations make BLAS threads wait for each other.
    """
    guard, history, theta = Guard(function), _History(start.size), start
    value, gradient = guard(theta)
    lowest, improved = value, 0
    for iteration in range(max_iter):
        point = (value, theta, gradient)
        if value < lowest - 1e-15 * abs(lowest):
            lowest, improved = value, iteration
        if iteration - improved > MEMORY:
            return guard.solution(iteration, tol, limit=False, point=point)
        if np.max(np.abs(gradient), initial=0.0) <= tol:
            return guard.solution(iteration, tol, limit=False, point=point)
        direction = -history.inverse_product(gradient)
        slope = float(gradient @ direction)
        if not slope < 0:
            history.forget()
            direction, slope = -gradient, -float(gradient @ gradient)
        try:
            step = _line_search(guard, theta, value, direction, slope, history.first_step(gradient))
        except NotFinite:
            return guard.solution(iteration, tol, limit=False, finite=False)
        if step is None:
            return guard.solution(iteration, tol, limit=False, point=point)
        history.add(step.theta - theta, step.gradient - gradient)
        theta, value, gradient = step.theta, step.value, step.gradient
    return guard.solution(max_iter, tol, limit=True, point=(value, theta, gradient))


class _History:
    """The last few steps and gradient changes, and the inverse Hessian they imply."""

    def __init__(self, size: int) -> None:
        self.S, self.Y = np.empty((MEMORY, size)), np.empty((MEMORY, size))
        self.inner = np.empty(MEMORY)
        self.count = 0

    def forget(self) -> None:
        self.count = 0

    def first_step(self, gradient: np.ndarray) -> float:
        """One, once there is curvature to go by."""
        return 1.0 if self.count else min(1.0, 1.0 / float(np.linalg.norm(gradient)))

    def add(self, s: np.ndarray, y: np.ndarray) -> None:
        inner = float(s @ y)
        if inner > np.finfo(float).eps * float(y @ y):
            place = self.count % MEMORY
            self.S[place], self.Y[place], self.inner[place] = s, y, inner
            self.count += 1

    def inverse_product(self, gradient: np.ndarray) -> np.ndarray:
        """The two-loop recursion."""
        result = gradient.copy()
        order = [c % MEMORY for c in range(max(0, self.count - MEMORY), self.count)]
        weights = {}
        for p in reversed(order):
            weights[p] = float(self.S[p] @ result) / self.inner[p]
            result -= weights[p] * self.Y[p]
        if order:
            last = order[-1]
            result *= self.inner[last] / float(self.Y[last] @ self.Y[last])
        for p in order:
            result += (weights[p] - float(self.Y[p] @ result) / self.inner[p]) * self.S[p]
        return result


@dataclass(frozen=True, eq=False)
class _Step:
    theta: np.ndarray
    value: float
    gradient: np.ndarray


def _line_search(
    guard: Guard,
    theta: np.ndarray,
    value: float,
    direction: np.ndarray,
    slope: float,
    length: float,
) -> _Step | None:
    """A step with enough decrease and less slope, by bracketing; None where rounding hides both.

    Where the change of the value is within its rounding (float32 features leave about seven
    digits), the slopes at both ends decide instead: they keep their digits longer.
    """
    low, high = 0.0, np.inf
    noise = NOISE * abs(value)
    for _ in range(30):
        point = theta + length * direction
        new, gradient = guard(point)
        new_slope = float(gradient @ direction)
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
            length = 2 * length if high == np.inf else 0.5 * (low + high)
        else:
            return _Step(point, new, gradient)
        if np.isfinite(high) and high - low <= 1e-6 * high:
            break
    return None
