"""Bad input: a clear error before any work, and nothing modified."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skdare import (
    AnchorRegressor,
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    ERMClassifier,
    GroupDROClassifier,
    IRMClassifier,
    ReweightedClassifier,
)

CLASSIFIERS = [
    DAREClassifier,
    ERMClassifier,
    ReweightedClassifier,
    GroupDROClassifier,
    IRMClassifier,
    DAREClassifierCV,
]
every_classifier = pytest.mark.parametrize("head", CLASSIFIERS, ids=lambda head: head.__name__)


@every_classifier
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domains": ["a"] * 5}, r"domains has 5 labels but X has 126 rows"),
        ({"domains": "abc"}, "one label per row"),
        ({"domains": np.zeros((126, 2))}, r"shape \(126, 2\)"),
        ({"domains": [None] + ["a"] * 125}, "no label in row 0"),
        ({"domains": [float("nan")] + [1.0] * 125}, "no label in row 0"),
        ({"domains": [["a"]] * 126}, "not hashable"),
        ({"y": np.zeros(5)}, "y has 5 entries but X has 126 rows"),
        ({"y": np.zeros(126)}, "one class"),
        ({"y": np.linspace(0, 1, 126)}, "Unknown label type"),
        ({"sample_weight": np.ones(5)}, "sample_weight has 5 entries"),
        ({"sample_weight": -np.ones(126)}, "negative"),
        ({"sample_weight": np.zeros(126)}, "zero for every row"),
        ({"sample_weight": np.full(126, np.nan)}, "NaN"),
        ({"X": np.empty((0, 5))}, "0 sample"),
        ({"X": np.ones((126, 5))}, "constant"),
        ({"X": np.full((126, 5), np.nan)}, "NaN"),
        ({"X": np.full((126, 5), np.inf)}, "infinity"),
        ({"X": np.array([["a"] * 5] * 126, dtype=object)}, "could not convert|string"),
    ],
)
def test_wrong_data_is_named_before_any_work(head, change, message, three_classes):
    given = {"X": three_classes.X, "y": three_classes.y, "domains": three_classes.domains} | change
    copies = {name: copy.deepcopy(value) for name, value in given.items()}
    estimator = head()
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(given.pop("X"), given.pop("y"), **given)
    assert not hasattr(estimator, "coef_")
    for name, value in given.items():
        assert repr(value) == repr(copies[name])


@pytest.mark.parametrize(
    ("head", "options", "message"),
    [
        (DAREClassifier, {"shrinkage": 1.5}, r"shrinkage is 1.5; it must be in \[0, 1\]"),
        (DAREClassifier, {"shrinkage": "lw"}, "'ledoit-wolf' or 'oas'"),
        (DAREClassifier, {"shrinkage_target": "I"}, "'scaled', 'identity', 'pooled'"),
        (DAREClassifier, {"shrinkage": "oas", "shrinkage_target": "pooled"}, "use a number"),
        (DAREClassifier, {"shrinkage": "oas", "shrinkage_target": "diagonal"}, "use a number"),
        (DAREClassifier, {"mean_penalty": "hard"}, "'exact'"),
        (DAREClassifier, {"mean_penalty": -1}, "0 or more"),
        (DAREClassifier, {"adaptation": "paper"}, "'centered', 'raw'"),
        (DAREClassifier, {"guess": "nearest"}, "'mean', 'covariance'"),
        (DAREClassifier, {"guess": {"east": 1.0}}, "guess names domain 'east'"),
        (DAREClassifier, {"solver": "adam"}, "'auto', 'lbfgs', 'trust-ncg'"),
        (DAREClassifier, {"solver": "direct"}, "'auto', 'lbfgs', 'trust-ncg'"),
        (DAREClassifier, {"l2": -1.0}, "l2 is -1.0"),
        (DAREClassifier, {"l2": "small"}, "l2 is 'small'"),
        (DAREClassifier, {"tol": None}, "tol is None"),
        (DAREClassifier, {"max_iter": 0}, "1 or more"),
        (DAREClassifier, {"max_iter": 2.5}, "whole number"),
        (DAREClassifier, {"l2": float("inf")}, "l2 is inf"),
        (DAREClassifier, {"guess": {"west": "x"}}, "weight of domain 'west'"),
        (DAREClassifier, {"centered": "yes"}, "True, False"),
        (GroupDROClassifier, {"step": -0.1}, "step is -0.1"),
        (IRMClassifier, {"penalty": -1}, "penalty is -1"),
        (DAREClassifierCV, {"l2": 0.1}, "sequence of candidates"),
        (DAREClassifierCV, {"shrinkage": ()}, "sequence of candidates"),
        (DAREClassifierCV, {"strategies": ("magic",)}, "'erm', 'reweighted', 'averaged'"),
        (DAREClassifierCV, {"cv": 1}, "2 or more"),
        (DAREClassifierCV, {"cv": "five"}, "a splitter such as LeaveOneGroupOut"),
        (DAREClassifierCV, {"standard_errors": -1}, "0 or more"),
        (AnchorRegressor, {"gamma": -2}, "gamma is -2"),
    ],
)
def test_an_unknown_option_value_names_the_allowed_ones(head, options, message, three_classes):
    with pytest.raises(ValueError, match=message):
        three_classes.fit(head(**options))


@pytest.mark.parametrize(
    "head",
    [
        DAREClassifier(centered=True),
        DAREClassifier(adaptation="centered"),
        DAREClassifierCV(),
        AnchorRegressor(adjust=True),
    ],
    ids=str,
)
def test_a_domain_of_one_row_is_refused_where_its_covariance_is_needed(head, three_classes):
    domains = three_classes.domains.astype(object)
    domains[0] = "lonely"
    with pytest.raises(ValueError, match="domain 'lonely' has 1 row, and a covariance needs 2"):
        head.fit(three_classes.X, three_classes.y, domains=domains)


@pytest.mark.parametrize(
    "options", [{}, {"shrinkage": 0.0}, {"shrinkage": 1.0}, {"adjust": False}], ids=str
)
def test_a_domain_of_one_row_is_allowed_without_its_covariance(options, three_classes):
    domains = three_classes.domains.astype(object)
    domains[0] = "lonely"
    head = DAREClassifier(**options).fit(three_classes.X, three_classes.y, domains=domains)
    assert np.all(np.isfinite(head.coef_))


@every_classifier
def test_a_wrong_number_of_features_is_named(head, three_classes):
    fitted = three_classes.fit(head())
    with pytest.raises(ValueError, match=r"4 features, but .* is expecting 5"):
        fitted.predict(three_classes.X[:, :4])
    if hasattr(fitted, "adapt"):
        with pytest.raises(ValueError, match=r"4 features, but .* is expecting 5"):
            fitted.adapt(three_classes.X[:, :4])


@every_classifier
def test_an_unfitted_head_says_what_to_do(head, three_classes):
    with pytest.raises(NotFittedError, match="fit"):
        head().predict(three_classes.X)
    if hasattr(head, "adapt"):
        with pytest.raises(NotFittedError, match="call fit before adapt"):
            head().adapt(three_classes.X)


@pytest.mark.parametrize("options", [{"adaptation": None}, {"adjust": False}])
def test_an_unadaptable_head_says_what_to_do(options, three_classes):
    head = three_classes.fit(DAREClassifier(**options))
    with pytest.raises(ValueError, match="fit again"):
        head.adapt(three_classes.X)


def test_too_few_rows_to_adapt_are_refused(three_classes):
    head = three_classes.fit(DAREClassifier())
    with pytest.raises(ValueError, match="at least 2 rows of the new domain, and there is 1"):
        head.adapt(three_classes.X[:1])
    with pytest.raises(ValueError, match="at least 50 rows"):
        head.adapt(three_classes.X[:20], min_rows=50)
    with pytest.raises(ValueError, match="and there are 0"):
        _ = head.adapter().head_


@pytest.mark.parametrize("head", [DAREClassifier, ERMClassifier, IRMClassifier])
def test_a_fit_cut_short_warns_and_is_still_usable(head, three_classes):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted = three_classes.fit(head(max_iter=1, tol=1e-12))
    assert np.all(np.isfinite(fitted.predict_proba(three_classes.X)))


def test_a_domain_may_miss_a_class(three_classes):
    south = three_classes.rows("south")
    assert set(three_classes.y[south]) < set(three_classes.y)
    assert three_classes.fit(DAREClassifier()).coef_.shape == (3, 5)


@pytest.mark.parametrize("container", [np.array, sparse.csr_array, sparse.csr_matrix])
def test_the_callers_arrays_are_never_modified(container, three_classes):
    X, y = container(three_classes.X), three_classes.y.copy()
    weight = np.linspace(0.5, 2, len(y))
    before = [three_classes.X.copy(), y.copy(), weight.copy(), three_classes.domains.copy()]
    head = DAREClassifier().fit(X, y, domains=three_classes.domains, sample_weight=weight)
    head.adapt(X).predict(X)
    dense = X.toarray() if sparse.issparse(X) else X
    for now, then in zip([dense, y, weight, three_classes.domains], before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.zeros(126)), "one class"),
        (lambda X, y: (X[:, :3], y[:5]), "y has 5"),
    ],
    ids=["one class", "few labels"],
)
def test_a_refused_refit_leaves_the_head_as_it_was(change, message, three_classes):
    head = three_classes.fit(DAREClassifier())
    before = head.predict_proba(three_classes.X)
    X, y = change(three_classes.X, three_classes.y)
    with pytest.raises(ValueError, match=message):
        head.fit(X, y, domains=three_classes.domains)
    np.testing.assert_array_equal(head.predict_proba(three_classes.X), before)


@pytest.mark.parametrize("head", [ReweightedClassifier, GroupDROClassifier])
def test_domains_of_one_row_each_are_enough_without_whitening(head, three_classes):
    fitted = head().fit(three_classes.X[:30], three_classes.y[:30], domains=range(30))
    assert fitted.score(three_classes.X, three_classes.y) > 0.5


def test_missing_labels_of_pandas_are_named(three_classes):
    pandas = pytest.importorskip("pandas")
    domains = pandas.Series(three_classes.domains, dtype="string")
    domains[3] = pandas.NA
    with pytest.raises(ValueError, match="no label in row 3"):
        DAREClassifier().fit(three_classes.X, three_classes.y, domains=domains)


def test_weights_that_leave_one_class_are_refused(three_classes):
    weight = (three_classes.y == 1).astype(float)
    with pytest.raises(ValueError, match="one class, 1"):
        three_classes.fit(DAREClassifier(), sample_weight=weight)


def test_an_exact_constraint_that_leaves_nothing_is_refused():
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(6), 2000)
    X = rng.normal(size=(12000, 3)) + rng.normal(size=(6, 3))[domains]
    with pytest.raises(ValueError, match="leaves nothing to predict from"):
        DAREClassifier(mean_penalty="exact").fit(X, X[:, 0] > 0, domains=domains)


def test_an_exact_constraint_on_means_that_are_noise_says_that_it_asks_for_nothing():
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(90, 3)), np.repeat(np.arange(3), 30)
    with pytest.warns(UserWarning, match="cannot be told from the noise.*use a number"):
        DAREClassifier(mean_penalty="exact").fit(X, X[:, 0] > 0, domains=domains)


def test_features_with_a_large_offset_are_pointed_out(three_classes):
    with pytest.warns(UserWarning, match="vary little beside their mean"):
        three_classes.fit(DAREClassifier(), three_classes.X + 50.0)


@pytest.mark.parametrize("head", [ERMClassifier, DAREClassifier])
def test_a_feature_on_a_scale_of_its_own_is_named(head, three_classes):
    X = three_classes.X * [1.0, 1.0, 1000.0, 1.0, 1.0]
    with pytest.warns(UserWarning, match=r"feature 2 holds 100% of the variance.*standardize=True"):
        three_classes.fit(head(), X)


@pytest.mark.parametrize("scale", [1e-100, 1e60])
def test_extreme_scales_change_nothing(scale, three_classes):
    plain = three_classes.fit(DAREClassifier())
    scaled = three_classes.fit(DAREClassifier(), three_classes.X * scale)
    np.testing.assert_array_equal(
        scaled.predict(three_classes.X * scale), plain.predict(three_classes.X)
    )


def test_features_whose_squares_overflow_are_named(three_classes):
    X = three_classes.X.astype(np.float32) * np.float32(1e25)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="overflow"):
        three_classes.fit(ERMClassifier(), X)


def test_a_read_only_array_can_be_fitted(regression):
    X = regression.X.copy()
    X.setflags(write=False)
    assert np.isfinite(regression.fit(DARERegressor(), X).intercept_)


@pytest.mark.parametrize("head", [DAREClassifier(), DAREClassifierCV()])
def test_missing_values_are_named_with_what_fills_them(head):
    X = np.arange(40.0).reshape(20, 2)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN, first in feature 1; .*SimpleImputer\(\)"):
        head.fit(X, np.arange(20) % 2, domains=np.arange(20) // 10)


def test_one_domain_cannot_teach_how_domains_differ():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.arange(40) % 2
    with pytest.warns(UserWarning, match="all rows are of domain 'a', and DAREClassifierCV"):
        DAREClassifierCV().fit(X, y, domains=["a"] * 40)
    ERMClassifier().fit(X, y, domains=["a"] * 40)


def test_classes_that_cannot_be_told_from_domains_are_warned_of():
    X = np.random.default_rng(0).normal(size=(40, 2))
    domains = np.arange(40) // 10
    with pytest.warns(UserWarning, match="every domain has one class only"):
        DAREClassifierCV().fit(X, domains % 2, domains=domains)


def test_one_row_of_each_class_is_enough():
    """As where a head is retrained with one label a class."""
    X = np.eye(3)
    assert list(ERMClassifier().fit(X, ["a", "b", "c"]).predict(X)) == ["a", "b", "c"]
