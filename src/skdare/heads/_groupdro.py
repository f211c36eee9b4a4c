"""GroupDRO: the smallest loss on the worst training domain, solved as the minimax it is."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from skdare._validation import check_number
from skdare.engines import DaskEngine
from skdare.fitting.problem import Problem
from skdare.heads._estimator import ClassifierHead, RegressorHead, check_solving_options
from skdare.heads._unadjusted import UnadjustedHead, domain_blocks
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock
from skdare.solvers import Solution, minimax
from skdare.whitening.adjustment import Adjustment


class _GroupDRO(UnadjustedHead):
    domain_weights_: dict[Hashable, float]

    def __init__(
        self,
        *,
        l2: float = 1e-2,
        standardize: bool = False,
        fit_intercept: bool = True,
        step: float | None = None,
        tol: float = 1e-5,
        max_iter: int = 200,
        warm_start: bool = False,
        engine: str | DaskEngine = "auto",
    ) -> None:
        self.l2 = l2
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.engine = engine

    def _check_options(self) -> None:
        check_solving_options(self)
        check_number("step", self.step, also=(None,))

    def _blocks(self, problem: Problem, adjustment: Adjustment) -> list[DomainBlock]:
        return domain_blocks(problem, adjustment)

    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        options: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "step": self.step,
        }
        weights = np.full(len(problem.index), 1.0 / len(problem.index))
        last = self.domain_weights_ if self.warm_start and hasattr(self, "coef_") else {}
        if list(last) == list(problem.labels):
            weights = np.array(list(last.values()))
        solution, weights = minimax(objective, self._start(objective), weights, **options)
        self.domain_weights_ = dict(zip(problem.labels, weights.tolist(), strict=True))
        return solution


class GroupDROClassifier(ClassifierHead, _GroupDRO):
    """The smallest possible loss on the worst training domain.

    For a linear head ``min_B max_e L_e(B)`` is convex and solved exactly, with a duality gap as
    certificate; the exponentiated-gradient rule of the literature is one argument away.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty; see `ERMClassifier`.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether the scores have an intercept.
    step : float, optional
        Step of exponentiated-gradient ascent on the domain weights; None solves for them.
    tol : float, default=1e-05
        Gradient tolerance of each inner solve.
    max_iter : int, default=200
        Changes of the domain weights after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMClassifier`.

    Attributes
    ----------
    domain_weights_ : dict
        The worst-case weight of each domain.
    """


class GroupDRORegressor(RegressorHead, _GroupDRO):
    """The smallest possible squared error on the worst training domain.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty; see `ERMRegressor`.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    step : float, optional
        Step of exponentiated-gradient ascent on the domain weights; None solves for them.
    tol : float, default=1e-05
        Gradient tolerance of each inner solve.
    max_iter : int, default=200
        Changes of the domain weights after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMRegressor`.

    Attributes
    ----------
    domain_weights_ : dict
        The worst-case weight of each domain.
    """
