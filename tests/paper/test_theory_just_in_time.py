"""Theorem 4: what adapting by unlabelled rows costs, and which of its bounds have units."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdare.paper.theory import (
    JustInTime,
    condition_m,
    just_in_time_bound,
    just_in_time_expected,
    just_in_time_risk,
    whitening_error_bound,
)
from skdare.paper.theory.just_in_time import Simulation
from skdare.paper.theory.just_in_time_claims import adapting_gain
from skdare.paper.theory.matrices import random_orthogonal, symmetric_power
from skdare.paper.theory.population import latent_risk
from skdare.paper.theory.whitening_error import (
    eigen_root_risk,
    latent_covariances,
    whitening_error,
    whitening_spread,
)


def covariance(d: int, condition: float, seed: int = 0) -> np.ndarray:
    U = random_orthogonal(d, np.random.default_rng(seed))
    return (U * np.geomspace(1.0, condition, d)) @ U.T


def simulation(repeats: int, seed: int = 0) -> Simulation:
    return Simulation(repeats, np.random.default_rng(seed))


def risk_on_rows(problem: JustInTime, n_source: int, n_target: int, split: bool, rng) -> float:
    """The theorem's procedure, word by word, on rows."""

    def rows(domain, n):
        latents = domain.latents(n, rng)
        return latents, latents @ domain.A.T

    def centred(X):
        return np.cov(X.T, bias=True)

    Z, X = rows(problem.source, n_source)
    y = Z @ problem.beta + problem.noise * rng.standard_normal(n_source)
    half = n_source // 2 if split else n_source
    S = centred(X[:half])
    fit = slice(half, None) if split else slice(None)
    beta = np.linalg.lstsq(X[fit] @ symmetric_power(S, -0.5), y[fit], rcond=None)[0]
    _, new = rows(problem.target, n_target)
    v = problem.target.A.T @ symmetric_power(centred(new), -0.5) @ beta - problem.beta
    return float(latent_risk(v, problem.target.b))


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize(("d", "n_source", "noise"), [(3, 60, 1.0), (6, 30, 3.0)])
def test_drawn_moments_give_the_risk_of_rows(split, d, n_source, noise):
    rng = np.random.default_rng(0)
    problem = JustInTime.draw(d, noise=noise, random_state=1)
    rows = [risk_on_rows(problem, n_source, 200, split, rng) for _ in range(2000)]
    drawn = just_in_time_risk(problem, n_source, 200, split=split, repeats=2000, random_state=2)
    error = np.hypot(np.std(rows), np.std(drawn)) / np.sqrt(2000)
    assert drawn.mean() == pytest.approx(np.mean(rows), abs=4 * error)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e5])
@pytest.mark.parametrize("sizes", [(4000, math.inf), (math.inf, 4000), (6000, 3000)])
def test_first_order_expansion_is_the_mean_risk_of_many_rows(condition, sizes):
    problem = JustInTime.draw(6, condition=condition, shift=2.0, random_state=0)
    risk = just_in_time_risk(problem, *sizes, repeats=3000, random_state=0)
    assert risk.mean() == pytest.approx(just_in_time_expected(problem, *sizes), rel=0.08)


@pytest.mark.parametrize(
    ("few", "many"), [((400, math.inf), (6400, math.inf)), ((math.inf, 400), (math.inf, 6400))]
)
def test_risk_falls_as_one_over_the_rows_of_each_side(few, many):
    problem = JustInTime.draw(5, random_state=0)
    ratio = simulation(2000).risk(problem, *few) / simulation(2000, 1).risk(problem, *many)
    assert ratio == pytest.approx(16.0, rel=0.2)


@pytest.mark.parametrize("d", [4, 16, 48])
def test_risk_of_a_white_target_is_linear_in_the_number_of_features(d):
    n = 60 * d
    risk = simulation(600).risk(JustInTime.plain(d), math.inf, n)
    assert risk == pytest.approx((d + 1) / (4 * n), rel=0.15)
    beta = JustInTime.plain(d).beta
    assert np.trace(whitening_spread(np.eye(d), beta)) == pytest.approx((d + 1) / 4)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6, 1e12])
def test_first_order_error_is_at_most_d_over_n_whatever_the_condition_number(condition):
    d = 10
    S = covariance(d, condition)
    axes = random_orthogonal(d, np.random.default_rng(0))
    traces = [np.trace(whitening_spread(S, beta)) / d for beta in axes.T]
    assert max(traces) < 1.0
    assert 0.25 <= np.mean(traces) <= 0.5


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("n", [12, 40, 1000])
def test_error_of_the_adjustment_is_bounded_without_a_condition_number(condition, n):
    C = latent_covariances(8, n, 200, np.random.default_rng(0))
    error = whitening_error(covariance(8, condition), C)
    assert np.all(np.linalg.norm(error, axis=(1, 2)) <= whitening_error_bound(C))


def test_drawn_covariances_have_the_moments_of_sample_covariances():
    C = latent_covariances(4, 30, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(C.mean(axis=0), 29 / 30 * np.eye(4), atol=0.01)
    variances = C.var(axis=0) * 30**2 / 29
    np.testing.assert_allclose(variances, 1.0 + np.eye(4), rtol=0.06)


@pytest.mark.parametrize("scale", [0.1, 10.0, 100.0])
def test_units_change_neither_the_risk_nor_the_bounds_without_units(scale):
    problem = JustInTime.draw(6, random_state=0)
    scaled = problem.in_units(scale)
    risk = just_in_time_risk(problem, 200, 200, random_state=0)
    np.testing.assert_allclose(just_in_time_risk(scaled, 200, 200, random_state=0), risk, rtol=1e-7)
    for form in ("repaired", "free"):
        bound = just_in_time_bound(problem, 200, 200, form)
        assert just_in_time_bound(scaled, 200, 200, form) == pytest.approx(bound)
    S = problem.target.covariance
    assert condition_m(scale**2 * S) == pytest.approx(scale**-4 * condition_m(S))


def test_in_large_units_the_printed_bound_falls_below_the_risk():
    problem = JustInTime.draw(6, shift=0.0, noise=0.0, random_state=0).in_units(100.0)
    risk = simulation(200).risk(problem, 200, 200)
    assert just_in_time_bound(problem, 200, 200) < 1e-3 * risk
    assert just_in_time_bound(problem, 200, 200, "free") > risk
    assert just_in_time_bound(problem, 200, 200, "repaired") > risk


def test_printed_bound_is_the_one_in_the_appendix():
    problem = JustInTime.plain(3, np.array([2.0, 0.0, 0.0]), scale=2.0)
    expected = (1 + 16.0) * 9 * (1 / 50 + 4.0 / 4.0**3 / 70)
    assert just_in_time_bound(problem, 50, 70) == pytest.approx(expected)


def test_the_mean_of_the_latents_counts_and_that_of_the_features_does_not():
    d = 8
    beta = JustInTime.plain(d).beta
    far, near = (
        simulation(1000).risk(JustInTime.plain(d, 10.0 * beta, scale), math.inf, 800)
        for scale in (0.01, 1.0)
    )
    assert far == pytest.approx(near, rel=1e-6)
    centered = simulation(1000).risk(JustInTime.plain(d), math.inf, 800)
    expected = 1 + 100 * 0.5 / ((d + 1) / 4)
    assert near / centered == pytest.approx(expected, rel=0.15)


def test_splitting_the_source_costs_half_of_its_rows():
    problem = JustInTime.draw(6, random_state=0)
    halves = simulation(3000).risk(problem, 2000, math.inf)
    whole = simulation(3000, 1).risk(problem, 2000, math.inf, split=False)
    assert halves / whole == pytest.approx(2.0, rel=0.15)


def test_eigenvectors_of_equal_eigenvalues_cannot_be_recovered():
    beta = np.ones(6) / np.sqrt(6)
    rng = np.random.default_rng(0)
    assert eigen_root_risk(np.ones(6), beta, 10**6, 100, rng) > 0.5
    assert eigen_root_risk(4.0 ** -np.arange(6), beta, 10**6, 100, rng) < 1e-4


def test_adapting_wins_with_rows_and_loses_without():
    assert adapting_gain(8, 0.5, 10, simulation(30)) < 0
    assert adapting_gain(8, 0.5, 200, simulation(30)) > 0
