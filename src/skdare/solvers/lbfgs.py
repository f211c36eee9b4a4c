"""Limited-memory BFGS, safe in float32, on any device, for one function or for many.

Not SciPy's bounded variant: with 100,000 parameters its bookkeeping for bounds took a third of a
fit, and its small factorisations make BLAS threads wait for each other.

The method is a generator that yields points and is sent their values. The same lines thus serve one
function, and many in lockstep, whose points are evaluated together.

Notation: s steps, y changes of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, NamedTuple

import numpy as np

from skdare.arrays import Array, beside, namespace, to_numpy


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
    """What a solver gives back: parameters, and a status that names cause and remedy."""

    theta: Annotated[Array, "p"]
    value: float
    gradient_norm: float  # largest absolute entry
    n_iter: int
    status: Status

    @property
    def converged(self) -> bool:
        return self.status in (Status.CONVERGED, Status.PRECISION)


Function = Callable[[Array], tuple[float, Array]]
"""From flat parameters to a value and a gradient."""

Functions = Callable[[list[int], list[Array]], tuple[Sequence[float], Sequence[Array]]]
"""From the numbers of some functions, and a point of each, to their values and gradients."""

Steps = Generator[Array, tuple[float, Array], Solution]

MEMORY = 20
# Down to this share of the first gradient a coarse function leads as well as the exact one.
_COARSE_REACH = 3e-4
# The multiple of tol, or of the rounding, beyond which a gradient at a standstill is no solution.
_FAR = 1e3


class _Precision(NamedTuple):
    """Numerical precision of an objective."""

    noise: float  # relative rounding of a value
    visible: float  # relative change of a value that counts as progress
    patience: int  # iterations without progress before giving up
    evaluations: int  # most in one line search


_EXACT = _Precision(noise=1e-7, visible=1e-15, patience=MEMORY, evaluations=30)  # of float32 rows
_ROUGH = _Precision(noise=1e-5, visible=1e-6, patience=5, evaluations=4)


class _Point(NamedTuple):
    theta: Array
    value: float
    gradient: Array


def lbfgs(
    function: Function,
    start: Array,
    *,
    tol: float,
    max_iter: int,
    coarse: Function | None = None,
) -> Solution:
    """Minimise a smooth function, down to a largest entry of the gradient of ``tol``.

    If there is a faster, ``coarse`` form of it with three digits, it is minimised first, as far as
    its precision allows; the exact one goes on with the curvature learnt, to the same tolerance.
    """
    history = _History(start)
    if coarse is None:
        return _followed(_descent(start, tol, max_iter, history), function)
    first = _followed(_descent(start, tol, max_iter, history, _ROUGH), coarse)
    rest = max(1, max_iter - first.n_iter)
    solution = _followed(_descent(first.theta, tol, rest, history), function)
    return replace(solution, n_iter=first.n_iter + solution.n_iter)


def lockstep(
    functions: Functions, starts: Sequence[Array], *, tol: float, max_iter: int
) -> list[Solution]:
    """Minimise many functions; one call evaluates all that are not done, each at its own point."""
    descents = [_descent(start, tol, max_iter, _History(start)) for start in starts]
    waiting = {i: next(descent) for i, descent in enumerate(descents)}
    solutions: dict[int, Solution] = {}
    while waiting:
        values, gradients = functions(list(waiting), list(waiting.values()))
        for i, value, gradient in zip(list(waiting), values, gradients, strict=True):
            try:
                waiting[i] = descents[i].send((float(value), gradient))
            except StopIteration as end:
                solutions[i] = end.value
                del waiting[i]
    return [solutions[i] for i in range(len(starts))]


def _followed(descent: Steps, function: Function) -> Solution:
    theta = next(descent)
    while True:
        try:
            theta = descent.send(function(theta))
        except StopIteration as end:
            return end.value


def _descent(
    start: Array, tol: float, max_iter: int, history: _History, precision: _Precision = _EXACT
) -> Steps:
    """Yields the points at which it needs the value and the gradient; returns the solution."""
    point = _Point(start, *(yield start))
    if not np.isfinite(point.value):
        raise FloatingPointError("the objective is not finite at the start")
    if precision is _ROUGH:
        tol = max(tol, _COARSE_REACH * largest(point.gradient))
    lowest = point.value
    improved = 0
    for iteration in range(max_iter + 1):
        norm = largest(point.gradient)
        if point.value < lowest - precision.visible * abs(lowest):
            lowest = point.value
            improved = iteration
        if norm <= tol:
            status = Status.CONVERGED
            break
        status = Status.ITERATION_LIMIT
        if iteration == max_iter:
            break
        is_far = norm > _FAR * max(tol, precision.noise)
        status = Status.STALLED if is_far else Status.PRECISION
        if iteration - improved > precision.patience:
            break
        direction = history.direction(point.gradient)
        slope = float(point.gradient @ direction)
        if not slope < 0:
            history.count = 0
            direction = -point.gradient
            slope = -float(point.gradient @ point.gradient)
        length = 1.0 if history.count else min(1.0, (-slope) ** -0.5)
        new = yield from _line_search(point, direction, slope, length, precision)
        if new is None:
            break
        history.add(new.theta - point.theta, new.gradient - point.gradient)
        point = new
    return Solution(point.theta, point.value, norm, iteration, status)


class _History:
    """The last steps and gradient changes, and the inverse Hessian that they imply.

    Only inner products are needed but for the result, so the recursion runs on coefficients: of
    all vectors, in the order s, y, s, y, ..., with their products known. On an accelerator that
    is one copy to the host for each direction, not forty.
    """

    def __init__(self, start: Array) -> None:
        self.vectors = beside(np.zeros((2 * MEMORY, start.shape[0])), start)
        self.products = np.zeros((2 * MEMORY, 2 * MEMORY))
        self.count = 0

    def add(self, s: Array, y: Array) -> None:
        if not float(s @ y) > np.finfo(np.float64).eps * float(y @ y):
            return
        place = 2 * (self.count % MEMORY)
        self.count += 1
        self.vectors[place, :] = s
        self.vectors[place + 1, :] = y
        used = 2 * min(self.count, MEMORY)
        for row in (place, place + 1):
            products = to_numpy(self.vectors[:used, :] @ self.vectors[row, :])
            self.products[row, :used] = self.products[:used, row] = products

    def direction(self, gradient: Array) -> Array:
        """Minus the inverse Hessian times the gradient, by the two-loop recursion."""
        if not self.count:
            return -gradient
        used = 2 * min(self.count, MEMORY)
        K = self.products[:used, :used]
        along = to_numpy(self.vectors[:used, :] @ gradient)
        steps = [2 * (i % MEMORY) for i in range(max(0, self.count - MEMORY), self.count)]
        last = steps[-1]
        scale = float(K[last, last + 1] / K[last + 1, last + 1])
        c = np.zeros(used)  # the result is scale * gradient + c @ vectors
        weight = {}
        for s in reversed(steps):
            weight[s] = (along[s] + K[s] @ c) / K[s, s + 1]
            c[s + 1] -= weight[s]
        c *= scale
        for s in steps:
            c[s] += weight[s] - (scale * along[s + 1] + K[s + 1] @ c) / K[s, s + 1]
        return -(scale * gradient + beside(c, gradient) @ self.vectors[:used, :])


def _line_search(
    at: _Point, direction: Array, slope: float, length: float, precision: _Precision
) -> Generator[Array, tuple[float, Array], _Point | None]:
    """A step with enough decrease and less slope, by bracketing; None where rounding hides both.

    Where the change of the value is within its rounding (float32 features leave about seven
    digits), the slopes at both ends decide instead: they keep their digits longer.
    """
    low = 0.0
    high = np.inf
    for _ in range(precision.evaluations):
        theta = at.theta + length * direction
        new = _Point(theta, *(yield theta))
        change = new.value - at.value
        new_slope = float(new.gradient @ direction)
        decreases = change <= 1e-4 * length * slope
        if not decreases and abs(change) <= precision.noise * abs(at.value):
            decreases = new_slope <= -0.8 * slope
        if not decreases:  # nor does a value that is not finite
            high = length
            bend = change - length * slope
            best = -slope * length**2 / (2 * bend) if bend > 0 else 0.0
            length = min(max(best, low + 0.1 * (high - low)), low + 0.5 * (high - low))
        elif new_slope < 0.9 * slope:
            low = length
            if high == np.inf:
                # Where the slope would vanish if it went on changing as it did: a first step may
                # be a hundred times too short.
                bend = new_slope / slope
                best = length / (1.0 - bend) if bend < 1.0 else np.inf
                length = min(max(2 * length, best), 64 * length)
            else:
                length = 0.5 * (low + high)
        else:
            return new
        if high < np.inf and high - low <= 1e-6 * high:
            break
    return None


def largest(values: Array) -> float:
    xp = namespace(values)
    return float(xp.max(xp.abs(values)))
