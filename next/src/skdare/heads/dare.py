"""Domain-adjusted regression: whiten each domain, ignore its mean, guess the unseen or adapt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

from skdare.checks import check_choice, check_names, check_number
from skdare.choosing.rule import Choice
from skdare.errors import InputError
from skdare.fitting.domain_fit import Formulations, fit_domains
from skdare.fitting.lagrangian import (
    PLAIN,
    Formulation,
    Guess,
    Penalty,
    training_shift,
)
from skdare.fitting.mixture import BY_CLASS, MOST_FEATURES, TOGETHER, Mixture
from skdare.fitting.problem import Classes, ClassWeight, Problem
from skdare.heads.adaptable import AdaptableHead
from skdare.heads.base import ClassifierHead, RegressorHead
from skdare.heads.head_state import HeadState
from skdare.whitening.whitening import Shift, Target, Whitening

Adaptation = Literal["raw", "centered", "covariance", "mixture", "translation"]

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


@dataclass(frozen=True)
class _Adapting:
    """What `adapt` does with rows of a new domain."""

    adjusts: bool
    centered: bool  # by the covariance, or by the raw second moment
    shift: Shift
    mixture: Mixture | None = None


_ADAPTATIONS: Mapping[str, _Adapting] = {
    "raw": _Adapting(adjusts=True, centered=False, shift="none"),
    "centered": _Adapting(adjusts=True, centered=True, shift="own mean"),
    "covariance": _Adapting(adjusts=True, centered=True, shift="none"),
    "mixture": _Adapting(adjusts=True, centered=True, shift="own mean", mixture=BY_CLASS),
    "translation": _Adapting(adjusts=False, centered=True, shift="none", mixture=TOGETHER),
}


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
    adaptation: Adaptation | None = "raw"
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
        return self._state_of(problem, fit_domains(problem, self._formulations(problem)))

    def _formulations_without(
        self, e: int, rest: Problem, choice: Choice | None
    ) -> tuple[Formulations, str | None]:
        return self._formulations(rest), None

    def _formulations(self, problem: Problem) -> Formulations:
        """The problem solved for unseen domains, and the one that adapting starts from."""
        whitening = Whitening(True, self.centered, self.shrinkage, self.shrinkage_target)
        how = (self.fit_intercept, self.l2, self.tol, self.max_iter)
        if self.guess is None and self.mean_penalty is None:
            # For a new domain drawn as the training ones were, whitening by a guess can only cost.
            unseen = Formulation(PLAIN, 0.0, True, *how)
        else:
            if isinstance(self.guess, Mapping):
                check_names("guess", "domain", self.guess, problem.labels)
            shift = training_shift(
                problem.targets, self.mean_penalty, self.centered, self.fit_intercept
            )
            guessed = replace(whitening, shift=shift)
            penalty = self.mean_penalty or 0.0
            unseen = Formulation(guessed, penalty, False, *how, self.guess or "mean")
        if self.adaptation is None:
            self._check_covariances(problem, unseen)
            return Formulations(unseen, None)
        adapting = _ADAPTATIONS[self.adaptation]
        if adapting.mixture is not None:
            d = problem.X.shape[1]
            if not isinstance(problem.targets, Classes) or d > MOST_FEATURES:
                why = "numbers have no classes to look for"
                if isinstance(problem.targets, Classes):
                    why = f"with {d:,} features it needs the inverse of a matrix of that size"
                raise InputError(f"adaptation is {self.adaptation!r}, and {why}", "use 'centered'")
        whitening = replace(
            whitening, adjusts=adapting.adjusts, centered=adapting.centered, shift=adapting.shift
        )
        adapted = Formulation(whitening, 0.0, False, *how)
        self._check_covariances(problem, unseen, adapted)
        return Formulations(unseen, adapted, adapting.mixture)

    def _check_covariances(self, problem: Problem, *formulations: Formulation) -> None:
        """Refuse domains of one row if the fit, or the one that adapt uses, needs two."""
        if self.shrinkage < 1.0:
            for one in formulations:
                if one.whitening.adjusts and one.whitening.centered:
                    remedy = "shrinkage=1.0, centered=False and adaptation='raw'"
                    problem.check_covariances(remedy)


@dataclass(kw_only=True, eq=False, repr=False)
class DAREClassifier(ClassifierHead, DARE):
    """Logistic regression after each domain is whitened, blind to the domain means.

    Parameters
    ----------
    l2 : float
        Ridge penalty ``l2/2 ‖B‖²`` on the canonical weights beside the mean loss.
    mean_penalty : float, "exact" or None
        The paper's λ: how strongly each domain mean must be predicted as uninformative.
        "exact" solves in the null space of the whitened means, as far as they stand out from the
        noise of sampling them; 0 and None drop the constraint.
    shrinkage : float in [0, 1]
        The paper's ρ: how far each second moment is shrunk before it is inverted. The default
        whitens only a little; the paper has 0.1, see `as_in_paper`.
    shrinkage_target : {"scaled", "identity", "diagonal"}
        Towards (tr/d) I, which has no unit; the raw identity, as the paper; or the domain's own
        feature variances, so that shrinkage 1.0 standardises each feature by domain.
    centered : bool
        Whiten by the covariance, or by the raw second moment, as the paper's implementation.
    guess : {"mean", "covariance"}, mapping or None
        The adjustment of an unseen domain: the mean of the training adjustments, the inverse
        root of the mean second moment, or weights on named domains, such as ``{"north": 1.0}`` for
        the one that is nearest. None: with ``mean_penalty=None`` nothing is adjusted until `adapt`,
        and the head is plain logistic regression; else as "mean".
    adaptation : {"raw", "centered", "covariance", "mixture", "translation", None}
        What `adapt` does: whiten by raw second moments; subtract means and whiten by
        covariances, in training and in use; or whiten by covariances and leave the means in, as the
        paper's theorem on JIT-UDA states it. "mixture" does what "centered" does, and then looks
        for the classes among the new rows, each of which may have moved by itself. "translation"
        leaves the features unadjusted: all classes move by one vector, and class proportions may
        change. None saves that second solve.
    class_weight : "balanced", mapping from class to weight, or None
        What rows of a class count in the loss, as in scikit-learn; not in means and covariances.
    preparation : "auto", transformer or None
        Fitted without targets to the training rows, wherever rows are taken: any transformer of
        scikit-learn, or a Pipeline of them. "auto" fills missing values by medians, and
        standardises if scales are very different.
    fit_intercept : bool
        Whether the scores have an intercept; it does not count at the domain means.
    tol : float
        Largest absolute entry of the gradient at which to stop.
    max_iter : int
        Iterations after which to give up with a warning.

    Attributes
    ----------
    coef_ : array of shape (k, d), or (1, d) for two classes
        On raw features, for an unseen domain: no adjustment is needed in use.
    intercept_ : array of shape (k,), or (1,) for two classes
    classes_ : array of shape (k,)
    domains_ : list of domain labels
    moments_ : dict of Moments by domain
    adjustments_ : dict of Adjustment by domain
    adapted_rows_, labelled_rows_ : int or None
        How many rows of a new domain `adapt` was given, and how many of them had a label.
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

    class_weight: ClassWeight = None


@dataclass(kw_only=True, eq=False, repr=False)
class DARERegressor(RegressorHead, DARE):
    """Ridge regression on all rows, adjusted to a new domain once unlabelled rows of it are seen.

    Until `adapt` it predicts as `ERMRegressor`: for a new domain drawn as the training domains
    were, whitening by a guess can only cost. With a ``mean_penalty`` it is the paper's regression
    instead, made for the worst unseen domain: rows are centred and whitened by domain, and
    predictions are blind to the domain means. `as_in_paper` has the paper's numbers as well.

    Parameters
    ----------
    l2 : float
        Ridge penalty ``l2/2 ‖B‖²`` on the canonical weights beside half the mean squared error
        of standardised targets.
    mean_penalty : float, "exact" or None
        The paper's λ: how strongly the prediction at each domain mean must vanish.
    adaptation : {"raw", "centered", "covariance", None}
        What `adapt` does; see `DAREClassifier`.
    shrinkage, shrinkage_target, centered, guess, preparation, fit_intercept, tol, max_iter
        See `DAREClassifier`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    domains_ : list of domain labels
    moments_, adjustments_, adapted_rows_, labelled_rows_, n_iter_
        See `DAREClassifier`.

    Examples
    --------
    >>> from skdare import DARERegressor
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> seen = data.domains != 3
    >>> head = DARERegressor().fit(data.X[seen], data.y[seen], domains=data.domains[seen])
    >>> head.adapt(data.X[~seen]).adapted_rows_
    300
    """

    mean_penalty: Penalty | None = None
    guess: Guess | None = None
