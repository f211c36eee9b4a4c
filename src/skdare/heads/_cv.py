"""Heads that choose their own options by leaving each training domain out in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from skdare._validation import check_choice, check_number, warn
from skdare.engines import DaskEngine
from skdare.fitting.formulation import CENTERED, RAW, Formulation, invariant_means
from skdare.fitting.problem import Problem
from skdare.fitting.search import STRATEGIES, Candidate, bounded, choose, domain_scores
from skdare.fitting.solver_options import SolverOptions
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Targets
from skdare.heads._adjusted import AdjustedHead
from skdare.heads._estimator import (
    ClassifierHead,
    RegressorHead,
    check_shared_options,
    check_solver,
)
from skdare.whitening.shrinkage import SHRINKAGE_RULES, SHRINKAGE_TARGETS, check_strength
from skdare.whitening.whitening import Whitening


class _DARECV(AdjustedHead):
    def __init__(
        self,
        *,
        l2: Sequence[float] = (1e-3, 1e-2, 1e-1),
        shrinkage: Sequence[float | str] = (0.1, 0.5, 0.9),
        mean_penalty: Sequence[float | str] = (1.0,),
        strategies: Sequence[str] = STRATEGIES,
        standard_errors: float = 1.5,
        shrinkage_target: str = "scaled",
        centered: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        engine: str | DaskEngine = "auto",
    ) -> None:
        self.l2 = l2
        self.shrinkage = shrinkage
        self.mean_penalty = mean_penalty
        self.strategies = strategies
        self.standard_errors = standard_errors
        self.shrinkage_target = shrinkage_target
        self.centered = centered
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.engine = engine

    def _check_options(self) -> None:
        value: Any
        for name in ("l2", "shrinkage", "mean_penalty", "strategies"):
            values = getattr(self, name)
            if isinstance(values, str) or not np.iterable(values) or not list(values):
                raise ValueError(f"{name} is {values!r}; pass a sequence of candidates")
        for value in self.l2:
            check_number("l2", value)
        for value in self.shrinkage:
            check_number("shrinkage", value, 0.0, 1.0, also=SHRINKAGE_RULES)
        for value in self.mean_penalty:
            check_number("mean_penalty", value, also=("exact",))
        for value in self.strategies:
            check_choice("strategies", value, STRATEGIES)
        check_number("standard_errors", self.standard_errors)
        check_choice("shrinkage_target", self.shrinkage_target, SHRINKAGE_TARGETS)
        for value in self.shrinkage:
            check_strength(value, self.shrinkage_target)
        check_choice("centered", self.centered, (True, False))
        check_solver(self)
        check_shared_options(self)

    def _solve(self, problem: Problem, statistics: ProblemStatistics) -> None:
        if not set(self.strategies) <= {"erm", "reweighted"}:
            remedy = "strategies=('erm', 'reweighted')"
            problem.check_covariances(self.shrinkage, remedy)
        candidates = list(self._candidates(problem.targets))
        scores = np.full((len(candidates), len(problem.index)), np.nan)
        if len(problem.index) > 1:
            options = SolverOptions.of_head(self)
            scores = domain_scores(problem, statistics, candidates, options, float(problem.d))
        overall = choose(candidates, scores, self.standard_errors)
        steady = [c for c, candidate in enumerate(candidates) if not candidate.adapts]
        adapting = [c for c, candidate in enumerate(candidates) if candidate.adapts]
        main = self._choose_among(steady or adapting, candidates, scores)
        second = self._choose_among(adapting, candidates, scores) if adapting else None
        self._report(problem, candidates, scores, overall, main, second)
        self._fit_domains(
            problem,
            statistics,
            candidates[main].formulation,
            None if second is None else candidates[second].formulation,
            "mean",
            declined=None if self.adapts_ else self.choice_,
        )

    def _rehearsal_copy(self) -> Self:
        return clone(self)

    def _retrainer(self) -> Self:
        """Reweighted ERM: what one would retrain with where there are labels of every domain."""
        return clone(self).set_params(strategies=("reweighted",))

    def _candidates(self, targets: Targets) -> Iterator[Candidate]:
        """Every combination that makes a difference."""
        target = self.shrinkage_target
        invariant = [
            invariant_means(targets, penalty, centered=self.centered, intercept=self.fit_intercept)
            for penalty in self.mean_penalty
        ]
        for l2 in self.l2:
            for strategy in self.strategies:
                if strategy in ("erm", "reweighted"):
                    plain = Whitening(False, True, 0.0, target)
                    yield Candidate(strategy, Formulation(plain, RAW, l2, strategy == "erm"))
                    continue
                centered = self.centered if strategy == "averaged" else strategy == "centered"
                treatments = {"raw": [RAW], "centered": [CENTERED]}.get(strategy, invariant)
                for shrinkage in self.shrinkage:
                    whitening = Whitening(True, centered, shrinkage, target)
                    for means in treatments:
                        yield Candidate(strategy, Formulation(whitening, means, l2))

    def _choose_among(
        self, numbers: list[int], candidates: list[Candidate], scores: np.ndarray
    ) -> int:
        return numbers[
            choose([candidates[c] for c in numbers], scores[numbers], self.standard_errors)
        ]

    def _report(
        self,
        problem: Problem,
        candidates: list[Candidate],
        scores: np.ndarray,
        overall: int,
        main: int,
        second: int | None,
    ) -> None:
        """Set cv_results_ and what follows from it."""
        formulations = [c.formulation for c in candidates]
        scored = bounded(scores)
        means = scored.mean(axis=1) if scored.size else scores[:, 0]
        used = np.full(len(candidates), "", dtype="<U14")
        used[main] = "predict"
        if second is not None:
            used[second] = "adapt" if second != main else "predict, adapt"
        self.cv_results_ = {
            "strategy": np.array([c.strategy for c in candidates]),
            "l2": np.array([f.l2 for f in formulations]),
            "shrinkage": np.array([f.whitening.shrinkage for f in formulations], dtype=object),
            "mean_penalty": np.array([f.means.mean_penalty for f in formulations], dtype=object),
            "mean_score": means,
            "worst_score": scored.min(axis=1) if scored.size else scores[:, 0],
            "rank": (-means).argsort(kind="stable").argsort(kind="stable") + 1,
            "used_for": used,
            **{f"score_{label}": scores[:, e] for e, label in enumerate(problem.labels)},
        }
        self.best_strategy_ = candidates[overall].strategy
        self.best_score_ = float(means[overall])
        self.adapts_ = candidates[overall].adapts
        self.choice_ = _explain(
            candidates, means, overall, len(problem.index), self.standard_errors
        )
        if means.max() >= problem.targets.saturated:
            warn(
                f"leaving a training domain out still scores {means.max():.3f}: the domains hardly "
                "differ, or the features were trained on them; in that case this choice says "
                "little about a domain they have not seen, and DARE with a fixed shrinkage may "
                "serve as well"
            )


def _explain(
    candidates: list[Candidate], means: np.ndarray, overall: int, n: int, errors: float
) -> str:
    """One sentence on the choice: what, how it scored, and beside what."""
    if n < 2:
        return f"took {candidates[overall].strategy!r}: there is only one domain"
    best: dict[str, float] = {}
    for candidate, mean in zip(candidates, means, strict=True):
        best[candidate.strategy] = max(mean, best.get(candidate.strategy, -np.inf))
    others = ", ".join(f"{s!r} {m:.3f}" for s, m in best.items())
    rule = f"the simplest within {errors:g} standard errors of the best"
    return (
        f"chose {candidates[overall].strategy!r}, {rule if errors else 'the best'}, by leaving out "
        f"each of {n} domains (best mean score of each: {others})"
    )


class DAREClassifierCV(ClassifierHead, _DARECV):
    """A domain-adjusted classifier that chooses its options by leaving training domains out.

    Every candidate is scored by accuracy on each training domain in turn, fitted on the others.
    The choice is between ERM, reweighted ERM, the averaged adjustment, and adapting to the new
    domain's unlabelled rows in raw or centred form. ``predict`` uses the best choice that needs
    no new rows, ``adapt`` the best one that does; where adapting did not pay, ``adapt`` gives a
    head that predicts as this one, and says so.

    If the features come from a network that was fine-tuned on these same domains, leaving one
    out no longer imitates an unseen domain, and the search leans towards no adjustment.

    Parameters
    ----------
    l2 : sequence of float, default=(0.001, 0.01, 0.1)
        Candidates for the ridge penalty.
    shrinkage : sequence, default=(0.1, 0.5, 0.9)
        Candidates for the shrinkage; see `DAREClassifier`.
    mean_penalty : sequence, default=(1.0,)
        Candidates for the weight of the mean constraint; see `DAREClassifier`.
    strategies : sequence, default=("erm", "reweighted", "averaged", "raw", "centered")
        Which of these to consider.
    standard_errors : float, default=1.5
        Take the simplest strategy within this many standard errors of the best, by paired
        differences over domains, unless the best is nowhere worse; 0 takes the best.
    shrinkage_target : {"scaled", "identity", "pooled"}, default="scaled"
        See `DAREClassifier`.
    centered : bool, default=False
        Second moment of the averaged strategy; see `DAREClassifier`.
    fit_intercept : bool, default=True
        Whether the scores have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg"}, default="auto"
        "auto" is L-BFGS.
    tol : float, default=0.0001
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMClassifier`.

    Attributes
    ----------
    cv_results_ : dict of arrays
        One entry a candidate: options, score on each held-out domain, mean, worst, rank, and
        what the candidate is used for.
    best_strategy_, best_score_, adapts_
        The overall choice, its mean score, and whether it needs rows of the new domain.
    choice_ : str
        The choice and its reason in a sentence.
    coef_, intercept_, classes_, domains_, moments_, adjustments_, adjustment_, solution_, n_iter_
        As in `DAREClassifier`.

    Examples
    --------
    >>> from skdare import DAREClassifierCV
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = DAREClassifierCV().fit(data.X, data.y, domains=data.domains)
    >>> head.best_strategy_ in head.strategies
    True
    """


class DARERegressorCV(RegressorHead, _DARECV):
    """A domain-adjusted regressor that chooses its options by leaving training domains out.

    As `DAREClassifierCV`, scored by R² on each held-out domain.

    Parameters
    ----------
    l2 : sequence of float, default=(0.001, 0.01, 0.1)
        Candidates for the ridge penalty.
    shrinkage : sequence, default=(0.1, 0.5, 0.9)
        Candidates for the shrinkage; see `DARERegressor`.
    mean_penalty : sequence, default=(1.0,)
        Candidates for the weight of the mean constraint; see `DARERegressor`.
    strategies : sequence, default=("erm", "reweighted", "averaged", "raw", "centered")
        Which of these to consider.
    standard_errors : float, default=1.5
        Take the simplest strategy within this many standard errors of the best, by paired
        differences over domains, unless the best is nowhere worse; 0 takes the best.
    shrinkage_target : {"scaled", "identity", "pooled"}, default="scaled"
        See `DARERegressor`.
    centered : bool, default=False
        Second moment of the averaged strategy; see `DARERegressor`.
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    solver : {"auto", "lbfgs", "trust-ncg", "direct"}, default="auto"
        "auto" is direct for up to 1,000 features, else L-BFGS.
    tol : float, default=0.0001
        Largest absolute entry of the gradient at which to stop.
    max_iter : int, default=1000
        Iterations after which to give up with a warning.
    engine : {"auto", "local", "dask"} or DaskEngine, default="auto"
        Where passes over the rows run; see `ERMRegressor`.

    Attributes
    ----------
    cv_results_, best_strategy_, best_score_, adapts_, choice_
        As in `DAREClassifierCV`.
    coef_, intercept_, domains_, moments_, adjustments_, adjustment_, solution_, n_iter_
        As in `DARERegressor`.
    """
