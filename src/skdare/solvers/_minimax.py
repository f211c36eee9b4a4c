"""The smallest worst loss over domains, by its dual."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from scipy import optimize

from skdare.solvers._lbfgs import lbfgs
from skdare.solvers._solution import Function, Solution, Status


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
    state = _Dual(family, start, q, tol)
    n_blocks = len(q)
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
        self.family = family
        self.theta = start
        self.best_q = q
        self.tol = tol
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
            self.best_gap = self.gap
            self.best_q = q
            self.best = inner
        return inner.value

    def solution(self) -> Solution:
        """The best point, converged where its gap is small beside the loss."""
        assert self.best is not None
        solution = replace(self.best, n_iter=self.n_iter, n_evaluations=self.n_evaluations)
        if self.best_gap > 1e-3 * max(abs(solution.value), 1e-12) and solution.converged:
            return replace(solution, status=Status.GAP)
        return solution
