"""Anchor regression with the domain as anchor: the equivalences of appendix A."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LinearRegression

from skdare import AnchorRegressor, DARERegressor, ReweightedRegressor


def centred_targets(problem):
    """Targets with mean zero in every domain."""
    y = problem.y.copy()
    for label in problem.labels:
        y[problem.rows(label)] -= y[problem.rows(label)].mean()
    return y


@pytest.mark.parametrize("penalty", [0.0, 0.3, 3.0, 1e4])
def test_whitened_anchor_with_zero_target_means_equals_dare_regression(regression, penalty):
    y = centred_targets(regression)
    shared = {"l2": 0.03, "shrinkage": 0.3, "centered": True, "fit_intercept": False}
    anchor = AnchorRegressor(gamma=penalty, adjust=True, **shared)
    dare = DARERegressor(mean_penalty=penalty, **shared)
    anchor.fit(regression.X, y, domains=regression.domains)
    dare.fit(regression.X, y, domains=regression.domains)
    np.testing.assert_allclose(anchor.coef_, dare.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_whitened_anchor_of_gamma_one_equals_dare_that_leaves_the_means_in(regression, intercept):
    shared = {"l2": 0.03, "shrinkage": 0.3, "centered": True, "fit_intercept": intercept}
    anchor = regression.fit(AnchorRegressor(gamma=1.0, adjust=True, **shared))
    dare = regression.fit(DARERegressor(mean_penalty=None, guess="mean", **shared))
    np.testing.assert_allclose(anchor.coef_, dare.coef_, rtol=1e-8, atol=1e-10)
    assert anchor.intercept_ == pytest.approx(dare.intercept_, abs=1e-9)


def test_gamma_one_is_least_squares_in_which_domains_count_the_same(regression):
    anchor = regression.fit(AnchorRegressor(gamma=1.0, l2=0.0))
    weight = np.zeros(len(regression.y))
    for label in regression.labels:
        weight[regression.rows(label)] = 1 / len(regression.rows(label))
    plain = LinearRegression().fit(regression.X, regression.y, sample_weight=weight)
    np.testing.assert_allclose(anchor.coef_, plain.coef_, rtol=1e-8)
    assert anchor.intercept_ == pytest.approx(plain.intercept_)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 7.0])
def test_anchor_minimises_the_objective_of_the_appendix(regression, gamma):
    def objective(beta):
        total = 0.0
        for label in regression.labels:
            X, y = regression.X[regression.rows(label)], regression.y[regression.rows(label)]
            within = (X - X.mean(axis=0)) @ beta - (y - y.mean())
            total += np.mean(within**2) + gamma * (X.mean(axis=0) @ beta - y.mean()) ** 2
        return total

    anchor = regression.fit(AnchorRegressor(gamma=gamma, l2=0.0, fit_intercept=False))
    best = optimize.minimize(objective, np.zeros(regression.X.shape[1]), tol=1e-12)
    assert objective(anchor.coef_) == pytest.approx(best.fun, rel=1e-8)


def test_a_large_gamma_makes_the_mean_residuals_vanish(regression):
    anchor = regression.fit(AnchorRegressor(gamma=1e7, l2=0.0))
    for label in regression.labels:
        rows = regression.rows(label)
        gap = anchor.predict(regression.X[rows]).mean() - regression.y[rows].mean()
        assert abs(gap) < 1e-4


def test_gamma_zero_forgets_the_domain_means(regression):
    shifted = regression.X.copy()
    for number, label in enumerate(regression.labels):
        shifted[regression.rows(label)] += 5.0 * (number + 1)
    anchor = regression.fit(AnchorRegressor(gamma=0.0, l2=0.0))
    moved = regression.fit(AnchorRegressor(gamma=0.0, l2=0.0), shifted)
    np.testing.assert_allclose(anchor.coef_, moved.coef_, rtol=1e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "trust-ncg"])
def test_iterative_solvers_agree_with_the_direct_one(regression, solver):
    options = {"gamma": 50.0, "adjust": True, "tol": 1e-8}
    exact = regression.fit(AnchorRegressor(solver="direct", **options))
    other = regression.fit(AnchorRegressor(solver=solver, **options))
    np.testing.assert_allclose(other.coef_, exact.coef_, rtol=1e-5, atol=1e-7)


def test_without_a_ridge_anchor_and_reweighted_meet_at_gamma_one(regression):
    anchor = regression.fit(AnchorRegressor(gamma=1.0, l2=0.0))
    reweighted = regression.fit(ReweightedRegressor(l2=0.0))
    np.testing.assert_allclose(anchor.coef_, reweighted.coef_, rtol=1e-6)
