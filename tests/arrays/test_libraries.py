"""Array libraries: the same products, dtypes and decompositions in each."""

import threading

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from array_libraries import held_in, libraries
from skdare.arrays import (
    Rows,
    as_float64,
    beside,
    float32_products,
    gram,
    has_coarse_products,
    is_foreign,
    like,
    namespace,
    on_accelerator,
    product,
    symmetric_eigen,
    threads_for,
    to_numpy,
    transposed_product,
    work_dtype,
)


def made(rows=20, columns=6, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


@libraries
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_products_are_those_of_matrices(library, k):
    X, V, R = made(), made(6, k, 1), made(20, k, 2)
    held = held_in(library, X)
    np.testing.assert_allclose(to_numpy(product(held, held_in(library, V))), X @ V, atol=1e-13)
    found = to_numpy(transposed_product(held, held_in(library, R)))
    np.testing.assert_allclose(found, X.T @ R, atol=1e-13)
    np.testing.assert_allclose(to_numpy(gram(held)), X.T @ X, atol=1e-13)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_products_of_sparse_rows_are_dense(kind):
    X, V = made(), made(6, 3, 1)
    for found, expected in [
        (product(kind(X), V), X @ V),
        (transposed_product(kind(X), X[:, :2]), X.T @ X[:, :2]),
        (gram(kind(X)), X.T @ X),
    ]:
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, expected, atol=1e-13)


@libraries
@pytest.mark.parametrize("d", [1, 5])
def test_eigenvalues_ascend_and_eigenvectors_are_columns(library, d):
    S = made(20, d).T @ made(20, d)
    values, vectors = (to_numpy(part) for part in symmetric_eigen(held_in(library, S)))
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose((vectors * values) @ vectors.T, S, atol=1e-11)


@libraries
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_integers_and_doubles_compute_in_double_and_floats_in_single(library, dtype):
    X = held_in(library, np.ones((2, 2)), dtype)
    single = dtype == "float32"
    assert ("float32" if single else "float64") in str(work_dtype(X))
    assert like(np.ones(2), X).dtype == work_dtype(X)
    assert "float64" in str(as_float64(X).dtype)


@libraries
def test_values_move_beside_the_rows_and_back(library):
    X = held_in(library, made())
    moved = beside(np.arange(3), X)
    assert type(moved) is type(X)
    assert namespace(moved) is namespace(X)
    assert is_foreign(X) is (library != "numpy")
    assert not on_accelerator(X)
    back = to_numpy(moved)
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, np.arange(3))
    assert type(beside(moved, made())) is np.ndarray


@pytest.mark.parametrize("kind", ["csr", "rows", "number", "list"])
def test_what_is_no_array_computes_in_numpy(kind):
    values = {
        "csr": sparse.csr_array(made()),
        "rows": Rows((2, 2), np.dtype(float), lambda index: np.ones((2, 2))),
        "number": 3.0,
        "list": [1.0],
    }
    assert namespace(values[kind]) is np


@libraries
def test_nothing_is_coarse_but_single_precision_on_a_gpu(library):
    X = held_in(library, made(), "float32")
    assert not has_coarse_products(X)
    with float32_products(X, coarse=True):
        np.testing.assert_allclose(to_numpy(X @ X.T), to_numpy(X) @ to_numpy(X).T, rtol=1e-4)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_small_problems_use_one_blas_thread_and_give_back_the_others():
    before = blas_threads()
    with threads_for(made()):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before

    def work():
        for _ in range(50):
            with threads_for(made()):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before


def test_many_rows_use_the_blas_threads_that_are_set():
    before = blas_threads()
    with threads_for(np.zeros((2_000, 600))):
        assert blas_threads() == before
