"""Adapting that the new rows speak against is declined."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from skdare import DAREClassifier, DAREClassifierCV, DARERegressorCV, inspect_file, load
from skdare.arrays.passes import RowPart
from skdare.fitting.domain_fit import domain_fit_of
from skdare.fitting.guard import AdaptationGuard, covariance_within, log_separation
from skdare.fitting.mixture import ClassSums, sums_by_class
from skdare.whitening.moments import Moments
from skdare.whitening.roots.cholesky import cholesky
from small_streams import assert_same_bits

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdare.adapting.LabelShiftWarning"),
    pytest.mark.filterwarnings("ignore:leaving a training domain out still scores"),
]


def moved_domains(n=60, domains=6, k=3, d=5, seed=0):
    """Domains that are moved far apart, so that centring pays."""
    rng = np.random.default_rng(seed)
    places = 3.0 * np.random.default_rng(7).normal(size=(k, d))
    labels = np.repeat(np.arange(domains), n)
    y = rng.integers(k, size=len(labels))
    X = places[y] + 6.0 * rng.normal(size=(domains, d))[labels] + rng.normal(size=(len(y), d))
    return X, y, labels


@pytest.fixture(scope="module")
def head():
    X, y, domains = moved_domains()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = DAREClassifierCV().fit(X, y, domains=domains)
    assert fitted.adapts_
    return fitted


def new_rows(seed=11):
    X, y, _ = moved_domains(n=200, domains=1, seed=seed)
    return X, y


def sums_of(X, numbers, k=3):
    part = RowPart(X, slice(0, len(X)), (np.ones(len(X)),))
    return sums_by_class(part, numbers, X.mean(axis=0), k)


def test_separation_is_the_ratio_of_scatters():
    X, y, domains = moved_domains()
    sums = [sums_of(X[domains == e], y[domains == e]) for e in range(6)]
    within = covariance_within(sums, [Moments.of(X[domains == e]) for e in range(6)])
    means = np.stack([X[y == c].mean(axis=0) for c in range(3)])
    pooled = (X - means[y]).T @ (X - means[y]) / len(X)
    np.testing.assert_allclose(within, 0.8 * pooled + 0.2 * np.trace(pooled) / 5 * np.eye(5))
    rows, labels = new_rows()
    own = np.stack([rows[labels == c].mean(axis=0) for c in range(3)])
    scatter = (rows - own[labels]).T @ (rows - own[labels])
    inside = (scatter + 5 * within) / (len(rows) + 5)
    about = own[labels] - rows.mean(axis=0)
    between = about.T @ about / len(rows)
    expected = np.log(np.trace(np.linalg.solve(inside, between)) / 5)
    assert log_separation(sums_of(rows, labels), Moments.of(rows), within) == pytest.approx(
        expected
    )


def test_a_domain_like_the_others_is_adapted_to(head):
    X, y = new_rows()
    adapted = head.adapt(X)
    assert adapted.adapted_rows_ == len(X)
    assert adapted.score(X, y) > head.score(X, y)


def test_rows_without_classes_are_declined_and_the_head_predicts_as_before(head):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))  # one cloud, however it is cut
    with pytest.warns(UserWarning, match="adapting was declined, and this head predicts as before"):
        kept = head.adapt(X)
    assert_same_bits(kept, head)


def test_adapting_can_be_forced_and_what_was_declined_says_so(head, tmp_path):
    X = 6.0 * np.random.default_rng(5).normal(size=(300, 5))
    with pytest.warns(UserWarning, match="to adapt all the same, set force=True"):
        kept = head.adapt(X)
    assert kept.adapted_rows_ is None
    assert kept.declined_ in kept._repr_html_()
    kept.save(tmp_path / "kept.safetensors")
    assert inspect_file(tmp_path / "kept.safetensors")["declined"] == kept.declined_
    forced = head.adapt(X, force=True)
    assert forced.adapted_rows_ == 300
    assert forced.declined_ is None
    assert "Adapted to 300 rows of a new domain" in forced._repr_html_()
    adapter = head.adapter(force=True).partial_fit(X)
    adapter.save(tmp_path / "stream.safetensors")
    assert inspect_file(tmp_path / "stream.safetensors")["options"]["force"] is True
    resumed = head.resume(tmp_path / "stream.safetensors")
    assert_same_bits(resumed.head_, forced)


@pytest.mark.parametrize(("share", "objects"), [(0.5, False), (0.95, True)])
def test_shares_far_from_those_in_training_are_an_objection(share, objects):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    counts = np.array([share, 0.5 * (1 - share), 0.5 * (1 - share)]) * len(X)
    guard = AdaptationGuard(np.full(3, 1 / 3), np.eye(4), np.zeros(0))
    assert (
        guard.objection(ClassSums(counts, np.zeros((4, 3))), Moments.of(X)) is not None
    ) is objects
    free = replace(guard, shares=None)
    assert free.objection(ClassSums(counts, np.zeros((4, 3))), Moments.of(X)) is None


def test_a_handful_of_rows_of_one_class_is_no_objection(head):
    X, y = new_rows()
    assert head.adapt(X[y == 0][:5]).adapted_rows_ == 5


def test_chunks_do_not_matter_to_a_guard(head):
    X, _ = new_rows()
    adapter = head.adapter()
    for rows in np.split(X, [3, 50, 120]):
        adapter.partial_fit(rows)
    np.testing.assert_allclose(adapter.head_.coef_, head.adapt(X).coef_, rtol=0, atol=1e-9)


def test_a_guard_is_saved_with_its_head(head, tmp_path):
    head.save(tmp_path / "head.skdare")
    guard = domain_fit_of(load(tmp_path / "head.skdare")).guard
    expected = domain_fit_of(head).guard
    for name in ("shares", "within", "separations"):
        np.testing.assert_array_equal(getattr(guard, name), getattr(expected, name))
    assert len(expected.separations) == 6


def test_only_a_search_with_something_to_fall_back_on_has_a_guard(head):
    X, y, domains = moved_domains()
    every = [
        DAREClassifier(adaptation="centered"),
        DAREClassifierCV(strategies=("center", "standardize")),
        DARERegressorCV(),
    ]
    for other in every:
        assert domain_fit_of(other.fit(X, y, domains=domains)).guard is None
    assert domain_fit_of(head).guard is not None


def test_what_rounding_took_from_a_matrix_is_added_to_its_diagonal():
    matrix = np.diag([1e8, 1.0, -1e-3])
    factor, lower = cholesky(matrix)
    assert lower
    np.testing.assert_allclose(np.tril(factor) @ np.tril(factor).T, matrix, atol=1.0)
