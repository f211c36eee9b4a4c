"""The safety check objects to classes that vanish or collapse, and to nothing like training."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse

from held_out_problems import made, problem_of
from skdare.errors import DataNote
from skdare.fitting.mixture import SHRINKAGE, ClassSums
from skdare.fitting.safety_check import (
    SafetyCheck,
    covariance_within,
    has_outliers,
    log_separation,
)
from skdare.whitening import prior
from skdare.whitening.moments import Moments


def sums_and_moments(problem):
    moments = [Moments.of(problem.X, index) for index in problem.index]
    return [ClassSums.of(problem, e, m) for e, m in enumerate(moments)], moments


@pytest.fixture(scope="module")
def check():
    """A check on four held-out domains, and the problem that it was made on."""
    problem = problem_of(made(E=5, n=80), preparation=None)
    sums, moments = sums_and_moments(problem)
    within = covariance_within(sums, moments)
    separations = np.array(
        [log_separation(s, m, within) for s, m in zip(sums, moments, strict=True)]
    )
    return problem, SafetyCheck.of_domains(sums, moments, separations, shares_fixed=True)


def rows_of(problem, e, codes=None):
    index = problem.index[e]
    codes = problem.T[index] if codes is None else codes
    moments = Moments.of(problem.X, index)
    sums = ClassSums.of_rows(problem.X, index, codes, np.ones(len(codes)), moments.mean, 3)
    return sums, moments


def test_training_domains_are_not_objected_to(check):
    problem, safety = check
    for e in range(5):
        assert safety.objection(*rows_of(problem, e)) is None


def test_a_domain_of_one_predicted_class_is_objected_to(check):
    problem, safety = check
    objection = safety.objection(*rows_of(problem, 0, np.zeros(80, dtype=int)))
    assert "class proportions" in objection


def test_classes_at_random_are_objected_to(check):
    problem, safety = check
    codes = np.random.default_rng(0).permutation(problem.T[problem.index[0]])
    objection = safety.objection(*rows_of(problem, 0, codes))
    assert "far closer together" in objection


def test_few_rows_and_few_domains_are_not_judged_by_separation(check):
    problem, safety = check
    codes = np.random.default_rng(0).permutation(problem.T[problem.index[0]])
    few = SafetyCheck(safety.shares, safety.within, safety.separations[:3])
    assert few.objection(*rows_of(problem, 0, codes)) is None


def test_where_adapting_estimates_proportions_they_may_be_any():
    problem = problem_of(made(E=5, n=80), preparation=None)
    sums, moments = sums_and_moments(problem)
    safety = SafetyCheck.of_domains(sums, moments, np.zeros(2), shares_fixed=False)
    assert safety.shares is None
    assert safety.objection(*rows_of(problem, 0, np.zeros(80, dtype=int))) is None


def test_the_separation_is_the_trace_of_the_scatter_between_over_that_within():
    problem = problem_of(made(E=4, n=50), preparation=None)
    sums, moments = sums_and_moments(problem)
    within = covariance_within(sums, moments)
    X = problem.X[problem.index[1]]
    T = problem.T[problem.index[1]]
    n, d = X.shape
    centred = X - X.mean(axis=0)
    means = np.stack([centred[c == T].mean(axis=0) for c in range(3)])
    counts = np.bincount(T, minlength=3)
    between = (means.T * counts) @ means
    scatter = centred.T @ centred - between + d * within
    expected = np.trace(linalg.solve(scatter / (n + d), between / n)) / d
    assert log_separation(sums[1], moments[1], within) == pytest.approx(np.log(expected))


def test_the_covariance_within_classes_is_the_pooled_and_shrunk_one():
    problem = problem_of(made(E=4, n=50), preparation=None)
    sums, moments = sums_and_moments(problem)
    X, T = problem.X, problem.T
    residual = X - np.stack([X[c == T].mean(axis=0) for c in range(3)])[T]
    S = residual.T @ residual / len(X)
    expected = (1 - SHRINKAGE) * S + SHRINKAGE * np.diag(np.diag(S))
    np.testing.assert_allclose(covariance_within(sums, moments), expected, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-3, 1e4])
def test_the_unit_of_all_features_does_not_matter(unit):
    table = made(E=4, n=50)
    separations = []
    for scale in (1.0, unit):
        scaled = problem_of(type(table)(scale * table.X, table.y, table.domains), preparation=None)
        sums, moments = sums_and_moments(scaled)
        within = covariance_within(sums, moments)
        separations.append(log_separation(sums[2], moments[2], within))
    assert separations[0] == pytest.approx(separations[1])


# -- The mean prediction of a regressor -----------------------------------------------------------


def test_a_regressor_adapts_only_if_that_moves_the_mean_prediction():
    table = made("regression", spread=4.0)
    head = table.choosing().fit(*table.without(0))
    assert head.choice_.adapts
    X = table.of(0)[0]
    assert head.adapt(X).declined_ is None
    # Moved along the weights until the unadapted head predicts the same mean as the adapted one.
    gap = head.adapt(X).predict(X).mean() - head.predict(X).mean()
    same = X + gap * head.coef_.ravel() / np.sum(head.coef_**2)
    with pytest.warns(DataNote, match=r"would move the mean prediction by 0\.[01]"):
        declined = head.adapt(same)
    np.testing.assert_array_equal(declined.predict(same), head.predict(same))
    assert head.adapt(same, force=True).declined_ is None


def test_the_error_of_the_mean_is_that_on_held_out_domains(monkeypatch):
    monkeypatch.setattr(prior, "_HALF_ADAPTED", 0.0)  # no blend with the unadapted head
    table = made("regression", spread=4.0, E=5)
    head = table.choosing(strategies=("erm", "standardize"), l2=(0.01,)).fit(*table.rows)
    errors = []
    for e in range(5):
        X, y = table.of(e)
        alone = table.choosing(strategies=("standardize",), l2=(0.01,)).fit(*table.without(e))
        errors.append(np.mean(y - alone.adapt(X).predict(X)))
    expected = np.sqrt(np.mean(np.square(errors))) / table.y.std()
    assert head.domain_fit_.mean_error == pytest.approx(expected, rel=0.05)


# -- Outliers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "scale", "expected"), [(40, 100.0, True), (40, 1.0, False), (10, 100.0, False)]
)
def test_one_of_many_rows_may_be_an_outlier(n, scale, expected):
    X = 50.0 + np.random.default_rng(0).normal(size=(n, 3))
    X[0] = 50.0 + scale
    for rows in (X, X.astype(np.float32), sparse.csr_matrix(X), np.pad(X, ((0, 0), (0, 60)))):
        assert has_outliers(Moments.of(rows)) == expected
        for cut in (1, n // 2):
            parts = Moments.of(rows[:cut]) + Moments.of(rows[cut:])
            assert has_outliers(parts) == expected


def test_rows_that_are_all_the_same_have_no_outlier():
    X = np.full((40, 3), 0.1)
    assert not any(has_outliers(Moments.of(rows)) for rows in (X, sparse.csr_array(X)))


# -- In a head ------------------------------------------------------------------------------------


def test_an_objection_cancels_adapting_unless_it_is_forced(monkeypatch):
    table = made("binary", E=6, n=90, spread=4.0)
    head = table.choosing(l2=(0.05,)).fit(*table.without(0))
    X = table.of(0)[0]
    adapted = head.adapt(X)
    assert adapted.declined_ is None
    monkeypatch.setattr(SafetyCheck, "objection", lambda self, sums, moments: "it looks odd")
    with pytest.warns(DataNote, match="it looks odd; set force=True"):
        declined = head.adapt(X)
    assert declined.declined_ == "it looks odd"
    np.testing.assert_array_equal(declined.coef_, head.coef_)
    np.testing.assert_array_equal(head.adapt(X, force=True).coef_, adapted.coef_)


def test_separations_of_a_search_are_those_of_what_it_adapts():
    table = made("binary", E=6, n=90, spread=4.0)
    head = table.choosing(l2=(0.05,)).fit(*table.rows)
    assert head.adapts_
    assert len(head.domain_fit_.safety_check.separations) == 6
    assert np.isfinite(head.domain_fit_.safety_check.separations).all()
