"""Many small problems on the same rows, solved in lockstep: one matrix product serves them all.

Leaving domains out in turn, for several ridges, gives dozens of logistic regressions that differ in
the weights of the rows and in the ridge. Their scores are one product with the rows, k columns for
each problem, which is several times quicker than as many products with k columns.

Notation: Z (n, d) rows, p problems, k columns of weights, B (p, k, d) weights, b (p, k)
intercepts, F (p, k, n) scores, R residuals, M (d, d) preconditioner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

MEMORY = 8
# Features up to which a (d, d) map is worth its decomposition.
_MAPPED = 2048
_ARMIJO = 1e-4
_MOST_HALVINGS = 20
# Scores that are held at once.
_SCORES = 1 << 24

Evaluation = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Values (q,) and gradients (q, m) at points (q, m) of some problems, given by number."""


@dataclass(frozen=True, eq=False)
class LogisticProblems:
    """Ridge logistic regressions on the same rows.

    Parameters
    ----------
    Z : array of shape (n, d)
    T : array of shape (n,)
        Class numbers.
    k : int
        Columns of the weights: one for two classes.
    row_weights : array of shape (g, n)
        Weights of the rows, which sum to one; rows that are left out have none.
    group : array of shape (p,)
        Which of these weights each problem has.
    ridge : array of shape (p,)
    intercept : bool
    """

    Z: np.ndarray
    T: np.ndarray
    k: int
    row_weights: np.ndarray
    group: np.ndarray
    ridge: np.ndarray
    intercept: bool = True

    def solve(self, *, tol: float, max_iter: int) -> tuple[np.ndarray, np.ndarray]:
        """B (p, k, d) and b (p, k), in float64."""
        p = len(self.ridge)
        d = self.Z.shape[1]
        map_of = self._preconditioners()
        size = d + self.intercept

        def unpack(theta: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            matrix = theta.reshape(len(numbers), self.k, size)
            B = map_of.forwards(matrix[:, :, :d], numbers)
            b = matrix[:, :, d] if self.intercept else np.zeros((len(numbers), self.k))
            return B, b

        def evaluate(theta: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            B, b = unpack(theta, numbers)
            value, G, g = self._losses(B, b, numbers)
            ridge = self.ridge[numbers][:, None, None]
            value = value + 0.5 * np.sum(ridge * B * B, axis=(1, 2))
            G = map_of.backwards(G + ridge * B, numbers)
            if self.intercept:
                G = np.concatenate([G, g[:, :, None]], axis=2)
            return value, G.reshape(len(numbers), -1)

        theta = lockstep_lbfgs(evaluate, np.zeros((p, self.k * size)), tol=tol, max_iter=max_iter)
        return unpack(theta, np.arange(p))

    def _preconditioners(self) -> _Maps:
        """Coordinates in which the curvature is about one; problems of about one ridge share them.

        The curvature is that of equal probabilities: (S + ridge)^-1 = MᵀM with the second moment S
        of the rows; of many features, its diagonal alone.
        """
        weight = self.row_weights.mean(axis=0).astype(self.Z.dtype)
        curvature = 0.25 if self.k == 1 else (1.0 - 1.0 / self.k) / self.k
        variances = curvature * np.einsum("n,nd,nd->d", weight, self.Z, self.Z, dtype=np.float64)
        # Without a ridge, directions in which rows do not vary must still have a length.
        ridge = np.maximum(self.ridge, 1e-6 * variances.mean())
        powers, which = np.unique(np.round(np.log2(ridge)), return_inverse=True)
        if len(variances) > _MAPPED:
            maps = [(variances + 2.0**power) ** -0.5 for power in powers]
            return _Maps([M.astype(self.Z.dtype) for M in maps], which)
        S = curvature * ((self.Z.T * weight) @ self.Z).astype(np.float64)
        maps = []
        for power in powers:
            L = linalg.cholesky(S + 2.0**power * np.eye(len(S)), lower=True, check_finite=False)
            M = linalg.solve_triangular(L, np.eye(len(S)), lower=True, check_finite=False)
            maps.append(M.astype(self.Z.dtype))
        return _Maps(maps, which)

    def _losses(
        self, B: np.ndarray, b: np.ndarray, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean losses (q,), and their gradients in B and b."""
        n, d = self.Z.shape
        q = len(numbers)
        value = np.empty(q)
        G = np.empty((q, self.k, d))
        g = np.empty((q, self.k))
        step = max(1, _SCORES // (n * self.k))
        for start in range(0, q, step):
            part = slice(start, start + step)
            weight = self.row_weights[self.group[numbers[part]]]
            flat = B[part].reshape(-1, d).astype(self.Z.dtype)
            F = (flat @ self.Z.T).reshape(-1, self.k, n)
            F += b[part].astype(F.dtype)[:, :, None]
            value[part] = self._residuals(F, weight)
            G[part] = (F.reshape(-1, n) @ self.Z).reshape(-1, self.k, d)
            g[part] = F.sum(axis=2)
        return value, G, g

    def _residuals(self, F: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Turn scores into weighted residuals, in place; the losses."""
        if self.k == 1:
            signs = np.where(self.T, F.dtype.type(1), F.dtype.type(-1))
            margin = F[:, 0] * signs
            F[:, 0] = -weight * signs * special.expit(-margin)
            return _row_sums(weight * np.logaddexp(0.0, -margin))
        F -= F.max(axis=1, keepdims=True)
        own = np.take_along_axis(F, self.T[None, None, :], axis=1)[:, 0]
        np.exp(F, out=F)
        total = F.sum(axis=1)
        F *= (weight / total)[:, None, :]
        F[:, self.T, np.arange(len(self.T))] -= weight
        return _row_sums(weight * (np.log(total) - own))


def _row_sums(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.sum(axis=1, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class _Maps:
    """A linear map of weights for each problem; many problems share one.

    Parameters
    ----------
    maps : list of arrays of shape (d, d), or (d,) of diagonal ones
    which : array of shape (p,)
        The number of each problem's map.
    """

    maps: list[np.ndarray]
    which: np.ndarray

    def forwards(self, B: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """``B M`` for weights (q, k, d) of some problems."""
        return self._apply(B, numbers, self.maps)

    def backwards(self, G: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """``G Mᵀ`` for gradients (q, k, d) of some problems."""
        return self._apply(G, numbers, [M.T for M in self.maps])

    def _apply(self, B: np.ndarray, numbers: np.ndarray, maps: list[np.ndarray]) -> np.ndarray:
        result = np.empty(B.shape)
        for i, M in enumerate(maps):
            chosen = self.which[numbers] == i
            part = B[chosen]
            flat = part.reshape(-1, part.shape[-1]).astype(M.dtype, copy=False)
            result[chosen] = (flat * M if M.ndim == 1 else flat @ M).reshape(part.shape)
        return result


def lockstep_lbfgs(
    evaluate: Evaluation, theta: np.ndarray, *, tol: float, max_iter: int
) -> np.ndarray:
    """Minima of several smooth convex functions, (p, m), all iterated together.

    A problem is done when no entry of its gradient is above ``tol``, and costs nothing from then
    on. Steps are halved until they descend.
    """
    p = len(theta)
    active = np.arange(p)
    value, gradient = evaluate(theta, active)
    theta = theta.copy()
    history = _Histories()
    for _ in range(max_iter):
        active = active[np.abs(gradient[active]).max(axis=1) > tol]
        if not len(active):
            break
        direction = history.direction(active, gradient[active])
        slope = np.sum(direction * gradient[active], axis=1)
        step = np.ones(len(active))
        waiting = np.arange(len(active))
        point = theta[active]
        new_gradient = gradient[active]
        for _ in range(_MOST_HALVINGS):
            numbers = active[waiting]
            point[waiting] = theta[numbers] + step[waiting, None] * direction[waiting]
            new_value, new_gradient[waiting] = evaluate(point[waiting], numbers)
            allowed = value[numbers] + _ARMIJO * step[waiting] * slope[waiting]
            # Values are sums in the dtype of the rows: below its rounding they say nothing.
            done = new_value <= allowed + 1e-7 * np.abs(value[numbers])
            value[numbers[done]] = new_value[done]
            waiting = waiting[~done]
            if not len(waiting):
                break
            step[waiting] *= 0.5
        moved = np.delete(np.arange(len(active)), waiting)
        active = active[moved]  # the others are as far as rounding lets them
        history.add(active, point[moved] - theta[active], new_gradient[moved] - gradient[active], p)
        theta[active] = point[moved]
        gradient[active] = new_gradient[moved]
    return theta


class _Histories:
    """The last steps of several problems, and how they changed the gradients."""

    def __init__(self) -> None:
        self._pairs: deque[_Pairs] = deque(maxlen=MEMORY)

    def add(self, numbers: np.ndarray, s: np.ndarray, y: np.ndarray, p: int) -> None:
        """A step and what it changed, of some of the p problems."""
        product = np.sum(s * y, axis=1)
        curved = product > 1e-10 * np.sum(y * y, axis=1)
        inverse = np.zeros(p)
        inverse[numbers[curved]] = 1.0 / product[curved]
        pairs = _Pairs(np.zeros((p, s.shape[1])), np.zeros((p, s.shape[1])), inverse)
        pairs.s[numbers] = s
        pairs.y[numbers] = y
        self._pairs.append(pairs)

    def direction(self, numbers: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Minus the inverse curvature times the gradients of some problems."""
        q = -g
        shares = []
        for pairs in reversed(self._pairs):
            share = pairs.inverse[numbers] * np.sum(pairs.s[numbers] * q, axis=1)
            q -= share[:, None] * pairs.y[numbers]
            shares.append(share)
        if self._pairs:
            q *= self._pairs[-1].scale(numbers)[:, None]
        for pairs, share in zip(self._pairs, reversed(shares), strict=True):
            back = pairs.inverse[numbers] * np.sum(pairs.y[numbers] * q, axis=1)
            q += (share - back)[:, None] * pairs.s[numbers]
        return q


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The last step s of each problem, and the change y of its gradient, both (p, m).

    ``inverse`` is 1 / sᵀy, and zero for a problem that took no step.
    """

    s: np.ndarray
    y: np.ndarray
    inverse: np.ndarray

    def scale(self, numbers: np.ndarray) -> np.ndarray:
        """sᵀy / yᵀy of some problems; one where there is no pair."""
        squares = self.inverse[numbers] * np.sum(self.y[numbers] ** 2, axis=1)
        return np.where(squares > 0, 1.0 / np.where(squares > 0, squares, 1.0), 1.0)
