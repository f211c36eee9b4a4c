"""Empirical risk minimisation: every row counts the same, or every domain does."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from skdare.engines import DaskEngine
from skdare.fitting.problem import Problem
from skdare.fitting.solver_options import SolverOptions
from skdare.heads._estimator import (
    ClassifierHead,
    RegressorHead,
    check_solver,
    check_solving_options,
)
from skdare.heads._unadjusted import UnadjustedHead
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock
from skdare.solvers import Solution
from skdare.whitening.adjustment import Adjustment


class _Pooled(UnadjustedHead):
    """One block of all rows, in the caller's order."""

    def __init__(
        self,
        *,
        l2: float = 1e-2,
        standardize: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        warm_start: bool = False,
        engine: str | DaskEngine = "auto",
    ) -> None:
        self.l2 = l2
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.engine = engine

    def _check_options(self) -> None:
        check_solving_options(self)
        check_solver(self)

    @abstractmethod
    def _row_weights(self, problem: Problem) -> np.ndarray:
        """Weights that sum to one."""

    def _blocks(self, problem: Problem, adjustment: Adjustment) -> list[DomainBlock]:
        return [DomainBlock(adjustment, (problem.all_rows(self._row_weights(problem)),))]

    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        return SolverOptions.of_head(self).minimise(objective, self._start(objective))


class _ERM(_Pooled):
    _needs_domains = False

    def _row_weights(self, problem: Problem) -> np.ndarray:
        return problem.loss_weight / problem.loss_weight.sum()


class _Reweighted(_Pooled):
    def _row_weights(self, problem: Problem) -> np.ndarray:
        weight = np.zeros_like(problem.weight)
        for index in problem.index:
            domain = problem.loss_weight[index]
            weight[index] = domain / (domain.sum() * len(problem.index))
        return weight


class ERMClassifier(ClassifierHead, _ERM):
    """Logistic regression on all rows: empirical risk minimisation.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty ``l2/2 ‖B‖²`` beside the mean loss, on coefficients in units where the
        average feature has unit variance, so that it means the same for every head and does not
        depend on the features' units.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether the scores have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg"}, default="auto"
        "auto" is L-BFGS.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run: in this process, or with the workers of a Dask cluster,
        which needs a ``distributed.Client`` in scope. "auto" takes such a client for more than
        128 MB of rows on disk (a feature store, a memory map) and for a dask.array, and stays
        here otherwise. Predictions are made here.

    Attributes
    ----------
    coef_ : array of shape (k, d), or (1, d) for two classes
    intercept_ : array of shape (k,), or (1,) for two classes
    classes_ : array of shape (k,)
    domains_ : list of domain labels
    solution_ : Solution
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdare import ERMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ERMClassifier().fit(X, y).score(X, y) > 0.9
    True
    """


class ERMRegressor(RegressorHead, _ERM):
    """Ridge regression on all rows: empirical risk minimisation.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty ``l2/2 ‖B‖²`` beside half the mean squared error of standardised targets,
        on coefficients in units where the average feature has unit variance.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg", "direct"}, default="auto"
        "auto" is direct for up to 1,000 features, else L-BFGS.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run: in this process, or with the workers of a Dask cluster,
        which needs a ``distributed.Client`` in scope. "auto" takes such a client for more than
        128 MB of rows on disk (a feature store, a memory map) and for a dask.array, and stays
        here otherwise. Predictions are made here.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    domains_ : list of domain labels
    solution_ : Solution
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdare import ERMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ERMRegressor().fit(X, y).score(X, y) > 0.5
    True
    """


class ReweightedClassifier(ClassifierHead, _Reweighted):
    """Logistic regression in which every domain counts the same, whatever its size.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty; see `ERMClassifier`.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether the scores have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg"}, default="auto"
        "auto" is L-BFGS.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMClassifier`.

    Examples
    --------
    >>> from skdare import ReweightedClassifier
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> ReweightedClassifier().fit(data.X, data.y, domains=data.domains).domains_
    [0, 1, 2, 3]
    """


class ReweightedRegressor(RegressorHead, _Reweighted):
    """Ridge regression in which every domain counts the same, whatever its size.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty; see `ERMRegressor`.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg", "direct"}, default="auto"
        "auto" is direct for up to 1,000 features, else L-BFGS.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMRegressor`.
    """
