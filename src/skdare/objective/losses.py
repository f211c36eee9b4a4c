"""Losses of scores: the value of each row, and its derivative in the scores.

Rows are the last axis and columns the one before, so that the weights of rows broadcast, and many
problems on the same rows are one more axis in front.

Notation: F (..., k, n) scores, T (n,) class numbers or targets, or (n, k) soft targets, R
(..., k, n) residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import array_api_compat as compat
import numpy as np

from skdare.arrays import Array, beside, is_foreign, namespace


@dataclass(frozen=True)
class Softmax:
    """Multinomial logistic loss of k ≥ 3 classes."""

    is_quadratic = False

    def value_and_residual(self, F: Array, T: Array) -> tuple[Array, Array]:
        xp = namespace(F)
        F = F - xp.max(F, axis=-2, keepdims=True)
        P = xp.exp(F)
        total = xp.sum(P, axis=-2, keepdims=True)
        P /= total
        whole = xp.log(total[..., 0, :])
        if T.ndim == 2:
            T = xp.astype(T.T, F.dtype, copy=False)
            return whole - xp.sum(T * F, axis=-2), P - T
        if is_foreign(F) and not compat.is_torch_array(F):  # the standard has no pairs of indices
            is_class = beside(np.arange(F.shape[-2]), F)[:, None] == T
            hit = xp.astype(is_class, F.dtype)
            return whole - xp.sum(hit * F, axis=-2), P - hit
        row = xp.arange(F.shape[-1], device=F.device) if is_foreign(F) else np.arange(F.shape[-1])
        value = whole - F[..., T, row]
        P[..., T, row] -= 1.0
        return value, P

    def uninformative(self, k: int) -> float:
        """Uninformative target, 1/k: what the constraint asks of every domain mean."""
        return 1.0 / k


@dataclass(frozen=True)
class Logistic:
    """Two-class logistic loss of one score; targets are the probability of the second class."""

    is_quadratic = False

    def value_and_residual(self, F: Array, T: Array) -> tuple[Array, Array]:
        xp = namespace(F)
        T = xp.astype(T.T if T.ndim == 2 else T, F.dtype, copy=False)
        # log(1 + exp f) without overflow: max(f, 0) + log1p(exp(-|f|)).
        tail = xp.exp(-xp.abs(F))
        value = xp.clip(F, 0.0, None) + xp.log1p(tail) - T * F
        P = xp.where(F > 0, 1.0, tail) / (1.0 + tail)
        return value[..., 0, :], P - T

    def uninformative(self, k: int) -> float:
        return 0.5


@dataclass(frozen=True)
class Squared:
    """Half the squared error."""

    is_quadratic = True

    def value_and_residual(self, F: Array, T: Array) -> tuple[Array, Array]:
        xp = namespace(F)
        R = F - xp.astype(T.T if T.ndim == 2 else T, F.dtype, copy=False)
        return 0.5 * xp.sum(R * R, axis=-2), R

    def uninformative(self, k: int) -> float:
        return 0.0


Loss = Softmax | Logistic | Squared
