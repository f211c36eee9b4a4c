"""Domain-adjusted regression: whiten each domain, ignore the means, guess the unseen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from sklearn.base import clone

from skdare._validation import check_choice, check_domain_weights, check_number
from skdare.engines import DaskEngine
from skdare.fitting.formulation import CENTERED, RAW, Formulation, invariant_means
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.heads._adjusted import AdjustedHead
from skdare.heads._estimator import (
    ClassifierHead,
    RegressorHead,
    check_solver,
    check_solving_options,
)
from skdare.whitening.whitening import Whitening, check_whitening

# What `adapt` whitens by (covariance or not), and what it does about the means.
ADAPTATIONS = {"centered": (True, CENTERED), "raw": (False, RAW), "covariance": (True, RAW)}


class _DARE(AdjustedHead):
    def __init__(
        self,
        *,
        l2: float = 1e-2,
        mean_penalty: float | str = 1.0,
        shrinkage: float | str = 0.9,
        shrinkage_target: str = "scaled",
        centered: bool = False,
        adjust: bool = True,
        estimate_mean: bool = False,
        guess: str | Mapping[Any, float] = "mean",
        adaptation: str | None = "raw",
        standardize: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        warm_start: bool = False,
        engine: str | DaskEngine = "auto",
    ) -> None:
        self.l2 = l2
        self.mean_penalty = mean_penalty
        self.shrinkage = shrinkage
        self.shrinkage_target = shrinkage_target
        self.centered = centered
        self.adjust = adjust
        self.estimate_mean = estimate_mean
        self.guess = guess
        self.adaptation = adaptation
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
        check_number("mean_penalty", self.mean_penalty, also=("exact",))
        check_whitening(self)
        check_choice("adaptation", self.adaptation, (*ADAPTATIONS, None))
        check_choice("estimate_mean", self.estimate_mean, (True, False))
        if not isinstance(self.guess, Mapping):
            check_choice("guess", self.guess, ("mean", "covariance"))

    def _solve(self, problem: Problem, statistics: ProblemStatistics) -> None:
        if self.adjust:
            self._check_covariances(problem)
        if isinstance(self.guess, Mapping):
            check_domain_weights(self.guess, list(problem.labels))
        whitening = Whitening.of_head(self)
        means = CENTERED
        if not self.estimate_mean:
            means = invariant_means(
                problem.targets,
                self.mean_penalty,
                centered=self.centered,
                intercept=self.fit_intercept,
            )
        adaptation = None
        if self.adaptation is not None and (self.adjust or self.adaptation == "centered"):
            centered, adapting_means = ADAPTATIONS[self.adaptation]
            adapting = replace(whitening, centered=centered)
            adaptation = Formulation(adapting, adapting_means, self.l2)
        self._fit_domains(
            problem,
            statistics,
            Formulation(whitening, means, self.l2),
            adaptation,
            self.guess,
            start=self._warm_start(),
        )

    def _check_covariances(self, problem: Problem) -> None:
        """Refuse domains of one row where the fit, or the one that adapt uses, needs two."""
        if self.centered:
            problem.check_covariances([self.shrinkage], "shrinkage=1.0 or centered=False")
        elif self.adaptation is not None and ADAPTATIONS[self.adaptation][0]:
            remedy = "shrinkage=1.0 or adaptation='raw'"
            problem.check_covariances([self.shrinkage], remedy)

    def _rehearsal_copy(self) -> Self:
        head = clone(self)
        if isinstance(self.guess, Mapping):  # it may name the domain that is held out
            head.set_params(guess="mean")
        return head

    def _retrainer(self) -> Self:
        """Reweighted ERM: what one would retrain with where there are labels of every domain."""
        plain = {"adjust": False, "mean_penalty": 0.0, "adaptation": None, "guess": "mean"}
        return clone(self).set_params(**plain, estimate_mean=False)


class DAREClassifier(ClassifierHead, _DARE):
    """Logistic regression after each domain is whitened, blind to the domain means.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty ``l2/2 ‖B‖²`` on the canonical weights beside the mean loss.
    mean_penalty : float or "exact", default=1.0
        The paper's λ: how strongly each domain mean must be predicted as uninformative.
        "exact" solves in the null space of the whitened means, as far as they stand out from the
        noise of sampling them; 0 drops the constraint.
    shrinkage : float in [0, 1], "ledoit-wolf" or "oas", default=0.9
        The paper's ρ: how far each second moment is shrunk before it is inverted.
    shrinkage_target : {"scaled", "identity", "pooled", "diagonal"}, default="scaled"
        Towards (tr/d) I, which has no unit; the raw identity, as the paper; the mean second
        moment of all training domains, in whose coordinates domains are then adjusted: for many
        small domains; or the domain's own feature variances, so that shrinkage 1.0 standardises
        each feature by domain.
    centered : bool, default=False
        Whiten by the covariance, or by the raw second moment, as the paper's implementation.
    adjust : bool, default=True
        False: no whitening. With ``adaptation="centered"`` domains are then only centred.
    estimate_mean : bool, default=False
        True: centre every domain and subtract the averaged mean in use, instead of asking for
        invariance (an ablation).
    guess : {"mean", "covariance"} or mapping, default="mean"
        The adjustment of an unseen domain: the mean of the training adjustments, the inverse
        root of the mean second moment, or weights on named domains.
    adaptation : {"raw", "centered", "covariance", None}, default="raw"
        What `adapt` does: whiten by raw second moments; subtract means and whiten by
        covariances, in training and in use; or whiten by covariances and leave the means in, as the
        paper's theorem on JIT-UDA states it. None saves that second solve.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether the scores have an intercept; it does not count at the domain means.
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

    Attributes
    ----------
    coef_ : array of shape (k, d), or (1, d) for two classes
        On raw features, for an unseen domain: no adjustment is needed in use.
    intercept_ : array of shape (k,), or (1,) for two classes
    canonical_coef_ : array of the shape of ``coef_``
        The weights on whitened features; ``coef_`` is these, adjusted for an unseen domain.
    classes_ : array of shape (k,)
    domains_ : list of domain labels
    moments_ : dict of Moments by domain
    adjustments_ : dict of Adjustment by domain
    adjustment_ : Adjustment
        The guess for an unseen domain.
    adapted_rows_ : int or None
        How many rows of a new domain `adapt` was given.
    rehearsal_ : Rehearsal or None
        What `rehearse` learnt.
    solution_ : Solution
    n_iter_ : int

    Examples
    --------
    >>> from skdare import DAREClassifier
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> seen = data.domains != 3
    >>> head = DAREClassifier().fit(data.X[seen], data.y[seen], domains=data.domains[seen])
    >>> head.coef_.shape
    (1, 8)
    """


class DARERegressor(RegressorHead, _DARE):
    """Ridge regression after each domain is centred and whitened, blind to the domain means.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty ``l2/2 ‖B‖²`` on the canonical weights beside half the mean squared error
        of standardised targets.
    mean_penalty : float or "exact", default=1.0
        The paper's λ: how strongly the prediction at each domain mean must vanish. "exact"
        solves in the null space of the whitened means, as far as they stand out from the noise of
        sampling them; 0 drops the constraint.
    shrinkage : float in [0, 1], "ledoit-wolf" or "oas", default=0.9
        The paper's ρ: how far each second moment is shrunk before it is inverted.
    shrinkage_target : {"scaled", "identity", "pooled", "diagonal"}, default="scaled"
        Towards (tr/d) I, which has no unit; the raw identity, as the paper; the mean second
        moment of all training domains, in whose coordinates domains are then adjusted: for many
        small domains; or the domain's own feature variances, so that shrinkage 1.0 standardises
        each feature by domain.
    centered : bool, default=False
        Whiten by the covariance, or by the raw second moment.
    adjust : bool, default=True
        False: no whitening; rows are still centred by domain in training. With
        ``adaptation="centered"`` those of a new domain are centred, too.
    estimate_mean : bool, default=False
        True: subtract the averaged mean in use, instead of asking for invariance (an ablation).
    guess : {"mean", "covariance"} or mapping, default="mean"
        The adjustment of an unseen domain: the mean of the training adjustments, the inverse
        root of the mean second moment, or weights on named domains.
    adaptation : {"raw", "centered", "covariance", None}, default="raw"
        What `adapt` does: whiten by raw second moments; subtract means and whiten by
        covariances, in training and in use; or whiten by covariances and leave the means in, as the
        paper's theorem on JIT-UDA states it. None saves that second solve.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether predictions have an intercept: that with which the predictions at the domain means
        average to the equal-weight mean of the domains' mean targets. After `adapt` in raw or
        covariance form it is fitted with the weights.
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
    canonical_coef_ : array of shape (1, d)
        The weights on whitened features, for standardised targets.
    domains_, moments_, adjustments_, adjustment_, adapted_rows_, rehearsal_, solution_, n_iter_
        As in `DAREClassifier`.

    Examples
    --------
    >>> from skdare import DARERegressor
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> head = DARERegressor().fit(data.X, data.y, domains=data.domains)
    >>> head.coef_.shape
    (8,)
    """
