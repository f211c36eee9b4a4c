"""Domains of few rows, and many of them: no matrix is made or kept for each."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import paper_formulas as paper
from skdare import DAREClassifier, DARERegressor

D = 40


def domains_of_few_rows(domains=12, rows=9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(domains * rows, D)) * rng.uniform(0.5, 2, D) + 1.0
    return X, rng.integers(0, 2, len(X)), np.repeat(np.arange(domains), rows)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("target", ["scaled", "identity", "diagonal"])
def test_a_head_keeps_only_the_rows_of_domains_with_few_rows(target, store):
    X, y, domains = domains_of_few_rows()
    head = DAREClassifier(shrinkage_target=target, shrinkage=0.5)
    head.fit(store(X.astype(np.float32)), y, domains=domains)
    for label in head.domains_:
        W, m = head.adjustments_[label], head.moments_[label]
        assert W.matrix is None
        assert m.scatter is None
        assert m.rows.dtype == np.float32
        assert m.rows.shape == (10, D)


@pytest.mark.parametrize("centered_rows", [False, True], ids=["equation 1", "equation 3"])
@pytest.mark.parametrize("target", ["scaled", "diagonal"])
def test_a_fit_to_many_domains_is_the_lagrangian(target, centered_rows):
    X, y, domains = domains_of_few_rows(rows=15)
    task = "regression" if centered_rows else "binary"
    kind = DARERegressor if centered_rows else DAREClassifier
    y = (X[:, 0] + y).astype(float) if centered_rows else y
    options = {"l2": 0.05, "mean_penalty": 2.0, "fit_intercept": False, "adaptation": None}
    head = kind(tol=1e-8, shrinkage=0.3, shrinkage_target=target, **options)
    head.fit(X, y, domains=domains)
    parts = [X[domains == e] for e in head.domains_]
    targets = [y[domains == e] for e in head.domains_]
    roots = paper.adjustments(parts, shrinkage=0.3, shrinkage_target=target, centered=False)
    fit = head.domain_fit_.unseen
    np.testing.assert_allclose(fit.adjustment.apply(np.eye(D)), np.mean(roots, axis=0), atol=1e-9)
    spread = np.sqrt(np.mean(y**2)) if centered_rows else 1.0
    value = paper.lagrangian(
        task,
        parts,
        [t / spread for t in targets] if centered_rows else targets,
        roots,
        fit.B,
        fit.b,
        penalty=2.0,
        l2=paper.ridge(parts, 0.05, shrinkage_target=target, centered=False),
        centered_rows=centered_rows,
    )
    assert head.solution_.value == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("adaptation", [None, "centered"])
def test_memory_does_not_grow_by_a_matrix_for_every_domain(adaptation):
    def peak(domains):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(8 * domains, 200))
        y, labels = rng.integers(0, 3, len(X)), np.repeat(np.arange(domains), 8)
        head = DAREClassifier(adaptation=adaptation, max_iter=3, tol=1.0)
        tracemalloc.start()
        head.fit(X, y, domains=labels)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    rows = 8 * 200 * 8  # bytes of a domain; a third of a matrix is eight times that
    assert peak(80) - peak(40) < 40 * 8 * rows
