"""Solvers: they see a function of flat parameters, its derivatives, and nothing else.

Every solver returns a `Solution` whose status names the cause and the remedy; none returns NaN
as a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
from scipy import linalg, optimize


class Function(Protocol):
    """What a solver sees of an objective."""

    @property
    def size(self) -> int: ...

    def value_and_gradient(self, theta: np.ndarray, /) -> tuple[float, np.ndarray]: ...

    def hessian_product(self, theta: np.ndarray, /) -> Callable[[np.ndarray], np.ndarray]: ...

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


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters and how they were reached.

    Parameters
    ----------
    theta : array of shape (m,)
    value : float
    gradient_norm : float
        Largest absolute entry of the gradient.
    n_iter, n_evaluations : int
        Iterations; evaluations of value and gradient, Hessian products counted in.
    status : Status
    """

    theta: np.ndarray
    value: float
    gradient_norm: float
    n_iter: int
    n_evaluations: int
    status: Status

    @property
    def converged(self) -> bool:
        """Whether the remedy in the status can be ignored."""
        return self.status in (Status.CONVERGED, Status.PRECISION)


# Relative rounding of a value computed from float32 features; and the multiple of tol, or of that
# rounding, beyond which a gradient at a standstill is no solution.
_NOISE = 1e-7
_FAR = 1e3


class _Guard:
    """A function that remembers its best finite point and stops where nothing is finite."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.calls = 0
        self.best: tuple[float, np.ndarray, np.ndarray] | None = None

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        self.calls += 1
        value, gradient = self.function.value_and_gradient(theta)
        if np.isfinite(value) and np.all(np.isfinite(gradient)):
            if self.best is None or value <= self.best[0]:
                self.best = (value, theta.copy(), gradient)
            return value, gradient
        if self.best is None:
            raise FloatingPointError("the objective is not finite at the start")
        raise _NotFinite

    def solution(
        self,
        n_iter: int,
        tol: float,
        *,
        limit: bool,
        finite: bool = True,
        point: tuple[float, np.ndarray, np.ndarray] | None = None,
    ) -> Solution:
        """The given point, or the best finite one, with its status."""
        value, theta, gradient = point or self.best  # type: ignore[misc]
        norm = float(np.max(np.abs(gradient), initial=0.0))
        status = Status.PRECISION
        if norm <= tol:
            status = Status.CONVERGED
        elif not finite:
            status = Status.DIVERGED
        elif limit:
            status = Status.ITERATION_LIMIT
        elif norm > _FAR * tol and norm > _FAR * _NOISE:
            status = Status.STALLED
        return Solution(theta, value, norm, n_iter, self.calls, status)


class _NotFinite(Exception):
    pass


MEMORY = 20
_ARMIJO, _WOLFE = 1e-4, 0.9


def lbfgs(function: Function, start: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """Limited-memory BFGS with a weak Wolfe line search, to a gradient tolerance.

    Not SciPy's bounded variant: with 100,000 parameters its bookkeeping for bounds cost a third
    of a fit, and its small factorisations make BLAS threads wait for each other.
    """
    guard, history, theta = _Guard(function), _History(start.size), start
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
        except _NotFinite:
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
    guard: _Guard,
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
    noise = _NOISE * abs(value)
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


def trust_ncg(function: Function, start: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """Trust-region Newton, each step by conjugate gradients with the Hessian product."""
    guard, iterations = _Guard(function), 0
    point: np.ndarray | None = None
    product: Callable[[np.ndarray], np.ndarray]

    def curve(theta: np.ndarray, direction: np.ndarray) -> np.ndarray:
        nonlocal point, product
        if point is None or not np.array_equal(point, theta):
            point, product = theta.copy(), function.hessian_product(theta)
        guard.calls += 1
        return product(direction)

    def count(_: object) -> None:
        nonlocal iterations
        iterations += 1

    # SciPy stops on the Euclidean norm; this bound implies the largest entry is below tol.
    options = {"maxiter": max_iter, "gtol": tol, "initial_trust_radius": 10.0}
    options |= {"max_trust_radius": 1e6}
    try:
        result = optimize.minimize(
            guard, start, jac=True, hessp=curve, method="trust-ncg", options=options, callback=count
        )
    except _NotFinite:
        return guard.solution(iterations, tol, limit=False, finite=False)
    return guard.solution(iterations, tol, limit=result.status == 1)


def direct(function: Function, start: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """The minimum of a quadratic, from its Hessian, by eigendecomposition.

    Directions in which the quadratic is flat keep the value zero, as in the minimum-norm
    solution: collinear features need no ridge.
    """
    m, guard = function.size, _Guard(function)
    zero = np.zeros(m)
    H = function.hessian()
    if not np.all(np.isfinite(H)):
        raise FloatingPointError("the Hessian is not finite")
    _, gradient = guard(zero)
    values, vectors = linalg.eigh((H + H.T) / 2, check_finite=False)
    keep = values > m * np.finfo(float).eps * 10 * max(values[-1], 0.0)
    inverse = np.divide(1.0, values, where=keep, out=np.zeros_like(values))
    theta = -(vectors @ (inverse * (vectors.T @ gradient)))
    value, gradient = guard(theta)
    return guard.solution(1, tol, limit=False, point=(value, theta, gradient))


SOLVERS: dict[str, Callable[..., Solution]] = {
    "lbfgs": lbfgs,
    "trust-ncg": trust_ncg,
    "direct": direct,
}


class Family(Function, Protocol):
    """Losses L_e, e in E, and how to weigh them."""

    def weighted(self, block_weights: np.ndarray, /) -> Family: ...

    def block_losses(self, theta: np.ndarray, /) -> np.ndarray: ...


def minimax(
    family: Family,
    start: np.ndarray,
    q: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    step: float | None = None,
) -> tuple[Solution, np.ndarray]:
    """Minimise the largest of several convex losses, ``max_q Σ_e q_e L_e``, exactly.

    The dual function ``g(q) = min_θ Σ q_e L_e(θ) + ridge`` is concave with gradient ``L_e(θ(q))``
    and only E variables, so each step of the outer solver is one warm-started inner solve; the
    duality gap ``max_e L_e - Σ q_e L_e`` is the certificate.

    Parameters
    ----------
    q : array of shape (E,)
        Weights to start from.
    step : float, optional
        Exponentiated-gradient ascent on q with this step; default: sequential quadratic
        programming on the simplex.

    Returns
    -------
    Solution, array of shape (E,)
        And the worst-case weights q.
    """
    state, n_blocks = _Dual(family, start, q, tol), len(q)
    if step is None:
        optimize.minimize(
            lambda q: (-state.value(q), -state.losses),
            q,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * n_blocks,
            constraints={
                "type": "eq",
                "fun": lambda q: q.sum() - 1.0,
                "jac": lambda q: np.ones(n_blocks),
            },
            options={"maxiter": max_iter, "ftol": min(tol, 1e-6) * 1e-3},
        )
    else:
        for _ in range(max_iter):
            state.value(q)
            if state.gap <= tol:
                break
            q = q * np.exp(step * (state.losses - state.losses.max()))
            q /= q.sum()
    return state.solution(), state.best_q


class _Dual:
    """The dual function, its warm start and the point with the smallest gap."""

    def __init__(self, family: Family, start: np.ndarray, q: np.ndarray, tol: float) -> None:
        self.family, self.theta, self.best_q, self.tol = family, start, q, tol
        self.n_iter = self.n_evaluations = 0
        self.gap = self.best_gap = np.inf
        self.best: Solution | None = None

    def value(self, q: np.ndarray) -> float:
        q = np.clip(q, 0.0, None) / np.clip(q, 0.0, None).sum()
        inner = lbfgs(self.family.weighted(q), self.theta, tol=self.tol, max_iter=1000)
        self.theta = inner.theta
        self.losses = self.family.block_losses(inner.theta)
        self.gap = float(self.losses.max() - q @ self.losses)
        self.n_iter += inner.n_iter
        self.n_evaluations += inner.n_evaluations + 1
        if self.gap < self.best_gap:
            self.best_gap, self.best_q, self.best = self.gap, q, inner
        return inner.value

    def solution(self) -> Solution:
        """The best point, converged where its gap is small beside the loss."""
        assert self.best is not None
        solution = replace(self.best, n_iter=self.n_iter, n_evaluations=self.n_evaluations)
        if self.best_gap > 1e-3 * max(abs(solution.value), 1e-12) and solution.converged:
            return replace(solution, status=Status.GAP)
        return solution
