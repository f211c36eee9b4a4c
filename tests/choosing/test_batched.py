"""Problems solved together have the solutions that each has alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skdare.choosing import batched
from skdare.choosing.batched import Batch
from skdare.objective.losses import Logistic, Softmax, Squared

RIDGES = (0.3, 0.01)
# By the curvature of a family of problems, by that of equal probabilities, on many rows, and on
# features that are too many to be decorrelated.
WAYS = {
    "curved": {},
    "scaled": {"_CURVED": 0},
    "in parts": {"_CURVED": 0, "_SCORES": 1},
    "correlated": {"_CURVED": 0, "_ROTATED": 0},
}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    for name, value in WAYS[request.param].items():
        monkeypatch.setattr(batched, name, value)
    monkeypatch.setattr(batched, "_TOL", 1e-9)
    monkeypatch.setattr(batched, "_MAX_ITER", 2000)


def rows(k, n=300, d=6, seed=0):
    """Rows, noisy scores, and the row weights of three folds."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) @ np.diag(np.geomspace(0.2, 3.0, d))
    scores = Z @ rng.normal(size=(d, max(k, 2))) + rng.gumbel(size=(n, max(k, 2)))
    weights = rng.uniform(size=(3, n)) * (rng.integers(0, 3, n) != np.arange(3)[:, None])
    return Z, scores, weights / weights.sum(axis=1, keepdims=True)


def batch(Z, T, loss, k, weights, intercept=True, ridges=RIDGES):
    """Every fold at every ridge; each candidate has the same row weights."""
    ridge = np.tile(ridges, (len(weights), 1))
    weighing = np.zeros(len(ridges), dtype=int)
    return Batch(Z, T, loss, k, weights[:, None], weighing, ridge, intercept)


@pytest.mark.parametrize("shape", [(300, 6), (20, 30)], ids=["many rows", "many features"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_each_logistic_problem_has_the_solution_that_it_has_alone(k, intercept, shape, way):
    Z, scores, weights = rows(k, *shape)
    T = scores.argmax(axis=1)
    loss = Logistic() if k == 1 else Softmax()
    B, b = batch(Z, T, loss, k, weights, intercept).solve()
    for f, c in np.ndindex(3, 2):
        alone = LogisticRegression(
            C=1.0 / RIDGES[c], fit_intercept=intercept, tol=1e-10, max_iter=10_000
        ).fit(Z, T, sample_weight=weights[f])
        np.testing.assert_allclose(B[f, c].T, alone.coef_, rtol=0, atol=2e-5)
        np.testing.assert_allclose(
            b[f, c] - b[f, c].mean() * (k > 1),
            (alone.intercept_ - alone.intercept_.mean() * (k > 1)) * np.ones(k),
            rtol=0,
            atol=2e-5,
        )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [300, 5], ids=["many rows", "few rows"])
def test_ridge_regressions_are_those_of_scikit_learn(n, intercept):
    Z, scores, weights = rows(1, n, 8)
    T = scores[:, 0]
    B, b = batch(Z, T, Squared(), 1, weights, intercept).solve()
    for f, c in np.ndindex(3, 2):
        alone = Ridge(alpha=RIDGES[c], fit_intercept=intercept).fit(Z, T, weights[f])
        np.testing.assert_allclose(B[f, c, :, 0], alone.coef_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(b[f, c], alone.intercept_, rtol=0, atol=1e-8)


def test_candidates_may_weigh_rows_in_different_ways():
    Z, scores, weights = rows(1)
    T = scores[:, 0]
    two = np.stack([weights[:2], weights[1:]], axis=1)
    B, _ = Batch(Z, T, Squared(), 1, two, np.array([0, 1]), np.full((2, 2), 0.1), True).solve()
    for f, c in np.ndindex(2, 2):
        alone = Ridge(alpha=0.1).fit(Z, T, weights[f + c])
        np.testing.assert_allclose(B[f, c, :, 0], alone.coef_, rtol=0, atol=1e-8)


def test_held_out_rows_are_forgotten_at_the_tolerance_of_a_search():
    # A fit that stopped early on its way from all rows would still know them.
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(240, 40))
    T = rng.integers(0, 2, 240)
    weights = (np.arange(240) % 4 != np.arange(4)[:, None]) / 180.0
    B, b = batch(Z, T, Logistic(), 1, weights, ridges=(1e-3,)).solve()
    for f in range(4):
        out = weights[f] == 0
        exact = LogisticRegression(C=1e3, tol=1e-10, max_iter=10_000)
        exact.fit(Z, T, sample_weight=weights[f])
        predicted = Z[out] @ B[f, 0, :, 0] + b[f, 0] > 0
        assert np.mean(predicted == exact.predict(Z[out])) > 0.9


@pytest.mark.parametrize("k", [1, 3])
def test_rows_without_weight_change_nothing(k, way):
    Z, scores, weights = rows(k)
    T = scores.argmax(axis=1)
    loss = Logistic() if k == 1 else Softmax()
    out = weights[0] == 0
    other, turned = Z.copy(), T.copy()
    other[out] *= -7.0
    turned[out] = 0
    solved = [batch(X, t, loss, k, weights[:1]).solve() for X, t in ((Z, T), (other, turned))]
    np.testing.assert_allclose(solved[0][0], solved[1][0], rtol=0, atol=1e-5)


def test_a_class_that_is_held_out_with_its_domain_is_never_predicted():
    Z, scores, _ = rows(3)
    T = scores.argmax(axis=1)
    weight = (T != 2) / np.sum(T != 2)
    B, b = batch(Z, T, Softmax(), 3, weight[None], ridges=(0.1,)).solve()
    assert 2 not in (Z @ B[0, 0] + b[0, 0]).argmax(axis=1)


def test_without_a_ridge_directions_that_do_not_vary_have_no_weight():
    Z, scores, weights = rows(1, d=6)
    Z[:, 3] = 0.0
    B, _ = batch(Z, scores[:, 0], Squared(), 1, weights, ridges=(0.0,)).solve()
    np.testing.assert_allclose(B[:, :, 3], 0.0, rtol=0, atol=1e-12)
    assert np.isfinite(B).all()
