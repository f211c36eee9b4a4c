"""Heads that choose their own options by leaving each training domain out in turn."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_regressor

from skdare._logger import tell
from skdare._scale import Scale, scale_of
from skdare._validation import InputError, Labels, check_choice, check_count, check_number, warn
from skdare.arrays import Array
from skdare.choosing.folds import Folds, check_cv
from skdare.choosing.left_out import leaves_one_class
from skdare.choosing.rule import choose, highest, mean_scores, scored
from skdare.choosing.scoring import Scoring, check_scoring
from skdare.choosing.strategies import STRATEGIES, Candidate, applicable, candidates_of
from skdare.choosing.trials import SearchOptions, Trials, try_all
from skdare.engines import DaskEngine
from skdare.fitting.canonical_fit import CanonicalWeights
from skdare.fitting.class_weight import ClassWeight, check_class_weight
from skdare.fitting.domain_fit import domain_fit_of
from skdare.fitting.mixture import MOST_FEATURES
from skdare.fitting.preparation import check_preparation
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes, hardly_unseen
from skdare.heads._adjusted import AdjustedHead
from skdare.heads._choice_html import choice_html
from skdare.heads._estimator import (
    ClassifierHead,
    RegressorHead,
    check_shared_options,
    check_solver,
)


@dataclass(frozen=True)
class SettledChoice:
    """What a search came to, and where a fit of it can start.

    Parameters
    ----------
    predicting : Candidate
    adapting : Candidate, optional
        Where adapting paid.
    start, adapting_start : CanonicalWeights, optional
        Weights of a fit to nearly the same rows.
    """

    predicting: Candidate
    adapting: Candidate | None
    start: CanonicalWeights | None = None
    adapting_start: CanonicalWeights | None = None


# Why a copy of a head does not adapt.
_NOT_CHOSEN = "the search that this head goes by found no way of adapting worth its while"


class _DARECV(AdjustedHead):
    __metadata_request__fit = {"domains": True, "groups": True}  # noqa: RUF012
    _compares_domains = True
    # Of copies that are fitted without a search.
    _settled: SettledChoice | None = None

    @property
    def _balances_classes(self) -> bool:
        balanced = getattr(self, "class_weight", None) == "balanced"
        return balanced or self.scoring in ("balanced_accuracy", "f1_macro")

    def __init__(
        self,
        *,
        strategies: Sequence[str] | None = None,
        l2: Sequence[float] = (1e-3, 1e-2, 1e-1),
        shrinkage: Sequence[float] = (0.5,),
        scoring: Scoring = None,
        standard_errors: float = 1.0,
        cv: Any = 8,
        n_jobs: int | None = None,
        verbose: int = 0,
        standardize: bool = False,
        preparation: Any = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        engine: str | DaskEngine = "auto",
    ) -> None:
        self.strategies = strategies
        self.l2 = l2
        self.shrinkage = shrinkage
        self.scoring = scoring
        self.standard_errors = standard_errors
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.standardize = standardize
        self.preparation = preparation
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.engine = engine

    def fit(
        self,
        X: Array,
        y: Array,
        domains: Labels | None = None,
        sample_weight: Array | None = None,
        groups: Labels | None = None,
    ) -> Self:
        """Choose a strategy by leaving domains out, and fit it to all.

        Parameters
        ----------
        X, y, domains, sample_weight
            As of `DAREClassifier.fit`.
        groups : sequence of n labels, optional
            The patient, song or specimen that each row is of. Domains that share one are left out
            together, so that its rows are never fitted and scored in one trial.

        Returns
        -------
        self
        """
        return self._fit_sharing(None, X, y, domains, sample_weight, groups)

    def _check_options(self) -> None:
        for name in ("strategies", "l2", "shrinkage"):
            values = getattr(self, name)
            if name == "strategies" and values is None:
                continue
            if isinstance(values, str) or not np.iterable(values) or not list(values):
                raise ValueError(f"{name} is {values!r}; pass a sequence of candidates")
        for strategy in self.strategies or ():
            check_choice("strategies", strategy, tuple(STRATEGIES))
        for value in self.l2:
            check_number("l2", value)
        for value in self.shrinkage:
            check_number("shrinkage", value, 0.0, 1.0)
        check_scoring(self.scoring, of_numbers=is_regressor(self))
        check_number("standard_errors", self.standard_errors)
        check_cv(self.cv)
        if self.n_jobs is not None and (type(self.n_jobs) is not int or self.n_jobs == 0):
            raise InputError(
                f"n_jobs is {self.n_jobs!r}",
                "use None, a whole number from 1, or -1 for all processors",
                argument="n_jobs",
            )
        check_count("verbose", self.verbose, 0)
        check_preparation(self.preparation)
        check_class_weight(self.class_weight)
        check_solver(self)
        check_shared_options(self)

    def _solve(self, problem: Problem, statistics: ProblemStatistics) -> None:
        if self._settled is not None:
            self._solve_settled(problem, statistics, self._settled)
            return
        classes = isinstance(problem.targets, Classes)
        names = applicable(self.strategies, problem.d, classes=classes)
        if any(STRATEGIES[name].adapts for name in names):
            problem.check_covariances([0.0], "strategies=('erm', 'reweighted')")
        options = SearchOptions(
            names,
            self.shrinkage,
            self.l2,
            self.cv,
            self.fit_intercept,
            self.scoring,
            self.n_jobs,
            int(self.verbose),
        )
        trials = try_all(problem, statistics, options)
        self._warn_of_unscored(problem, trials.folds, trials.scores)
        main = self._without_new_rows(trials.candidates, trials.scores)
        best = self._with_new_rows(trials, main)
        self._report(problem, trials, main, best)
        chosen = trials.candidates[best]
        guarded = self._is_guarded(problem, trials, main)
        self._fit_domains(
            problem,
            statistics,
            trials.candidates[main].formulation,
            chosen.formulation if self.adapts_ else None,
            "mean",
            mixture=chosen.mixture,
            separations=trials.separations(best) if guarded else None,
            start=trials.start(main),
            adapting_start=trials.start(best),
            declined=None if self.adapts_ else self.choice_,
        )

    def _solve_settled(
        self, problem: Problem, statistics: ProblemStatistics, settled: SettledChoice
    ) -> None:
        """Fit what another search came to; nothing is left out, so there is nothing to guard by."""
        chosen = settled.adapting
        self.adapts_ = chosen is not None
        self._fit_domains(
            problem,
            statistics,
            settled.predicting.formulation,
            None if chosen is None else chosen.formulation,
            "mean",
            mixture=None if chosen is None else chosen.mixture,
            start=settled.start,
            adapting_start=settled.adapting_start,
            declined=None if self.adapts_ else _NOT_CHOSEN,
        )

    def _without_new_rows(self, candidates: Sequence[Candidate], scores: np.ndarray) -> int:
        """The candidate for domains without rows; where every strategy adapts, the best of them."""
        steady = [c for c, candidate in enumerate(candidates) if not candidate.adapts]
        if not steady:
            return highest(scores, range(len(candidates)))
        some = [candidates[c] for c in steady]
        return steady[choose(some, scores[steady], self.standard_errors)]

    def _with_new_rows(self, trials: Trials, main: int) -> int:
        """The candidate for domains with rows: the highest mean.

        R² has no floor, and one domain can decide its mean: of numbers, the gain must be sure.
        """
        if trials.candidates[main].adapts:
            return main
        adapting = [c for c, candidate in enumerate(trials.candidates) if candidate.adapts]
        numbers = [main, *adapting]
        if not is_regressor(self):
            return highest(trials.scores, numbers)
        candidates = [trials.candidates[c] for c in numbers]
        return numbers[choose(candidates, trials.scores[numbers], self.standard_errors)]

    def _is_guarded(self, problem: Problem, trials: Trials, main: int) -> bool:
        """Whether adapting may be declined later: there is another head to fall back on."""
        if is_regressor(self) or not self.adapts_ or problem.d > MOST_FEATURES:
            return False
        return not trials.candidates[main].adapts

    def _warn_of_unscored(self, problem: Problem, folds: Folds, scores: np.ndarray) -> None:
        """Say which domains have no say in the choice for want of a class."""
        if is_regressor(self):
            return
        alone = [e for fold in folds if leaves_one_class(problem, fold) for e in fold]
        if alone:
            warn(
                f"leaving out {_named(problem, alone)} leaves a single class, from which nothing "
                "can be learnt; that is ignored in the choice"
            )
        unscored = np.flatnonzero(np.isnan(scores).any(axis=0))
        lacking = [e for e in unscored.tolist() if e not in alone]
        if self.scoring is None or not lacking:
            return
        if len(unscored) == len(problem.index):
            raise InputError(
                f"scoring={self.scoring!r} gives no score on any domain, for want of classes there",
                "choose another, such as 'accuracy' or 'balanced_accuracy'",
                argument="scoring",
            )
        warn(
            f"{_named(problem, lacking)} lacks a class that scoring={self.scoring!r} needs, and "
            "has no say in the choice"
        )

    def _without_preparation(self) -> Self:
        """The head for rows that went through ``preparation_`` already."""
        return self._prepared_by(None, None)

    def _prepared_by(self, preparation: Any, fitted: Any) -> Self:
        """The head with this preparation, for rows that went through what came before already."""
        head = copy.copy(self)
        head.preparation_ = fitted
        head.preparation = preparation
        head._fitted_params = head.get_params()
        return head

    def _html_below(self) -> str:
        """The choice of a fitted head, and whether it was adapted."""
        below = super()._html_below()
        if not hasattr(self, "choice_"):
            return below
        return choice_html(self.choice_, self.cv_results_, self.best_index_) + below

    @property
    def _ridge(self) -> float:
        if self._settled is not None:
            return self._settled.predicting.formulation.l2
        return float(self.best_params_["l2"])

    def _rehearsal_copy(self) -> Self:
        """A copy that is fitted to what this search came to.

        To search anew without each domain takes as many searches, and foretells less well what
        the head will do: with one domain less, another candidate is often taken.
        """
        params = self.cv_results_["params"]
        candidates = [_candidate(**one) for one in params]
        splits = range(len(self.domains_))
        scores = np.column_stack(
            [np.asarray(self.cv_results_[f"split{e}_test_score"]) for e in splits]
        )
        predicting = candidates[self._without_new_rows(candidates, scores)]
        adapting = candidates[self.best_index_] if self.adapts_ else None
        adaptation = domain_fit_of(self).adaptation
        adapting_start = None if adaptation is None else (adaptation.B, adaptation.b)
        settled = SettledChoice(predicting, adapting, self._canonical, adapting_start)
        return self._settled_copy(settled)

    def _retrainer(self, start: CanonicalWeights | None = None) -> Self:
        """Reweighted ERM: what one would retrain with where there are labels of every domain."""
        reweighted = _candidate("reweighted", self.best_params_["l2"], None)
        return self._settled_copy(SettledChoice(reweighted, None, start))

    def _settled_copy(self, settled: SettledChoice) -> Self:
        head = clone(self)
        head._settled = settled
        return head

    def _report(self, problem: Problem, trials: Trials, main: int, best: int) -> None:
        """Set cv_results_ and what follows from it."""
        candidates = trials.candidates
        scores = trials.scores
        params = [_params(candidate) for candidate in candidates]
        known = scored(scores)
        means = mean_scores(scores)
        self.cv_results_ = {
            "params": params,
            **{
                f"param_{name}": np.array([one[name] for one in params], dtype=object)
                for name in params[0]
            },
            **{f"split{e}_test_score": scores[:, e] for e in range(scores.shape[1])},
            "mean_test_score": means,
            "std_test_score": known.std(axis=1) if known.size else means,
            "worst_test_score": known.min(axis=1) if known.size else means,
            "used_by_predict": np.arange(len(candidates)) == main,
            "rank_test_score": (-means).argsort(kind="stable").argsort(kind="stable") + 1,
        }
        self.best_index_ = best
        self.best_params_ = params[best]
        self.best_score_ = float(means[best])
        self.adapts_ = candidates[best].adapts
        words = "was clearly better" if is_regressor(self) else "did better"
        scale = _scale(self.scoring, numbers=is_regressor(self))
        n = len(problem.index)
        self.choice_ = _explain(candidates, means, main, best, n, words, scale)
        tell(self.choice_, shown=self.verbose > 0)
        if self.scoring is None and hardly_unseen(means[main], problem.targets.saturated):
            warn(
                f"leaving a training domain out still scores {means[main]:.3f}: the domains hardly "
                "differ, or the features were trained on them; in that case this choice says "
                "little about a domain they have not seen"
            )


def _named(problem: Problem, numbers: Sequence[int]) -> str:
    """The first of some domains by name, and how many more there are."""
    more = f" (and {len(numbers) - 1} more)" if len(numbers) > 1 else ""
    return f"domain {problem.labels[numbers[0]]!r}{more}"


def _params(candidate: Candidate) -> dict[str, Any]:
    return {
        "strategy": candidate.strategy,
        "l2": candidate.formulation.l2,
        "shrinkage": candidate.shrinkage,
    }


def _candidate(strategy: str, l2: float, shrinkage: float | None) -> Candidate:
    """The candidate with these parameters."""
    shrinkages = () if shrinkage is None else (shrinkage,)
    return next(candidates_of([strategy], shrinkages, [l2]))


_WORDS = {
    "erm": "plain ERM",
    "reweighted": "ERM with domains of equal weight",
    "averaged": "the averaged adjustment",
    "center": "centring each domain",
    "standardize": "standardising each domain",
    "whiten": "centring and whitening each domain",
    "raw": "whitening each domain by its raw second moment",
    "erm+translation": "moving all classes by one vector, their shares estimated",
    "erm+mixture": "looking for each class among its rows",
    "center+mixture": "centring each domain and looking for each class among its rows",
    "standardize+mixture": "standardising each domain and looking for each class among its rows",
}


def _scale(scoring: Scoring, *, numbers: bool) -> Scale:
    """How scores of a search are written."""
    if scoring is None:
        return scale_of("r2" if numbers else "accuracy")
    return scale_of(scoring if isinstance(scoring, str) else "score")


def _explain(
    candidates: list[Candidate],
    means: np.ndarray,
    main: int,
    best: int,
    n: int,
    better: str,
    scale: Scale,
) -> str:
    """What was chosen, why, and what it gained on left-out domains, in two sentences."""
    first = _WORDS[candidates[main].strategy]
    if n < 2:
        return f"There is only one domain, and none to leave out: it uses {first}."
    if np.isnan(means[main]):
        return f"No domain could be left out and scored: it uses {first}."
    score = f"{scale.prose(means[main])} on left-out domains"
    if candidates[main].adapts:
        return f"Every strategy adapts; it uses {first}, which scored {score} with their rows."
    start = f"Without rows of a new domain it predicts by {first}: {score}."
    if not any(candidate.adapts for candidate in candidates):
        return f"{start} No way of adapting was tried."
    if not candidates[best].adapts:
        return f"{start} No way of adapting {better} there."
    gain = means[best] - means[main]
    return (
        f"{start} With them, adapt goes by {_WORDS[candidates[best].strategy]}: "
        f"{scale.prose(means[best])}, {scale.counted_gain(gain)}."
    )


class DAREClassifierCV(ClassifierHead, _DARECV):
    """A classifier that chooses how to deal with domains by leaving training domains out.

    Every candidate is scored on training domains that it was not fitted to. Two are
    chosen: what ``predict`` uses, which needs no rows of a new domain, and what ``adapt`` does with
    unlabelled ones. Where adapting did not pay, or where the new rows speak against it, ``adapt``
    gives a head that predicts as this one, and says so.

    If the features come from a network that was fine-tuned on these same domains, leaving one
    out no longer imitates an unseen domain, and the search leans towards no adjustment.

    Parameters
    ----------
    strategies : sequence of str, optional
        Which of these to consider. "erm" and "reweighted" need no rows of a new domain. "center"
        subtracts each domain's mean, "standardize" also divides by its feature scales, and
        "whiten" also takes out correlations, each in training and in `adapt`. "erm+mixture",
        "center+mixture" and "standardize+mixture" also look for the classes among the new rows,
        each of which may have moved by itself; "erm+translation" moves all of them by one vector,
        and estimates their shares. "averaged" and "raw" whiten by raw second moments, with the
        averaged adjustment and adapted, as in `DAREClassifier`. Default: all but these two; of more
        than 4,096 features neither "whiten" nor mixtures.
    l2 : sequence of float, default=(0.001, 0.01, 0.1)
        Candidates for the ridge penalty.
    shrinkage : sequence of float in [0, 1], default=(0.5,)
        Candidates for the shrinkage of strategies that whiten: towards the domain's own feature
        variances in "whiten", towards (tr/d) I in "averaged" and "raw".
    scoring : str or callable, optional
        Any of scikit-learn's scorers, such as "balanced_accuracy", "roc_auc", "neg_log_loss" or
        "neg_root_mean_squared_error". Default: accuracy, or R² with -1 for anything below. A domain
        that lacks a class which the scorer needs has no say.
    standard_errors : float, default=1.0
        By how many standard errors of its gain, over left-out domains, what ``predict`` uses must
        beat the simplest strategy; 0 takes the highest mean. `adapt` takes the highest mean.
    cv : int, splitter or iterable, default=8
        Which domains are left out together. A number: at most this many folds of whole domains,
        each alone where there are few. Else a splitter of scikit-learn, which is given the domains
        as groups, or pairs of row numbers; whole domains, each once at most.
    n_jobs : int, optional
        Strategies to try at the same time, in threads of this process whatever the engine; -1 is as
        many as there are processors.
    verbose : int, default=0
        1 prints a line now and then, at the end one a strategy with its best mean score and its
        seconds, and the choice; 2 also says when each strategy is done. Without it the same texts
        are log records under the name "skdare".
    class_weight : "balanced" or dict, optional
        What the rows of a class count in the loss, as in scikit-learn; "balanced" by those that a
        fit is given. Moments of domains, and scores, go by the rows as they are.
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows, fitted anew in every
        fold; ``coef_`` is in the units of the features all the same.
    preparation : transformer, optional
        A transformer of scikit-learn, or a Pipeline of them, such as ``SimpleImputer()``: fitted
        without targets to the training rows of every fold, and to all in the end. This head then
        takes rows as they are before it, wherever rows are taken.
    fit_intercept : bool, default=True
        Whether the scores have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg"}, default="auto"
        "auto" is L-BFGS.
    tol : float, default=0.0001
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMClassifier`. The search itself runs here, on
        at most 64 million numbers: of more rows, every domain keeps the same share.

    Attributes
    ----------
    choice_ : str
        What was chosen, why, and what it gained on left-out domains.
    best_params_, best_score_, best_index_
        The best candidate, its mean score, and its place in ``cv_results_``.
    adapts_ : bool
        Whether it needs rows of the new domain.
    cv_results_ : dict
        One entry a candidate, with the keys of scikit-learn's searches; split i is the i-th of
        ``domains_``, left out. ``used_by_predict`` marks the one for domains without rows.
    preparation_ : fitted transformer or None
        What rows go through; ``coef_`` and ``n_features_in_`` are of the features it gives.
    coef_, intercept_, classes_, domains_, moments_, adjustments_, adjustment_, solution_, n_iter_
        As in `DAREClassifier`; moments and adjustments are of the features that were fitted to,
        prepared and standardised.

    Examples
    --------
    >>> from skdare import DAREClassifierCV
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = DAREClassifierCV().fit(data.X, data.y, domains=data.domains)
    >>> sorted(head.best_params_)
    ['l2', 'shrinkage', 'strategy']
    """

    def __init__(
        self,
        *,
        strategies: Sequence[str] | None = None,
        l2: Sequence[float] = (1e-3, 1e-2, 1e-1),
        shrinkage: Sequence[float] = (0.5,),
        scoring: Scoring = None,
        standard_errors: float = 1.0,
        cv: Any = 8,
        n_jobs: int | None = None,
        verbose: int = 0,
        class_weight: ClassWeight = None,
        standardize: bool = False,
        preparation: Any = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        engine: str | DaskEngine = "auto",
    ) -> None:
        super().__init__(
            strategies=strategies,
            l2=l2,
            shrinkage=shrinkage,
            scoring=scoring,
            standard_errors=standard_errors,
            cv=cv,
            n_jobs=n_jobs,
            verbose=verbose,
            standardize=standardize,
            preparation=preparation,
            fit_intercept=fit_intercept,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            engine=engine,
        )
        self.class_weight = class_weight


class DARERegressorCV(RegressorHead, _DARECV):
    """A regressor that chooses how to deal with domains by leaving training domains out.

    As `DAREClassifierCV`, for numbers.

    Parameters
    ----------
    strategies : sequence of str, optional
        Which of these to consider. "erm" and "reweighted" need no rows of a new domain. "center"
        subtracts each domain's mean, "standardize" also divides by its feature scales, and
        "whiten" also takes out correlations, each in training and in `adapt`. "averaged" and "raw"
        whiten by raw second moments, with the averaged adjustment and adapted, as in
        `DARERegressor`. Default: all but these two; of more than 4,096 features not "whiten".
    l2 : sequence of float, default=(0.001, 0.01, 0.1)
        Candidates for the ridge penalty.
    shrinkage : sequence of float in [0, 1], default=(0.5,)
        Candidates for the shrinkage of strategies that whiten: towards the domain's own feature
        variances in "whiten", towards (tr/d) I in "averaged" and "raw".
    scoring : str or callable, optional
        Any of scikit-learn's scorers, such as "balanced_accuracy", "roc_auc", "neg_log_loss" or
        "neg_root_mean_squared_error". Default: accuracy, or R² with -1 for anything below.
    standard_errors : float, default=1.0
        By how many standard errors of its gain, over left-out domains, a candidate must beat the
        simplest strategy, and one that adapts what ``predict`` uses; 0 takes the highest mean.
    cv : int, splitter or iterable, default=8
        Which domains are left out together. A number: at most this many folds of whole domains,
        each alone where there are few. Else a splitter of scikit-learn, which is given the domains
        as groups, or pairs of row numbers; whole domains, each once at most.
    n_jobs : int, optional
        Strategies to try at the same time, in threads of this process whatever the engine; -1 is as
        many as there are processors.
    verbose : int, default=0
        1 prints a line now and then, at the end one a strategy with its best mean score and its
        seconds, and the choice; 2 also says when each strategy is done. Without it the same texts
        are log records under the name "skdare".
    standardize : bool, default=False
        Divide every feature by its standard deviation over the training rows, fitted anew in every
        fold; ``coef_`` is in the units of the features all the same.
    preparation : transformer, optional
        A transformer of scikit-learn, or a Pipeline of them, such as ``SimpleImputer()``: fitted
        without targets to the training rows of every fold, and to all in the end. This head then
        takes rows as they are before it, wherever rows are taken.
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg", "direct"}, default="auto"
        "auto" is direct for up to 1,000 features, else L-BFGS.
    tol : float, default=0.0001
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMRegressor`. The search itself runs here, on
        at most 64 million numbers: of more rows, every domain keeps the same share.

    Attributes
    ----------
    choice_, best_params_, best_score_, best_index_, adapts_, cv_results_, preparation_
        As in `DAREClassifierCV`.
    coef_, intercept_, domains_, moments_, adjustments_, adjustment_, solution_, n_iter_
        As in `DARERegressor`.
    """
