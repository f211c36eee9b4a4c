"""What DARE is compared with: the same losses under other weights, without whitening."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdare.arrays import Array, Index, beside, to_numpy
from skdare.checks import ClassWeight, Label, check_number
from skdare.fitting.domain_fit import solve
from skdare.fitting.lagrangian import PLAIN, Formulation, domain_blocks
from skdare.fitting.problem import Problem, Targets
from skdare.heads.base import ClassifierHead, Head, RegressorHead
from skdare.heads.data_notes import note_odd_features
from skdare.heads.head_state import HeadState
from skdare.objective.invariant_risk import InvariantRisk
from skdare.objective.objective import Coordinates, Objective
from skdare.solvers.lbfgs import Solution, lbfgs
from skdare.solvers.minimax import minimax
from skdare.whitening.moments import FeatureMoments

# IRM's penalty grows tenfold a stage.
_STAGES = 4


@dataclass(kw_only=True, eq=False, repr=False)
class Baseline(Head):
    """A head that sees every domain through one scalar, one over the root mean variance.

    Without it l2 would mean something else on raw features than on whitened ones, and something
    else again when the features change their unit.
    """

    l2: float = 1e-2
    preparation: Any = None
    fit_intercept: bool = True
    tol: float = 1e-5
    max_iter: int = 1000

    # Whether every row counts the same, or every domain.
    _by_rows = False

    def _check_parameters(self) -> None:
        check_number("l2", self.l2)

    def _fitted(self, problem: Problem) -> HeadState:
        moments = [
            FeatureMoments.of(problem.X, index, problem.weight[index]) for index in problem.index
        ]
        note_odd_features(problem, moments, self.l2)
        formulation = Formulation(
            PLAIN, 0.0, self._by_rows, self.fit_intercept, self.l2, self.tol, self.max_iter
        )
        return self._solved(problem, moments, formulation)

    def _solved(
        self, problem: Problem, moments: Sequence[FeatureMoments], formulation: Formulation
    ) -> HeadState:
        adjustments = PLAIN.adjustments(moments, problem.X.dtype)
        fit = solve(problem, moments, adjustments, formulation)
        assert fit.solution is not None
        self._warn_of_no_convergence(fit.solution)
        V, b = fit.raw_weights()
        return HeadState(problem.targets, V, b, solution=fit.solution)


class ERM(Baseline):
    _by_rows = True
    _needs_domains = False

    def _fitted(self, problem: Problem) -> HeadState:
        return super()._fitted(problem.pooled())


@dataclass(kw_only=True, eq=False, repr=False)
class ERMClassifier(ClassifierHead, ERM):
    """Logistic regression on all rows: empirical risk minimisation.

    Parameters
    ----------
    l2 : float
        Ridge penalty ``l2/2 ‖B‖²`` added to the mean loss, on coefficients in units in which the
        average feature has unit variance. It means the same for every head, whatever the unit of
        the features.
    class_weight : "balanced", mapping from class to weight, or None
        Weight of the rows of a class in the loss, as in scikit-learn.
    preparation : "auto", transformer or None
        A transformer of scikit-learn, or a Pipeline of them, applied to all rows that the head
        is given. It is fitted without targets, to the training rows only. "auto" fills missing
        values with medians and standardises; memory-mapped and sparse rows stay as they are. Use
        this rather than a Pipeline around the head: `adapt` then accepts rows as they are.
    fit_intercept : bool
        Whether the scores have an intercept.
    tol : float
        Largest absolute entry of the gradient at which to stop.
    max_iter : int
        Maximum number of iterations.

    Attributes
    ----------
    coef_ : array of shape (k, d), or (1, d) for two classes
        Weights on the features, after the preparation if there is one.
    intercept_ : array of shape (k,), or (1,) for two classes
    classes_ : array of shape (k,)
    domains_ : list of domain labels
    n_features_in_, n_iter_ : int

    See Also
    --------
    DAREClassifierCV : chooses between this and models that adapt to a new domain.
    ReweightedClassifier : the same with domains of equal weight.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdare import ERMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ERMClassifier().fit(X, y).score(X, y) > 0.9
    True
    """

    class_weight: ClassWeight = None


class ERMRegressor(RegressorHead, ERM):
    """Ridge regression on all rows: empirical risk minimisation.

    Parameters
    ----------
    l2 : float
        Ridge penalty ``l2/2 ‖B‖²`` added to half the mean squared error of standardised targets,
        on coefficients in units in which the average feature has unit variance.
    preparation, fit_intercept, tol, max_iter
        See `ERMClassifier`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    domains_ : list of domain labels
    n_features_in_, n_iter_ : int

    See Also
    --------
    DARERegressorCV : chooses between this and models that adapt to a new domain.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdare import ERMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ERMRegressor().fit(X, y).score(X, y) > 0.5
    True
    """

    def _encode(
        self, y: np.ndarray, weight: np.ndarray, index: Sequence[Index]
    ) -> tuple[Targets, np.ndarray]:
        return super()._encode(y, weight, [np.flatnonzero(weight > 0)])


@dataclass(kw_only=True, eq=False, repr=False)
class ReweightedClassifier(ClassifierHead, Baseline):
    """Logistic regression in which every domain has the same weight, whatever its size.

    Parameters
    ----------
    l2, class_weight, preparation, fit_intercept, tol, max_iter
        See `ERMClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, domains_, n_features_in_, n_iter_
        See `ERMClassifier`.

    See Also
    --------
    ERMClassifier : the same with rows of equal weight.
    GroupDROClassifier : weights domains by their loss.

    Examples
    --------
    >>> from skdare import ReweightedClassifier
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = ReweightedClassifier().fit(data.X, data.y, domains=data.domains)
    >>> head.domains_
    [0, 1, 2, 3]
    """

    class_weight: ClassWeight = None


class ByDomain(Baseline):
    """A baseline that needs the loss of each domain apart."""

    def _solved(
        self, problem: Problem, moments: Sequence[FeatureMoments], formulation: Formulation
    ) -> HeadState:
        X = problem.X
        adjustments = PLAIN.adjustments(moments, X.dtype)
        W = adjustments[0]
        E = len(moments)
        blocks = domain_blocks(problem, adjustments, np.ones(E))
        origin = W.back((sum(m.mean for m in moments) / E)[:, None])[:, 0]
        span = beside(np.empty((X.shape[1], 0)), X)  # without a penalty no direction is stiff
        coordinates = Coordinates(self.fit_intercept, origin, span, span[0, :])
        objective = Objective(blocks, problem.targets.loss, coordinates, self.l2)
        size = (X.shape[1] + self.fit_intercept) * problem.targets.columns
        solution, q = self._minimised(objective, beside(np.zeros(size), X))
        self._warn_of_no_convergence(solution)
        B, b = coordinates.unpack(solution.theta)
        V = to_numpy(W.apply(B))
        return HeadState(problem.targets, V, to_numpy(b), solution=solution, domain_weights=q)

    @abstractmethod
    def _minimised(self, objective: Objective, start: Array) -> tuple[Solution, list[float] | None]:
        """The solution, and the weights of domains if there are any."""


@dataclass(kw_only=True, eq=False, repr=False)
class GroupDROClassifier(ClassifierHead, ByDomain):
    """Minimum of the largest loss over the training domains: group DRO.

    For a linear head ``min_B max_e L_e(B)`` is convex and solved exactly, with a duality gap as
    certificate.

    Parameters
    ----------
    l2, class_weight, preparation, fit_intercept
        See `ERMClassifier`.
    tol : float
        Gradient tolerance of each inner solve.
    max_iter : int
        Maximum number of updates of the domain weights.

    Attributes
    ----------
    domain_weights_ : dict
        Worst-case weight of each domain.
    coef_, intercept_, classes_, domains_, n_features_in_, n_iter_
        See `ERMClassifier`.

    See Also
    --------
    ReweightedClassifier : the same with domains of equal weight.

    References
    ----------
    Sagawa, Koh, Hashimoto and Liang, "Distributionally Robust Neural Networks for Group Shifts",
    ICLR 2020.

    Examples
    --------
    >>> from skdare import GroupDROClassifier
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = GroupDROClassifier(l2=0.1).fit(data.X, data.y, domains=data.domains)
    >>> round(sum(head.domain_weights_.values()), 6)
    1.0
    """

    max_iter: int = 200
    class_weight: ClassWeight = None

    def _minimised(self, objective: Objective, start: Array) -> tuple[Solution, list[float]]:
        def weighted(q: np.ndarray) -> Objective:
            pairs = zip(objective.blocks, q.tolist(), strict=True)
            blocks = [replace(block, weight=share * block.weight) for block, share in pairs]
            return replace(objective, blocks=blocks)

        def losses(theta: Array) -> np.ndarray:
            B, b = objective.coordinates.unpack(theta)
            return np.array([float(sums.value) for sums in objective.by_block(B, b)])

        E = len(objective.blocks)
        solution, q = minimax(
            weighted, losses, start, np.full(E, 1.0 / E), tol=self.tol, max_iter=self.max_iter
        )
        return solution, q.tolist()

    @property
    def domain_weights_(self) -> dict[Label, float]:
        assert self.state_.domain_weights is not None
        return dict(zip(self.domains_, self.state_.domain_weights, strict=True))


@dataclass(kw_only=True, eq=False, repr=False)
class IRMClassifier(ClassifierHead, ByDomain):
    """Invariant risk minimisation: one head at which every domain's own gradient vanishes.

    The objective is not convex. The fit starts from the reweighted optimum, increases the penalty
    tenfold in each of four stages, and is deterministic.

    Parameters
    ----------
    penalty : float
        Weight of the squared gradient of each domain's loss with respect to a last layer on the
        scores.
    l2, class_weight, preparation, fit_intercept, tol
        See `ERMClassifier`.
    max_iter : int
        Maximum number of iterations of each stage.

    Attributes
    ----------
    coef_, intercept_, classes_, domains_, n_features_in_, n_iter_
        See `ERMClassifier`.

    See Also
    --------
    ReweightedClassifier : the same without the penalty.

    References
    ----------
    Arjovsky, Bottou, Gulrajani and Lopez-Paz, "Invariant Risk Minimization", 2019.

    Examples
    --------
    >>> from skdare import IRMClassifier
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = IRMClassifier(penalty=0.1).fit(data.X, data.y, domains=data.domains)
    >>> head.score(data.X, data.y) > 0.7
    True
    """

    penalty: float = 1.0
    class_weight: ClassWeight = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("penalty", self.penalty)

    def _minimised(self, objective: Objective, start: Array) -> tuple[Solution, None]:
        penalties = [0.0, *(self.penalty * 10.0**-stage for stage in reversed(range(_STAGES)))]
        theta = start
        n_iter = 0
        for penalty in penalties:
            risk = InvariantRisk(objective, penalty)
            solution = lbfgs(risk, theta, tol=self.tol, max_iter=self.max_iter)
            theta = solution.theta
            n_iter += solution.n_iter
        return replace(solution, n_iter=n_iter), None
