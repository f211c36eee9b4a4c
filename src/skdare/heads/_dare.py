"""Domain-adjusted regression: whiten each domain, ignore its mean, guess the unseen or adapt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sklearn.base import clone

from skdare._validation import InputError, check_choice, check_domain_weights, check_number
from skdare.engines import DaskEngine
from skdare.fitting.canonical_fit import CanonicalWeights
from skdare.fitting.formulation import (
    CENTERED,
    RAW,
    Formulation,
    MeanTreatment,
    invariant_means,
)
from skdare.fitting.mixture import BY_CLASS, MOST_FEATURES, TOGETHER, Mixture
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes
from skdare.heads._adjusted import AdjustedHead
from skdare.heads._estimator import (
    ClassifierHead,
    RegressorHead,
    check_solver,
    check_solving_options,
)
from skdare.whitening.guess import GuessRule
from skdare.whitening.whitening import Whitening, check_whitening

# The paper's objective with the numbers of its appendix on the implementation.
AS_IN_PAPER: Mapping[str, Any] = {
    "l2": 0.0,
    "mean_penalty": 1.0,
    "shrinkage": 0.1,
    "shrinkage_target": "identity",
    "centered": False,
    "guess": "mean",
    "adaptation": "raw",
}


@dataclass(frozen=True)
class Adapting:
    """What `adapt` does with rows of a new domain.

    Parameters
    ----------
    adjusts : bool
        Whether the new domain is whitened.
    centered : bool
        By its covariance, or by the raw second moment.
    means : MeanTreatment
    mixture : Mixture, optional
        How classes may move besides.
    """

    adjusts: bool
    centered: bool
    means: MeanTreatment
    mixture: Mixture | None = None


ADAPTATIONS = {
    "centered": Adapting(adjusts=True, centered=True, means=CENTERED),
    "raw": Adapting(adjusts=True, centered=False, means=RAW),
    "covariance": Adapting(adjusts=True, centered=True, means=RAW),
    "mixture": Adapting(adjusts=True, centered=True, means=CENTERED, mixture=BY_CLASS),
    "translation": Adapting(adjusts=False, centered=True, means=RAW, mixture=TOGETHER),
}


class _DARE(AdjustedHead):
    def __init__(
        self,
        *,
        l2: float = 1e-2,
        mean_penalty: float | str | None = 1.0,
        shrinkage: float | str = 0.9,
        shrinkage_target: str = "scaled",
        centered: bool = False,
        adjust: bool = True,
        estimate_mean: bool = False,
        guess: GuessRule | None = "mean",
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

    @classmethod
    def as_in_paper(cls, **options: Any) -> Self:
        """A head with the paper's own objective and numbers, in place of the defaults.

        Each domain is whitened by its raw second moment, shrunk by ρ = 0.1 towards the identity;
        λ is 1, beyond which the paper saw no change; an unseen domain has the mean of the
        adjustments; there is no ridge. Where classes can be told apart without error such an
        objective has no minimum: the paper stops early, as ``skdare bench --protocol paper`` does,
        and here a small ``l2`` helps. The paper prints no intercept: ``fit_intercept=False`` leaves
        it out. ``adapt(X, prior_rows=0)`` switches to the new domain's own moment, as the paper
        does.

        Parameters
        ----------
        **options
            Options of the constructor, in place of these or beside them: the paper has
            ``shrinkage=0.01`` for DomainNet.

        Returns
        -------
        head of this class

        Examples
        --------
        >>> from skdare import DAREClassifier
        >>> DAREClassifier.as_in_paper().shrinkage_target
        'identity'
        """
        return cls(**{**AS_IN_PAPER, **options})

    def _check_options(self) -> None:
        check_solving_options(self)
        check_solver(self)
        if self.mean_penalty is not None:
            check_number("mean_penalty", self.mean_penalty, also=("exact",))
        check_whitening(self)
        check_choice("adaptation", self.adaptation, (*ADAPTATIONS, None))
        check_choice("estimate_mean", self.estimate_mean, (True, False))
        if not isinstance(self.guess, Mapping):
            check_choice("guess", self.guess, ("mean", "covariance", None))

    @property
    def _guess_rule(self) -> GuessRule | None:
        """How the adjustment of an unseen domain is guessed, if at all."""
        if self.guess is None and (self.mean_penalty is not None or self.estimate_mean):
            return "mean"
        return self.guess

    def _solve(self, problem: Problem, statistics: ProblemStatistics) -> None:
        if self.adjust:
            self._check_covariances(problem)
        whitening = Whitening.of_head(self)
        adapting = self._adapting(problem)
        adaptation = None
        if adapting is not None:
            adjusts = whitening.adjust and adapting.adjusts
            adapted = replace(whitening, adjust=adjusts, centered=adapting.centered)
            adaptation = Formulation(adapted, adapting.means, self.l2)
        self._fit_domains(
            problem,
            statistics,
            self._formulation(problem, whitening),
            adaptation,
            self._guess_rule or "mean",
            mixture=None if adapting is None else adapting.mixture,
            start=self._warm_start(),
        )

    def _formulation(self, problem: Problem, whitening: Whitening) -> Formulation:
        """The problem solved for unseen domains."""
        rule = self._guess_rule
        if rule is None:
            # For a new domain drawn as the training ones were, whitening by a guess can only cost.
            return Formulation(replace(whitening, adjust=False), RAW, self.l2, by_rows=True)
        if isinstance(rule, Mapping):
            check_domain_weights(rule, list(problem.labels))
        means = CENTERED
        if not self.estimate_mean:
            means = invariant_means(
                problem.targets,
                self.mean_penalty,
                centered=self.centered,
                intercept=self.fit_intercept,
            )
        return Formulation(whitening, means, self.l2)

    def _adapting(self, problem: Problem) -> Adapting | None:
        """What `adapt` will do, where it does anything."""
        if self.adaptation is None:
            return None
        adapting = ADAPTATIONS[self.adaptation]
        if adapting.mixture is not None:
            if not isinstance(problem.targets, Classes):
                raise InputError(
                    f"adaptation is {self.adaptation!r}, and numbers have no classes to look for",
                    "use 'centered'",
                    argument="adaptation",
                )
            if problem.d > MOST_FEATURES:
                raise InputError(
                    f"adaptation is {self.adaptation!r}, and with {problem.d} features it needs "
                    "the inverse of a matrix of that size",
                    f"use 'centered', or reduce the features to {MOST_FEATURES:,}",
                    argument="adaptation",
                )
            return adapting
        return adapting if self.adjust or self.adaptation == "centered" else None

    def _check_covariances(self, problem: Problem) -> None:
        """Refuse domains of one row where the fit, or the one that adapt uses, needs two."""
        if self.centered and self._guess_rule is not None:
            problem.check_covariances([self.shrinkage], "shrinkage=1.0 or centered=False")
            return
        adapting = None if self.adaptation is None else ADAPTATIONS[self.adaptation]
        if adapting is not None and adapting.adjusts and adapting.centered:
            remedy = "shrinkage=1.0 or adaptation='raw'"
            problem.check_covariances([self.shrinkage], remedy)

    @property
    def _ridge(self) -> float:
        return self.l2

    def _rehearsal_copy(self) -> Self:
        head = clone(self)
        if isinstance(self.guess, Mapping):  # it may name the domain that is held out
            head.set_params(guess="mean")
        return head

    def _retrainer(self, start: CanonicalWeights | None = None) -> Self:
        """Reweighted ERM: what one would retrain with where there are labels of every domain."""
        plain = {"adjust": False, "mean_penalty": None, "adaptation": None, "guess": "mean"}
        return clone(self).set_params(**plain, estimate_mean=False)


class DAREClassifier(ClassifierHead, _DARE):
    """Logistic regression after each domain is whitened, blind to the domain means.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty ``l2/2 ‖B‖²`` on the canonical weights beside the mean loss.
    mean_penalty : float, "exact" or None, default=1.0
        The paper's λ: how strongly each domain mean must be predicted as uninformative.
        "exact" solves in the null space of the whitened means, as far as they stand out from the
        noise of sampling them; 0 and None drop the constraint.
    shrinkage : float in [0, 1], "ledoit-wolf" or "oas", default=0.9
        The paper's ρ: how far each second moment is shrunk before it is inverted. The default
        whitens only a little; the paper has 0.1, see `as_in_paper`.
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
    guess : {"mean", "covariance"}, mapping or None, default="mean"
        The adjustment of an unseen domain: the mean of the training adjustments, the inverse
        root of the mean second moment, or weights on named domains. None: with
        ``mean_penalty=None`` nothing is adjusted until `adapt`, and the head is plain logistic
        regression; else as "mean".
    adaptation : {"raw", "centered", "covariance", "mixture", "translation", None}, default="raw"
        What `adapt` does: whiten by raw second moments; subtract means and whiten by
        covariances, in training and in use; or whiten by covariances and leave the means in, as the
        paper's theorem on JIT-UDA states it. "mixture" does what "centered" does, and then looks
        for the classes among the new rows, each of which may have moved by itself. "translation"
        leaves the features as they are: all classes move by one vector, and their shares may
        change. None saves that second solve.
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
    adapted_rows_, labelled_rows_ : int or None
        How many rows of a new domain `adapt` was given, and how many of them had a label.
    temperature_ : float
        What `calibrate` divided the scores by; 1 without.
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
    """Ridge regression on all rows, adjusted to a new domain once unlabelled rows of it are seen.

    Until `adapt` it predicts as `ERMRegressor`: for a new domain drawn as the training domains
    were, whitening by a guess can only cost. With a ``mean_penalty`` it is the paper's regression
    instead, made for the worst unseen domain: rows are centred and whitened by domain, and
    predictions are blind to the domain means. `as_in_paper` has the paper's numbers as well.

    Parameters
    ----------
    l2 : float, default=0.01
        Ridge penalty ``l2/2 ‖B‖²`` on the canonical weights beside half the mean squared error
        of standardised targets.
    mean_penalty : float, "exact" or None, default=None
        The paper's λ: how strongly the prediction at each domain mean must vanish. "exact"
        solves in the null space of the whitened means, as far as they stand out from the noise of
        sampling them; with 0, rows are centred all the same, and the means are forgotten. None:
        means stay in the rows, and regress onto the domains' mean targets.
    shrinkage : float in [0, 1], "ledoit-wolf" or "oas", default=0.9
        The paper's ρ: how far each second moment is shrunk before it is inverted. The default
        whitens only a little.
    shrinkage_target : {"scaled", "identity", "pooled", "diagonal"}, default="scaled"
        Towards (tr/d) I, which has no unit; the raw identity, as the paper; the mean second
        moment of all training domains, in whose coordinates domains are then adjusted: for many
        small domains; or the domain's own feature variances, so that shrinkage 1.0 standardises
        each feature by domain.
    centered : bool, default=False
        Whiten by the covariance, or by the raw second moment.
    adjust : bool, default=True
        False: no whitening. With ``adaptation="centered"`` domains are then only centred.
    estimate_mean : bool, default=False
        True: subtract the averaged mean in use, instead of asking for invariance (an ablation).
    guess : {"mean", "covariance"}, mapping or None, default=None
        The adjustment of an unseen domain: the mean of the training adjustments, the inverse
        root of the mean second moment, or weights on named domains. None: "mean" with a
        ``mean_penalty``; without, nothing is adjusted until `adapt`.
    adaptation : {"raw", "centered", "covariance", None}, default="raw"
        What `adapt` does: whiten by raw second moments; subtract means and whiten by
        covariances, in training and in use; or whiten by covariances and leave the means in, as the
        paper's theorem on JIT-UDA states it. None saves that second solve.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows; ``coef_`` is in the
        units of the features all the same.
    fit_intercept : bool, default=True
        Whether predictions have an intercept. With a ``mean_penalty`` it is that with which the
        predictions at the domain means average to the equal-weight mean of the domains' mean
        targets, and after `adapt` in centred form that mean; else it is fitted with the weights.
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

    def __init__(
        self,
        *,
        l2: float = 1e-2,
        mean_penalty: float | str | None = None,
        shrinkage: float | str = 0.9,
        shrinkage_target: str = "scaled",
        centered: bool = False,
        adjust: bool = True,
        estimate_mean: bool = False,
        guess: GuessRule | None = None,
        adaptation: str | None = "raw",
        standardize: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        warm_start: bool = False,
        engine: str | DaskEngine = "auto",
    ) -> None:
        super().__init__(
            l2=l2,
            mean_penalty=mean_penalty,
            shrinkage=shrinkage,
            shrinkage_target=shrinkage_target,
            centered=centered,
            adjust=adjust,
            estimate_mean=estimate_mean,
            guess=guess,
            adaptation=adaptation,
            standardize=standardize,
            fit_intercept=fit_intercept,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            engine=engine,
        )
