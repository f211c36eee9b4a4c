"""Many small problems on the same rows, solved in lockstep: one matrix product serves them all.

Leaving domains out in turn, for several ridges, gives dozens of logistic regressions that differ in
the weights of the rows and in the ridge. Their scores are one product with the rows, k columns for
each problem, which is several times quicker than as many products with k columns.

Notation: Z (n, d) rows, p problems, k columns of weights, B (p, k, d) weights, b (p, k)
intercepts, A (p, k, d + 1) both side by side, F (p, k, n) scores, Q (d, r) a basis of the features,
H a second derivative.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy import linalg, special

from skdare.arrays.products import symmetric_eigen

MEMORY = 8
# Features, or rows, up to which their correlations are worth a decomposition.
_ROTATED = 2048
# Parameters of one problem up to which its second derivative is worth as much.
_CURVED = 300
# How much farther from a minimum it may be taken, and how much closer to one it then leads.
_ROUGH = 10.0
_CLOSE = 0.2
# Numbers from which products with the rows are most of the work: then a solution for a fourth of
# them comes first, if these are more than features, and rows are left out as runs, if in few.
_LARGE = 1 << 20
_SAMPLED = 4
_MOST_RUNS = 8
_ARMIJO = 1e-4
_MOST_HALVINGS = 20
# Scores that are held at once, and numbers that a second derivative is made of.
_SCORES = 1 << 24
_CURVATURE_CELLS = 1 << 22

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
    family : array of shape (p,), optional
        Problems of one number differ only in the rows that are left out. Default: each is alone.
    """

    Z: np.ndarray
    T: np.ndarray
    k: int
    row_weights: np.ndarray
    group: np.ndarray
    ridge: np.ndarray
    intercept: bool = True
    family: np.ndarray | None = None

    def solve(self, *, tol: float, max_iter: int) -> tuple[np.ndarray, np.ndarray]:
        """B (p, k, d) and b (p, k), in float64."""
        Z, Q = _uncorrelated(self.Z, self.row_weights.mean(axis=0))
        A = replace(self, Z=Z)._solve(tol, max_iter)
        r = Z.shape[1]
        B = A[:, :, :r] if Q is None else A[:, :, :r] @ Q.T
        return B, A[:, :, r] if self.intercept else np.zeros(B.shape[:2])

    def _solve(self, tol: float, max_iter: int) -> np.ndarray:
        """A (p, k, d + 1), on features that hardly correlate."""
        everyone = np.arange(len(self.ridge))
        start = np.zeros((len(everyone), self.k, self._size))
        if self.k * self._size > _CURVED:
            # From zero: a fit that stops early on its way from one to all rows would still know
            # the rows left out. That flattered plain ERM on four boards of gas sensors by five
            # points, and changed the choice.
            if self._is_large and len(self.Z) >= _SAMPLED * self._size:
                some = self._sampled()
                start = some._minimise(some._scaled(), everyone, start, tol, max_iter)
            return self._minimise(self._scaled(), everyone, start, tol, max_iter)
        family = everyone if self.family is None else self.family
        wholes = self._wholes(family)
        members = np.arange(len(wholes.ridge))
        A = wholes._minimise(
            wholes._scaled(), members, start[: len(members)], _ROUGH * tol, max_iter
        )
        coordinates = _Mapped([wholes._root(at, f) for f, at in enumerate(A)], family)
        return self._minimise(coordinates, everyone, A[family], _CLOSE * tol, max_iter)

    @property
    def _is_large(self) -> bool:
        """Whether products with the rows are most of the work."""
        return self.Z.size >= _LARGE

    def _sampled(self) -> LogisticProblems:
        """The problems of a search on some of their rows."""
        n = len(self.Z)
        some = np.sort(np.random.default_rng(0).choice(n, n // _SAMPLED, replace=False))
        weights = self.row_weights[:, some]
        # One whose rows have no weight at all then starts from zero, as it would without these.
        totals = np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(weights.dtype).tiny)
        return replace(self, Z=self.Z[some], T=self.T[some], row_weights=weights / totals)

    def _wholes(self, family: np.ndarray) -> LogisticProblems:
        """One problem a family, in which its problems have the same share each."""
        share = (family == np.arange(family.max() + 1)[:, None]) / np.bincount(family)[:, None]
        weights = share.astype(self.row_weights.dtype) @ self.row_weights[self.group]
        numbers = np.arange(len(weights))
        return replace(self, row_weights=weights, group=numbers, ridge=share @ self.ridge)

    @property
    def _size(self) -> int:
        """Parameters in a column of weights."""
        return int(self.Z.shape[1]) + self.intercept

    def _minimise(
        self,
        coordinates: _Coordinates,
        problems: np.ndarray,
        start: np.ndarray,
        tol: float,
        max_iter: int,
    ) -> np.ndarray:
        """Solutions of some problems, (q, k, d + 1), to a gradient of ``tol`` in coordinates."""

        def evaluate(theta: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            chosen = problems[numbers]
            A = coordinates.parameters(theta, chosen).reshape(len(chosen), self.k, -1)
            value, G = self._losses(A, chosen)
            return value, coordinates.gradients(G.reshape(len(chosen), -1), chosen)

        theta = coordinates.points(start.reshape(len(problems), -1), problems)
        theta = lockstep_lbfgs(evaluate, theta, tol=tol, max_iter=max_iter)
        return coordinates.parameters(theta, problems).reshape(start.shape)

    @cached_property
    def _safe_ridge(self) -> np.ndarray:
        """Ridges; without any, directions in which rows do not vary must still have a length."""
        return np.asarray(np.maximum(self.ridge, 1e-6 * self._variances.mean()))

    @cached_property
    def _variances(self) -> np.ndarray:
        """Curvature of the loss along each feature where all classes are as probable."""
        weight = self.row_weights.mean(axis=0)
        squares = np.einsum("n,nd,nd->d", weight, self.Z, self.Z, dtype=np.float64)
        return np.asarray(self._even * squares)

    @property
    def _even(self) -> float:
        """Variance of a class that is as probable as the others."""
        return 0.25 if self.k == 1 else (1.0 - 1.0 / self.k) / self.k

    def _scaled(self) -> _Scaled:
        """Coordinates in which the curvature is about one where all classes are as probable."""
        scales = (self._variances + self._safe_ridge[:, None]) ** -0.5
        if self.intercept:
            scales = np.hstack([scales, np.ones((len(scales), 1))])
        return _Scaled(np.tile(scales, self.k))

    def _root(self, A: np.ndarray, p: int) -> np.ndarray:
        """L (m, m), lower triangular, with H = L Lᵀ for the curvature H of one problem at A."""
        H = self._second_derivative(A, p)
        L: np.ndarray = linalg.cholesky(H, lower=True, overwrite_a=True, check_finite=False)
        return L.astype(self.Z.dtype)

    def _second_derivative(self, A: np.ndarray, p: int) -> np.ndarray:
        """H (m, m) of one problem at A (k, d + 1), by as many rows as it takes; invertible."""
        step = 1 + len(self.Z) * A.size // _CURVATURE_CELLS
        rows = self.Z[::step]
        if self.intercept:
            rows = np.hstack([rows, np.ones((len(rows), 1), dtype=rows.dtype)])
        weight = self.row_weights[self.group[p]][::step]
        weight = weight / weight.sum()
        F = rows @ A.T.astype(rows.dtype)
        ridge = np.full(self._size, self._safe_ridge[p])
        if self.intercept:  # which is as good for all classes together
            ridge[-1] = 1e-3 * self._even
        if self.k == 1:
            P = special.expit(F[:, 0])
            H = (rows.T * (weight * P * (1.0 - P))) @ rows
            return np.asarray(H.astype(np.float64) + np.diag(ridge))
        P = special.softmax(F, axis=1)
        blocks = [(rows.T * (weight * share)) @ rows for share in P.T]
        mixed = (P[:, :, None] * (rows * weight[:, None] ** 0.5)[:, None, :]).reshape(len(P), -1)
        H = linalg.block_diag(*blocks) - mixed.T @ mixed
        return np.asarray(H.astype(np.float64) + np.diag(np.tile(ridge, self.k)))

    @cached_property
    def _runs(self) -> list[tuple[slice, np.ndarray]]:
        """Rows that follow each other, and which weights (g,) do not leave all of them out."""
        n = len(self.Z)
        present = self.row_weights > 0
        starts = [0, *(1 + np.flatnonzero((present[:, 1:] != present[:, :-1]).any(axis=0)))]
        if not self._is_large or len(starts) > _MOST_RUNS:
            return [(slice(0, n), np.ones(len(present), dtype=bool))]
        return [(slice(a, b), present[:, a]) for a, b in pairwise([*starts, n])]

    def _losses(self, A: np.ndarray, problems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (q,) of some problems at A, and gradients."""
        d = self.Z.shape[1]
        B = A[:, :, :d]
        ridge = self.ridge[problems][:, None, None]
        value = 0.5 * np.sum(ridge * B * B, axis=(1, 2))
        G = np.zeros(A.shape)
        G[:, :, :d] = ridge * B
        A = A.astype(self.Z.dtype)
        for rows, groups in self._runs:
            chosen = np.flatnonzero(groups[self.group[problems]])
            Z = self.Z[rows]
            step = max(1, _SCORES // (len(Z) * self.k))
            for start in range(0, len(chosen), step):
                part = chosen[start : start + step]
                weight = self.row_weights[self.group[problems[part]], rows]
                F = (A[part, :, :d].reshape(-1, d) @ Z.T).reshape(len(part), self.k, -1)
                if self.intercept:
                    F += A[part, :, d:]
                value[part] += self._residuals(F, self.T[rows], weight)
                G[part, :, :d] += (F.reshape(-1, len(Z)) @ Z).reshape(len(part), self.k, d)
                if self.intercept:
                    G[part, :, d] += F.sum(axis=2)
        return value, G

    def _residuals(self, F: np.ndarray, T: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Turn scores into weighted residuals, in place; the losses."""
        if self.k == 1:
            signs = np.where(T, F.dtype.type(1), F.dtype.type(-1))
            margin = F[:, 0] * signs
            F[:, 0] = -weight * signs * special.expit(-margin)
            return _row_sums(weight * np.logaddexp(0.0, -margin))
        F -= F.max(axis=1, keepdims=True)
        own = np.take_along_axis(F, T[None, None, :], axis=1)[:, 0]
        np.exp(F, out=F)
        total = F.sum(axis=1)
        F *= (weight / total)[:, None, :]
        F[:, T, np.arange(len(T))] -= weight
        return _row_sums(weight * (np.log(total) - own))


def _row_sums(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.sum(axis=1, dtype=np.float64))


def _uncorrelated(Z: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows (n, r) on a basis Q (d, r) of their span in which features hardly correlate, and Q.

    Too many features stay as they are, without a Q.
    """
    n, d = Z.shape
    if min(n, d) > _ROTATED:
        return Z, None
    if n >= d:
        weighted = Z * (weight**0.5).astype(Z.dtype)[:, None]
        _, Q = symmetric_eigen(weighted.T @ weighted)
        return Z @ Q, Q
    rows = Z.astype(np.float64)
    values, U = symmetric_eigen(rows @ rows.T)
    present = values > np.finfo(np.float64).eps * n * values[-1]
    lengths = values[present] ** 0.5
    Q = rows.T @ (U[:, present] / lengths)
    return (U[:, present] * lengths).astype(Z.dtype), Q


class _Coordinates(Protocol):
    """What a solver sees of parameters (q, m) of some problems: points (q, m)."""

    def parameters(self, theta: np.ndarray, problems: np.ndarray, /) -> np.ndarray: ...

    def points(self, A: np.ndarray, problems: np.ndarray, /) -> np.ndarray: ...

    def gradients(self, G: np.ndarray, problems: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A length for every parameter of each problem, (p, m)."""

    scales: np.ndarray

    def parameters(self, theta: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return np.asarray(theta * self.scales[problems])

    def points(self, A: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return np.asarray(A / self.scales[problems])

    def gradients(self, G: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return np.asarray(G * self.scales[problems])


class _Mapped:
    """Triangular maps that many problems share: ``θ = A L``, with L (m, m).

    ``which`` (p,) is the number of each problem's map.
    """

    def __init__(self, roots: list[np.ndarray], which: np.ndarray) -> None:
        self.roots = roots
        self.which = which
        self.inverses: list[np.ndarray] = [
            linalg.solve_triangular(
                L, np.eye(len(L), dtype=L.dtype), lower=True, check_finite=False
            )
            for L in roots
        ]

    def parameters(self, theta: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return self._apply(theta, problems, self.inverses)

    def points(self, A: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return self._apply(A, problems, self.roots)

    def gradients(self, G: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return self._apply(G, problems, [M.T for M in self.inverses])

    def _apply(self, A: np.ndarray, problems: np.ndarray, maps: list[np.ndarray]) -> np.ndarray:
        result = np.empty(A.shape)
        for i, M in enumerate(maps):
            chosen = self.which[problems] == i
            result[chosen] = A[chosen].astype(M.dtype, copy=False) @ M
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
