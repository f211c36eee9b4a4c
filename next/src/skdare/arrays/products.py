"""Products and decompositions in any array library.

Notation: X (n, d) rows, V (d, k) weights, R (n, k) residuals, S (d, d) symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock, RLock
from typing import Any

import array_api_compat as compat
import numpy as np
from scipy import linalg, sparse
from threadpoolctl import ThreadpoolController

from skdare.arrays.libraries import (
    Array,
    as_float64,
    beside,
    is_foreign,
    like,
    namespace,
    on_accelerator,
    work_dtype,
)
from skdare.arrays.rows import chunks

# Numbers in the rows, or in a matrix of features by features, from which BLAS threads are worth it:
# a product of fewer is over before threads have met, and where other programs have the processors
# each one waits for the scheduler. With two threads on two busy processors a fit to 1,400 rows of
# 64 features took three times as long, and adapting twenty times.
_WORTH_THREADS = 1 << 20
# On an accelerator a Gram matrix in four bands costs 5/8 of the whole product.
_GRAM_BANDS = 4
_PRECISION = RLock()


def product(X: Array, V: Array) -> Array:
    """X V for a chunk of rows.

    Its transpose is the contiguous one: losses go along the rows of a column at a time.
    """
    if sparse.issparse(X):
        return X @ V
    return (_in_fours(V.T) @ X.T)[: V.shape[1], :].T


def transposed_product(X: Array, R: Array) -> Array:
    """Xᵀ R for a chunk of rows."""
    if sparse.issparse(X):
        return X.T @ R
    # (RᵀX)ᵀ has its long side contiguous, which is up to ten times as fast in MKL.
    return (_in_fours(R.T) @ X)[: R.shape[1], :].T


def _in_fours(A: Array) -> Array:
    """With rows of zeros up to a multiple of four, in NumPy.

    So many columns of a head OpenBLAS multiplies at a time: seven take 1.4 times as long as eight.
    """
    spare = -A.shape[0] % 4
    if not isinstance(A, np.ndarray) or not spare or A.shape[0] == 1:
        return A
    return np.concatenate([A, np.zeros((spare, A.shape[1]), A.dtype)])


def gram(X: Array) -> Array:
    """Xᵀ X as a dense matrix."""
    if sparse.issparse(X):
        return (X.T @ X).toarray()
    d = X.shape[1]
    if not on_accelerator(X) or d % _GRAM_BANDS:
        return X.T @ X  # of which BLAS on the host makes one half
    G = namespace(X).empty((d, d), dtype=X.dtype, device=compat.device(X))
    step = d // _GRAM_BANDS
    for start in range(0, d, step):
        band = slice(start, start + step)
        G[band, start:] = X[:, band].T @ X[:, start:]
        G[start + step :, band] = G[band, start + step :].T
    return G


def scores(X: Array, V: np.ndarray, b: np.ndarray) -> Array:
    """X V + b of all rows, (n, k), in float64, in the library of X."""
    offset = beside(b, X)
    weights = like(V, X)
    with float32_products(X):
        parts = [
            as_float64(product(rows, weights)) + offset
            for _, rows in chunks(X, slice(0, X.shape[0]), columns=len(b))
        ]
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=0)


def symmetric_eigen(S: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors as columns."""
    if is_foreign(S):
        return tuple(namespace(S).linalg.eigh(S))
    # The divide and conquer driver: NumPy's takes 2.5 times as long in float32. Of the transpose,
    # which is no copy in LAPACK's order, and by the upper half, which is a tenth quicker.
    driver = "evd" if len(S) > 1 else "ev"
    return linalg.eigh(S.T, lower=False, driver=driver, check_finite=False)


def has_coarse_products(X: Array) -> bool:
    """Whether rounding the entries of X makes products quicker: float32 on a GPU has TF32."""
    return (
        is_foreign(X)
        and compat.is_torch_array(X)
        and X.is_cuda
        and work_dtype(X) == namespace(X).float32
    )


@contextmanager
def float32_products(X: Array, *, coarse: bool = False) -> Iterator[None]:
    """Products of float32 on a GPU in full precision, whatever torch is set to; or in TF32.

    TF32 keeps 10 bits of each entry: 2.4 times as fast, and good for three digits.
    """
    if not has_coarse_products(X):
        yield
        return
    import torch

    settings = torch.backends.cuda.matmul
    with _PRECISION:  # the setting is one for the process: threads take turns
        before = settings.fp32_precision
        settings.fp32_precision = "tf32" if coarse else "ieee"
        try:
            yield
        finally:
            settings.fp32_precision = before


class _OneThread:
    """BLAS on one thread from the first who enters to the last who leaves.

    The number is one for the process: a search in two threads that each put back what they found
    would end with whatever the last of them had found.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._limit = _blas().limit(limits=1)
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limit.restore_original_limits()


_one_thread = _OneThread()


def threads_for(X: Array) -> AbstractContextManager[Any]:
    """One BLAS thread for few small rows, else as many as are set."""
    is_small = X.shape[1] * max(X.shape) < _WORTH_THREADS
    return _one_thread if is_small else nullcontext()


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process; to find them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas")
