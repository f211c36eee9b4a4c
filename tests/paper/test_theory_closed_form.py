"""Theorem 1: the closed form against quadrature, heads and large samples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit

from skdare.paper.theory import (
    LAWS,
    LatentModel,
    closed_form,
    eigen_root,
    excess_risk,
    logistic_scale,
    mean_null_projection,
    pooled_regression,
    symmetric_root,
)
from skdare.paper.theory.closed_form import sampled_logistic
from skdare.paper.theory.closed_form_claims import angle, fitted_coefficients, head_errors
from skdare.paper.theory.matrices import random_symmetric

# -- The projection -------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_the_projection_takes_away_the_span_of_the_means_and_nothing_else(rank):
    rng = np.random.default_rng(rank)
    B = rng.normal(size=(5, rank)) @ rng.normal(size=(rank, 7))
    P = mean_null_projection(B)
    np.testing.assert_allclose(P @ B, 0.0, atol=1e-12)
    np.testing.assert_allclose(P @ P, P, atol=1e-12)
    np.testing.assert_allclose(P, P.T)
    assert np.trace(P) == pytest.approx(5 - rank)


# -- Regression -----------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_regression_heads_tend_to_the_projected_truth_for_every_law(law):
    model = LatentModel.draw(6, 3, law=law, random_state=0)
    errors = head_errors(model, (1_000, 16_000), seed=0, repeats=5).y
    assert errors[1] < 0.05 < np.linalg.norm(model.beta - closed_form(model).coef)
    assert 2.0 < errors[0] / errors[1] < 8.0  # the root of 16 is 4


def test_sampled_means_take_more_away_than_true_ones_unless_the_penalty_grows_slowly():
    model = LatentModel.draw(6, 3, mean_rank=2, random_state=0)
    every, exact, penalty = (
        head_errors(model, (1_000, 16_000), seed=0, repeats=4, penalty_for=penalty_for).y
        for penalty_for in (lambda n: 1e8, lambda n: "exact", lambda n: n**0.5)
    )
    assert every[1] > 0.1
    assert penalty[1] < 0.5 * penalty[0] < 0.1
    assert exact[1] < 0.5 * exact[0] < 0.1


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("shift", [0.5, 6.0])
@pytest.mark.parametrize(
    ("d", "E", "rank"), [(6, 3, 2), pytest.param(20, 12, 3, marks=pytest.mark.slow)]
)
def test_the_exact_constraint_tends_to_the_populations_at_the_rate_of_the_noise(
    d, E, rank, shift, law
):
    options = {"mean_rank": rank, "shift": shift, "law": law}
    models = [LatentModel.draw(d, E, **options, random_state=k) for k in range(4)]
    errors = [head_errors(m, (2_000, 32_000), seed=9, repeats=1).y for m in models]
    few, many = np.median(errors, axis=0)
    assert 2.0 < few / many < 8.0  # the root of 16 is 4
    assert many < 0.05


# -- Logistic regression --------------------------------------------------------------------------

CASES = [
    (1.0, 2.0, [0.0]),
    (3.0, 0.5, [1.0, -4.0, 0.3]),
    (0.2, 5.0, [2.0, 2.0]),
    (4.0, 4.0, [-6.0]),
]


def normal_mean(function, mean, deviation):
    def integrand(t):
        return function(mean + deviation * t) * np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)

    return integrate.quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-12, limit=500)[0]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("kept", "dropped", "shifts"), CASES)
def test_the_population_gradient_vanishes_at_the_scale_and_intercept(
    kept, dropped, shifts, intercept
):
    fit = logistic_scale(kept, dropped, np.array(shifts), intercept=intercept)
    total = np.hypot(kept, dropped)
    # The score s = u + τ is N(m, total²), and E[u | s] = (kept/total)² (s - m).
    wanted = np.mean(
        [
            (kept / total) ** 2 * normal_mean(lambda s, m=m: (s - m) * expit(s), m, total)
            for m in shifts
        ]
    )
    slope = normal_mean(lambda u: u * expit(fit.scale * u + fit.intercept), 0.0, kept)
    assert slope == pytest.approx(wanted, abs=1e-10)
    if intercept:
        share = normal_mean(lambda u: expit(fit.scale * u + fit.intercept), 0.0, kept)
        true_share = np.mean([normal_mean(expit, m, total) for m in shifts])
        assert share == pytest.approx(true_share, abs=1e-10)
    else:
        assert fit.intercept == 0.0


@pytest.mark.parametrize("intercept", [True, False])
def test_the_scale_lies_between_zero_and_one_whatever_the_means(intercept):
    rng = np.random.default_rng(0)
    for _ in range(100):
        kept, dropped = rng.exponential(2.0, size=2)
        shifts = rng.normal(scale=rng.exponential(3.0), size=3)
        scale = logistic_scale(kept, dropped, shifts, intercept=intercept).scale
        centred = logistic_scale(kept, dropped, 0.0 * shifts, intercept=intercept).scale
        assert 0.0 < scale <= 1.0
        assert intercept or scale <= centred  # any mean makes the unseen part count for more


def test_the_scale_vanishes_at_means_that_leave_no_doubt():
    assert 0.0 < logistic_scale(1.0, 1.0, np.array([20.0])).scale < 1e-7
    assert logistic_scale(1.0, 1.0, np.array([800.0])).scale == 0.0
    with pytest.raises(ValueError, match=r"a share below 1e-12.*; use smaller shifts"):
        logistic_scale(1.0, 1.0, np.array([800.0]), intercept=True)


@pytest.mark.parametrize("intercept", [True, False])
def test_classification_heads_find_the_attenuated_projection(intercept):
    model = LatentModel.draw(5, 3, task="classification", random_state=3)
    model = replace(model, beta=2.0 * model.beta)
    n = 40_000
    expected = closed_form(model, intercept=intercept)
    coef = fitted_coefficients(model, n, 0, intercept=intercept)
    # A weight has standard error (Σ p(1-p))^{-1/2}, and whitening adds about as much.
    error = 8 * (3 * n * 0.12) ** -0.5
    assert np.linalg.norm(coef - expected.coef) < error
    assert np.linalg.norm(coef - expected.coef / expected.scale) > 2 * error


def test_large_samples_of_gaussian_latents_have_the_closed_form():
    model = LatentModel.draw(5, 2, task="classification", random_state=1)
    model = replace(model, beta=3.0 * model.beta)
    coef = sampled_logistic(model, 100_000, random_state=0)
    np.testing.assert_allclose(coef, closed_form(model).coef, atol=0.01)


def test_skewed_latents_bend_the_solution_more_than_symmetric_ones():
    bends = dict.fromkeys(("gaussian", "laplace", "skewed"), 0.0)
    for law in bends:
        for seed in range(4):
            model = LatentModel.draw(8, 2, law=law, task="classification", random_state=seed)
            model = replace(model, beta=4.0 * model.beta)
            coef = sampled_logistic(model, 30_000, random_state=seed)
            bends[law] += angle(coef, mean_null_projection(model.means) @ model.beta) / 4
    assert bends["gaussian"] < 0.7 * bends["laplace"]
    assert bends["laplace"] < 0.5 * bends["skewed"]


# -- Roots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [symmetric_root, eigen_root])
def test_a_root_times_its_transpose_is_the_covariance(root):
    A = np.random.default_rng(0).normal(size=(4, 4))
    np.testing.assert_allclose(root(A @ A.T) @ root(A @ A.T).T, A @ A.T, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_symmetric_root_recovers_symmetric_transformations(seed):
    A = random_symmetric(4, 2.0, np.random.default_rng(seed))
    np.testing.assert_allclose(symmetric_root(A @ A.T), A, atol=1e-10)


def test_one_covariance_belongs_to_two_transformations_with_opposite_latents():
    # Both are U S with V = I.
    first = np.diag([2.0, 1.0])
    second = np.diag([-2.0, 1.0])
    np.testing.assert_array_equal(first @ first.T, second @ second.T)
    root = np.linalg.inv(eigen_root(first @ first.T))
    np.testing.assert_allclose((root @ first)[0], -(root @ second)[0])


# -- The running example --------------------------------------------------------------------------


def test_invariant_prediction_loses_what_varies_and_alignment_loses_nothing():
    model = LatentModel.invariant_subspace(2, 3, 4, random_state=0)
    invariant = model.beta * (np.arange(5) < 2)
    lost = np.sum(model.beta[2:] ** 2)
    pooled = pooled_regression(model)
    risks = []
    for domain in model.domains:
        W = np.linalg.inv(domain.A)
        assert excess_risk(invariant, model.beta, W, domain) == pytest.approx(lost)
        assert excess_risk(closed_form(model).coef, model.beta, W, domain) < 1e-20
        risks.append(excess_risk(pooled, model.beta, np.eye(5), domain))
    assert 0.0 < np.mean(risks) < lost
