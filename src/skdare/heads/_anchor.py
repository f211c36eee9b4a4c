"""Anchor regression with the domain as anchor: plain, or after each domain is whitened.

Notation: M (E, d) adjusted domain means, t (E,) domain means of the target.
"""

from __future__ import annotations

import numpy as np

from skdare._validation import check_number
from skdare.arrays import as_float64, float64, like, to_numpy
from skdare.engines import DaskEngine
from skdare.fitting.lagrangian import mean_directions
from skdare.fitting.problem import Problem
from skdare.fitting.solver_options import SolverOptions
from skdare.fitting.statistics import ProblemStatistics
from skdare.heads._estimator import RegressorHead, check_solver, check_solving_options
from skdare.objective.coordinates import Coordinates
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock, WeightedRows
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.whitening import Whitening, check_whitening


class AnchorRegressor(RegressorHead):
    """Squared error within domains, plus γ times the squared error of the domain means.

    γ = 1 is least squares in which every domain counts the same; γ = 0 forgets the means, a
    large γ makes the mean residuals vanish where there are features enough. With ``adjust=True``
    every domain is whitened first; without an intercept, and where the domains' mean targets are
    zero, that is domain-adjusted regression with λ = γ.

    Parameters
    ----------
    gamma : float, default=10.0
        Weight of the error at the domain means.
    l2 : float, default=0.01
        Ridge penalty; see `ERMRegressor`.
    adjust : bool, default=False
        Whiten each domain (the form at the end of the paper's appendix A).
    shrinkage : float in [0, 1], "ledoit-wolf" or "oas", default=0.9
        Shrinkage of the whitened form; see `DARERegressor`.
    shrinkage_target : {"scaled", "identity", "pooled"}, default="scaled"
        See `DARERegressor`.
    centered : bool, default=True
        Whiten by the covariance, or by the raw second moment.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether features and targets are measured from the mean over domains of their means.
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

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    domains_ : list of domain labels
    solution_ : Solution
    n_iter_ : int

    Examples
    --------
    >>> from skdare import AnchorRegressor
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> AnchorRegressor(gamma=5.0).fit(data.X, data.y, domains=data.domains).coef_.shape
    (8,)
    """

    def __init__(
        self,
        *,
        gamma: float = 10.0,
        l2: float = 1e-2,
        adjust: bool = False,
        shrinkage: float | str = 0.9,
        shrinkage_target: str = "scaled",
        centered: bool = True,
        standardize: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        warm_start: bool = False,
        engine: str | DaskEngine = "auto",
    ) -> None:
        self.gamma = gamma
        self.l2 = l2
        self.adjust = adjust
        self.shrinkage = shrinkage
        self.shrinkage_target = shrinkage_target
        self.centered = centered
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
        check_number("gamma", self.gamma)
        check_whitening(self)

    def _solve(self, problem: Problem, statistics: ProblemStatistics) -> None:
        if self.adjust and self.centered:
            problem.check_covariances([self.shrinkage], "shrinkage=1.0 or centered=False")
        domains = range(len(problem.index))
        whitening = Whitening.of_head(self)
        adjustments = statistics.adjustments(domains, whitening)
        # Whitened means differ with the origin of the features: measure them from their mean.
        centre = statistics.mean(domains) if self.fit_intercept else np.zeros(problem.d)
        blocks = []
        M = []
        t = []
        for e, W in zip(domains, adjustments, strict=True):
            mean = statistics.domain_mean(e)
            target = np.average(problem.T[problem.index[e]], weights=problem.domain_weight(e))
            rows = problem.domain_rows(e, 1.0 / len(domains), mean)
            blocks.append(DomainBlock(W, (rows.centered(float(target)),)))
            from_centre = like((mean - centre)[:, None], problem.X)
            M.append(to_numpy(as_float64(W.back(from_centre)))[:, 0])
            t.append(float(target))
        means = np.stack(M)
        origin = means.mean(axis=0) if self.fit_intercept else np.zeros(problem.d)
        blocks.append(self._mean_block(problem, means - origin, np.array(t)))
        span, gains = mean_directions((means - origin).T, self.gamma)
        objective = Objective(
            blocks,
            problem.loss,
            Coordinates(problem.d, 1, intercept=False, span=span, gains=gains),
            statistics.ridge(domains, whitening, self.l2),
        )
        solution = SolverOptions.of_head(self).minimise(objective, self._start(objective))
        B, b = objective.coordinates.unpack(solution.theta)
        guess = average(adjustments)
        V = to_numpy(as_float64(guess.apply(guess.like(B))))
        self._set_weights(V, -(origin @ B) - centre @ V, solution, (B, b))

    def _mean_block(self, problem: Problem, M: np.ndarray, t: np.ndarray) -> DomainBlock:
        """The domain means, already adjusted, as rows that weigh γ together."""
        X = like(M, problem.X)
        weight = like(np.full(len(t), self.gamma / len(t)), X, float64(X))
        rows = WeightedRows(X, slice(0, len(t)), like(t[:, None], X, float64(X)), weight)
        return DomainBlock(Adjustment(problem.d, 1.0), (rows,))
