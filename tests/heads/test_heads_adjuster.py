"""The adjustment as a transformer: z-scores by domain, whatever the rows came in."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from domain_problems import make_problem
from skdare import DomainAdjuster, LeaveOneDomainOut

STRATEGIES = ("standardize", "center", "whiten")
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
DOMAINS = np.repeat(["a", "b", "c"], [30, 40, 5])


def rows(n=75, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 6)) * [1, 1e3, 1e-3, 2, 3, 4] + rng.normal(size=(n, 1))


@every_strategy
def test_every_training_domain_has_mean_zero_and_its_scales(strategy):
    X = rows()
    Z = DomainAdjuster(strategy).fit_transform(X, domains=DOMAINS)
    for name in "abc":
        own = name == DOMAINS
        np.testing.assert_allclose(Z[own].mean(axis=0), 0, atol=1e-9)
        scales = X[own].std(axis=0) if strategy == "center" else 1.0
        if strategy != "whiten":
            np.testing.assert_allclose(Z[own].std(axis=0), scales)
    np.testing.assert_array_equal(
        DomainAdjuster(strategy).fit(X, domains=DOMAINS).transform(X, domains=DOMAINS), Z
    )


def test_whitening_without_shrinkage_makes_features_uncorrelated():
    Z = DomainAdjuster("whiten", shrinkage=0.0).fit_transform(rows(), domains=DOMAINS)
    for name in "ab":
        own = name == DOMAINS
        np.testing.assert_allclose(np.cov(Z[own].T, bias=True), np.eye(6), atol=1e-9)


@every_strategy
def test_rows_may_come_in_any_chunks(strategy):
    X = rows()
    stream = DomainAdjuster(strategy)
    for start in range(0, 75, 9):
        part = slice(start, start + 9)
        stream.partial_fit(X[part], domains=DOMAINS[part])
    Z = DomainAdjuster(strategy).fit_transform(X, domains=DOMAINS)
    np.testing.assert_allclose(stream.transform(X, domains=DOMAINS), Z, atol=1e-9)


@every_strategy
def test_without_a_prior_rows_of_a_new_domain_are_adjusted_by_their_own_moments(strategy):
    new = 7 * rows(500, seed=1) + 5
    names = ["new"] * 500
    X = rows()
    adjuster = DomainAdjuster(strategy, prior_rows=0).fit(X, domains=DOMAINS)
    own = adjuster.transform(new, names)
    np.testing.assert_allclose(own.mean(axis=0), 0.0, atol=1e-9)
    if strategy == "standardize":
        np.testing.assert_allclose(own.std(axis=0), 1.0)


@every_strategy
def test_one_row_of_a_new_domain_is_adjusted_nearly_by_the_average(strategy):
    X = rows()
    adjuster = DomainAdjuster(strategy, prior_rows=1e9).fit(X, domains=DOMAINS)
    new = rows(1, seed=2)
    average = np.mean([adjuster.moments_[name].mean for name in "abc"], axis=0)
    Z = adjuster.transform(new, ["new"])
    if strategy == "center":
        np.testing.assert_allclose(Z, new - average, atol=1e-4)
    assert np.isfinite(Z).all()
    assert np.isfinite(DomainAdjuster(strategy).fit(X, domains=DOMAINS).transform(new, ["z"])).all()


@every_strategy
def test_units_do_not_matter(strategy):
    X, new = rows(), rows(200, seed=3)
    units = 10.0 ** np.arange(-3, 3)
    adjust = DomainAdjuster(strategy, prior_rows=5)
    plain = adjust.fit(X, domains=DOMAINS).transform(new, ["new"] * 200)
    other = adjust.fit(units * X, domains=DOMAINS).transform(units * new, ["new"] * 200)
    np.testing.assert_allclose(other, units * plain if strategy == "center" else plain, rtol=1e-6)


@every_strategy
def test_a_feature_that_is_constant_in_a_domain_stays_finite(strategy):
    X = rows()
    X[DOMAINS == "c", 0] = 3.0
    Z = DomainAdjuster(strategy).fit_transform(X, domains=DOMAINS)
    np.testing.assert_allclose(Z[DOMAINS == "c", 0], 0.0, atol=1e-9)


def test_without_domains_all_rows_are_one_and_a_warning_says_so():
    X = rows()
    adjuster = DomainAdjuster()
    with pytest.warns(UserWarning, match="given no domains and treats all rows as one"):
        Z = adjuster.fit_transform(X)
    np.testing.assert_allclose(Z.std(axis=0), 1.0)
    np.testing.assert_array_equal(adjuster.transform(X), Z)


def test_transforming_without_domains_after_several_warns():
    adjuster = DomainAdjuster().fit(rows(), domains=DOMAINS)
    with pytest.warns(UserWarning, match="adjusts all rows as one new domain; pass domains="):
        Z = adjuster.transform(rows(seed=4))
    named = adjuster.transform(rows(seed=4), ["new"] * 75)
    np.testing.assert_array_equal(Z, named)


def test_a_cross_validated_pipeline_without_routing_warns_and_with_it_adjusts_each_domain():
    problem = make_problem("classification")
    model = make_pipeline(DomainAdjuster(), HistGradientBoostingClassifier(max_iter=2))
    data = {"X": problem.X, "y": problem.y, "cv": LeaveOneDomainOut(), "error_score": "raise"}
    with pytest.warns(UserWarning, match="in a Pipeline with metadata routing enabled"):
        cross_validate(
            model,
            **data,
            groups=problem.domains,
            params={"domainadjuster__domains": problem.domains},
        )
    with sklearn.config_context(enable_metadata_routing=True):
        results = cross_validate(
            model, **data, params={"domains": problem.domains}, return_estimator=True
        )
    assert [len(one[0].domains_) for one in results["estimator"]] == [2, 2, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "scale"}, "strategy is 'scale'; use one of 'standardize', 'center'"),
        ({"shrinkage": 2}, "shrinkage is 2"),
        ({"prior_rows": -1}, "prior_rows is -1"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        DomainAdjuster(**options).fit(rows(), domains=DOMAINS)
