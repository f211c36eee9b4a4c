"""Invariant risk minimisation, the one head that is not convex."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skdare._validation import check_count, check_number
from skdare.engines import DaskEngine
from skdare.fitting.problem import Problem
from skdare.heads._estimator import ClassifierHead, RegressorHead, check_solving_options
from skdare.heads._unadjusted import UnadjustedHead, domain_blocks
from skdare.objective.invariant_risk import InvariantRisk
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock
from skdare.solvers import Solution, lbfgs
from skdare.whitening.adjustment import Adjustment


class _IRM(UnadjustedHead):
    def __init__(
        self,
        *,
        penalty: float = 1.0,
        anneal: int = 4,
        l2: float = 1e-2,
        standardize: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        warm_start: bool = False,
        engine: str | DaskEngine = "auto",
    ) -> None:
        self.penalty = penalty
        self.anneal = anneal
        self.l2 = l2
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.engine = engine

    def _check_options(self) -> None:
        check_solving_options(self)
        check_number("penalty", self.penalty)
        check_count("anneal", self.anneal, 1)

    def _blocks(self, problem: Problem, adjustment: Adjustment) -> list[DomainBlock]:
        return domain_blocks(problem, adjustment)

    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        n = len(problem.index)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        theta = self._start(objective)
        solutions = []
        # Not convex: start from the reweighted optimum, and let the penalty grow from there; a
        # warm start is already where the last penalty led.
        if self._warm_start() is None:
            solutions.append(lbfgs(objective.weighted([1.0 / n] * n), theta, **options))
        for stage in range(1 if solutions else self.anneal, self.anneal + 1):
            risk = InvariantRisk(objective, self.penalty * 10.0 ** (stage - self.anneal))
            theta = solutions[-1].theta if solutions else theta
            solutions.append(lbfgs(risk, theta, **options))  # type: ignore[arg-type]
        evaluations = sum(solution.n_evaluations for solution in solutions)
        iterations = sum(solution.n_iter for solution in solutions)
        return replace(solutions[-1], n_iter=iterations, n_evaluations=evaluations)


class IRMClassifier(ClassifierHead, _IRM):
    """Invariant risk minimisation: one head at which every domain's own gradient vanishes.

    Not convex. The fit starts from the reweighted optimum, lets the penalty grow tenfold a
    stage, and is deterministic.

    Parameters
    ----------
    penalty : float, default=1.0
        Weight of the squared gradient of each domain's loss in a last layer on the scores.
    anneal : int, default=4
        Stages over which the penalty grows.
    l2 : float, default=0.01
        Ridge penalty; see `ERMClassifier`.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether the scores have an intercept.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations a stage after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMClassifier`.
    """


class IRMRegressor(RegressorHead, _IRM):
    """Invariant risk minimisation for squared error; see `IRMClassifier`.

    Parameters
    ----------
    penalty : float, default=1.0
        Weight of the squared gradient of each domain's loss in a last factor on the predictions.
    anneal : int, default=4
        Stages over which the penalty grows.
    l2 : float, default=0.01
        Ridge penalty; see `ERMRegressor`.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations a stage after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMRegressor`.
    """
