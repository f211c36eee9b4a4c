"""Rivals that a benchmark has to implement itself, on cases whose answer is known."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
RIDGE = 1e-3
# In a process of its own: importing skada turns on metadata routing for all of scikit-learn.
BESIDE_SKADA = """
import numpy as np
import skada
import sklearn
import uda_methods as uda

sklearn.set_config(enable_metadata_routing=False)
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6))
y = (X @ rng.normal(size=(6, 3))).argmax(axis=1)
Z = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + 1.0
sample_domain = np.concatenate([np.full(300, 1), np.full(80, -2)])
source = uda.learn_spectrum(uda.Training(X, y, np.zeros(300), 0.01))
for adapter, ours in (
    (skada.CORALAdapter(reg=0.3), uda.serve_coral(source, Z, 0.3)),
    (skada.SubspaceAlignmentAdapter(n_components=4), uda.serve_subspace(source, Z, 4)),
):
    rows = adapter.fit_transform(np.concatenate([X, Z]), sample_domain=sample_domain)
    head = uda.logistic(rows[:300], 0.01).fit(rows[:300], y)
    assert np.array_equal(head.predict(rows[300:]), ours)
"""
# In processes of their own for the same reason: the benchmark imports its neighbours by name.
TIMED = """
import tracemalloc
import uda

traced = []
for soon in (0.0, 60.0):
    uda.SOON = soon
    uda.cost_of(lambda: traced.append(tracemalloc.is_tracing()))
assert traced == [True, False, True, False, False, False], traced
"""
SHARED = """
from types import SimpleNamespace
import numpy as np
import uda

rng = np.random.default_rng(0)
rows = SimpleNamespace(X=rng.normal(size=(60, 3)), y=np.arange(60) % 2, domains=np.arange(60) % 3)
fold = SimpleNamespace(train=rows, test=rows, preparation=None)
calls = []


def learn(training):
    calls.append(training.l2)
    return uda.Training(training.X, training.y, training.domains, training.l2)


def serve(state, Z, option):
    served.append(state.l2)
    return np.zeros(len(Z))


for keeps_rows, learnt in ((True, uda.RIDGES[:1]), (False, uda.RIDGES)):
    calls.clear()
    served = []
    uda.choose(uda.Method("any", learn, serve, keeps_rows=keeps_rows), [uda.Place(fold, fold)])
    assert tuple(calls) == learnt, calls
    assert tuple(served) == uda.RIDGES, served
"""


@pytest.fixture(scope="module")
def uda():
    """The module by its path: its folder has names that must not be found before packages'."""
    spec = importlib.util.spec_from_file_location("uda_methods", FOLDER / "uda_methods.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


@pytest.fixture
def training(uda):
    """Three clouds, four features, two domains."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=600)
    centres = 4.0 * np.eye(3, 4)
    X = centres[y] + rng.normal(size=(600, 4))
    return uda.Training(X, y, np.arange(600) % 2, RIDGE)


def head_with(uda, coef, intercept):
    """A head of given weights."""
    head = uda.FiniteLogistic()
    head.coef_ = np.asarray(coef, dtype=float)
    head.intercept_ = np.asarray(intercept, dtype=float)
    head.classes_ = np.arange(max(2, len(head.coef_)))
    return head


def test_recoloured_rows_have_the_covariance_of_the_new_domain(uda, training):
    Z = np.random.default_rng(1).normal(size=(90, 4)) @ np.triu(np.ones((4, 4)))
    source = uda.learn_spectrum(training)
    rows = source.X @ uda.recolouring(source.spectrum, uda.Spectrum.of(Z), 0.0)
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.cov(Z.T, bias=True), atol=1e-10)


def test_coral_undoes_another_unit_of_the_features_and_another_origin(uda, training):
    # Features are uncorrelated, so that the map between covariances is the map between rows.
    X = np.random.default_rng(2).normal(size=(600, 4))
    X = np.linalg.qr(X - X.mean(axis=0))[0] * np.sqrt(600)
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    Z = X * [0.1, 10.0, 1.0, 3.0] + 7.0
    rows = uda.Training(X, y, training.domains, 1e-6)
    adapted = uda.serve_coral(uda.learn_spectrum(rows), Z, 0.0)
    plain = uda.serve_as_it_is(uda.learn_erm(rows), Z, None)
    assert np.mean(adapted == y) > 0.98
    assert np.mean(plain == y) < 0.8


def test_aligning_all_of_the_space_is_centring(uda, training):
    Z = training.X[:50] + 3.0
    served = uda.serve_subspace(uda.learn_spectrum(training), Z, uda.EVERY_COMPONENT)
    X = training.X - training.X.mean(axis=0)
    centred = uda.logistic(X, RIDGE).fit(X, training.y).predict(Z - Z.mean(axis=0))
    np.testing.assert_array_equal(served, centred)


def test_aligned_rows_are_projected_onto_one_subspace_after_the_other(uda, training):
    Z = np.random.default_rng(3).normal(size=(80, 4)) @ np.triu(np.ones((4, 4)))
    served = uda.serve_subspace(uda.learn_spectrum(training), Z, 2)
    X = training.X - training.X.mean(axis=0)
    new = Z - Z.mean(axis=0)
    P, Q = (np.linalg.svd(rows, full_matrices=False)[2][:2].T for rows in (X, new))
    aligned = X @ P @ P.T @ Q
    expected = uda.logistic(aligned, RIDGE).fit(aligned, training.y).predict(new @ Q)
    np.testing.assert_array_equal(served, expected)


def test_prototypes_put_the_border_between_the_clouds(uda):
    # Directions in the plane: class 0 at 30°, class 1 from 80° to 120°, the head's border at 90°.
    degrees = np.concatenate([np.linspace(20, 40, 40), np.linspace(80, 120, 41)])
    y = (degrees > 60).astype(int)
    Z = 5.0 * np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
    head = head_with(uda, [[-1.0, 0.0]], [0.0])
    assert np.mean(head.predict(Z) == y) < 0.9
    np.testing.assert_array_equal(uda.serve_t3a(head, Z, uda.EVERY_ROW), y)


def test_prototypes_are_of_the_rows_that_the_head_is_surest_of(uda):
    head = head_with(uda, [[10.0, 0.0], [0.0, 10.0]], [0.0, 0.0])
    sure = [[9.0, 0.0], [0.0, 9.0]]
    # Called class 0, with doubt: all together they draw its direction to 45°.
    unsure = [[1.0, 0.95]] * 30
    at_50_degrees = [[np.cos(np.radians(50)), np.sin(np.radians(50))]]
    Z = np.array(sure + unsure + at_50_degrees)
    assert uda.serve_t3a(head, Z, uda.EVERY_ROW)[-1] == 0
    assert uda.serve_t3a(head, Z, 2)[-1] == 1


def test_shares_of_most_likelihood_are_those_of_the_new_rows(uda):
    # Probabilities are exact: two Gaussians at -1 and 1, halves in training, one in ten now.
    rng = np.random.default_rng(4)
    y = rng.random(20_000) < 0.1
    x = np.where(y, 1.0, -1.0) + rng.normal(size=20_000)
    R = 1.0 / (1.0 + np.exp(np.stack([2 * x, -2 * x], axis=1)))
    shares = np.array([0.5, 0.5])
    np.testing.assert_allclose(uda.likeliest_ratios(R, shares) * shares, [0.9, 0.1], atol=0.01)


def test_confusion_explains_the_shares_of_predicted_classes(uda):
    confusion = np.array([[0.3, 0.05, 0.0], [0.1, 0.2, 0.05], [0.0, 0.1, 0.2]])
    ratios = np.array([0.5, 1.2, 1.6])
    np.testing.assert_allclose(uda.confused_ratios(confusion, confusion @ ratios), ratios)


def test_confusion_counts_a_domain_by_heads_that_have_not_seen_it(uda, training):
    # In the second domain classes 0 and 1 are called by the other's name.
    swapped = np.where(training.y == 2, 2, 1 - training.y)
    y = np.where(training.domains == 1, swapped, training.y)
    learnt = uda.learn_confusion(uda.Training(training.X, y, training.domains, RIDGE))
    assert np.trace(learnt.confusion) < 0.4
    np.testing.assert_allclose(learnt.confusion.sum(axis=0), learnt.shares)


def run_beside_benchmarks(program: str) -> None:
    """Run a program that must end well, among the benchmark's files."""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(importlib.util.find_spec("skada") is None, reason="skada is not installed")
def test_coral_and_subspace_alignment_label_as_those_of_skada():
    run_beside_benchmarks(BESIDE_SKADA)


def test_memory_is_not_traced_while_a_call_is_timed():
    run_beside_benchmarks(TIMED)


def test_what_is_learnt_without_the_ridge_is_learnt_once_for_all_ridges():
    run_beside_benchmarks(SHARED)
