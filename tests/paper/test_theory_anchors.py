"""Appendix A on whole distributions: when anchor regression is DARE, and when its penalty acts."""

from __future__ import annotations

import numpy as np
import pytest

from skdare import AnchorRegressor, DARERegressor
from skdare.paper.theory import (
    LatentDomain,
    LatentModel,
    mean_null_projection,
    population_anchor,
    population_dare,
    population_whitened_anchor,
)
from skdare.paper.theory.anchors import RHO, NewMeans, sample_domains, textbook_anchor
from skdare.paper.theory.model import exact_rows

PENALTIES = [0.0, 0.3, 5.0, 1e3]
PRINTED = {"l2": 0.0, "fit_intercept": False}
WHITENED = {**PRINTED, "shrinkage": 0.0, "centered": True}


def coef(head, data) -> np.ndarray:
    return head.fit(data.X, data.y, domains=data.domains).coef_


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    ("head_for", "solve"),
    [
        (lambda gamma: AnchorRegressor(gamma=gamma, **PRINTED), population_anchor),
        (
            lambda gamma: AnchorRegressor(gamma=gamma, adjust=True, **WHITENED),
            population_whitened_anchor,
        ),
        (lambda penalty: DARERegressor(mean_penalty=penalty, **WHITENED), population_dare),
    ],
    ids=["anchor", "whitened anchor", "DARE"],
)
def test_heads_on_rows_with_exact_moments_give_the_population_solutions(
    rng, head_for, solve, penalty
):
    model = LatentModel.draw(6, 4, mean_rank=3, random_state=rng)
    data = exact_rows(model, 40, rng)
    weights = coef(head_for(penalty), data)
    np.testing.assert_allclose(weights, solve(model, penalty), rtol=1e-7, atol=1e-9)


def test_exact_rows_have_the_moments_of_the_model(rng):
    model = LatentModel.draw(4, 3, law="student", random_state=rng)
    data = exact_rows(model, 30, rng)
    for e, domain in enumerate(model.domains):
        X = data.X[data.domains == e]
        np.testing.assert_allclose(X.mean(axis=0), domain.mean, atol=1e-12)
        np.testing.assert_allclose(np.cov(X.T, bias=True), domain.covariance, atol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_with_one_covariance_and_zero_target_means_anchor_is_dare(rng, penalty):
    data = sample_domains(rng, one_covariance=True)
    anchor = coef(AnchorRegressor(gamma=penalty, **PRINTED), data)
    dare = coef(DARERegressor(mean_penalty=penalty, **WHITENED), data)
    np.testing.assert_allclose(anchor, dare, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("one_covariance", "zero_target_means"), [(False, True), (True, False)])
def test_without_either_assumption_anchor_is_not_dare(rng, one_covariance, zero_target_means):
    data = sample_domains(rng, one_covariance=one_covariance, zero_target_means=zero_target_means)
    anchor = coef(AnchorRegressor(gamma=5.0, **PRINTED), data)
    dare = coef(DARERegressor(mean_penalty=5.0, **WHITENED), data)
    assert np.abs(anchor - dare).max() > 0.01


@pytest.mark.parametrize("gamma", PENALTIES[1:])
def test_the_appendix_is_textbook_anchor_regression_for_domains_of_one_size(rng, gamma):
    equal = sample_domains(rng, zero_target_means=False)
    head = AnchorRegressor(gamma=gamma, **PRINTED)
    np.testing.assert_allclose(coef(head, equal), textbook_anchor(equal, gamma), rtol=1e-7)
    unequal = sample_domains(rng, zero_target_means=False, sizes=(15, 30, 60, 240))
    assert np.abs(coef(head, unequal) - textbook_anchor(unequal, gamma)).max() > 1e-3


@pytest.mark.parametrize("solve", [population_anchor, population_dare, population_whitened_anchor])
def test_where_target_means_are_zero_no_penalty_acts(solve):
    domains = [LatentDomain(2.0 * np.eye(3), np.array([b, -b, 0.0])) for b in (1.0, -3.0, 0.5)]
    model = LatentModel(np.array([1.0, 1.0, 2.0]), domains)
    np.testing.assert_allclose(model.means.T @ model.beta, 0.0)
    np.testing.assert_allclose(solve(model, 1e4), model.beta / 2.0, rtol=1e-9)


def test_after_whitening_gamma_changes_nothing_and_lambda_does(rng):
    model = LatentModel.draw(6, 4, random_state=rng)
    free = population_whitened_anchor(model, 0.0)
    np.testing.assert_allclose(population_whitened_anchor(model, 1e3), free, rtol=1e-9)
    np.testing.assert_allclose(population_dare(model, 0.0), free, rtol=1e-9)
    assert np.abs(population_dare(model, 10.0) - free).max() > 0.1


def test_new_means_lie_inside_or_outside_the_span_of_the_training_means(rng):
    new = NewMeans.draw(1, 1.0, rng)
    P = mean_null_projection(new.models[0].means)
    for inside, outside in zip(new.inside[0], new.outside[0], strict=True):
        np.testing.assert_allclose(P @ inside.b, 0.0, atol=1e-12)
        assert np.linalg.norm(inside.b) == pytest.approx(RHO)
        np.testing.assert_allclose(P @ outside.b, outside.b, atol=1e-12)


@pytest.mark.parametrize(("spread", "insured"), [(0.5, False), (2.0, True)])
def test_the_penalty_of_dare_pays_where_adjustments_fail(rng, spread, insured):
    new = NewMeans.draw(10, spread, rng)
    free, strict = (new.risk(population_dare, penalty, inside=True) for penalty in (0.0, 1e4))
    assert (strict < free) is insured
