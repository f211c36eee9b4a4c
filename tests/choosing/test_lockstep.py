"""Problems solved together have the solutions that each has alone."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skdare.choosing import lockstep
from skdare.choosing.lockstep import LogisticProblems, lockstep_lbfgs
from skdare.choosing.ridge import RidgeProblems

RIDGES = np.array([0.3, 0.01])
# By the curvature of a whole family, by that of equal probabilities, on many rows, and on features
# that are too many to be decorrelated.
WAYS = {
    "curved": {},
    "scaled": {"_CURVED": 0},
    "large": {"_CURVED": 0, "_LARGE": 1},
    "as they are": {"_CURVED": 0, "_ROTATED": 0},
}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    for name, value in WAYS[request.param].items():
        monkeypatch.setattr(lockstep, name, value)


def rows(k, d=6, n=300, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) @ np.diag(np.geomspace(0.2, 3.0, d))
    scores = Z @ rng.normal(size=(d, max(k, 2))) + rng.gumbel(size=(n, max(k, 2)))
    weights = rng.uniform(size=(3, n)) * (rng.integers(0, 3, n) != np.arange(3)[:, None])
    return Z, scores, weights / weights.sum(axis=1, keepdims=True)


def by_scikit_learn(Z, T, weight, ridge, intercept):
    """One of the problems, whose penalty scikit-learn weighs against the sum of losses."""
    head = LogisticRegression(C=1.0 / ridge, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
    return head.fit(Z, T, sample_weight=weight)


@pytest.mark.parametrize("shape", [(300, 6), (20, 30)], ids=str)  # more rows than features, fewer
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_each_problem_has_the_solution_that_it_has_alone(k, intercept, shape, way):
    Z, scores, weights = rows(k, n=shape[0], d=shape[1])
    T = scores.argmax(axis=1)
    group = np.repeat(np.arange(3), 2)
    ridge = np.tile(RIDGES, 3)
    family = np.tile(np.arange(2), 3)
    problems = LogisticProblems(Z, T, k, weights, group, ridge, intercept, family)
    B, b = problems.solve(tol=1e-9, max_iter=1000)
    for p, g in enumerate(group):
        expected = by_scikit_learn(Z, T, weights[g], ridge[p], intercept)
        np.testing.assert_allclose(B[p], expected.coef_, rtol=0, atol=1e-5)
        mine = b[p] - b[p].mean() if k > 1 else b[p]
        theirs = expected.intercept_ * np.ones(k)
        np.testing.assert_allclose(mine, theirs - theirs.mean() * (k > 1), rtol=0, atol=1e-5)


def test_rows_that_are_left_out_are_forgotten(way):
    # A fit that stops early on its way from one to all rows would still know them.
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(240, 40))
    T = rng.integers(0, 2, 240)
    weights = (np.arange(240) % 4 != np.arange(4)[:, None]) / 180
    ridge = np.full(4, 1e-3)
    problems = LogisticProblems(Z, T, 1, weights, np.arange(4), ridge, True, np.zeros(4, dtype=int))
    B, b = problems.solve(tol=5e-4, max_iter=200)
    for p in range(4):
        out = weights[p] == 0
        exact = by_scikit_learn(Z, T, weights[p], ridge[p], True)
        assert np.mean((Z[out] @ B[p, 0] + b[p, 0] > 0) == exact.predict(Z[out])) > 0.9


def test_rows_without_weight_have_no_say():
    Z, scores, weights = rows(3)
    T = scores.argmax(axis=1)
    other, turned = Z.copy(), T.copy()
    other[weights[0] == 0] *= -7.0
    turned[weights[0] == 0] = 0
    ridge = np.array([0.1])
    # From the same coordinates, which all rows have a part in.
    alone = weights[:1]
    both = [
        LogisticProblems(X, t, 3, alone, np.array([0]), ridge).solve(tol=1e-9, max_iter=500)
        for X, t in ((Z, T), (other, turned))
    ]
    np.testing.assert_allclose(both[0][0], both[1][0], rtol=0, atol=1e-6)


def test_a_class_that_is_left_out_with_its_domain_is_never_predicted():
    Z, scores, _ = rows(3)
    T = scores.argmax(axis=1)
    weight = (T != 2) / np.sum(T != 2)
    problems = LogisticProblems(Z, T, 3, weight[None], np.array([0]), np.array([0.1]))
    B, b = problems.solve(tol=5e-4, max_iter=200)
    assert 2 not in (Z @ B[0].T + b[0]).argmax(axis=1)


def test_steps_that_ascend_are_halved():
    def evaluate(theta, numbers):
        curvature = np.array([1.0, 400.0])[numbers]
        value = 0.5 * curvature * np.sum((theta - 3.0) ** 2, axis=1)
        return value, curvature[:, None] * (theta - 3.0)

    minima = lockstep_lbfgs(evaluate, np.zeros((2, 4)), tol=1e-8, max_iter=50)
    np.testing.assert_allclose(minima, 3.0, rtol=0, atol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [300, 5])  # more rows than features, and fewer
def test_ridge_regressions_are_those_of_scikit_learn(n, intercept):
    Z, scores, weights = rows(1, d=8, n=n)
    T = scores[:, 0]
    group = np.repeat(np.arange(3), 2)
    ridge = np.tile(RIDGES, 3)
    B, b = RidgeProblems(Z, T, weights, group, ridge, intercept).solve()
    for p, g in enumerate(group):
        head = Ridge(alpha=ridge[p], fit_intercept=intercept).fit(Z, T, sample_weight=weights[g])
        np.testing.assert_allclose(B[p, 0], head.coef_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(b[p, 0], head.intercept_, rtol=0, atol=1e-8)
