"""Solvers that use the second derivative: trust-region Newton, and a quadratic at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, optimize

from skdare.solvers._solution import Function, Guard, NotFinite, Solution


def trust_ncg(function: Function, start: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """Trust-region Newton, each step by conjugate gradients with the Hessian product."""
    guard = Guard(function)
    iterations = 0
    point: np.ndarray | None = None
    product: Callable[[np.ndarray], np.ndarray]

    def curve(theta: np.ndarray, direction: np.ndarray) -> np.ndarray:
        nonlocal point, product
        if point is None or not np.array_equal(point, theta):
            point = theta.copy()
            product = function.hessian_product(theta)
        guard.calls += 1
        return product(direction)

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        return guard(theta.copy())  # SciPy may change it in place

    def count(_: object) -> None:
        nonlocal iterations
        iterations += 1

    # SciPy stops on the Euclidean norm; this bound implies the largest entry is below tol.
    options = {"maxiter": max_iter, "gtol": tol, "initial_trust_radius": 10.0}
    options |= {"max_trust_radius": 1e6}
    try:
        result = optimize.minimize(
            evaluate,
            start,
            jac=True,
            hessp=curve,
            method="trust-ncg",
            options=options,
            callback=count,
        )
    except NotFinite:
        return guard.solution(iterations, tol, limit=False, finite=False)
    return guard.solution(iterations, tol, limit=result.status == 1)


def direct(function: Function, start: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """The minimum of a quadratic, from its Hessian, by eigendecomposition.

    Directions in which the quadratic is flat keep the value zero, as in the minimum-norm
    solution: collinear features need no ridge.
    """
    m = function.size
    guard = Guard(function)
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
