"""Newton's step, which is the minimum of a quadratic."""

from __future__ import annotations

from skdare.arrays import Array, namespace, symmetric_eigen
from skdare.solvers.lbfgs import Function, Solution, Status, largest


def newton(function: Function, hessian: Array, *, tol: float) -> Solution:
    """The minimum of a quadratic, by eigendecomposition of its Hessian.

    Directions in which it is flat keep the value zero, as in the minimum-norm solution: collinear
    features need no ridge.
    """
    xp = namespace(hessian)
    _, gradient = function(0.0 * hessian[0, :])
    values, vectors = symmetric_eigen((hessian + hessian.T) / 2)
    noise = 10 * values.shape[0] * float(xp.finfo(values.dtype).eps) * max(float(values[-1]), 0.0)
    inverse = xp.where(values > noise, 1.0 / xp.where(values > noise, values, 1.0), 0.0)
    theta = -(vectors @ (inverse * (vectors.T @ gradient)))
    value, gradient = function(theta)
    norm = largest(gradient)
    return Solution(theta, value, norm, 1, Status.CONVERGED if norm <= tol else Status.PRECISION)
