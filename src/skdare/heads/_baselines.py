"""The heads DARE is compared with: ERM, Reweighted, GroupDRO and IRM."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from skdare._validation import check_count, check_number
from skdare.adjustment import Adjustment
from skdare.heads._base import ClassifierHead, Head, RegressorHead, check_solver
from skdare.heads._problem import Problem, Statistics
from skdare.heads._solving import Solving
from skdare.objective import Block, Objective
from skdare.solvers import Solution, lbfgs, minimax


class _Unadjusted(Head):
    """A head that sees every domain through one scalar, one over the root mean variance.

    Without it l2 would mean something else on raw features than on whitened ones, and something
    else again when the features change their unit.
    """

    def _solve(self, problem: Problem, statistics: Statistics) -> None:
        domains = range(len(problem.index))
        adjustment = Adjustment(problem.d, statistics.unit(domains) ** -0.5)
        origin = adjustment.apply(statistics.mean(domains))
        objective = self._objective(self._blocks(problem, adjustment), problem, origin)
        solution = self._minimise(objective, problem)
        B, b = objective.unpack(solution.theta)
        self._canonical = B, b
        self._set_weights(adjustment.apply(B), b)
        self.solution_, self.n_iter_ = solution, solution.n_iter
        self._warn(solution)

    @abstractmethod
    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        """Solve the objective."""

    def _blocks(self, problem: Problem, adjustment: Adjustment) -> list[Block]:
        """One block for each domain, its rows weighing one together."""
        domains = range(len(problem.index))
        return [Block(adjustment, (problem.domain_rows(e, 1.0),)) for e in domains]


class _Pooled(_Unadjusted):
    """One block of all rows, in the caller's order."""

    def __init__(
        self,
        *,
        l2=1e-2,
        fit_intercept=True,
        solver="auto",
        tol=1e-5,
        max_iter=1000,
        warm_start=False,
    ):
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def _check_options(self) -> None:
        super()._check_options()
        check_solver(self)

    @abstractmethod
    def _row_weights(self, problem: Problem) -> np.ndarray:
        """Weights that sum to one."""

    def _blocks(self, problem: Problem, adjustment: Adjustment) -> list[Block]:
        return [Block(adjustment, (problem.all_rows(self._row_weights(problem)),))]

    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        return Solving.of_head(self)(objective, self._start(objective))


class _ERM(_Pooled):
    _needs_domains = False

    def _row_weights(self, problem: Problem) -> np.ndarray:
        return problem.weight / problem.weight.sum()


class _Reweighted(_Pooled):
    def _row_weights(self, problem: Problem) -> np.ndarray:
        weight = np.zeros_like(problem.weight)
        for e, index in enumerate(problem.index):
            domain = problem.domain_weight(e)
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
    """


class _GroupDRO(_Unadjusted):
    def __init__(
        self,
        *,
        l2=1e-2,
        fit_intercept=True,
        step=None,
        tol=1e-5,
        max_iter=200,
        warm_start=False,
    ):
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def _check_options(self) -> None:
        super()._check_options()
        check_number("step", self.step, also=(None,))

    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        options = {"tol": self.tol, "max_iter": self.max_iter, "step": self.step}
        weights = np.full(len(problem.index), 1.0 / len(problem.index))
        last: dict = getattr(self, "domain_weights_", {})
        if self.warm_start and list(last) == list(problem.labels):
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

    Attributes
    ----------
    domain_weights_ : dict
        The worst-case weight of each domain.
    """


@dataclass(frozen=True, eq=False)
class InvariantRisk:
    """Equal-weight mean of domain losses plus ``penalty ‖ΘᵀG_e‖²``, its squared gradient.

    The scores XΘ are the representation and a further (k, k) layer, held at the identity, is the
    classifier on it: ``ΘᵀG_e`` is the gradient of domain e's loss in that layer, the full-batch
    form of the invariance penalty. A free layer could shrink the penalty by shrinking Θ.
    """

    objective: Objective
    penalty: float

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.objective.size

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, with one Hessian product for each domain."""
        objective, n = self.objective, len(self.objective.blocks)
        B, b = objective.unpack(theta)
        value, G, g = 0.5 * objective.l2 * float(np.sum(B * B)), objective.l2 * B, np.zeros_like(b)
        for e in range(n):
            loss, G_e, g_e = objective.block_value_and_gradient(e, B, b)
            inner = B.T @ G_e + b[:, None] * g_e[None, :]
            value += (loss + self.penalty * float(np.sum(inner * inner))) / n
            G_c, g_c = objective.block_hessian_product(e, B, b)(B @ inner, b @ inner)
            twice = 2 * self.penalty
            G = G + (G_e + twice * (G_e @ inner.T + G_c)) / n
            g = g + (g_e + twice * (inner @ g_e + g_c)) / n
        return value, objective.chain(G, g)


class _IRM(_Unadjusted):
    def __init__(
        self,
        *,
        penalty=1.0,
        anneal=4,
        l2=1e-2,
        fit_intercept=True,
        tol=1e-5,
        max_iter=1000,
        warm_start=False,
    ):
        self.penalty = penalty
        self.anneal = anneal
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def _check_options(self) -> None:
        super()._check_options()
        check_number("penalty", self.penalty)
        check_count("anneal", self.anneal, 1)

    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        n, options = len(problem.index), {"tol": self.tol, "max_iter": self.max_iter}
        theta, solutions = self._start(objective), []
        # Not convex: start from the reweighted optimum, and let the penalty grow from there; a
        # warm start is already where the last penalty led.
        if self._last_weights() is None:
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
    fit_intercept : bool, default=True
        Whether the scores have an intercept.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations a stage after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
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
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    tol : float, default=1e-05
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations a stage after which to give up with a warning.
    warm_start : bool, default=False
        Start from the last fit's solution.
    """
