"""Small problems as a fit poses them: rows by domain, and the paper's Lagrangian over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from array_libraries import held_in
from domain_problems import DomainProblem
from skdare.fitting.domain_fit import moments_by_domain
from skdare.fitting.lagrangian import Formulation, empirical_lagrangian
from skdare.fitting.problem import Classes, Numbers, Problem
from skdare.objective.objective import Objective
from skdare.whitening.whitening import Whitening


def posed(data: DomainProblem, *, X: Any = None, weight: Any = None) -> Problem:
    """The rows by domain; numbers are fitted as they are."""
    weight = np.ones(len(data.y)) if weight is None else weight
    targets: Any = Numbers(0.0, 1.0)
    T = data.y
    if data.task != "regression":
        targets, T = Classes.encode(data.y, weight)
    rows = [data.rows(label) for label in data.labels]
    return Problem(data.X if X is None else X, T, weight, data.labels, rows, targets)


def formulated(
    *,
    adjusts: bool = True,
    centered: bool = False,
    shrinkage: float = 0.2,
    target: Any = "scaled",
    shift: Any = "none",
    penalty: Any = 1.0,
    l2: float = 0.1,
    intercept: bool = True,
    by_rows: bool = False,
    tol: float = 1e-9,
    guess: Any = "mean",
) -> Formulation:
    whitening = Whitening(adjusts, centered, shrinkage, target, shift)
    return Formulation(whitening, penalty, by_rows, intercept, l2, tol, 5000, guess)


def objective_of(
    data: DomainProblem, *, library: str = "numpy", dtype: str | None = None, **options: Any
) -> Objective:
    """The Lagrangian of these rows, held in an array library."""
    problem = posed(data, X=held_in(library, data.X, dtype))
    formulation = formulated(**options)
    moments = moments_by_domain(problem)
    adjustments = formulation.whitening.adjustments(moments, moments[0].mean.dtype)
    return empirical_lagrangian(problem, moments, adjustments, formulation)


def zero_of(objective: Objective) -> Any:
    """Flat parameters of zero."""
    d = objective.coordinates.origin.shape[0]
    T = objective.blocks[0].T
    k = 1 if T.ndim == 1 and objective.loss.is_quadratic else None
    if k is None:
        k = {"Logistic": 1, "Softmax": 3, "Squared": 1}[type(objective.loss).__name__]
    return np.zeros((d + objective.coordinates.intercept) * k)


def random_parameters(objective: Objective, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=len(zero_of(objective)))
