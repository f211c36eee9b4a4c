"""What is held out: whole domains with all that is tied to them, and nothing of them stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, LeaveOneGroupOut
from sklearn.preprocessing import StandardScaler

from held_out_problems import TASKS, made, problem_of
from skdare import DAREClassifier, LeaveOneDomainOut
from skdare.errors import InputError
from skdare.fitting.domain_fit import Formulations, fit_domains
from skdare.fitting.hold_out import folds_of, hold_out, units


def sizes_and_folds(sizes, at_most, groups=None):
    """Folds of a problem whose domains have these many rows."""
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(len(sizes)), sizes)
    X, y = rng.normal(size=(len(domains), 2)), np.arange(len(domains)) % 2
    problem = DAREClassifier()._problem(X, y, domains, None, groups)[0]
    return folds_of(problem, at_most)


@pytest.mark.parametrize(
    ("sizes", "folds"), [([5] * 30, 8), ([100, 2, 2, 2], 2), ([7, 7, 7], 3), ([9, 4], 8)]
)
def test_folds_are_whole_domains_and_each_is_held_out_once(sizes, folds):
    parts = sizes_and_folds(sizes, folds)
    assert sorted(e for part in parts for e in part) == list(range(len(sizes)))
    assert len(parts) == min(folds, len(sizes))


def test_a_large_domain_is_held_out_alone():
    assert [0] in sizes_and_folds([100, 2, 2, 2], 2)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], [[0], [1], [2], [3]]),
        ([0, 1, 1, 3, 4, 5, 6, 7], [[0, 1], [2], [3]]),
        ([0, 1, 1, 2, 4, 2, 6, 7], [[0, 1, 2], [3]]),  # by a chain: 0 with 1, and 1 with 2
    ],
)
def test_domains_that_share_a_group_are_one_unit(groups, expected):
    table = made(E=4, n=2)
    problem = replace(problem_of(table, preparation=None), groups=np.array(groups))
    assert units(problem) == expected


@pytest.mark.parametrize("at_most", [2, 3, 8])
def test_units_are_never_parted(at_most):
    groups = np.arange(60)
    groups[:2] = 59  # domains 0 and 5
    groups[20] = groups[49]  # domains 2 and 4
    folds = sizes_and_folds([10] * 6, at_most, groups)
    assert sorted(e for fold in folds for e in fold) == list(range(6))
    for unit in ({0, 5}, {2, 4}):
        assert any(unit <= set(fold) for fold in folds)


def test_what_is_tied_to_a_held_out_domain_is_in_neither_part():
    table = made()
    groups = np.arange(len(table.y))
    groups[table.domains == 3] = groups[table.domains == 0]
    held = hold_out(problem_of(table, groups=groups), [0])
    assert (held.domains, held.others) == ([0], [1, 2, 4, 5])
    assert held.rest.labels == [1, 2, 4, 5]


def test_groups_that_tie_all_domains_are_refused():
    table = made()
    with pytest.raises(InputError, match="groups tie all 6 domains together"):
        table.choosing().fit(*table.rows, groups=np.arange(len(table.y)) % 60)


# -- Splitters ------------------------------------------------------------------------------------


def searched(table, cv, **options):
    head = table.choosing(strategies=("erm", "center"), l2=(0.1,), cv=cv)
    return head.fit(*table.rows, **options)


@pytest.mark.parametrize("cv", [LeaveOneGroupOut(), LeaveOneDomainOut(), GroupKFold(6)], ids=str)
def test_a_splitter_holds_out_what_as_many_folds_do(cv):
    table = made()
    scores = searched(table, cv).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores, searched(table, 6).cv_results_["mean_test_score"])


def test_domains_that_are_never_held_out_have_no_score():
    table = made()
    rows = np.arange(len(table.y))
    pairs = [(rows[table.domains != e], rows[table.domains == e]) for e in (0, 3)]
    head = searched(table, pairs)
    finite = np.isfinite(head.choice_.scores)
    assert np.flatnonzero(finite.all(axis=0)).tolist() == [0, 3]
    assert not finite[:, [1, 2, 4, 5]].any()
    assert np.isfinite(head.best_score_)


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
@pytest.mark.parametrize(
    ("cv", "groups", "message"),
    [
        (KFold(5), None, "cv holds out some rows of domain 1 and not others"),
        (GroupShuffleSplit(9, random_state=0), None, "cv holds out domain . twice"),
        (LeaveOneGroupOut(), 2, "without others that share a group with it"),
    ],
    ids=["rows", "twice", "groups"],
)
def test_splits_that_are_not_of_whole_units_are_refused(cv, groups, message):
    table = made()
    groups = None if groups is None else table.domains // groups
    with pytest.raises(InputError, match=message):
        searched(table, cv, groups=groups)


@pytest.mark.parametrize("cv", [0, 1, True, "five", 2.5, None])
def test_what_gives_no_splits_is_refused_before_any_work(cv):
    with pytest.raises(InputError, match="cv is "):
        made().choosing(cv=cv).fit(None, None)


# -- Leakage --------------------------------------------------------------------------------------


def changed(table, e):
    """The same table with other rows and targets in one domain."""
    inside = table.domains == e
    X, y = table.X.copy(), table.y.copy()
    X[inside] = 50.0 + 1e3 * np.roll(X[inside], 1, axis=1)
    y[inside] = -100.0 * y[inside] if table.is_regression else y[inside][::-1]
    return replace(table, X=X, y=y)


@pytest.mark.parametrize("preparation", [None, "auto", StandardScaler()], ids=str)
@pytest.mark.parametrize("task", TASKS)
def test_nothing_of_a_held_out_domain_changes_what_the_others_give(task, preparation):
    table = made(task)
    formulation = table.choosing().fit(*table.rows).domain_fit_.unseen.formulation
    fits = []
    for each in (table, changed(table, 2)):
        held = hold_out(problem_of(each, preparation=preparation), [2])
        fit = fit_domains(held.rest, Formulations(formulation, None))
        V, b = fit.unseen.raw_weights()
        fits.append((V, b, held.rest.targets.coef_and_intercept(V, b)[0]))
    for first, second in zip(*fits, strict=True):
        # Targets of a regression are rounded as all domains standardise them.
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-12 * table.is_regression)


class Recording(TransformerMixin, BaseEstimator):
    """Keeps the first feature of all rows that it was ever fitted to."""

    seen: list[set[float]]

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.seen.append(set(np.asarray(X)[:, 0].tolist()))
        return self

    def transform(self, X):
        return np.asarray(X) * 2.0


def test_a_preparation_is_fitted_without_the_rows_held_out():
    table = made()
    preparation = Recording()
    preparation.seen = []
    table.choosing(l2=(0.1,), preparation=preparation).fit(*table.rows, rehearse=True)
    rows = [set(table.of(e)[0][:, 0].tolist()) for e in range(6)]
    # All rows once; without each domain once in the search and once in the rehearsal.
    assert len(preparation.seen) == 13
    for e in range(6):
        without = [seen for seen in preparation.seen if not seen & rows[e]]
        assert len(without) == 2
        assert all(rows[o] <= seen for seen in without for o in range(6) if o != e)


def test_rows_that_need_no_preparation_are_not_copied():
    table = made()
    problem = problem_of(table, preparation="auto")
    assert hold_out(problem, [1]).problem.X is problem.X


@pytest.mark.parametrize("intercept", [True, False])
def test_targets_are_standardised_by_the_others(intercept):
    table = made("regression")
    problem = problem_of(table, fit_intercept=intercept)
    held = hold_out(problem, [4])
    T = [held.problem.T[held.problem.index[e]] for e in held.others]
    if intercept:
        assert np.mean([each.mean() for each in T]) == pytest.approx(0.0, abs=1e-12)
    assert np.mean(np.concatenate(T) ** 2) == pytest.approx(1.0)
    np.testing.assert_allclose(held.problem.targets.decode(held.problem.T), table.y)


def test_without_which_a_single_class_is_left_is_not_held_out():
    table = made(E=3)
    alone = np.where(table.domains == 2, table.y, 0)
    problem = problem_of(replace(table, y=alone))
    assert folds_of(problem, 8) == [[0], [1]]
    assert not hold_out(problem, [2]).can_be_learnt
