"""Bad input: one clear error before any work, and nothing modified."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import skdare
from domain_problems import ADAPTABLE, CLASSIFIERS, HEADS, REGRESSORS, make_problem, problem_for
from skdare import (
    AnchorRegressor,
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    DARERegressorCV,
    ERMClassifier,
    GroupDROClassifier,
    IRMClassifier,
    ReweightedClassifier,
)
from skdare.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:.*was given no domains")


@pytest.fixture
def problem():
    return make_problem("classification")


def without(values, place, value):
    """The same as objects, with one entry replaced."""
    values = np.array(values, dtype=object)
    values[place] = value
    return values


ONE_VALUE = "y has one class"
DATA = [
    ({"domains": ["a"] * 5}, "domains has 5 labels but X has 126 rows; pass one label per row"),
    ({"domains": "abc"}, "domains is 'abc'; pass one label per row"),
    ({"domains": 3}, "domains is 3; pass one label per row"),
    ({"domains": np.zeros((126, 2))}, r"domains has shape \(126, 2\)"),
    ({"domains": [None] + ["a"] * 125}, "domains has no label in row 0"),
    ({"domains": [float("nan")] + [1.0] * 125}, "domains has no label in row 0"),
    ({"domains": pd.Series(["a", "b", pd.NA] * 42, dtype="string")}, "no label in row 2"),
    ({"domains": pd.Series(["2020-01-01", None] * 63, dtype="datetime64[ns]")}, "label in row 1"),
    ({"domains": [["a"]] * 126}, "not hashable|one label per row|use text"),
    ({"domains": ["a", 1] * 63}, "labels of several types"),
    ({"domains": [("a", 1), ("b", 2)] * 63}, "use text|shape"),
    ({"y": np.zeros(5)}, "y has 5 entries but X has 126 rows; pass one for each row"),
    ({"sample_weight": np.ones(5)}, "sample_weight has 5 entries but X has 126 rows"),
    ({"sample_weight": np.ones((126, 2))}, "must be 1D"),
    ({"sample_weight": -np.ones(126)}, "sample_weight has negative entries, NaN or infinity"),
    ({"sample_weight": np.full(126, np.nan)}, "sample_weight has negative entries, NaN or inf"),
    ({"sample_weight": np.zeros(126)}, "sample_weight is zero for every row"),
    ({"sample_weight": np.full(126, 1e-200)}, "the largest sample_weight is 1.0e-200"),
    ({"sample_weight": np.full(126, 1e200)}, "the largest sample_weight is 1.0e.200"),
    ({"X": np.empty((0, 5))}, "0 sample"),
    ({"X": np.ones((126, 5))}, "every feature is constant"),
    ({"X": np.ones(126)}, "Expected 2D array"),
    ({"X": np.array([["a"] * 5] * 126, dtype=object)}, "could not convert|string"),
]
TARGETS_OF_CLASSES = [
    (np.zeros(126), "y has one class, 0.0, in rows of positive weight"),
    (np.linspace(0, 1, 126), "Unknown label type"),
    (np.zeros((126, 2)), "1d array"),
    (without(["a", "b"] * 63, 7, None), "y has no target in row 7"),
    (without(["a", "b"] * 63, 7, float("nan")), "y has no target in row 7"),
    (without([0, 1] * 63, 7, None), "y has no target in row 7"),
    (pd.Series(["a", "b", pd.NA] * 42, dtype="string"), "y has no target in row 2"),
    (pd.Categorical(["a", None] * 63), "y has no target in row 1"),
    (np.array(["2020", "NaT"] * 63, dtype="datetime64[D]"), "y has no target in row 1"),
    (np.array([0.0, np.nan] * 63), "y has no target in row 1"),
    (np.array([0.0, np.inf] * 63), "infinity"),
    (["a", 1] * 63, "y has targets of several types"),
    (without([0, 1] * 63, 5, "a"), "y has targets of several types"),
    ([["a"]] * 125 + [["b", "c"]], "y has targets of type list"),
]
TARGETS_OF_NUMBERS = [
    (np.array([0.0, np.nan] * 63), "y has no target in row 1"),
    (np.array([0.0, -np.inf] * 63), "infinity"),
    (without(np.arange(126.0), 4, None), "y has no target in row 4"),
    (["a", "b"] * 63, "y has 'a', which is not a number"),
    (without(np.arange(126.0), 4, "x"), r"y has targets of several types \(float, str\)"),
    (without(np.arange(126.0), 4, 1j), r"several types \(complex, float\); pass numbers"),
    (1e155 * np.arange(126.0), "y reaches .*multiply or divide y by a constant"),
    (1e-200 * np.arange(126.0), "y reaches .*multiply or divide y by a constant"),
]


def refuses(head, X, y, message, **more):
    """An InputError or one of scikit-learn's, before any work, with the data as they were."""
    copies = copy.deepcopy((X, y, more))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*was given no domains")
        warnings.filterwarnings("ignore", "without domain .* the others have a single class")
        with pytest.raises(ValueError, match=message) as raised:
            head.fit(X, y, **more)
    assert type(raised.value) in (InputError, ValueError)
    assert not hasattr(head, "coef_")
    assert repr(copies) == repr((X, y, more))


@pytest.mark.parametrize(("change", "message"), DATA, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("name", HEADS)
def test_wrong_rows_domains_and_weights_are_named_before_any_work(name, change, message):
    problem = problem_for(name)
    given = {"X": problem.X, "y": problem.y, "domains": problem.domains} | change
    refuses(getattr(skdare, name)(), given.pop("X"), given.pop("y"), message, **given)


@pytest.mark.parametrize(("y", "message"), TARGETS_OF_CLASSES, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_wrong_classes_are_named(name, y, message, problem):
    refuses(getattr(skdare, name)(), problem.X, y, message, domains=problem.domains)


@pytest.mark.parametrize(("y", "message"), TARGETS_OF_NUMBERS, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("name", REGRESSORS)
def test_wrong_numbers_are_named(name, y, message, problem):
    refuses(getattr(skdare, name)(), problem.X, y, message, domains=problem.domains)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", HEADS)
def test_values_that_are_no_numbers_are_named_by_feature(name, value):
    problem = problem_for(name)
    X = problem.X.copy()
    X[3, 1] = value
    head = getattr(skdare, name)(preparation=None)
    what = "NaN" if np.isnan(value) else "infinity"
    refuses(head, X, problem.y, f"contains {what}, first in feature 1", domains=problem.domains)
    frame = pd.DataFrame(X, columns=list("abcde"))
    message = f"contains {what}, first in feature 'b'"
    refuses(head, frame, problem.y, message, domains=problem.domains)
    head = problem.fit(head)
    with pytest.raises(ValueError, match=f"contains {what}, first in feature 1"):
        head.predict(X)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (DAREClassifier(shrinkage=1.5), r"shrinkage is 1.5; it must be in \[0, 1\]"),
        (DAREClassifier(shrinkage="ledoit-wolf"), r"shrinkage is 'ledoit-wolf'; it must be in"),
        (DAREClassifier(shrinkage_target="pooled"), "use one of 'scaled', 'identity', 'diagonal'"),
        (DAREClassifier(mean_penalty="hard"), "mean_penalty is 'hard'.*'exact' or None"),
        (DAREClassifier(mean_penalty=-1), "mean_penalty is -1"),
        (DAREClassifier(adaptation="paper"), "adaptation is 'paper'; use one of 'raw', 'centered'"),
        (DAREClassifier(guess="nearest"), "guess is 'nearest'; use one of 'mean', 'covariance'"),
        (DAREClassifier(guess={"east": 1.0}), "guess names domain 'east'; there are 'north'"),
        (DAREClassifier(guess={"west": "x"}), "weight of domain 'west' in guess is 'x'"),
        (DAREClassifier(guess={"west": 0.0}), "guess gives every domain weight 0"),
        (DAREClassifier(l2=-1.0), "l2 is -1.0"),
        (DAREClassifier(l2="small"), "l2 is 'small'"),
        (DAREClassifier(l2=float("inf")), "l2 is inf; it must be a finite number of 0 or more"),
        (DAREClassifier(l2=True), "l2 is True"),
        (DAREClassifier(tol=None), "tol is None"),
        (DAREClassifier(max_iter=0), "max_iter is 0; it must be a whole number of 1 or more"),
        (DAREClassifier(max_iter=2.5), "whole number"),
        (DAREClassifier(centered="yes"), "centered is 'yes'; use one of True, False"),
        (DAREClassifier(fit_intercept=None), "fit_intercept is None"),
        (DAREClassifier(class_weight="even"), "use None, 'balanced', or a mapping"),
        (DAREClassifier(class_weight=[1.0, 2.0]), "use None, 'balanced', or a mapping"),
        (DAREClassifier(class_weight={0: -1.0}), "the weight of class 0 in class_weight is -1.0"),
        (DAREClassifier(class_weight={0: 0.0}), "weight of class 0 in class_weight is 0; drop"),
        (DAREClassifier(class_weight={7: 2.0}), "class_weight names class 7; there are '0', '1'"),
        (IRMClassifier(penalty=-1), "penalty is -1"),
        (AnchorRegressor(gamma=-2), "gamma is -2"),
        (AnchorRegressor(adjust=1), "adjust is 1; use one of True, False"),
        (DAREClassifierCV(l2=0.1), "l2 is 0.1; pass a sequence of candidates"),
        (DAREClassifierCV(shrinkage=()), r"shrinkage is \(\); pass a sequence of candidates"),
        (DAREClassifierCV(strategies="erm"), "strategies is 'erm'; pass a sequence of candidates"),
        (DAREClassifierCV(strategies=("magic",)), "strategies is 'magic'; use one of 'erm'"),
        (DAREClassifierCV(cv=1), "cv"),
        (DAREClassifierCV(cv="five"), "cv"),
        (DAREClassifierCV(standard_errors=-1), "standard_errors is -1"),
        (DAREClassifierCV(scoring="acuracy"), "no scoring is called 'acuracy'; did you mean 'accu"),
        (DARERegressorCV(scoring="roc_auc"), "scoring='roc_auc' needs probabilities"),
        (DARERegressorCV(strategies=("erm", "erm+mixture")), "no classes"),
        (DARERegressor(adaptation="mixture"), "adaptation is 'mixture', and a regressor has no cl"),
    ],
    ids=str,
)
def test_a_wrong_option_is_named_with_what_is_allowed(head, message):
    problem = problem_for(type(head).__name__)
    refuses(head, problem.X, problem.y, message, domains=problem.domains)


def test_a_score_of_two_classes_names_the_one_for_more(problem):
    head = DAREClassifierCV(scoring="roc_auc")
    message = "scoring='roc_auc' is for two classes, and y has 3; use 'roc_auc_ovr'"
    refuses(head, problem.X, problem.y, message, domains=problem.domains)


@pytest.mark.parametrize(
    "head",
    [
        DAREClassifier(centered=True),
        DAREClassifier(adaptation="centered"),
        DAREClassifierCV(),
        DARERegressorCV(),
        AnchorRegressor(adjust=True),
    ],
    ids=str,
)
def test_a_domain_of_one_row_is_refused_if_its_covariance_is_needed(head):
    problem = problem_for(type(head).__name__)
    domains = without(problem.domains, 0, "lonely")
    message = "domain 'lonely' has 1 row, and a covariance needs 2; merge it, or set"
    refuses(head, problem.X, problem.y, message, domains=domains)


@pytest.mark.parametrize(
    "head",
    [
        DAREClassifier(),
        DAREClassifier(shrinkage=0.0),
        DAREClassifier(shrinkage=1.0, centered=True, adaptation="centered"),
        DAREClassifierCV(strategies=("erm", "reweighted")),
        ReweightedClassifier(),
        GroupDROClassifier(),
        AnchorRegressor(),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_a_domain_of_one_row_is_allowed_without_its_covariance(head):
    problem = problem_for(type(head).__name__)
    head.fit(problem.X, problem.y, domains=without(problem.domains, 0, "lonely"))
    assert np.all(np.isfinite(head.coef_))


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.filterwarnings("ignore")
def test_a_fitted_head_refuses_other_features_and_an_unfitted_one_any(name):
    problem = problem_for(name)
    head = getattr(skdare, name)()
    with pytest.raises(NotFittedError, match="fit"):
        head.predict(problem.X)
    assert not hasattr(head, "coef_")
    problem.fit(head)
    methods = [head.predict]
    if name in ADAPTABLE:
        methods += [head.adapt]
        with pytest.raises(NotFittedError, match="fit"):
            type(head)().adapt(problem.X)
    for method in methods:
        with pytest.raises(ValueError, match=r"4 features, but .* is expecting 5"):
            method(problem.X[:, :4])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (slice(None), np.zeros(126), "one class"),
        (slice(0, 3), np.arange(5), "y has 5"),
    ],
    ids=["one class", "few labels"],
)
def test_a_refused_refit_leaves_the_head_as_it_was(X, y, message, problem):
    head = problem.fit(DAREClassifier())
    before = head.predict_proba(problem.X)
    with pytest.raises(ValueError, match=message):
        head.fit(problem.X[X], y, domains=problem.domains[X])
    np.testing.assert_array_equal(head.predict_proba(problem.X), before)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")
def test_a_fit_cut_short_warns_and_is_still_usable(name):
    problem = problem_for(name)
    if name in ("AnchorRegressor", "DARERegressor", "ERMRegressor", "DARERegressorCV"):
        pytest.skip("a quadratic of few parameters is solved at once")
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        head = problem.fit(getattr(skdare, name)(max_iter=1, tol=1e-12))
    assert np.all(np.isfinite(head.predict_proba(problem.X)))


def test_weights_that_leave_one_class_are_refused(problem):
    weight = (problem.y == 1).astype(float)
    with pytest.raises(ValueError, match="one class, 1, in rows of positive weight"):
        problem.fit(DAREClassifier(), sample_weight=weight)


def test_domains_without_weight_are_left_out(problem):
    weight = (problem.domains != "west").astype(float)
    head = problem.fit(DAREClassifier(), sample_weight=weight)
    assert head.domains_ == ["north", "south"]
    rest, *_ = problem.without("west")
    np.testing.assert_allclose(head.coef_, rest.fit(DAREClassifier()).coef_, rtol=1e-6)


# -- Notes ---------------------------------------------------------------------------------------


def test_features_with_a_large_offset_are_warned_of(problem):
    with pytest.warns(UserWarning, match="the features vary little compared with their mean"):
        problem.fit(DAREClassifier(), problem.X + 50.0)


@pytest.mark.parametrize("kind", [ERMClassifier, DAREClassifier])
def test_a_feature_on_a_scale_of_its_own_is_named(kind, problem):
    X = problem.X * [1.0, 1.0, 1000.0, 1.0, 1.0]
    message = r"holds 100% of the variance.*preparation=StandardScaler\(\)"
    with pytest.warns(UserWarning, match=f"feature 2 {message}"):
        problem.fit(kind(), X)
    with pytest.warns(UserWarning, match=f"feature 'c' {message}"):
        problem.fit(kind(), pd.DataFrame(X, columns=list("abcde")))


def test_a_row_that_decides_a_domains_moments_is_warned_of(problem):
    X = problem.X.copy()
    X[problem.rows("west")[0]] *= 1e4
    with pytest.warns(UserWarning, match="rows of domain 'west' hold most of their variance"):
        problem.fit(DAREClassifier(), X)


def test_one_domain_cannot_teach_how_domains_differ(problem):
    with pytest.warns(UserWarning, match="all rows are of domain 'a', and DAREClassifierCV"):
        DAREClassifierCV().fit(problem.X, problem.y, domains=["a"] * 126)
    ERMClassifier().fit(problem.X, problem.y, domains=["a"] * 126)


def test_classes_that_cannot_be_told_from_domains_are_warned_of():
    X = np.random.default_rng(0).normal(size=(40, 2))
    domains = np.arange(40) // 10
    with pytest.warns(UserWarning, match="every domain has one class only"):
        DAREClassifierCV().fit(X, domains % 2, domains=domains)


def test_one_row_of_each_class_is_enough():
    X = np.eye(3)
    assert list(ERMClassifier().fit(X, ["a", "b", "c"]).predict(X)) == ["a", "b", "c"]
