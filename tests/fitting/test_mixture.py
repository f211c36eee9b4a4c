"""The rows of a new domain as a mixture of one Gaussian a class, computed in another way."""

import numpy as np
import pytest
from scipy import special

from skdare.fitting.domain_fit import Formulations, fit_domains
from skdare.fitting.lagrangian import Formulation
from skdare.fitting.mixture import (
    BY_CLASS,
    TOGETHER,
    ClassFinder,
    ClassSums,
    NewRows,
    Sample,
    canonical_covariance,
    cholesky,
)
from skdare.fitting.problem import Classes, Problem
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments
from skdare.whitening.whitening import Whitening

WHITENINGS = {
    "centred": Whitening(False, True, 0.0, "scaled", "own mean"),
    "standardised": Whitening(True, True, 1.0, "diagonal", "own mean"),
    "whitened": Whitening(True, True, 0.3, "scaled", "own mean"),
    "raw": Whitening(False, True, 0.0, "scaled"),
}
mixtures = pytest.mark.parametrize("mixture", [BY_CLASS, TOGETHER], ids=["by class", "together"])


def posed(k, *, seed=0, n=120, d=6, moved=0.0):
    """Gaussian classes at the same places in each of three domains, and weights."""
    rng = np.random.default_rng(seed)
    places = 2.5 * np.random.default_rng(100).normal(size=(k, d)) / np.sqrt(d / 2) + moved
    y = rng.integers(0, k, 3 * n)
    X = places[y] + rng.normal(size=(3 * n, d)) + 3.0 * np.repeat(np.arange(3), n)[:, None]
    weight = rng.uniform(0.5, 2.0, 3 * n)
    index = [slice(e * n, (e + 1) * n) for e in range(3)]
    return Problem(X, y, weight, ["a", "b", "c"], index, Classes(np.arange(k)))


def fitted(problem, whitening, mixture, *, by_rows=False):
    how = Formulation(whitening, 0.0, by_rows, True, 0.1, 1e-9, 1000)
    return fit_domains(problem, Formulations(how, how, mixture))


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("name", WHITENINGS)
@pytest.mark.parametrize("k", [2, 4])
def test_places_of_classes_are_those_of_the_adjusted_rows(k, name, by_rows):
    problem = posed(k)
    fit = fitted(problem, WHITENINGS[name], BY_CLASS, by_rows=by_rows)
    places = fit.adaptation.places
    Z = np.empty_like(problem.X)
    q = problem.weight / problem.weight.sum()
    for index, W in zip(problem.index, fit.adjustments, strict=True):
        Z[index] = W.rows(problem.X[index])
        if not by_rows:
            q[index] /= 3 * q[index].sum()
    np.testing.assert_allclose(places.shares, np.bincount(problem.T, q), rtol=1e-12)
    of = [c == problem.T for c in range(k)]
    means = np.stack([np.average(Z[own], axis=0, weights=q[own]) for own in of])
    np.testing.assert_allclose(places.means, means.T, rtol=0, atol=1e-9)
    away = Z - means[problem.T]
    np.testing.assert_allclose(places.within, (away * q[:, None]).T @ away, rtol=0, atol=1e-9)


def by_hand(fit, mixture, Z, weight, codes=None):
    """Scores in canonical coordinates, with a covariance that is inverted in every round."""
    places = fit.adaptation.places
    n, d = weight.sum(), Z.shape[1]
    F = Z @ fit.adaptation.fit.B + fit.adaptation.fit.b
    F = F if F.shape[1] > 1 else np.hstack([np.zeros_like(F), F])

    def shares(scores):
        R = special.softmax(scores, axis=1)
        if codes is not None:
            R[codes >= 0] = np.eye(F.shape[1])[codes[codes >= 0]]
        return R

    R = shares(F)
    for _ in range(15):
        N = weight @ R
        pi = (N + 1) / (N + 1).sum() if mixture.estimates_shares else places.shares
        anchors = places.means + (weight @ Z / n - places.means @ pi)[:, None]
        M = anchors
        if mixture.anchor_rows is not None:
            kappa = mixture.anchor_rows
            M = ((Z * weight[:, None]).T @ R + kappa * anchors) / (N + kappa)
        scatter = 0.0
        for c in range(len(N)):
            away = Z - M[:, c]
            scatter = scatter + (R[:, [c]] * weight[:, None] * away).T @ away
        C = 0.8 * (scatter + d * places.within) / (n + d)
        C = C + 0.2 * np.trace(places.within) / d * np.eye(d)
        P = np.linalg.solve(C, M)
        G = Z @ P - 0.5 * np.sum(M * P, axis=0)
        G = G + np.log(pi) if mixture.estimates_shares else G
        last = R
        R = shares(F + G)
        if np.abs(R - last).max() < 1e-3:
            break

    def spread(scores):
        about = scores - scores.mean(axis=1, keepdims=True)
        return np.sqrt(weight @ np.sum(about**2, axis=1))

    return (F + G) * spread(F) / spread(F + G)


@mixtures
@pytest.mark.parametrize("labelled", [False, True], ids=["no labels", "some labels"])
@pytest.mark.parametrize("name", WHITENINGS)
@pytest.mark.parametrize("k", [2, 4])
def test_a_new_domain_is_scored_by_the_mixture_computed_by_hand(k, name, mixture, labelled):
    fit = fitted(posed(k), WHITENINGS[name], mixture)
    new = posed(k, seed=8, moved=1.0)
    rows = slice(0, 120)
    X, weight = new.X[rows], new.weight[rows]
    codes = np.where(np.arange(120) < 10, new.T[rows], -1) if labelled else None
    moments = Moments.of(X, None, weight)
    trust = fit.adaptation.trust(moments.n, prior_rows=0.0)
    adapted = fit.adapted(moments, trust, Sample(X, weight, moments, codes))
    V, b = adapted.raw_weights()
    found = X @ V + b
    found = found if k > 2 else np.hstack([0.0 * found, found])
    expected = by_hand(fit, mixture, adapted.adjustment.rows(X), weight, codes)
    np.testing.assert_allclose(
        special.log_softmax(found, axis=1), special.log_softmax(expected, axis=1), atol=1e-7
    )


def test_sums_by_class_are_about_the_mean_of_all_rows():
    problem = posed(3)
    for e, index in enumerate(problem.index):
        X, T, weight = problem.X[index], problem.T[index], problem.weight[index]
        moments = Moments.of(X, None, weight)
        sums = ClassSums.of(problem, e, moments)
        for c in range(3):
            own = c == T
            assert sums.weight[c] == pytest.approx(weight[own].sum())
            expected = weight[own] @ (X[own] - moments.mean)
            np.testing.assert_allclose(sums.deviations[:, c], expected, atol=1e-9)


def test_the_covariance_of_adjusted_rows():
    problem = posed(2)
    moments = Moments.of(problem.X)
    W = Adjustment(0.0, np.random.default_rng(0).normal(size=(6, 6)), shift=moments.mean)
    expected = np.cov(W.rows(problem.X).T, bias=True)
    np.testing.assert_allclose(canonical_covariance(moments, W), expected, atol=1e-9)


@mixtures
def test_rows_where_classes_lie_as_in_training_change_little(mixture):
    problem = posed(3)
    fit = fitted(problem, WHITENINGS["whitened"], mixture)
    m, W = fit.moments[0], fit.adjustments[0]
    index = problem.index[0]
    rows = NewRows.of(Sample(problem.X[index], problem.weight[index], m), W)
    before = fit.adaptation.fit.B, fit.adaptation.fit.b
    B, b = ClassFinder(mixture, fit.adaptation.places, rows).weights(*before)
    Z = W.rows(problem.X[index])
    same = (Z @ B + b).argmax(axis=1) == (Z @ before[0] + before[1]).argmax(axis=1)
    assert same.mean() > 0.9


def test_a_factor_of_what_is_positive_but_for_rounding():
    v = np.arange(1.0, 5.0)
    S = np.outer(v, v)
    L = np.tril(cholesky(S)[0])
    np.testing.assert_allclose(L @ L.T, S, rtol=1e-6, atol=1e-6)
