"""The smallest worst loss of several, by its dual: what group DRO minimises.

Notation: θ parameters, q (m,) weights of the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import optimize

from skdare.arrays import Array
from skdare.solvers.lbfgs import Function, Solution, Status, lbfgs

# A gap between the worst loss and the weighted one of more than this, relative, is no solution.
_GAP = 1e-3


def minimax(
    weighted: Callable[[np.ndarray], Function],
    losses: Callable[[Array], np.ndarray],
    start: Array,
    q: np.ndarray,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Solution, np.ndarray]:
    """Minimise the largest of several convex losses, and the worst-case weights.

    The dual function ``g(q) = min_θ Σ q_e L_e(θ) + ridge`` is concave with gradient ``L_e(θ(q))``
    and few variables, so each step of sequential quadratic programming on the simplex is one
    warm-started inner solve; the gap ``max_e L_e - Σ q_e L_e`` is the certificate.
    """
    theta = start
    best = np.inf
    iterations = 0
    solution: Solution | None = None
    best_q = q

    def negative_dual(q: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal theta, best, iterations, solution, best_q
        q = np.clip(q, 0.0, None) / np.clip(q, 0.0, None).sum()
        inner = lbfgs(weighted(q), theta, tol=tol, max_iter=1000)
        theta = inner.theta
        values = losses(theta)
        gap = float(values.max() - q @ values)
        iterations += inner.n_iter
        if gap < best:
            best = gap
            best_q = q
            solution = inner
        return -inner.value, -values

    optimize.minimize(
        negative_dual,
        q,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(q),
        constraints={
            "type": "eq",
            "fun": lambda q: q.sum() - 1.0,
            "jac": lambda q: np.ones(len(q)),
        },
        options={"maxiter": max_iter, "ftol": min(tol, 1e-6) * 1e-3},
    )
    assert solution is not None
    status = solution.status
    if best > _GAP * max(abs(solution.value), 1e-12) and solution.converged:
        status = Status.GAP
    return replace(solution, n_iter=iterations, status=status), best_q
