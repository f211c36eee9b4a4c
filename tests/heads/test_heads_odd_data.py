"""Domains, columns and targets with nothing in them, or too much: an error in words, or a result.

Whatever the data, no head gives numbers that are none, and none ends in an error about arithmetic.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import skdare
from domain_problems import HEADS

ADJUSTED = {
    "penalty": {"mean_penalty": 1.0},
    "covariance": {"centered": True, "shrinkage": 0.0, "adaptation": "centered"},
    "diagonal": {"shrinkage_target": "diagonal"},
    "standardised": {"shrinkage": 1.0, "shrinkage_target": "diagonal", "adaptation": "centered"},
    "identity": {"shrinkage_target": "identity"},
}
OPTIONS = [
    *((name, {}) for name in HEADS),
    *(("DAREClassifier", options) for options in ADJUSTED.values()),
    *(("DARERegressor", {"mean_penalty": 1.0, **options}) for options in ADJUSTED.values()),
    ("AnchorRegressor", {"adjust": True}),
]
every_head = pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)


def plain(features=4, rows=30):
    """Rows of three domains, numbers that depend on them, and the domains' names."""
    rng = np.random.default_rng(0)
    scales, offsets = np.array([1.0, 1.3, 1.6]), np.array([0.0, 0.5, 1.0])
    X = rng.normal(size=(3, rows, features)) * scales[:, None, None] + offsets[:, None, None]
    X = X.reshape(3 * rows, features)
    y = X @ rng.normal(size=features) + 0.3 * rng.normal(size=len(X))
    return X, y, np.repeat(["a", "b", "c"], rows)


def with_domain(value, features=4):
    """Domain b with these values, or with its first row in every row."""
    X, _, domains = plain(features)
    b = domains == "b"
    X[b] = X[b][0] if value is None else value
    return X


def with_column(values):
    X = plain()[0]
    X[:, 0] = values
    return X


# None if there is nothing to warn of, "domain" for a warning that names b, else part of the error.
CASES = {
    "zeros in one domain": (with_domain(0.0), "domain"),
    "one row again and again": (with_domain(None), "domain"),
    "one row again and again, float32": (with_domain(None).astype(np.float32), "domain"),
    "one row again and again, few rows": (with_domain(None, 60), "domain"),
    "one value again and again": (with_domain(0.1), "domain"),
    "every domain one row": (np.repeat(plain()[0][[0, 40, 70]], 30, axis=0), "domain"),
    "a constant column": (with_column(1e8 / 3), None),
    "a constant column, float32": (with_column(1e8 / 3).astype(np.float32), None),
    "nothing but constants": (np.tile([0.1, 1e8 / 3, 7e-5, 0.0], (90, 1)), "every feature is con"),
    "all zero": (np.zeros((90, 4)), "every feature is constant"),
    "1e-20": (1e-20 * plain()[0], None),
    "1e60": (1e60 * plain()[0], None),
    "float32 at 1e-12": ((1e-12 * plain()[0]).astype(np.float32), None),
    "float32 at 1e9": ((1e9 * plain()[0]).astype(np.float32), None),
    "float32 at 1e30": ((1e30 * plain()[0]).astype(np.float32), "feature 0 reaches beyond 1e.11"),
    "1e150": (1e150 * plain()[0], "feature 0 reaches beyond 1e.75"),
    "1e150 in one column": (with_column(1e150 * np.arange(90)), "feature 0 reaches beyond"),
    "1e308 either way": (1e308 * np.sign(plain()[0]), "feature 0 reaches beyond"),
}


def targets_for(name, y):
    return (y > np.median(y)).astype(int) if "Classifier" in name else y


def carefully(action, named=None):
    """What an action gives; arithmetic that goes wrong on the way is an error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = action()
    for one in heard:
        assert issubclass(one.category, UserWarning), f"{one.category.__name__}: {one.message}"
    if named is not None:
        assert any(named in str(one.message) for one in heard), [str(o.message) for o in heard]
    return result


def is_finite(*arrays):
    return all(np.isrealobj(a) and np.isfinite(a).all() for a in map(np.asarray, arrays))


def fitted(name, options, X, y, domains, named=None):
    head = getattr(skdare, name)(**options)
    carefully(lambda: head.fit(X, y, domains=domains), named)
    assert is_finite(head.coef_, head.intercept_)
    return head


@pytest.mark.parametrize("case", CASES)
@every_head
def test_odd_features_are_refused_in_words_or_fitted_to_finite_weights(
    name, options, case, tmp_path
):
    X, expected = CASES[case]
    _, y, domains = plain()
    y = targets_for(name, y)
    if expected not in (None, "domain"):
        with pytest.raises(ValueError, match=expected):
            carefully(lambda: getattr(skdare, name)(**options).fit(X, y, domains=domains))
        return
    # ERM does not look at domains.
    named = "domain 'b'" if expected == "domain" and not name.startswith("ERM") else None
    named = "all the same" if case == "every domain one row" and named else named
    head = fitted(name, options, X, y, domains, named)
    assert is_finite(carefully(lambda: head.predict(X)))
    head.save(tmp_path / "head")
    again = skdare.load(tmp_path / "head")
    np.testing.assert_array_equal(again.predict(X), head.predict(X))
    if hasattr(head, "adapt"):
        for e in "ab":
            try:
                adapted = carefully(lambda e=e: head.adapt(X[domains == e], force=True))
            except ValueError as error:
                if "these rows are all the same" not in str(error):
                    raise
            else:
                assert is_finite(adapted.coef_, adapted.intercept_, adapted.predict(X))
                np.testing.assert_array_equal(
                    carefully(lambda e=e: again.adapt(X[domains == e], force=True)).coef_,
                    adapted.coef_,
                )


@pytest.mark.parametrize("kind", ["sparse", "torch"])
@pytest.mark.parametrize("name", ["DARERegressor", "DAREClassifier", "ERMClassifier"])
@pytest.mark.parametrize("case", ["one row again and again", "nothing but constants"])
def test_oddities_are_found_wherever_rows_are_stored(name, kind, case):
    X, expected = CASES[case]
    _, y, domains = plain()
    y = targets_for(name, y)
    if kind == "torch":
        held = pytest.importorskip("torch", reason="torch is not installed").asarray(X)
    else:
        held = sparse.csr_array(X)
    if expected != "domain":
        with pytest.raises(ValueError, match=expected):
            carefully(lambda: getattr(skdare, name)().fit(held, y, domains=domains))
        return
    named = "domain 'b'" if not name.startswith("ERM") else None
    head = fitted(name, {}, held, y, domains, named)
    dense = fitted(name, {}, X, y, domains, named)
    np.testing.assert_allclose(head.coef_, dense.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in HEADS if "Regressor" in name])
@pytest.mark.parametrize(
    "y", [np.full(90, 0.1), 1e17 + plain()[1], 1e90 * plain()[1], 1e-90 * plain()[1]], ids=str
)
def test_odd_targets_have_finite_weights(name, y):
    X, _, domains = plain()
    assert is_finite(fitted(name, {}, X, y, domains).predict(X))


@pytest.mark.parametrize("name", ["DAREClassifierCV", "DARERegressorCV"])
def test_a_search_passes_over_a_domain_without_which_nothing_varies(name):
    X, y, domains = plain()
    y, domains = targets_for(name, y), np.where(domains == "c", "a", domains)
    X[domains == "b"] = 0.1
    head = fitted(name, {}, X, y, domains, "domain 'b'")
    assert np.isnan(head.cv_results_["split0_test_score"]).all()
    assert np.isfinite(head.cv_results_["split1_test_score"]).all()


@pytest.mark.parametrize("name", HEADS)
def test_more_features_than_rows_and_two_rows_per_domain_are_enough(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 30))
    y = np.tile([0, 1], 4) if "Classifier" in name else rng.normal(size=8)
    head = fitted(name, {}, X, y, np.repeat([*"abcd"], 2))
    assert is_finite(head.predict(X))
    if hasattr(head, "adapt"):
        assert is_finite(carefully(lambda: head.adapt(X[:2], force=True)).coef_)
