"""Theorem 2: the adversary's set, its supremum, and searches that know nothing of either."""

from dataclasses import replace

import numpy as np
import pytest

from skdare.paper.theory import (
    LAWS,
    Adversary,
    LatentDomain,
    LatentModel,
    attack,
    averaged_guess,
    eigen_root,
    excess_risk,
    guess_error,
    mean_null_projection,
    pooled_regression,
    symmetric_root,
    worst_case,
)
from skdare.paper.theory.adversary_claims import EXAMPLE
from skdare.paper.theory.adversary_search import supremum_with_means
from skdare.paper.theory.error_budget import attack_blocks, eigenvalue_bounds

INTERACTIONS = (0.0, 0.3, 1.0, 2.5)
SMALL = Adversary(np.array([0.6, 0.8]), np.diag([1.0, 0.0]))


def drawn(seed, d=5, **set_of):
    """An adversary, the guess and the model of random domains."""
    model = LatentModel.draw(d, 2, random_state=seed)
    adversary = Adversary(model.beta, mean_null_projection(model.means), **set_of)
    return adversary, averaged_guess(model), model


# -- The risk and the error of the guess ----------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_the_excess_risk_is_the_mean_squared_difference_of_predictions(law):
    rng = np.random.default_rng(0)
    n = 400_000
    A, W = rng.normal(size=(2, 3, 3))
    beta, truth, b = rng.normal(size=(3, 3))
    domain = LatentDomain(A, b, law)
    latents = domain.latents(n, rng)
    squares = (latents @ A.T @ W.T @ beta - latents @ truth) ** 2
    error = 5 * squares.std() / np.sqrt(n)
    assert excess_risk(beta, truth, W, domain) == pytest.approx(squares.mean(), abs=error)


@pytest.mark.parametrize(("root", "same"), [(symmetric_root, True), (eigen_root, False)])
def test_the_printed_difference_is_right_for_symmetric_roots_only(root, same):
    domains = LatentModel.draw(3, 2, random_state=0).domains
    A = root(domains[0].covariance)
    W = np.linalg.inv(root(domains[1].covariance))
    difference = guess_error(W, LatentDomain(A, np.zeros(3)))
    assert np.allclose(difference, A @ W - np.eye(3)) == same


# -- The supremum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 1.5])
@pytest.mark.parametrize("interaction", INTERACTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_explicit_domains_are_in_the_set_and_tend_to_the_supremum(seed, interaction, rho):
    adversary, W, _ = drawn(seed, interaction=interaction, rho=rho)
    gaps = []
    for slack in (1e-1, 1e-2, 1e-3):
        domain = adversary.worst_domain(W, slack=slack)
        assert adversary.admits(W, domain)
        np.testing.assert_allclose(domain.A, domain.A.T)
        assert np.linalg.eigvalsh(domain.A)[0] > 0
        risk = excess_risk(adversary.solution, adversary.truth, W, domain)
        gaps.append(1.0 - risk / adversary.supremum())
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 3e-3


@pytest.mark.parametrize("interaction", INTERACTIONS)
@pytest.mark.parametrize("scale", [1.0, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_the_supremum_and_never_exceeds_it(seed, scale, interaction):
    adversary, W, _ = drawn(seed, interaction=interaction, rho=0.5, scale=scale)
    domain = attack(adversary, W, random_state=seed)
    assert adversary.admits(W, domain)
    risk = excess_risk(adversary.solution, adversary.truth, W, domain)
    assert 0.97 < risk / adversary.supremum() < 1.0 + 1e-6


@pytest.mark.parametrize("interaction", INTERACTIONS)
@pytest.mark.parametrize("a", [-0.5, 0.0, 0.3, 0.8, 1.0, 1.7])
def test_the_supremum_is_the_largest_risk_over_a_grid_of_errors(a, interaction):
    adversary = replace(SMALL, interaction=interaction, scale=0.7)
    side = np.linspace(-1.0, 1.0, 401)
    w = 0.6 * np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    allowed = (np.sum(w**2, axis=1) <= 0.36) & (0.7 * np.abs(w[:, 1]) <= interaction * 0.6 + 1e-12)
    v = a * (w[allowed] + adversary.kept) - adversary.truth
    largest = np.max(np.sum(v**2, axis=1))
    assert adversary.supremum(a * adversary.kept) == pytest.approx(largest, rel=0.01)
    assert adversary.supremum(a * adversary.kept) > largest - 1e-9


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("interaction", INTERACTIONS)
def test_the_printed_supremum_is_exact_for_regression_up_to_one_and_too_large_else(
    interaction, scale
):
    adversary = replace(EXAMPLE, interaction=interaction, scale=scale, rho=1.0)
    if interaction == 0.0 or (scale == 1.0 and interaction <= 1.0):
        assert adversary.supremum() == pytest.approx(adversary.printed_supremum())
    else:
        assert adversary.supremum() < 0.99 * adversary.printed_supremum()


# -- Minimaxity -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_zero_ties_with_dare_without_interaction(seed):
    adversary, _, _ = drawn(seed, rho=1.0)
    assert adversary.supremum(np.zeros(5)) == pytest.approx(adversary.supremum())


@pytest.mark.parametrize("interaction", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_zero_beats_dare_with_any_interaction(seed, interaction):
    adversary, _, _ = drawn(seed, interaction=interaction, rho=1.0)
    zero = adversary.supremum(np.zeros(5))
    assert zero < adversary.supremum()
    best = min(adversary.supremum(a * adversary.kept) for a in np.linspace(-1.0, 2.0, 61))
    assert zero == pytest.approx(best)


def predictors(adversary, W, model):
    """Some that are not along the projected truth, on adjusted features."""
    half = adversary.truth.copy()
    half[::2] = 0.0
    return {
        "oracle": adversary.truth,
        "pooled": np.linalg.solve(W.T, pooled_regression(model)),
        "half": half,
    }


@pytest.mark.parametrize("name", ["oracle", "pooled", "half"])
@pytest.mark.parametrize("seed", range(2))
def test_no_predictor_that_leaves_the_projected_truth_has_a_bounded_risk(seed, name):
    adversary, W, model = drawn(seed, interaction=0.3)
    beta = predictors(adversary, W, model)[name]
    assert adversary.supremum(beta) == np.inf
    error = 0.5 * adversary.kept
    domains = [adversary.domain(W, error, np.zeros(5), stretch=stretch) for stretch in (1e2, 1e4)]
    assert all(adversary.admits(W, domain) for domain in domains)
    risks = [excess_risk(beta, adversary.truth, W, domain) for domain in domains]
    assert risks[1] > 1e3 * risks[0] > 1e3 * adversary.supremum()
    # One search may end where it began; ten do not.
    domain = attack(adversary, W, beta, starts=10, random_state=0)
    assert excess_risk(beta, adversary.truth, W, domain) > 10 * adversary.supremum()


# -- Steps of the proof ---------------------------------------------------------------------------


def test_the_adversary_of_the_proof_is_allowed_only_with_its_indices_swapped():
    printed = LatentDomain(np.diag([11.0, 1.0, 1.0, 1.0]), np.zeros(4))
    swapped = LatentDomain(np.diag([1.0, 1.0, 11.0, 1.0]), np.zeros(4))
    assert not EXAMPLE.admits(np.eye(4), printed)
    assert EXAMPLE.admits(np.eye(4), swapped)


def test_a_symmetric_transformation_cannot_turn_a_vector_by_more_than_a_right_angle():
    adversary = replace(SMALL, interaction=1.0)
    stiff = np.array([[0.2, 1.5], [1.5, 12.0]])
    with pytest.raises(ValueError, match="obtuse angle"):
        adversary.worst_domain(stiff)
    domain = attack(adversary, stiff, starts=5, size=50.0, random_state=0)
    risk = excess_risk(adversary.solution, adversary.truth, stiff, domain)
    assert risk < 0.7 * adversary.supremum()


@pytest.mark.parametrize(("b", "holds"), [([0.0, 0.0, 0.0], True), ([0.0, 2.0, 0.0], False)])
def test_with_a_new_mean_the_lemma_on_assumption_3_fails(b, holds):
    adversary = Adversary(np.array([0.6, 0.0, 0.8]), np.diag([1.0, 1.0, 0.0]), rho=2.0)
    domain = adversary.domain(np.eye(3), np.array([0.0, 0.5, 0.0]), np.array(b))
    assert adversary.admits(np.eye(3), domain)
    dare, zero = (
        excess_risk(beta, adversary.kept, np.eye(3), domain)
        for beta in (adversary.kept, np.zeros(3))
    )
    assert (dare < zero) == holds


@pytest.mark.parametrize(
    ("interaction", "rho", "same"), [(0.0, 1.0, True), (0.5, 0.0, True), (0.5, 1.0, False)]
)
def test_the_mean_in_assumption_3_matters_where_there_is_interaction(interaction, rho, same):
    adversary = replace(SMALL, interaction=interaction, rho=rho)
    searched = supremum_with_means(adversary, random_state=0)
    if same:
        assert searched == pytest.approx(adversary.supremum(), rel=1e-4)
    else:
        assert adversary.supremum(np.zeros(2)) < searched < 0.95 * adversary.supremum()


# -- A budget -------------------------------------------------------------------------------------


def blocks(error):
    P = np.diag([1.0, 1.0, 0.0, 0.0, 0.0])
    return [(P, min(error, 1.0)), (np.eye(5) - P, error)]


@pytest.mark.parametrize("error", [0.0, 0.4, 1.0, 1.8])
@pytest.mark.parametrize("seed", range(3))
def test_the_worst_case_under_a_budget_is_what_a_search_finds(seed, error):
    beta, truth = np.random.default_rng(seed).normal(size=(2, 5))
    M = attack_blocks(beta, truth, blocks(error), random_state=seed)
    searched = excess_risk(beta, truth, np.eye(5), LatentDomain(M, np.zeros(5)))
    assert searched == pytest.approx(worst_case(beta, truth, blocks(error)), rel=1e-6)
    values = np.linalg.eigvalsh(M)
    assert values[0] > -1e-9
    assert np.abs(values - 1.0).max() < error + 1e-9


@pytest.mark.parametrize("error", [0.4, 1.8])
def test_no_random_domain_within_the_budget_costs_more_than_its_worst_case(error):
    rng = np.random.default_rng(0)
    beta, truth = rng.normal(size=(2, 5))
    worst = worst_case(beta, truth, blocks(error), rho=1.0)
    for _ in range(200):
        M = np.zeros((5, 5))
        for rows, (_, radius) in zip((slice(0, 2), slice(2, 5)), blocks(error), strict=True):
            k = rows.stop - rows.start
            U = np.linalg.qr(rng.normal(size=(k, k)))[0]
            M[rows, rows] = (U * rng.choice(eigenvalue_bounds(radius), size=k)) @ U.T
        b = rng.normal(size=5)
        domain = LatentDomain(M, b / np.linalg.norm(b))
        assert excess_risk(beta, truth, np.eye(5), domain) < worst


def test_up_to_an_error_of_one_the_worst_case_is_the_sum_of_two_lengths():
    beta, truth = np.random.default_rng(0).normal(size=(2, 5))
    parts = [(beta[:2], truth[:2]), (beta[2:], truth[2:])]
    expected = sum((np.linalg.norm(u - t) + 0.7 * np.linalg.norm(u)) ** 2 for u, t in parts)
    assert worst_case(beta, truth, blocks(0.7)) == pytest.approx(expected)
