"""Adapting by looking for the classes among the rows of a new domain."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse, special

from skdare import DAREClassifier, DARERegressor, load
from skdare.adapting import row_sample
from skdare.fitting.domain_fit import domain_fit_of
from skdare.fitting.mixture import BY_CLASS, MOST_FEATURES, TOGETHER
from small_streams import assert_same_bits

pytestmark = pytest.mark.filterwarnings("ignore::skdare.adapting.LabelShiftWarning")

FORMS = ["mixture", "translation"]
PLAIN = {"adjust": False, "mean_penalty": 0.0}


def classes_of_domains(k, seed=0, domains=3, n=240, d=6, moved=None, shares=None):
    """Gaussian classes at the same places in every domain, or moved in all of them."""
    rng = np.random.default_rng(seed)
    places = 2.5 * np.random.default_rng(100).normal(size=(k, d)) / np.sqrt(d / 2)
    if moved is not None:
        places = places + moved
    y = rng.choice(k, size=domains * n, p=shares)
    X = places[y] + rng.normal(size=(len(y), d))
    return X, y, np.repeat(np.arange(domains), n)


def fitted(k=3, seed=0, **options):
    X, y, domains = classes_of_domains(k, seed)
    return DAREClassifier(**options).fit(X, y, domains=domains)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("form", FORMS)
def test_places_of_classes_are_those_of_the_adjusted_rows(form, k):
    X, y, domains = classes_of_domains(k, seed=3)
    X = X + 10.0 * domains[:, None] + 5.0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    head = DAREClassifier(adaptation=form, shrinkage=0.3, centered=True)
    head.fit(X, y, domains=domains, sample_weight=weight)
    places = domain_fit_of(head).adaptation.places
    Z = np.empty_like(X)
    q = np.empty(len(y))
    for e in range(3):
        own = domains == e
        W = head.adjustments_[e].dense() if form == "mixture" else None
        mean = np.average(X[own], axis=0, weights=weight[own])
        scale = domain_fit_of(head).adaptation.guess.scale
        Z[own] = (X[own] - mean) @ W if form == "mixture" else X[own] * scale
        q[own] = weight[own] / weight[own].sum() / 3
    np.testing.assert_allclose(places.shares, np.bincount(y, q), rtol=1e-12)
    means = np.stack([np.average(Z[y == c], axis=0, weights=q[y == c]) for c in range(k)])
    np.testing.assert_allclose(places.means, means.T, rtol=0, atol=1e-9)
    within = ((Z - means[y]) * q[:, None]).T @ (Z - means[y])
    np.testing.assert_allclose(places.within, within, rtol=0, atol=1e-9)


def by_hand(head, X, mixture):
    """Scores of a mixture on unadjusted features, with a covariance that is inverted each round."""
    adaptation = domain_fit_of(head).adaptation
    places = adaptation.places
    centred = adaptation.formulation.means.subtract_in_use
    Z = (X - X.mean(axis=0) * centred) * adaptation.guess.scale
    n, d = Z.shape
    F = Z @ adaptation.B + adaptation.b
    F = F if F.shape[1] > 1 else np.hstack([np.zeros_like(F), F])
    R = special.softmax(F, axis=1)
    for _ in range(15):
        N = R.sum(axis=0)
        pi = (N + 1) / (N + 1).sum() if mixture.estimate_shares else places.shares
        anchors = places.means + (Z.mean(axis=0) - places.means @ pi)[:, None]
        M = anchors
        if np.isfinite(mixture.anchor_rows):
            kappa = mixture.anchor_rows
            M = (Z.T @ R + kappa * anchors) / (N + kappa)
        scatter = sum((R[:, [c]] * (Z - M[:, c])).T @ (Z - M[:, c]) for c in range(len(N)))
        C = 0.8 * (scatter + d * places.within) / (n + d)
        C += 0.2 * np.trace(places.within) / d * np.eye(d)
        P = np.linalg.solve(C, M)
        G = Z @ P - 0.5 * np.sum(M * P, axis=0)
        G = G + np.log(pi) if mixture.estimate_shares else G
        last = R
        R = special.softmax(F + G, axis=1)
        if np.abs(R - last).max() < 1e-3:
            break
    adapted = F + G

    def spread(scores):
        return np.sqrt(np.mean(np.sum((scores - scores.mean(axis=1, keepdims=True)) ** 2, axis=1)))

    return special.log_softmax(adapted * spread(F) / spread(adapted), axis=1)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(("form", "mixture"), [("mixture", BY_CLASS), ("translation", TOGETHER)])
def test_the_adapted_head_is_the_mixture_by_hand(form, mixture, k):
    head = fitted(k, adaptation=form, **PLAIN)
    X, _, _ = classes_of_domains(k, seed=8, domains=1, moved=np.full((k, 6), 1.0))
    adapted = head.adapt(X, prior_rows=0.0)
    np.testing.assert_allclose(adapted.predict_log_proba(X), by_hand(head, X, mixture), atol=1e-7)


def _centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


def test_classes_that_moved_apart_from_each_other_are_found():
    moved = np.zeros((3, 6))
    moved[0, 0] = 4.0
    moved[1, 0] = -4.0
    head = fitted(3, adaptation="mixture", **PLAIN)
    X, y, _ = classes_of_domains(3, seed=8, domains=1, n=600, moved=moved)
    centred = fitted(3, adaptation="centered", **PLAIN).adapt(X).score(X, y)
    assert head.adapt(X).score(X, y) > centred + 0.1


def test_a_translation_is_told_from_other_shares():
    shares = [0.8, 0.1, 0.1]
    head = fitted(3, adaptation="translation", **PLAIN)
    X, y, _ = classes_of_domains(3, 8, domains=1, n=600, moved=np.full((3, 6), 1.5), shares=shares)
    centred = fitted(3, adaptation="centered", **PLAIN).adapt(X)
    assert head.adapt(X).score(X, y) > max(head.score(X, y), centred.score(X, y)) + 0.05


def test_rows_of_training_change_little():
    X, y, domains = classes_of_domains(3)
    head = DAREClassifier(adaptation="mixture", **PLAIN).fit(X, y, domains=domains)
    adapted = head.adapt(X[domains == 0])
    assert adapted.score(X, y) > head.score(X, y) - 0.01
    assert not np.allclose(adapted.coef_, head.coef_)


@pytest.mark.parametrize("form", FORMS)
def test_adapted_scores_have_the_size_of_the_head_s(form):
    head = fitted(3, adaptation=form, **PLAIN)
    X, _, _ = classes_of_domains(3, seed=8, domains=1, n=400)
    before = np.sqrt(np.mean(_centred(head.decision_function(X)) ** 2))
    after = np.sqrt(np.mean(_centred(head.adapt(X).decision_function(X)) ** 2))
    assert after == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [2, 5, 30])
def test_few_rows_and_rows_of_one_class_are_enough(form, n):
    head = fitted(4, adaptation=form)
    X, y, _ = classes_of_domains(4, seed=8, domains=1)
    rows = X[y == 1][:n]
    assert np.isfinite(head.adapt(rows).predict_proba(X)).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_class_that_some_domains_lack_is_no_obstacle(form):
    X, y, domains = classes_of_domains(3)
    kept = (y != 2) | (domains == 0)
    head = DAREClassifier(adaptation=form).fit(X[kept], y[kept], domains=domains[kept])
    new, labels, _ = classes_of_domains(3, seed=8, domains=1)
    assert head.adapt(new).score(new, labels) > 0.5


@pytest.mark.parametrize("half_life", [None, 100.0])
@pytest.mark.parametrize("limit", [64, 8192])
@pytest.mark.parametrize("form", FORMS)
def test_chunks_do_not_matter(form, limit, half_life, monkeypatch):
    monkeypatch.setattr(row_sample, "FOR_A_MIXTURE", limit)
    head = fitted(3, adaptation=form)
    X, _, _ = classes_of_domains(3, seed=8, domains=1, n=700)
    whole = head.adapter(half_life=half_life).partial_fit(X).head_
    adapter = head.adapter(half_life=half_life)
    for rows in np.split(X, [1, 2, 63, 64, 200, 650]):
        adapter.partial_fit(rows)
    np.testing.assert_allclose(adapter.head_.coef_, whole.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(adapter.head_.intercept_, whole.intercept_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_of_a_long_stream_gives_nearly_the_head_of_all_rows(form, monkeypatch):
    head = fitted(3, adaptation=form)
    X, _, _ = classes_of_domains(3, seed=8, domains=1, n=8000)
    every = head.adapt(X)
    monkeypatch.setattr(row_sample, "FOR_A_MIXTURE", 1000)
    some = head.adapt(X)
    assert np.mean(some.predict(X) == every.predict(X)) > 0.99
    assert np.abs(some.predict_proba(X) - every.predict_proba(X)).mean() < 0.02


@pytest.mark.parametrize("at", [0, 10, 333])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_stream_taken_up_again_ends_at_the_same_bits(tmp_path, monkeypatch, at, dtype):
    monkeypatch.setattr(row_sample, "FOR_A_MIXTURE", 100)
    head = fitted(3, adaptation="mixture")
    X = classes_of_domains(3, seed=8, domains=1, n=700)[0].astype(dtype)
    adapter = head.adapter().partial_fit(X[:at]) if at else head.adapter()
    adapter.save(tmp_path / "stream")
    resumed = head.resume(tmp_path / "stream")
    for rows in np.split(X[at:], [40, 200]):
        assert_same_bits(resumed.partial_fit(rows).head_, adapter.partial_fit(rows).head_)


@pytest.mark.parametrize("form", FORMS)
def test_a_head_that_was_saved_adapts_to_the_same_bits(tmp_path, form):
    head = fitted(3, adaptation=form)
    X, _, _ = classes_of_domains(3, seed=8, domains=1)
    head.save(tmp_path / "head.skdare")
    assert_same_bits(load(tmp_path / "head.skdare").adapt(X), head.adapt(X))
    head.adapt(X).save(tmp_path / "adapted.skdare")
    assert_same_bits(load(tmp_path / "adapted.skdare"), head.adapt(X))


@pytest.mark.parametrize("form", FORMS)
def test_an_adapted_head_can_be_adapted_again(form):
    head = fitted(3, adaptation=form)
    X, _, _ = classes_of_domains(3, seed=8, domains=1)
    assert_same_bits(head.adapt(X[:50]).adapt(X), head.adapt(X))


@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_any_library_give_the_same_head(array_library, form):
    X, y, domains = classes_of_domains(3)
    new, _, _ = classes_of_domains(3, seed=8, domains=1)
    expected = DAREClassifier(adaptation=form).fit(X, y, domains=domains).adapt(new)
    head = DAREClassifier(adaptation=form).fit(array_library.asarray(X), y, domains=domains)
    adapted = head.adapt(array_library.asarray(new))
    np.testing.assert_allclose(adapted.coef_, expected.coef_, rtol=0, atol=1e-6)


def test_sparse_rows_give_the_same_head():
    X, y, domains = classes_of_domains(3)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    head = DAREClassifier(adaptation="mixture", tol=1e-8)
    expected = head.fit(X, y, domains=domains).adapt(X[:200]).coef_
    rows = sparse.csr_array(X)
    adapted = head.fit(rows, y, domains=domains).adapt(rows[:200])
    np.testing.assert_allclose(adapted.coef_, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_an_adaptable_graph_is_given_what_the_adapted_head_predicts_by(form, k):
    head = fitted(k, adaptation=form)
    X, _, _ = classes_of_domains(k, seed=8, domains=1)
    adapted = head.adapt(X)
    given = adapted.onnx_inputs()
    B = domain_fit_of(head).adaptation.B
    F = (X - given["mean"]) @ given["whitener"] @ B + given["intercept"]
    expected = adapted.decision_function(X).reshape(F.shape)
    np.testing.assert_allclose(F, expected, rtol=0, atol=2e-4)


def test_a_fleet_needs_heads_that_keep_no_rows():
    with pytest.raises(ValueError, match="use an adapter for each device"):
        fitted(3, adaptation="mixture").fleet()


def test_no_bound_holds_for_a_stale_root():
    with pytest.raises(ValueError, match="leave staleness at 0"):
        fitted(3, adaptation="mixture").adapter(staleness=0.01)


@pytest.mark.parametrize("form", FORMS)
def test_numbers_have_no_classes(form):
    X, y, domains = classes_of_domains(3)
    with pytest.raises(ValueError, match=f"adaptation is {form!r}, and numbers have no classes"):
        DARERegressor(adaptation=form).fit(X, y.astype(float), domains=domains)


def test_too_many_features_are_refused_before_any_work():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, MOST_FEATURES + 1))
    with pytest.raises(ValueError, match="reduce the features to 4,096"):
        DAREClassifier(adaptation="mixture").fit(X, np.arange(12) % 2, domains=np.arange(12) // 4)


@pytest.mark.parametrize("form", FORMS)
def test_what_a_stream_has_forgotten_does_not_matter(form, monkeypatch):
    monkeypatch.setattr(row_sample, "FOR_A_MIXTURE", 256)
    head = fitted(3, adaptation=form)
    old, _, _ = classes_of_domains(3, seed=4, domains=1, n=5000, moved=np.full((3, 6), -4.0))
    new, _, _ = classes_of_domains(3, seed=8, domains=1, n=2000)
    long = head.adapter(half_life=50.0).partial_fit(old).partial_fit(new).head_
    short = head.adapter(half_life=50.0).partial_fit(new).head_
    assert np.mean(long.predict(new) == short.predict(new)) > 0.99


def test_a_sample_of_single_rows_stays_small(monkeypatch):
    monkeypatch.setattr(row_sample, "FOR_A_MIXTURE", 16)
    adapter = fitted(3, adaptation="mixture").adapter()
    X, _, _ = classes_of_domains(3, seed=8, domains=1, n=600)
    for row in X:
        adapter.partial_fit(row[None])
    assert sum(map(len, adapter._sample._chunks)) <= 16
    assert len(adapter._sample._chunks) <= 17


@pytest.mark.parametrize("form", FORMS)
def test_a_domain_of_one_row_is_no_obstacle_where_nothing_is_whitened(form):
    X, y, domains = classes_of_domains(3)
    domains = np.where(np.arange(len(y)) == 0, 9, domains)
    head = DAREClassifier(adaptation=form)
    if form == "mixture":
        with pytest.raises(ValueError, match="a covariance needs 2"):
            head.fit(X, y, domains=domains)
        return
    assert head.fit(X, y, domains=domains).adapt(X[:100]).adapted_rows_ == 100


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
def test_a_row_far_out_or_other_units_give_a_head_all_the_same(form, dtype):
    head = fitted(3, adaptation=form, standardize=True)
    X = classes_of_domains(3, seed=8, domains=1, n=60)[0].astype(dtype)
    outlier = X.copy()
    outlier[0] *= 1e5
    for rows in (outlier, 1000.0 * X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = head.adapt(rows.astype(dtype))
        assert np.isfinite(adapted.coef_).all()


def test_an_offset_of_all_rows_changes_no_probability():
    X, y, domains = classes_of_domains(3)
    new, _, _ = classes_of_domains(3, seed=8, domains=1)
    probabilities = []
    for offset in (0.0, 1e4):
        head = DAREClassifier(adaptation="translation", tol=1e-9, **PLAIN)
        head.fit(X + offset, y, domains=domains)
        probabilities.append(head.adapt(new + offset).predict_proba(new + offset))
    np.testing.assert_allclose(*probabilities, atol=1e-4)
