"""Descent that is stopped early: fixed-step L-BFGS by epochs, and momentum by steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdare.solvers import Function

# What ends an epoch early: a flat gradient, a step or a change of value too small to matter.
FLAT, SMALL = 1e-7, 1e-9
LEAST_CURVATURE = 1e-10


class FixedStepLBFGS:
    """L-BFGS without a line search, in epochs, as `torch.optim.LBFGS` does it by default.

    The paper stops by epochs of such a solver with step 0.2; what an epoch is, it does not say.
    Here it is one call of that optimiser's ``step``: up to ``inner`` iterations, with the pairs
    of earlier epochs kept.

    Parameters
    ----------
    theta : array of shape (m,)
        Where to start.
    step : float
        Length along each direction; the very first is cut to 1/‖g‖₁ where that is less than one.
    inner : int
        Iterations an epoch.
    memory : int
        Pairs kept.
    """

    def __init__(self, theta: np.ndarray, *, step: float, inner: int, memory: int) -> None:
        self.theta = np.array(theta, dtype=np.float64)
        self.step, self.inner = step, inner
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=memory)
        self.n_iter = 0
        self._last: tuple[np.ndarray, np.ndarray] | None = None  # gradient and step taken

    def epoch(self, function: Function) -> bool:
        """Up to ``inner`` iterations; whether the parameters are still finite."""
        value, gradient = function.value_and_gradient(self.theta)
        if np.max(np.abs(gradient), initial=0.0) <= FLAT:
            return True
        for iteration in range(1, self.inner + 1):
            direction = self._direction(gradient)
            length = self.step
            if self.n_iter == 1:
                length *= min(1.0, 1.0 / float(np.abs(gradient).sum()))
            moved = length * direction
            self._last = gradient, moved
            if gradient @ direction > -SMALL:
                break
            self.theta = self.theta + moved
            if iteration == self.inner:
                break
            before = value
            value, gradient = function.value_and_gradient(self.theta)
            if not np.isfinite(value):
                return False
            if np.max(np.abs(gradient)) <= FLAT or np.max(np.abs(moved)) <= SMALL:
                break
            if abs(value - before) < SMALL:
                break
        return bool(np.all(np.isfinite(self.theta)))

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        """Minus the gradient, bent by the pairs: the two-loop recursion."""
        self.n_iter += 1
        if self._last is not None:
            change, moved = gradient - self._last[0], self._last[1]
            inner = float(change @ moved)
            if inner > LEAST_CURVATURE:
                self.pairs.append((moved, change, inner))
        result, weights = -gradient, []
        for s, y, inner in reversed(self.pairs):
            weights.append(float(s @ result) / inner)
            result = result - weights[-1] * y
        if self.pairs:
            _, y, inner = self.pairs[-1]
            result = result * (inner / float(y @ y))
        for (s, y, inner), weight in zip(self.pairs, reversed(weights), strict=True):
            result = result + s * (weight - float(y @ result) / inner)
        return result


@dataclass(frozen=True, eq=False)
class Stopped:
    """Where patience ended: the best parameters, their validation score, and the epochs."""

    theta: np.ndarray
    score: float
    best_epoch: int
    epochs: int


def descend_with_patience(
    solver: FixedStepLBFGS,
    function: Callable[[np.ndarray], Function],
    validate: Callable[[np.ndarray], float],
    *,
    patience: int,
    max_epochs: int,
) -> Stopped:
    """Epochs until so many in a row bring no new best validation score.

    ``function`` gives the objective for the next epoch: that of GroupDRO changes as it goes.
    """
    best, score, best_epoch = solver.theta, validate(solver.theta), 0
    epoch = 0
    while epoch < max_epochs and epoch - best_epoch < patience:
        epoch += 1
        if not solver.epoch(function(solver.theta)):
            if best_epoch == 0:
                raise FloatingPointError(
                    f"L-BFGS of step {solver.step:g} diverged in epoch {epoch}, before any gain; "
                    "standardise the features, or lower the step"
                )
            break
        new = validate(solver.theta)
        if new > score:
            best, score, best_epoch = solver.theta, new, epoch
    return Stopped(best, score, best_epoch, epoch)


def momentum_descent(
    function: Function, theta: np.ndarray, *, step: float, momentum: float, steps: int
) -> np.ndarray:
    """So many full-batch gradient steps with heavy-ball momentum."""
    velocity = np.zeros_like(theta)
    for _ in range(steps):
        velocity = momentum * velocity + function.value_and_gradient(theta)[1]
        theta = theta - step * velocity
    return theta
