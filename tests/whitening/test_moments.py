"""Moments add up, whatever holds the rows and however they are cut."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.covariance import ledoit_wolf, oas

from oracle import second_moment, shrunk
from skdare.whitening.moments import Moments, pooled_second_moment
from skdare.whitening.sums import FeatureMoments

RULES = {"ledoit-wolf": ledoit_wolf, "oas": oas}


def assert_same(moments, expected, rtol=1e-11):
    """Every sum agrees, to ``rtol`` of its own size."""
    moments, expected = moments.to_numpy(), expected.to_numpy()
    assert moments.n == pytest.approx(expected.n, rel=rtol)
    assert moments.quartic == pytest.approx(expected.quartic, rel=rtol)
    for name in ("mean", "scatter", "cubic"):
        ours, theirs = getattr(moments, name), getattr(expected, name)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * np.abs(theirs).max())


def test_moments_equal_their_definitions(three_classes, array_library):
    X = three_classes.X
    weight = np.random.default_rng(1).uniform(size=len(X))
    mean = weight @ X / weight.sum()
    Z, norms = X - mean, np.sum((X - mean) ** 2, axis=1)
    scatter = sum(w * np.outer(z, z) for w, z in zip(weight, Z, strict=True))
    cubic = sum(w * s * z for w, s, z in zip(weight, norms, Z, strict=True))
    expected = Moments(weight.sum(), mean, scatter, cubic, float(weight @ norms**2))
    moments = Moments.of(array_library.asarray(X), sample_weight=array_library.asarray(weight))
    assert_same(moments, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_a_concatenation_equal_the_sum_of_moments(
    three_classes, array_library, weighted
):
    X = array_library.asarray(three_classes.X)
    weight = np.random.default_rng(1).uniform(0.5, 2, size=X.shape[0]) if weighted else None

    def of(start, stop):
        part = None if weight is None else array_library.asarray(weight[start:stop])
        return Moments.of(X, slice(start, stop), part)

    assert_same(of(0, 30) + of(30, 31) + of(31, X.shape[0]), of(0, X.shape[0]))


def test_the_sum_of_moments_is_commutative_and_associative(three_classes):
    a, b, c = (Moments.of(three_classes.X[three_classes.rows(e)]) for e in three_classes.labels)
    assert_same(a + b, b + a)
    assert_same((a + b) + c, a + (b + c))


def test_a_weight_is_a_number_of_repetitions(three_classes, array_library):
    X = three_classes.X
    times = np.random.default_rng(2).integers(0, 4, size=len(X))
    weighted = Moments.of(array_library.asarray(X), sample_weight=array_library.asarray(times))
    assert_same(weighted, Moments.of(np.repeat(X, times, axis=0)))


@pytest.mark.parametrize("rows", [1, 7, 126, 1000])
def test_chunk_boundaries_do_not_matter(three_classes, array_library, visit_in_chunks_of, rows):
    expected = Moments.of(three_classes.X)
    visit_in_chunks_of(rows)
    assert_same(Moments.of(array_library.asarray(three_classes.X)), expected)


def test_a_first_chunk_of_zero_weight_does_not_matter(three_classes, visit_in_chunks_of):
    X, weight = three_classes.X, np.ones(len(three_classes.X))
    weight[:10] = 0.0
    visit_in_chunks_of(5)
    assert_same(Moments.of(X, sample_weight=weight), Moments.of(X[10:]))


def memory_mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


# X is exact in every one of these, so only the products differ.
STORAGES = {
    "csr matrix": (lambda X, _: sparse.csr_matrix(X), 1e-11),
    "csr array": (lambda X, _: sparse.csr_array(X), 1e-11),
    "csr float32": (lambda X, _: sparse.csr_array(X.astype(np.float32)), 1e-5),
    "Fortran order": (lambda X, _: np.asfortranarray(X), 1e-11),
    "memory-mapped": (memory_mapped, 1e-11),
    "memory-mapped float16": (lambda X, f: memory_mapped(X.astype(np.float16), f), 1e-5),
    "float32": (lambda X, _: X.astype(np.float32), 1e-5),
    "float16": (lambda X, _: X.astype(np.float16), 1e-5),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_storage_does_not_matter(three_classes, storage, weighted, tmp_path, visit_in_chunks_of):
    store, rtol = STORAGES[storage]
    X, index = three_classes.X, three_classes.rows("west")
    weight = np.random.default_rng(1).uniform(size=len(index)) if weighted else None
    expected = Moments.of(X, index, weight)
    visit_in_chunks_of(17)
    assert_same(Moments.of(store(X, tmp_path), index, weight), expected, rtol)


def test_float32_in_any_array_library_agrees_with_float64(three_classes, array_library):
    moments = Moments.of(array_library.asarray(three_classes.X, "float32"))
    assert "float64" in str(moments.scatter.dtype)
    assert_same(moments, Moments.of(three_classes.X), rtol=1e-5)


def test_float32_keeps_its_digits_beside_a_large_mean():
    # Σ xxᵀ - n μμᵀ would leave errors of n μ² ε = 1e-1 of the covariance here.
    X = np.random.default_rng(0).normal(size=(500, 4)) + 1000.0
    X = X.astype(np.float32)
    covariance = Moments.of(X).second_moment()
    np.testing.assert_allclose(
        covariance, np.cov(X.astype(float), rowvar=False, bias=True), 0, 1e-4
    )


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("label", ["north", "south", "west"])
def test_estimated_shrinkage_equals_scikit_learn(
    three_classes, array_library, rule, centered, label
):
    X = three_classes.X[three_classes.rows(label)]
    covariance, strength = RULES[rule](X, assume_centered=not centered)
    moments = Moments.of(array_library.asarray(X[:9])) + Moments.of(array_library.asarray(X[9:]))
    assert moments.shrinkage(rule, centered=centered) == pytest.approx(strength, rel=1e-9)
    S = array_library.to_numpy(moments.second_moment(centered=centered))
    ours = shrunk(S, moments.shrinkage(rule, centered=centered), "scaled")
    np.testing.assert_allclose(ours, covariance, rtol=0, atol=1e-10 * np.abs(covariance).max())


def test_estimated_shrinkage_is_complete_where_the_spectrum_is_flat():
    X = np.concatenate([np.eye(3), -np.eye(3)])
    assert {rule: Moments.of(X).shrinkage(rule) for rule in RULES} == dict.fromkeys(RULES, 1.0)


def test_ledoit_wolf_without_the_quartic_moment_says_what_to_do(three_classes):
    whole = Moments.of(three_classes.X)
    with pytest.raises(ValueError, match=r"quartic moment; make these with Moments\.of"):
        Moments(whole.n, whole.mean, whole.scatter).shrinkage("ledoit-wolf")


@pytest.mark.parametrize("centered", [True, False])
def test_the_pooled_second_moment_counts_every_domain_the_same(three_classes, centered):
    parts = [three_classes.X[three_classes.rows(e)] for e in three_classes.labels]
    pooled = pooled_second_moment([Moments.of(X) for X in parts], centered=centered)
    expected = np.mean([second_moment(X, centered=centered) for X in parts], axis=0)
    np.testing.assert_allclose(pooled, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("rows", [7, 1000])
def test_mean_and_variances_equal_those_of_the_moments(
    three_classes, array_library, visit_in_chunks_of, rows
):
    index = three_classes.rows("west")
    weight = np.random.default_rng(1).uniform(size=len(index))
    expected = Moments.of(three_classes.X, index, weight)
    visit_in_chunks_of(rows)
    X, weight = array_library.asarray(three_classes.X), array_library.asarray(weight)
    whole = FeatureMoments.of(X, index, weight)
    parts = [FeatureMoments.of(X, index[part], weight[part]) for part in (slice(20), slice(20, 61))]
    for found in (whole, parts[0] + parts[1]):
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-11)
        assert found.variances.mean() == pytest.approx(expected.scale(), rel=1e-11)


@pytest.mark.parametrize("weight", [np.zeros(3), np.zeros(0)], ids=["zero weight", "no row"])
def test_moments_of_nothing_are_refused(weight):
    with pytest.raises(ValueError, match="at least one row of positive weight"):
        Moments.of(np.ones((len(weight), 2)), sample_weight=weight)


@pytest.mark.parametrize("storage", [*STORAGES, "dense"])
def test_the_callers_rows_and_weights_are_not_modified(three_classes, storage, tmp_path):
    pristine = three_classes.X.copy()
    X = three_classes.X if storage == "dense" else STORAGES[storage][0](three_classes.X, tmp_path)
    weight = np.random.default_rng(1).uniform(size=X.shape[0])
    before = weight.copy()
    Moments.of(X, sample_weight=weight)
    held = X.toarray() if sparse.issparse(X) else X
    np.testing.assert_array_equal(np.asarray(held, dtype=float), pristine)
    np.testing.assert_array_equal(weight, before)


@pytest.mark.parametrize("rows", [10, 400], ids=["few", "many"])
def test_a_large_mean_costs_sums_of_float32_rows_no_digits(rows):
    X = (1e4 + np.random.default_rng(0).normal(size=(rows, 30))).astype(np.float32)
    exact = Moments.of(X.astype(np.float64))
    for found in (Moments.of(X), Moments.of(X[: rows // 2]) + Moments.of(X[rows // 2 :])):
        np.testing.assert_allclose(found.mean, exact.mean, rtol=1e-9)
        np.testing.assert_allclose(
            found.scatter, exact.scatter, rtol=0, atol=2e-6 * np.abs(exact.scatter).max()
        )


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "torch"])
@pytest.mark.parametrize("rows", [3, 40, 9000])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_all_the_same_have_no_variance_to_the_bit(kind, rows, weighted):
    row = np.array([0.1, 1e8 / 3, -7e-5, 0.0, 1.7e18 / 7]).astype(
        "float32" if kind == "float32" else float
    )
    X, weight = np.tile(row, (rows, 1)), None
    if weighted:
        weight = np.random.default_rng(0).random(rows) + 0.1
    held = X
    if kind == "sparse":
        held = sparse.csr_array(X)
    if kind == "torch":
        held = pytest.importorskip("torch").asarray(X)
    moments = Moments.of(held, sample_weight=weight).to_numpy()
    np.testing.assert_array_equal(moments.mean, row)
    np.testing.assert_array_equal(moments.scatter, np.zeros((5, 5)))
    assert not moments.varies()
    parts = [Moments.of(X[:2]), Moments.of(X[2:])]
    assert (parts[0] + parts[1]).trace == 0
    light = FeatureMoments.of(held, slice(0, rows), np.ones(rows) if weight is None else weight)
    np.testing.assert_array_equal(light.variances, np.zeros(5))


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
def test_variances_are_those_of_the_deviations_however_far_the_mean(held):
    rng = np.random.default_rng(0)
    X = 1e9 + rng.normal(size=(500, 6))
    moments = Moments.of(held(X))
    expected = (X - X.mean(axis=0)).var(axis=0)
    np.testing.assert_allclose(moments.variances, expected, rtol=1e-6)
    assert np.linalg.eigvalsh(Moments.of(X).scatter)[0] > 0


@pytest.mark.parametrize("scale", [1e-25, 1e-18, 1e12, 1e17])
@pytest.mark.parametrize("features", [4, 60])
def test_float32_moments_are_those_of_float64_in_any_unit(features, scale):
    X = (scale * np.random.default_rng(0).normal(size=(40, features))).astype(np.float32)
    one, other = Moments.of(X), Moments.of(X.astype(float))
    for name in ("mean", "scatter", "cubic", "quartic"):
        ours, theirs = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())
    pooled = [pooled_second_moment([m], centered=False) for m in (one, other)]
    np.testing.assert_allclose(*pooled, rtol=1e-4, atol=1e-4 * np.abs(pooled[1]).max())
