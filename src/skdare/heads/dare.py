"""Domain-adjusted regression: whiten each domain, ignore its mean, average or adapt in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

from skdare.checks import ClassWeight, check_choice, check_names, check_number
from skdare.choosing.rule import Choice
from skdare.errors import InputError
from skdare.fitting.domain_fit import Formulations, fit_domains
from skdare.fitting.lagrangian import (
    PLAIN,
    Formulation,
    Penalty,
    training_shift,
)
from skdare.fitting.mixture import BY_CLASS, MOST_FEATURES, TOGETHER
from skdare.fitting.problem import Classes, Problem
from skdare.heads.adaptable import AdaptableHead
from skdare.heads.base import ClassifierHead, RegressorHead
from skdare.heads.head_state import HeadState
from skdare.whitening.guess import Guess
from skdare.whitening.whitening import Target, Whitening

# The paper's objective with the numbers of its appendix on the implementation.
_AS_IN_PAPER: Mapping[str, Any] = {
    "l2": 0.0,
    "mean_penalty": 1.0,
    "shrinkage": 0.1,
    "shrinkage_target": "identity",
    "centered": False,
    "guess": "mean",
    "adaptation": "raw",
}


# What the whitening of `adapt` differs in from that of an unseen domain.
_ADAPTATIONS: Mapping[str, Mapping[str, Any]] = {
    "raw": {"centered": False},
    "centered": {"centered": True, "shift": "own mean"},
    "covariance": {"centered": True},
    "mixture": {"centered": True, "shift": "own mean"},
    "translation": {"adjusts": False, "centered": True},
}
_MIXTURES = {"mixture": BY_CLASS, "translation": TOGETHER}


@dataclass(kw_only=True, eq=False, repr=False)
class DARE(AdaptableHead):
    # A dataclass writes __init__ from these, so that a default stands in one place, and a file of
    # a head is checked by them.
    l2: float = 1e-2
    mean_penalty: Penalty | None = 1.0
    shrinkage: float = 0.9
    shrinkage_target: Target = "scaled"
    centered: bool = False
    guess: Guess | None = "mean"
    adaptation: Literal["raw", "centered", "covariance", "mixture", "translation"] | None = "raw"
    preparation: Any = None
    fit_intercept: bool = True
    tol: float = 1e-5
    max_iter: int = 1000

    @classmethod
    def as_in_paper(cls, **options: Any) -> Self:
        """A head with the paper's own objective and numbers, in place of the defaults.

        Each domain is whitened by its raw second moment, shrunk by ρ = 0.1 towards the identity;
        λ is 1, beyond which the paper saw no change; an unseen domain has the mean of the
        adjustments; there is no ridge. If classes can be told apart without error such an
        objective has no minimum: the paper stops early, and here a small ``l2`` helps. The paper
        prints no intercept: ``fit_intercept=False`` leaves it out. ``adapt(X, prior_rows=0)``
        switches to the new domain's own moment, as the paper does.

        Parameters
        ----------
        **options
            Other options of the constructor; they replace these: the paper has
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
        return cls(**{**_AS_IN_PAPER, **options})

    def _check_parameters(self) -> None:
        check_number("l2", self.l2)
        check_number("mean_penalty", self.mean_penalty, also=("exact", None))
        check_number("shrinkage", self.shrinkage, 0.0, 1.0)
        check_choice("shrinkage_target", self.shrinkage_target, get_args(Target))
        check_choice("centered", self.centered, (True, False))
        check_choice("adaptation", self.adaptation, (*_ADAPTATIONS, None))
        if isinstance(self.guess, Mapping):
            for label, weight in self.guess.items():
                check_number(f"the weight of domain {label!r} in guess", weight)
            if not any(self.guess.values()):
                raise InputError("guess gives every domain weight 0", "one must be positive")
        else:
            check_choice("guess", self.guess, ("mean", "covariance", None))

    def _fitted(self, problem: Problem) -> HeadState:
        if isinstance(self.guess, Mapping):
            check_names("guess", "domain", self.guess, problem.labels)
        return self._state_of(problem, fit_domains(problem, self._formulations(problem)))

    def _formulations_without(
        self, e: int, rest: Problem, choice: Choice | None
    ) -> tuple[Formulations, str | None]:
        return self._formulations(rest), None

    def _formulations(self, problem: Problem) -> Formulations:
        """The problem solved for unseen domains, and the one that adapting starts from."""
        how = (self.fit_intercept, self.l2, self.tol, self.max_iter)
        whitening = Whitening(True, self.centered, self.shrinkage, self.shrinkage_target)
        if self.guess is None and self.mean_penalty is None:
            # For a new domain drawn as the training ones were, whitening by a guess can only cost.
            unseen = Formulation(PLAIN, 0.0, True, *how)
        else:
            guess = self.guess or "mean"
            if isinstance(guess, Mapping):  # if a domain is held out, by the others of those named
                named = {label: w for label, w in guess.items() if label in problem.labels}
                guess = named if any(named.values()) else "mean"
            shift = training_shift(
                problem.targets, self.mean_penalty, self.centered, self.fit_intercept
            )
            guessed = replace(whitening, shift=shift)
            unseen = Formulation(guessed, self.mean_penalty or 0.0, False, *how, guess)
        formulations = Formulations(unseen, None)
        if self.adaptation is not None:
            mixture = _MIXTURES.get(self.adaptation)
            d = problem.X.shape[1]
            if mixture is not None and not isinstance(problem.targets, Classes):
                what = f"adaptation is {self.adaptation!r}, and a regressor has no classes to find"
                raise InputError(what, "use 'centered'")
            if mixture is not None and d > MOST_FEATURES:
                what = f"adaptation is {self.adaptation!r}, and {d:,} features are too many for it"
                raise InputError(what, f"use 'centered', or reduce them to {MOST_FEATURES:,}")
            whitening = replace(whitening, **_ADAPTATIONS[self.adaptation])
            adapting = Formulation(whitening, 0.0, False, *how)
            formulations = Formulations(unseen, adapting, mixture)
        for one in (unseen, formulations.adapting) if self.shrinkage < 1.0 else ():
            if one is not None and one.whitening.adjusts and one.whitening.centered:
                remedy = "shrinkage=1.0, centered=False and adaptation='raw'"
                problem.check_covariances(remedy)
        return formulations


@dataclass(kw_only=True, eq=False, repr=False)
class DAREClassifier(ClassifierHead, DARE):
    """Domain-adjusted regression: logistic regression on rows whitened domain by domain.

    Each training domain is whitened by its own second moment, and its mean must be predicted as
    uninformative. A new domain is adjusted by the average of the training domains, or, after
    `adapt`, by its own unlabelled rows.

    Parameters
    ----------
    l2 : float
        Ridge penalty ``l2/2 ‖B‖²`` on the weights of adjusted features, added to the mean loss.
    mean_penalty : float, "exact" or None
        The paper's λ, which makes predictions invariant to the domain means. "exact" solves in the
        null space of the whitened means, as far as they stand out from sampling noise; 0 and None
        drop the penalty.
    shrinkage : float in [0, 1]
        The paper's ρ: shrinkage of each second moment before it is inverted. The default whitens
        only a little; the paper has 0.1, see `as_in_paper`.
    shrinkage_target : {"scaled", "identity", "diagonal"}
        (tr/d) I, which has no unit; the raw identity, as in the paper; or the domain's own feature
        variances, so that shrinkage 1.0 standardises each feature by domain.
    centered : bool
        Whether to whiten by the covariance; else by the raw second moment, as the paper.
    guess : {"mean", "covariance"}, mapping or None
        Adjustment of a new domain before `adapt`: the mean of the training adjustments, the
        inverse root of the mean second moment, or weights of named domains, such as
        ``{"north": 1.0}``. None: with ``mean_penalty=None`` nothing is adjusted until `adapt`, and
        the head is plain logistic regression; otherwise as "mean".
    adaptation : {"raw", "centered", "covariance", "mixture", "translation", None}
        Use of a new domain's rows in `adapt`: whiten by raw second moments; subtract means and
        whiten by covariances; or whiten by covariances and leave the means in, as the paper's
        theorem on JIT-UDA states it. "mixture" does the same as "centered", and then looks for the
        classes among the new rows, each of which may have moved. "translation" leaves the features
        unadjusted: all classes move by one vector, and class proportions may change. None saves
        the second solve.
    class_weight, preparation, fit_intercept, tol, max_iter
        See `ERMClassifier`. Class weights do not change means and covariances, and the intercept
        does not count at the domain means.

    Attributes
    ----------
    coef_ : array of shape (k, d), or (1, d) for two classes
        Weights on the features, after the preparation if there is one: no adjustment is needed in
        use.
    intercept_ : array of shape (k,), or (1,) for two classes
    classes_ : array of shape (k,)
    domains_ : list of domain labels
    moments_ : dict of Moments by domain
    adjustments_ : dict of Adjustment by domain
    adjustment_ : Adjustment
        The one in use.
    adapted_rows_, labelled_rows_ : int or None
        Number of rows of a new domain given to `adapt`, and of those with a label.
    declined_ : str or None
        Reason why `adapt` left the predictions as they were.
    n_features_in_, n_iter_ : int

    See Also
    --------
    DAREClassifierCV : chooses the strategy by holding training domains out.
    ERMClassifier : logistic regression, the baseline.
    DomainAdjuster : the adjustment as a transformer, before any model.

    References
    ----------
    Rosenfeld, Ravikumar and Risteski, "Domain-Adjusted Regression or: ERM May Already Learn
    Features Sufficient for Out-of-Distribution Generalization", 2022.

    Examples
    --------
    >>> from skdare import DAREClassifier
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> train, new = data.domains != 3, data.domains == 3
    >>> head = DAREClassifier().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> head.coef_.shape, head.adapt(data.X[new]).adapted_rows_
    ((1, 8), 300)
    """

    class_weight: ClassWeight = None


@dataclass(kw_only=True, eq=False, repr=False)
class DARERegressor(RegressorHead, DARE):
    """Ridge regression on all rows that adapts to a new domain from unlabelled rows.

    Until `adapt` it predicts as `ERMRegressor`: for a new domain drawn as the training domains
    were, whitening by an average can only cost. With a ``mean_penalty`` it is the paper's
    regression instead, made for the worst new domain: rows are centred and whitened by domain, and
    predictions are invariant to the domain means. `as_in_paper` has the paper's numbers as well.

    Parameters
    ----------
    l2 : float
        Ridge penalty ``l2/2 ‖B‖²`` on the weights of adjusted features, added to half the mean
        squared error of standardised targets.
    mean_penalty : float, "exact" or None
        The paper's λ: weight of the squared prediction at each domain mean.
    adaptation : {"raw", "centered", "covariance", None}
        See `DAREClassifier`.
    shrinkage, shrinkage_target, centered, guess
        See `DAREClassifier`.
    preparation, fit_intercept, tol, max_iter
        See `ERMClassifier`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    domains_, moments_, adjustments_, adjustment_, adapted_rows_, labelled_rows_, declined_
        See `DAREClassifier`.
    n_features_in_, n_iter_ : int

    See Also
    --------
    DARERegressorCV : chooses the strategy by holding training domains out.
    ERMRegressor : ridge regression, the baseline.
    AnchorRegressor : trades the error of the domain means against the rest.

    References
    ----------
    Rosenfeld, Ravikumar and Risteski, "Domain-Adjusted Regression or: ERM May Already Learn
    Features Sufficient for Out-of-Distribution Generalization", 2022.

    Examples
    --------
    >>> from skdare import DARERegressor
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> train, new = data.domains != 3, data.domains == 3
    >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> head.adapt(data.X[new]).adapted_rows_
    300
    """

    mean_penalty: Penalty | None = None
    guess: Guess | None = None
