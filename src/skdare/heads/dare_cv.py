"""Heads that choose how to deal with domains, by holding training domains out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.validation import check_is_fitted

from skdare.arrays import Array
from skdare.checks import ClassWeight, Label, check_choice, check_number
from skdare.choosing.rule import Choice, choose
from skdare.choosing.search import Grid, Trials, search
from skdare.choosing.strategies import STRATEGIES, applicable
from skdare.diagnosis.rehearsal import SATURATED
from skdare.errors import InputError, listed, note, unknown
from skdare.fitting.domain_fit import Formulations, fit_domains
from skdare.fitting.hold_out import check_cv
from skdare.fitting.mixture import MOST_FEATURES, ClassSums
from skdare.fitting.problem import Classes, Numbers, Problem, Targets
from skdare.fitting.safety_check import SafetyCheck
from skdare.fitting.score import Scoring
from skdare.heads.adaptable import AdaptableHead
from skdare.heads.base import ClassifierHead, RegressorHead
from skdare.heads.head_state import HeadState
from skdare.progress import LOGGER


@dataclass(kw_only=True, eq=False, repr=False)
class DARECV(AdaptableHead):
    strategies: Sequence[str] | None = None
    l2: Sequence[float] = (1e-3, 1e-2, 1e-1)
    shrinkage: Sequence[float] = (0.5,)
    scoring: Scoring = None
    standard_errors: float = 1.0
    cv: Any = 8
    preparation: Any = "auto"
    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: int = 1000

    __metadata_request__fit: ClassVar = {"domains": True, "groups": True}
    _knows_scales = True

    def fit(
        self,
        X: Array,
        y: Any,
        domains: Collection[Label] | None = None,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        rehearse: bool = False,
    ) -> Self:
        """Choose a strategy by holding domains out, and fit it to all of them.

        Parameters
        ----------
        X, y, domains, sample_weight
            As for `DAREClassifier.fit`.
        groups : sequence of n labels, optional
            The patient, song or specimen that each row is of. Domains that share one are held out
            together, so that its rows are never fitted to and scored in one trial.
        rehearse : bool, default=False
            Also keep the scores on held-out domains, which `diagnose` needs; this takes about as
            long as the search. `rehearse` does it later.

        Returns
        -------
        self
        """
        return self._fit(X, y, domains, sample_weight, groups, rehearses=rehearse)

    def _check_parameters(self) -> None:
        for name in ("strategies", "l2", "shrinkage"):
            values = getattr(self, name)
            if name == "strategies" and values is None:
                continue
            if isinstance(values, str) or not np.iterable(values) or not list(values):
                raise InputError(f"{name} is {values!r}", "pass a sequence of candidates")
        for name in self.strategies or ():
            check_choice("strategies", name, tuple(STRATEGIES))
        for value in self.l2:
            check_number("l2", value)
        for value in self.shrinkage:
            check_number("shrinkage", value, 0.0, 1.0)
        check_number("standard_errors", self.standard_errors)
        check_cv(self.cv)
        if self.scoring is None:
            return
        if isinstance(self.scoring, str) and self.scoring not in get_scorer_names():
            raise unknown("scoring", self.scoring, get_scorer_names())
        try:
            scorer = get_scorer(self.scoring)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"scoring is {self.scoring!r}",
                "pass None, a callable, or one of sklearn.metrics.get_scorer_names()",
            ) from error
        needs = getattr(scorer, "_response_method", "predict")
        if is_regressor(self) and "predict" not in ((needs,) if isinstance(needs, str) else needs):
            raise InputError(
                f"scoring={self.scoring!r} needs probabilities, and a regressor has none",
                "pass a score of regression, such as 'neg_root_mean_squared_error'",
            )

    def _fitted(self, problem: Problem, *, rehearses: bool = False) -> HeadState:
        numbers = isinstance(problem.targets, Numbers)
        _check_scoring(self.scoring, problem.targets)
        names = applicable(self.strategies, problem.X.shape[1], classes=not numbers)
        if any(STRATEGIES[name].adapts for name in names):
            problem.check_covariances("strategies=('erm', 'reweighted')")
        grid = Grid(
            names, self.shrinkage, self.l2, self.cv, self.scoring, intercept=self.fit_intercept
        )
        trials = search(problem, grid)
        self._note_unscored(problem, trials)
        metric = self.scoring or ("r2" if numbers else "accuracy")
        choice = choose(
            trials.candidates,
            trials.scores,
            metric if isinstance(metric, str) else getattr(metric, "__name__", "score"),
            self.standard_errors,
            trials.log_errors,
        )
        LOGGER.info("%s", choice)
        if self.scoring is None and not numbers and choice.expected > SATURATED:
            note(
                f"held-out training domains score {choice.expected:.3f}: the domains hardly "
                "differ, or the features were trained on them, and then this choice is little "
                "evidence about a new domain"
            )
        formulations = replace(
            self._chosen(choice, choice.predicting, choice.adapting),
            start=trials.start(choice.predicting),
            adapting_start=trials.start(choice.adapting),
        )
        fit = fit_domains(problem, formulations)
        if choice.declined is not None:
            fit = replace(fit, declined=str(choice.declined))
        elif choice.predicting == choice.adapting:
            pass  # there is no unadapted fit to go back to
        elif numbers:
            fit = replace(fit, mean_error=trials.mean_error(choice.adapting))
        elif problem.X.shape[1] <= MOST_FEATURES:
            check = SafetyCheck.of_domains(
                [ClassSums.of(problem, e, m) for e, m in enumerate(fit.moments)],
                fit.moments,
                trials.separations(choice.adapting),
                shares_fixed=not choice.estimates_shares,
            )
            fit = replace(fit, safety_check=check)
        state = self._state_of(problem, fit, choice)
        return replace(state, rehearsal=self._rehearsed(problem, state)) if rehearses else state

    def _formulations_without(
        self, e: int, rest: Problem, choice: Choice | None
    ) -> tuple[Formulations, str | None]:
        """By the choice that the other domains would have made; whether to adapt is not asked."""
        assert choice is not None
        predicting = choice.predicting_without[e]
        if choice.declined is not None:
            return self._chosen(choice, predicting, predicting), str(choice.declined)
        return self._chosen(choice, predicting, choice.adapting_without[e]), None

    def _chosen(self, choice: Choice, predicting: int, adapting: int) -> Formulations:
        limits: dict[str, Any] = {
            "intercept": self.fit_intercept,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }
        unseen = choice.candidates[predicting].formulation(**limits)
        best = choice.candidates[adapting]
        if not best.strategy.adapts:
            return Formulations(unseen, None)
        return Formulations(unseen, best.formulation(**limits), best.strategy.mixture)

    def _note_unscored(self, problem: Problem, trials: Trials) -> None:
        """Say which domains were not used to choose."""
        held_out = {e for fold in trials.folds for e in fold.domains}
        unscored = np.flatnonzero(np.isnan(trials.scores).any(axis=0)).tolist()
        alone = [problem.labels[e] for e in unscored if e not in held_out]
        if alone and isinstance(self.cv, int) and len(problem.labels) > 1:
            note(
                f"without domain {listed(alone)} the others have a single class, or rows that are "
                "all the same; it was not used to choose a strategy"
            )
        lacking = [problem.labels[e] for e in unscored if e in held_out]
        if lacking and len(lacking) == len(held_out) and self.scoring is not None:
            raise InputError(
                f"scoring={self.scoring!r} gives no score on any domain, as each lacks a class",
                "pass another, such as 'accuracy' or 'balanced_accuracy'",
            )
        if lacking:
            what = "targets that differ" if self.scoring is None else "what the scoring needs"
            note(f"domain {listed(lacking)} lacks {what}, and was not used to choose a strategy")

    @property
    def choice_(self) -> Choice:
        """Which candidates were chosen, and why; its text is two sentences."""
        check_is_fitted(self, "state_")
        assert self.state_.choice is not None
        return self.state_.choice

    @property
    def cv_results_(self) -> dict[str, Any]:
        choice = self.choice_
        means = choice.means
        known = choice.scores[:, ~np.isnan(choice.scores).any(axis=0)]
        params = [
            {"strategy": one.name, "l2": one.l2, "shrinkage": one.shrinkage}
            for one in choice.candidates
        ]
        columns = {f"param_{name}": [one[name] for one in params] for name in params[0]}
        return {
            "params": params,
            **{name: np.array(values, dtype=object) for name, values in columns.items()},
            **{f"split{e}_test_score": column for e, column in enumerate(choice.scores.T)},
            "mean_test_score": means,
            "std_test_score": known.std(axis=1) if known.size else means,
            "worst_test_score": known.min(axis=1) if known.size else means,
            "used_by_predict": np.arange(len(params)) == choice.predicting,
            "rank_test_score": (-means).argsort(kind="stable").argsort(kind="stable") + 1,
        }

    @property
    def best_index_(self) -> int:
        return self.choice_.adapting

    @property
    def best_params_(self) -> dict[str, Any]:
        return self.cv_results_["params"][self.best_index_]

    @property
    def best_score_(self) -> float:
        return float(self.choice_.means[self.best_index_])

    @property
    def adapts_(self) -> bool:
        """Whether rows of a new domain change the head."""
        return self.choice_.adapts


def _check_scoring(scoring: Scoring, targets: Targets) -> None:
    """Refuse the name of a score of two classes if there are more."""
    if isinstance(scoring, str) and isinstance(targets, Classes) and len(targets.classes) > 2:
        of_more = (f"{scoring}{kind}" for kind in ("_ovr", "_macro"))
        name = next((name for name in of_more if name in get_scorer_names()), None)
        if name is not None:
            raise InputError(
                f"scoring={scoring!r} is for two classes, and y has {len(targets.classes)}",
                f"use {name!r}",
            )


@dataclass(kw_only=True, eq=False, repr=False)
class DAREClassifierCV(ClassifierHead, DARECV):
    """Classifier that chooses its strategy by holding training domains out.

    Every candidate is scored on training domains that it was not fitted to. Two are chosen: one
    for `predict`, which needs no rows of a new domain, and one for `adapt`, which uses unlabelled
    rows. If no strategy that adapts scored higher, or if the safety check objects to the new rows,
    `adapt` returns an unadapted copy and warns. The scores that it reports are cross-fitted: for
    each domain, of the strategy that the other domains would have chosen.

    If the features come from a network that was trained on these same domains, a held-out domain
    is no longer like a new one, and the search prefers no adjustment.

    Parameters
    ----------
    strategies : sequence of str, optional
        Which of these to consider. "erm" and "reweighted" need no rows of a new domain. "center"
        subtracts each domain's mean, "standardize" also divides by its feature scales, and "whiten"
        also removes correlations, each in training and in `adapt`. All others divide features by
        their scales over all training rows, so that no unit matters. "erm+mixture",
        "center+mixture" and "standardize+mixture" also look for the classes among the new rows,
        each of which may have moved; "erm+translation" moves all of them by one vector, and
        estimates their proportions.
        "averaged" and "raw" whiten by raw second moments, with the average adjustment and adapted,
        as in `DAREClassifier`. "by-hand" is "standardize" as it is done by hand: however few the
        rows, they alone decide. Default: all except these three; with more than 4,096 features
        neither "whiten" nor mixtures.
    l2 : sequence of float
        Candidates for the ridge penalty.
    shrinkage : sequence of float in [0, 1]
        Candidates for the shrinkage of strategies that whiten: towards the domain's own feature
        variances in "whiten", towards (tr/d) I in "averaged" and "raw".
    scoring : str or callable, optional
        Any of scikit-learn's scorers, such as "balanced_accuracy", "roc_auc", "roc_auc_ovr" for
        three or more classes, or "neg_log_loss". Default: accuracy. A domain that lacks a class
        which the scorer needs is not used to select the strategy.
    standard_errors : float
        Number of standard errors of its gain, over held-out domains, by which the strategy of
        `predict` must beat plain ERM at its best ridge; 0 takes the highest mean. `adapt` takes the
        highest mean.
    cv : int, splitter or iterable
        Which domains are held out together. A number: at most this many folds of whole domains,
        each domain by itself if there are few. Otherwise a splitter of scikit-learn, which
        receives the domains as groups, or pairs of row numbers; whole domains, each once at most.
    class_weight : "balanced", mapping from class to weight, or None
        Weight of the rows of a class in the loss, as in scikit-learn. Moments of domains, and
        scores, use unweighted rows.
    preparation : "auto", transformer or None
        "auto" fills missing values by medians; strategies know scales by themselves. For others see
        `ERMClassifier`. It is fitted in every fold, without the held-out domains.
    fit_intercept, tol, max_iter
        See `ERMClassifier`.

    Attributes
    ----------
    choice_ : object
        What was chosen, and what to expect of it; as text, two sentences.
    adapts_ : bool
        Whether `adapt` changes the head.
    cv_results_ : dict
        One entry for each candidate, with the keys of scikit-learn's searches; split i is the i-th
        of ``domains_``, held out. ``used_by_predict`` marks the one for `predict`.
    best_params_, best_score_, best_index_
        The candidate for domains with rows, its mean score, and its place in ``cv_results_``.
    rehearsal_ : Rehearsal or None
        Scores on held-out domains, for `diagnose`.
    coef_, intercept_, classes_, domains_, moments_, adjustments_, adjustment_
        See `DAREClassifier`.
    adapted_rows_, labelled_rows_, declined_, n_features_in_, n_iter_
        See `DAREClassifier`.

    See Also
    --------
    DAREClassifier : one strategy, the paper's, with fixed strengths.
    ERMClassifier : logistic regression, the baseline.

    Examples
    --------
    >>> from skdare import DAREClassifierCV
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = DAREClassifierCV().fit(data.X, data.y, domains=data.domains)
    >>> sorted(head.best_params_)
    ['l2', 'shrinkage', 'strategy']
    """

    class_weight: ClassWeight = None


@dataclass(kw_only=True, eq=False, repr=False)
class DARERegressorCV(RegressorHead, DARECV):
    """Regressor that chooses its strategy by holding training domains out.

    As `DAREClassifierCV`, without mixtures; scores are R² by default, with -1 for anything below.
    R² has no floor, and one domain can decide its mean, so candidates are judged by the mean
    logarithm of the squared error. Adapting must be sure of its gain: the logarithm by which
    squared errors shrink, over the best candidate that does not adapt, must exceed two standard
    errors over the held-out domains, to which two more of no gain are counted. `adapt` is declined
    if it would move the mean prediction by less than adapted models are off by on held-out domains.

    Parameters
    ----------
    strategies, l2, shrinkage, scoring, standard_errors, cv, preparation
        See `DAREClassifierCV`.
    fit_intercept, tol, max_iter
        See `ERMClassifier`.

    Attributes
    ----------
    choice_, adapts_, cv_results_, best_params_, best_score_, best_index_, rehearsal_
        See `DAREClassifierCV`.
    coef_, intercept_, domains_, moments_, adjustments_, adjustment_
        See `DARERegressor`.
    adapted_rows_, labelled_rows_, declined_, n_features_in_, n_iter_
        See `DAREClassifier`.

    See Also
    --------
    DARERegressor : one strategy with fixed strengths.
    ERMRegressor : ridge regression, the baseline.

    Examples
    --------
    >>> from skdare import DARERegressorCV
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> head = DARERegressorCV().fit(data.X, data.y, domains=data.domains)
    >>> head.best_params_["strategy"] in head.cv_results_["param_strategy"]
    True
    """
