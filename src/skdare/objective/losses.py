"""Losses of a block of rows: value, residual (the derivative in F) and curvature.

Notation: F (n, k) scores, T (n, k) targets or (n,) the column of each row's one, D (n, k) a
direction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from skdare.arrays import Array, as_float64, entries, is_cuda, like, namespace, subtract_at


class Loss(ABC):
    """A convex loss of scores and targets, summed over nothing: one value a row."""

    constant_curvature = False
    of_classes = True
    # A bound on the second derivative in the scores.
    steepest: float

    @abstractmethod
    def value_and_residual(self, F: Array, T: Array) -> tuple[Array, Array]:
        """The loss of each row, (n,) in float64, and its derivative in the scores, (n, k).

        The scores may be overwritten.
        """

    def weighted(self, F: Array, T: Array, weight: Array) -> tuple[Array, Array]:
        """The weighted sum of the losses, and residuals times weights."""
        losses, R = self.value_and_residual(F, T)
        R *= like(weight, R)[:, None]
        return namespace(F).sum(losses * weight), R

    @abstractmethod
    def curvature(self, F: Array) -> Any:
        """What the second derivative needs to remember of the scores."""

    @abstractmethod
    def curve(self, state: Any, D: Array) -> Array:
        """The second derivative in the scores applied to the direction D, (n, k)."""

    @abstractmethod
    def expected(self, F: Array) -> Array:
        """The targets that scores stand for: those at which they have no residual, (n, k)."""

    def surprise(self, losses: Any, weight: Any) -> Any:
        """Negative log-likelihood of rows whose losses these are, one row of (m, n) for a model."""
        return losses @ weight

    @abstractmethod
    def uninformative(self, k: int) -> float:
        """The target that says nothing: the constraint asks it of every domain mean."""


class Softmax(Loss):
    """Multinomial logistic loss of k ≥ 3 classes; targets are rows of probabilities, or classes."""

    steepest = 0.5

    def value_and_residual(self, F: Array, T: Array) -> tuple[Array, Array]:
        xp = namespace(F)
        F -= xp.max(F, axis=1, keepdims=True)
        P = xp.exp(F)
        total = xp.sum(P, axis=1, keepdims=True)
        value = as_float64(xp.log(total[:, 0]) - self._at_targets(F, T))
        P /= total
        return value, self._less_targets(P, T)

    def weighted(self, F: Array, T: Array, weight: Array) -> tuple[Array, Array]:
        fused = _fused_kernel() if is_cuda(F) else None
        losses = None if fused is None else fused(F, T, weight)
        return super().weighted(F, T, weight) if losses is None else (losses.sum(), F)

    @staticmethod
    def _at_targets(F: Array, T: Array) -> Array:
        return entries(F, T) if T.ndim == 1 else namespace(F).sum(T * F, axis=1)

    @staticmethod
    def _less_targets(P: Array, T: Array) -> Array:
        if T.ndim == 1:
            return subtract_at(P, T, 1.0)
        return P - namespace(P).astype(T, P.dtype, copy=False)

    def curvature(self, F: Array) -> Array:
        return softmax(F)

    def curve(self, state: Array, D: Array) -> Array:
        PD = state * D
        return PD - state * namespace(D).sum(PD, axis=1, keepdims=True)

    def expected(self, F: Array) -> Array:
        return softmax(F)

    def uninformative(self, k: int) -> float:
        return 1.0 / k


def softmax(F: Array) -> Array:
    """Softmax of each row."""
    xp = namespace(F)
    P = xp.exp(F - xp.max(F, axis=1, keepdims=True))
    return P / xp.sum(P, axis=1, keepdims=True)


class Logistic(Loss):
    """Two-class logistic loss of one score; targets are the probability of the second class."""

    steepest = 0.25

    def value_and_residual(self, F: Array, T: Array) -> tuple[Array, Array]:
        xp = namespace(F)
        # log(1 + exp f) without overflow: max(f, 0) + log1p(exp(-|f|)).
        T = _as_column(T)
        tail = xp.exp(-xp.abs(F))
        positive = xp.where(F > 0, F, xp.zeros_like(F))
        value = positive + xp.log1p(tail) - T * F
        return value[:, 0], self._probability(F, tail) - T

    @staticmethod
    def _probability(F: Array, tail: Array) -> Array:
        xp = namespace(F)
        return xp.where(F > 0, 1.0 / (1.0 + tail), tail / (1.0 + tail))

    def curvature(self, F: Array) -> Array:
        P = self.expected(F)
        return P * (1.0 - P)

    def curve(self, state: Array, D: Array) -> Array:
        return state * D

    def expected(self, F: Array) -> Array:
        return self._probability(F, namespace(F).exp(-namespace(F).abs(F)))

    def uninformative(self, k: int) -> float:
        return 0.5


class Squared(Loss):
    """Half the squared error."""

    constant_curvature = True
    of_classes = False
    steepest = 1.0

    def value_and_residual(self, F: Array, T: Array) -> tuple[Array, Array]:
        R = F - _as_column(T)
        return 0.5 * namespace(F).sum(R * R, axis=1), R

    def curvature(self, F: Array) -> None:
        return None

    def curve(self, state: None, D: Array) -> Array:
        return D

    def expected(self, F: Array) -> Array:
        return F

    def surprise(self, losses: Any, weight: Any) -> Any:
        # Of normal errors whose variance is not known, but for its most likely value.
        n = weight.sum()
        mean = losses @ weight / n
        smallest = np.finfo(np.float64).tiny
        return 0.5 * n * np.log(np.maximum(mean, smallest))

    def uninformative(self, k: int) -> float:
        return 0.0


@cache
def _fused_kernel() -> Callable[[Array, Array, Array], Array | None] | None:
    """The softmax in one kernel, where torch can compile one."""
    try:
        from skdare.arrays import fused

        fused.try_out()
    except Exception:
        return None
    return fused.weighted_softmax_residuals


def _as_column(T: Array) -> Array:
    """Targets of one score, as a column."""
    return as_float64(T)[:, None] if T.ndim == 1 else T


SOFTMAX = Softmax()
LOGISTIC = Logistic()
SQUARED = Squared()
