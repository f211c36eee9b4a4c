"""Theorem 3: how many domains it takes, and what the printed bound can say about it."""

from __future__ import annotations

import numpy as np
import pytest

from skdare.paper.theory import (
    LatentDomain,
    environment_bound,
    environment_risk,
    excess_risk,
    mean_null_projection,
)
from skdare.paper.theory.environments import expected_kept
from skdare.paper.theory.environments_claims import GAIN, WiderDomain, head_error
from skdare.paper.theory.matrices import effective_rank, eigengap, random_orthogonal

RANK = 12
SPECTRA = ("flat", "equal gaps", "geometric", "j⁻¹", "j⁻²")


def setting(repeats: int = 50, rank: int = RANK) -> WiderDomain:
    return WiderDomain(rank, repeats, np.random.default_rng(0))


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_as_many_domains_as_the_rank_recover_the_invariant_part(spectrum):
    risk = setting().risk(spectrum, np.ones(RANK), RANK + 2)
    assert risk[RANK - 2] > 1e-3
    np.testing.assert_allclose(risk[RANK - 1 :], 0.0, atol=1e-10)


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_differences_of_means_need_one_domain_more(spectrum):
    risk = setting().risk(spectrum, np.ones(RANK), RANK + 2, differences=True)
    assert risk[RANK - 1] > 1e-3
    np.testing.assert_allclose(risk[RANK:], 0.0, atol=1e-10)


def test_risk_is_that_of_the_projected_truth_for_any_guess_and_new_domain():
    rng = np.random.default_rng(1)
    d, E = 5, 2
    U = random_orthogonal(d, rng)[:, :4]
    S = U @ np.diag([3.0, 1.0, 0.5, 0.2]) @ U.T
    root = U * np.sqrt([3.0, 1.0, 0.5, 0.2])
    beta = rng.standard_normal(d)
    guess = rng.standard_normal((d, d))
    new = LatentDomain(rng.standard_normal((d, d)), rng.standard_normal(d))
    limit = excess_risk((np.eye(d) - U @ U.T) @ beta, beta, guess, new)
    draws = []
    for _ in range(4000):
        P = mean_null_projection(root @ rng.standard_normal((4, E)))
        draws.append(excess_risk(P @ beta, beta, guess, new) - limit)
    risk = environment_risk(S, beta, new, guess, E, repeats=4000, random_state=rng)[-1]
    assert risk == pytest.approx(np.mean(draws), abs=6 * np.std(draws) / np.sqrt(4000))


@pytest.mark.parametrize("E", [3, 6, 8])
def test_the_head_with_an_exact_constraint_is_the_projected_truth(E):
    assert head_error(6, E, np.random.default_rng(E)) < 1e-9


@pytest.mark.parametrize("E", range(1, RANK))
def test_before_the_rank_the_projections_are_at_distance_one(E):
    B = setting().means("j⁻²", E)
    limit = np.diag(np.eye(RANK + 1)[-1])
    assert np.linalg.norm(mean_null_projection(B) - limit, 2) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("E", range(1, RANK))
def test_before_the_rank_the_davis_kahan_ratio_is_at_least_one(E):
    s = setting()
    S = s.covariance("geometric")
    B = s.means("geometric", E)
    assert np.linalg.norm(B @ B.T / E - S, 2) >= eigengap(S)


def test_no_spectrum_has_a_smaller_bracket_than_one_with_equal_gaps():
    rng = np.random.default_rng(0)
    least = environment_bound(setting().covariance("equal gaps"), RANK - 1, 1.0)
    assert least > np.sqrt(RANK * (RANK + 1) / 2)
    for _ in range(200):
        values = np.cumsum(rng.gamma(rng.uniform(0.5, 20.0), size=RANK))
        S = np.diag(np.append(values, 0.0))
        assert environment_bound(S, RANK - 1, 1.0) >= least * (1 - 1e-9)


def test_bracket_is_the_one_in_the_paper():
    S = np.diag([4.0, 2.0, 1.0])
    expected = 4.0 * (np.sqrt(1.75 / 2) + np.log(20.0) / 2)
    assert environment_bound(S, 2, 0.05) == pytest.approx(expected)


def test_a_flat_spectrum_keeps_the_share_of_directions_not_yet_seen():
    np.testing.assert_allclose(expected_kept(np.ones(RANK), 3), 0.75)
    risk = setting(3000).risk("flat", np.ones(RANK), RANK)
    np.testing.assert_allclose(risk, GAIN * (1 - np.arange(1, RANK + 1) / RANK), atol=0.05)


@pytest.mark.parametrize("E", range(RANK + 2))
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_kept_directions_add_up_to_those_not_yet_seen(spectrum, E):
    kept = expected_kept(setting().spectra[spectrum], E)
    assert kept.sum() == pytest.approx(max(RANK - E, 0))
    assert np.all(np.diff(kept) >= -1e-12)


@pytest.mark.parametrize("spectrum", ["geometric", "j⁻¹"])
def test_measured_risk_follows_the_kept_share_of_the_truth(spectrum):
    s = setting(2000, 32)
    risk = s.risk(spectrum, np.eye(32)[0], 16)
    kept = [expected_kept(s.spectra[spectrum], E)[0] for E in range(1, 17)]
    np.testing.assert_allclose(risk[2:], GAIN * np.array(kept)[2:], rtol=0.12)


def test_a_small_effective_rank_does_not_help_a_truth_along_all_directions():
    s = setting(100, 64)
    assert effective_rank(s.covariance("j⁻²")) < 2
    assert -0.3 < s.slope("j⁻²", np.ones(64)) < 0


@pytest.mark.parametrize(("spectrum", "slope"), [("j⁻¹", -1.2), ("j⁻²", -2.0)])
def test_along_the_leading_direction_the_slope_is_minus_the_exponent(spectrum, slope):
    assert setting(100, 128).slope(spectrum, np.eye(128)[0]) == pytest.approx(slope, abs=0.25)


def test_means_around_a_point_outside_the_span_cost_the_invariant_part():
    s = setting()
    beta = s.truth(np.ones(RANK))
    B = s.means("flat", RANK + 5)
    B[-1] += 1.0
    np.testing.assert_allclose(mean_null_projection(B) @ beta, 0.0, atol=1e-10)
    differences = mean_null_projection(B[:, 1:] - B[:, :1])
    np.testing.assert_allclose(differences @ beta, s.limit, atol=1e-10)


def test_the_risk_grows_with_the_new_mean_and_the_bound_does_not():
    across = np.tile([1.0, -1.0], RANK // 2) / np.sqrt(RANK)
    none, far = (
        setting(200).risk("equal gaps", np.ones(RANK), 8, shift=length * across)[-1]
        for length in (0.0, 100.0)
    )
    assert far > 100 * none
