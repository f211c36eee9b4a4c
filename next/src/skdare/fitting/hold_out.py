"""A domain held out: the others as a problem of their own, and the way from weights to a score.

Searching, rehearsing and benching are loops over this, so none of them can leak in a way of its
own: the preparation is fitted to the others alone, numbers are standardised by the others, and
rows that share a group are never on both sides.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer

from skdare.arrays import scores, take, to_numpy
from skdare.checks import check_rows
from skdare.errors import InputError
from skdare.fitting.domain_fit import Weights
from skdare.fitting.problem import Classes, Numbers, Problem, Targets, predicted_numbers

Scoring = str | Callable[..., float] | None

# Of the variance of the targets; a domain that is predicted to the last digit decides no mean.
_LEAST_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Domains that are new, and the others, to which nothing of them is known."""

    problem: Problem  # all domains, as the others have prepared and standardised them
    domains: list[int]
    others: list[int]

    @property
    def rest(self) -> Problem:
        """What can be fitted to."""
        return self.problem.only(self.others)


def hold_out(problem: Problem, domains: Sequence[int]) -> HeldOut:
    """Hold out some domains, by number; those that share a group with them are in neither part.

    Where nothing is prepared, no row is copied.
    """
    tied = {e for unit in units(problem) if set(unit) & set(domains) for e in unit}
    others = [e for e in range(len(problem.index)) if e not in tied]
    if problem.preparation is not None:
        names = ", ".join(repr(problem.labels[e]) for e in domains)
        index = [problem.index[e] for e in others]
        fitted, X = problem.preparation.fitted_to(index, f", fitted without {names},")
        problem = replace(problem, X=check_rows(X, type(fitted).__name__))
    if isinstance(problem.targets, Numbers):
        y = problem.targets.decode(problem.T)
        index = [problem.index[e] for e in others]
        centre = problem.targets.centre != 0.0  # without an intercept they were not centred
        targets, T = Numbers.encode(y, problem.weight, index, centre=centre)
        problem = replace(problem, targets=targets, T=T)
    return HeldOut(problem, list(domains), others)


def units(problem: Problem) -> list[list[int]]:
    """Domains that share a group, or a chain of groups, together; else each by itself."""
    E = len(problem.index)
    if problem.groups is None:
        return [[e] for e in range(E)]
    present = [np.unique(problem.groups[index]) for index in problem.index]
    owner = np.repeat(np.arange(E), [len(groups) for groups in present])
    member = np.concatenate(present)
    holds = sparse.csr_array((np.ones(len(owner), bool), (owner, member)))
    count, unit = csgraph.connected_components((holds @ holds.T).astype(bool), directed=False)
    if count == 1 and E > 1:
        raise InputError(
            f"groups tie all {E} domains together, and none can be held out without rows of a "
            "group on both sides",
            "leave out the rows of groups that are in several domains, or pass no groups",
        )
    return [np.flatnonzero(unit == u).tolist() for u in range(count)]


def score(problem: Problem, e: int, weights: Weights, scoring: Scoring = None) -> float:
    """The score of weights on one domain of a problem; NaN where its rows have none.

    By accuracy, or R² with -1 for anything below, as R² has no floor and one domain of little
    variance would decide a mean; or by any scorer of scikit-learn, which is given a fitted
    estimator with these weights.
    """
    targets = problem.targets
    index = problem.index[e]
    weight = problem.weight[index]
    X = take(problem.X, index)
    T = problem.T[index]
    if scoring is None:
        F = to_numpy(scores(X, *weights))
        if isinstance(targets, Classes):
            return float(weight @ (predicted_numbers(F) == T) / weight.sum())
        total = weight @ (T - np.average(T, weights=weight)) ** 2
        # Targets are standardised: a domain with a single target has nothing but rounding left.
        if not total > 1e-12 * weight.sum():
            return float("nan")
        return max(-1.0, float(1.0 - weight @ (T - F[:, 0]) ** 2 / total))
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    # A callable of one's own need not take weights.
    unequal = isinstance(scoring, str) and not np.all(weight == weight[0])
    given = {"sample_weight": weight} if unequal else {}
    model = linear_model(targets, weights)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
            value = float(scorer(model, to_numpy(X), targets.decode(T), **given))
        reason = "the score is not a number"
    except (AttributeError, TypeError, ValueError) as error:
        value = float("nan")
        reason = str(error)
    few = len(np.unique(T)) < (len(targets.classes) if isinstance(targets, Classes) else 2)
    if np.isnan(value) and not few:
        raise InputError(
            f"scoring={scoring!r} cannot score domain {problem.labels[e]!r}: {reason}",
            "use another of scikit-learn's scorers",
        )
    return value


def log_error(problem: Problem, e: int, weights: Weights) -> float:
    """The logarithm of the mean squared error of weights on one domain, of standardised numbers."""
    index = problem.index[e]
    F = to_numpy(scores(take(problem.X, index), *weights))
    error = np.average((problem.T[index] - F[:, 0]) ** 2, weights=problem.weight[index])
    return float(np.log(error + _LEAST_ERROR))


def linear_model(targets: Targets, weights: Weights) -> Any:
    """A fitted estimator of scikit-learn with these weights."""
    model = Ridge()
    if isinstance(targets, Classes):
        model = LogisticRegression()
        model.classes_ = targets.classes
    model.coef_, model.intercept_ = targets.coef_and_intercept(*weights)
    model.n_features_in_ = len(weights[0])
    return model
