"""Moments add up, whatever holds the rows and however they are cut."""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from scipy import sparse

from array_libraries import held_in, libraries, rows_at_a_time
from domain_problems import make_problem
from paper_formulas import second_moment
from skdare.arrays import BlockReader, Rows, to_numpy
from skdare.errors import InputError
from skdare.whitening.moments import FeatureMoments, Moments, overall_variances, pooled_variances

# More rows than features, and fewer, which are kept as rows.
SHAPES = [(126, 5), (14, 30)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def made(shape, seed=0):
    """Skewed rows far from zero, exact in float16, and weights."""
    rng = np.random.default_rng(seed)
    X = np.round(16 * (rng.gamma(1.0, size=shape) + np.linspace(-4, 4, shape[1]))) / 16
    X[np.abs(X) < 0.2] = 0.0
    return X, rng.uniform(0.5, 2.0, shape[0])


def assert_same(found, expected, rtol=1e-11):
    """Every sum agrees, to ``rtol`` of its own size."""
    found, expected = found.to_numpy(), expected.to_numpy()
    assert found.n == pytest.approx(expected.n, rel=rtol)
    for ours, theirs in [
        (found.mean, expected.mean),
        (found.dense_scatter(), expected.dense_scatter()),
        (found.variances, expected.variances),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * np.abs(theirs).max())


@libraries
@shapes
def test_moments_equal_their_definitions(library, shape):
    X, weight = made(shape)
    mean = weight @ X / weight.sum()
    Z = X - mean
    scatter = sum(w * np.outer(z, z) for w, z in zip(weight, Z, strict=True))
    expected = Moments(weight.sum(), mean, scatter, None)
    assert_same(Moments.of(held_in(library, X), None, held_in(library, weight)), expected)


@libraries
@shapes
@weighted
def test_moments_of_a_concatenation_equal_the_sum_of_moments(library, shape, weighted):
    X, weight = made(shape)
    rows = held_in(library, X)

    def of(start, stop):
        part = held_in(library, weight[start:stop]) if weighted else None
        return Moments.of(rows, slice(start, stop), part)

    cuts = [0, 3, 4, 9, len(X)]
    parts = [of(*pair) for pair in pairwise(cuts)]
    assert_same(reduce(add, parts), of(0, len(X)))


@shapes
def test_the_sum_of_moments_is_commutative_and_associative(shape):
    X, _ = made(shape)
    a, b, c = (Moments.of(X[i::3]) for i in range(3))
    assert_same(a + b, b + a)
    assert_same((a + b) + c, a + (b + c))


@shapes
def test_a_weight_is_a_number_of_repetitions(shape):
    X, _ = made(shape)
    times = np.random.default_rng(2).integers(0, 3, size=len(X))
    assert_same(Moments.of(X, None, times.astype(float)), Moments.of(np.repeat(X, times, axis=0)))


@shapes
def test_moments_that_fade_are_those_of_lighter_rows(shape):
    X, weight = made(shape)
    assert_same(Moments.of(X, None, weight).faded(0.3), Moments.of(X, None, 0.3 * weight))


@libraries
@pytest.mark.parametrize("rows", [1, 7, 126, 1000])
def test_where_chunks_end_does_not_matter(monkeypatch, library, rows):
    X, weight = made(SHAPES[0])
    expected = Moments.of(X, None, weight)
    rows_at_a_time(monkeypatch, rows)
    assert_same(Moments.of(held_in(library, X), None, held_in(library, weight)), expected)


def blocks(X):
    ends = [*range(40, len(X), 40), len(X)]
    starts = [0, *ends]
    return Rows(X.shape, X.dtype, BlockReader(ends, lambda b: X[starts[b] : ends[b]]))


# X is exact in every one of these, so only the products differ.
STORAGES = {
    "csr matrix": (sparse.csr_matrix, 1e-11),
    "csr array float32": (lambda X: sparse.csr_array(X.astype(np.float32)), 1e-5),
    "Fortran order": (np.asfortranarray, 1e-11),
    "blocks": (blocks, 1e-11),
    "float32": (lambda X: X.astype(np.float32), 1e-5),
    "float16": (lambda X: X.astype(np.float16), 1e-5),
    "torch float32": (lambda X: held_in("torch", X, "float32"), 1e-5),
}


@shapes
@pytest.mark.parametrize("storage", STORAGES)
def test_where_rows_are_stored_does_not_matter(storage, shape):
    X, weight = made(shape)
    store, rtol = STORAGES[storage]
    index = np.arange(0, len(X), 2)
    expected = Moments.of(X, index, weight[index])
    found = (
        Moments.of(store(X), index, held_in(storage.split()[0], weight[index]))
        if storage.startswith("torch")
        else Moments.of(store(X), index, weight[index])
    )
    assert "64" in str(found.mean.dtype)
    assert_same(found, expected, rtol)


@pytest.mark.parametrize("centered", [True, False])
@shapes
def test_the_second_moment_is_that_of_the_paper(shape, centered):
    X, _ = made(shape)
    moments = Moments.of(X)
    expected = second_moment(X, centered=centered)
    np.testing.assert_allclose(moments.second_moment(centered), expected, rtol=0, atol=1e-10)
    assert moments.scale(centered) == pytest.approx(np.trace(expected) / shape[1], rel=1e-12)


@shapes
def test_few_rows_make_no_matrix_of_features_by_features(shape):
    X, _ = made(shape)
    few = shape[0] < shape[1]
    for rows in (X, sparse.csr_array(X)):
        moments = Moments.of(rows)
        assert (moments.scatter is None) is few
        assert (moments.rows is not None) is few


@libraries
@weighted
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_moments_of_features_equal_those_of_the_rows(monkeypatch, library, weighted, rows):
    X, weight = made(SHAPES[0])
    weight = weight if weighted else np.ones(len(X))
    expected = Moments.of(X, None, weight)
    rows_at_a_time(monkeypatch, rows)
    held, weights = held_in(library, X), held_in(library, weight)
    parts = [FeatureMoments.of(held, slice(*p), weights[slice(*p)]) for p in ((0, 20), (20, 126))]
    for found in (FeatureMoments.of(held, slice(0, 126), weights), parts[0] + parts[1]):
        np.testing.assert_allclose(to_numpy(found.mean), expected.mean, rtol=1e-11)
        np.testing.assert_allclose(to_numpy(found.variances), expected.variances, rtol=1e-11)


def test_pooled_variances_are_those_of_all_rows_together():
    problem = make_problem("binary")
    parts, _ = problem.parts()
    for kind in (Moments.of, lambda X: FeatureMoments.of(X, slice(0, len(X)), np.ones(len(X)))):
        found = pooled_variances([kind(X) for X in parts])
        np.testing.assert_allclose(found, problem.X.var(axis=0), rtol=1e-11)


@shapes
def test_moments_leave_rows_and_weights_as_they_were(shape):
    X, weight = made(shape)
    before = X.copy(), weight.copy()
    Moments.of(X, None, weight)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(weight, before[1])


# -- Numbers that are hard to add --------------------------------------------------------------


@pytest.mark.parametrize("rows", [10, 400], ids=["few", "many"])
def test_a_large_mean_costs_sums_of_float32_rows_no_digits(rows):
    X = (1e4 + np.random.default_rng(0).normal(size=(rows, 30))).astype(np.float32)
    exact = Moments.of(X.astype(np.float64))
    for found in (Moments.of(X), Moments.of(X[: rows // 2]) + Moments.of(X[rows // 2 :])):
        np.testing.assert_allclose(found.mean, exact.mean, rtol=1e-9)
        scatter = exact.dense_scatter()
        gap = found.dense_scatter() - scatter
        assert np.abs(gap).max() <= 2e-6 * np.abs(scatter).max()


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_feature_that_is_constant_far_from_zero_has_exactly_no_variance(store):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 12))
    X[:, 3] = 0.1
    X = (X + 1e3).astype(np.float32)
    found = [Moments.of(store(X)), FeatureMoments.of(store(X), slice(0, 5000), np.ones(5000))]
    for moments in found:
        assert moments.variances[3] == 0.0
        exact = X.astype(np.float64).var(axis=0)
        np.testing.assert_allclose(moments.variances, exact, rtol=1e-5)


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "torch"])
@pytest.mark.parametrize("rows", [3, 40, 9000])
@weighted
def test_rows_that_are_all_the_same_have_no_variance_to_the_bit(kind, rows, weighted):
    row = np.array([0.1, 1e8 / 3, -7e-5, 0.0, 1.7e18 / 7])
    row = row.astype(np.float32) if kind == "float32" else row
    X = np.tile(row, (rows, 1))
    weight = np.random.default_rng(0).random(rows) + 0.1 if weighted else np.ones(rows)
    held = sparse.csr_array(X) if kind == "sparse" else X
    if kind == "torch":
        held = held_in("torch", X)
        weight = held_in("torch", weight)
    moments = Moments.of(held, None, weight if weighted else None).to_numpy()
    np.testing.assert_array_equal(moments.variances, np.zeros(5))
    np.testing.assert_allclose(moments.mean, row, rtol=1e-12)
    assert (Moments.of(X[:2]) + Moments.of(X[2:])).trace == 0
    light = FeatureMoments.of(held, slice(0, rows), weight)
    np.testing.assert_array_equal(to_numpy(light.variances), np.zeros(5))


def test_variances_are_those_of_the_deviations_however_far_the_mean():
    X = 1e9 + np.random.default_rng(0).normal(size=(500, 6))
    moments = Moments.of(X)
    np.testing.assert_allclose(moments.variances, (X - X.mean(axis=0)).var(axis=0), rtol=1e-6)
    assert np.linalg.eigvalsh(moments.scatter)[0] > 0


@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e10])
@shapes
def test_float32_moments_are_those_of_float64_in_any_unit(shape, scale):
    X = (scale * made(shape)[0]).astype(np.float32)
    assert_same(Moments.of(X), Moments.of(X.astype(float)), rtol=1e-4)


def test_one_row_has_a_mean_and_no_variance():
    moments = Moments.of(np.array([[3.0, -1.0]]))
    assert (moments.n, moments.trace, moments.furthest) == (1.0, 0.0, 0.0)
    np.testing.assert_array_equal(moments.mean, [3.0, -1.0])


# -- What is refused ---------------------------------------------------------------------------


def refusal(X):
    with pytest.raises(InputError) as caught:
        overall_variances([Moments.of(X)], X.dtype)
    return str(caught.value)


def test_features_that_never_vary_are_refused():
    assert "every feature is constant" in refusal(np.full((9, 2), 7.0))
    assert "rescale them" in refusal(1e-80 * np.random.default_rng(0).normal(size=(9, 2)))


def test_variation_below_the_rounding_of_float32_is_refused():
    X = np.full((9, 2), 1000.0, np.float32)
    X[0] += 1e-4
    assert "every feature is constant" in refusal(X)


def test_a_mean_out_of_all_proportion_is_refused_by_its_feature():
    X = np.random.default_rng(0).normal(size=(9, 3))
    X[:, 1] = 1e17
    assert refusal(X).startswith("feature 1 is about 1e+17, and features vary by only")
