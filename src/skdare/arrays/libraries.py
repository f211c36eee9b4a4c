"""Array libraries: which one holds X, arrays on its device, products and decompositions in it.

Functions take their namespace from the array that they are given. Products run in the dtype of the
rows, everything that is summed or compared in float64.

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

Array = Any
"""A NumPy array or memory map, a CSR matrix, an array of another library, or `Rows`."""

# Numbers in the rows, or in a matrix of features by features, from which BLAS threads are worth it:
# a product of fewer finishes before threads start, and on busy processors each thread waits for the
# scheduler. With two threads on two busy processors a fit to 1,400 rows of 64 features took three
# times as long, and adapting twenty times.
_WORTH_THREADS = 1 << 20
# On an accelerator a Gram matrix in four bands costs 5/8 of the whole product.
_GRAM_BANDS = 4
_PRECISION = RLock()

# By kind of array: looking a namespace up takes longer than a small product.
_NAMESPACES: dict[type, Any] = {np.ndarray: np}


def namespace(X: Array) -> Any:
    """The array namespace of X; sparse matrices, numbers and `Rows` compute in NumPy."""
    kind = type(X)
    if kind not in _NAMESPACES:
        is_numpy = isinstance(X, np.ndarray | np.generic) or not compat.is_array_api_obj(X)
        _NAMESPACES[kind] = np if is_numpy else compat.array_namespace(X)
    return _NAMESPACES[kind]


def is_foreign(X: Array) -> bool:
    """Whether X is an array of a library other than NumPy, in which it stays."""
    return namespace(X) is not np


def on_accelerator(X: Array) -> bool:
    """Whether X is on a device other than the host's processor."""
    if not is_foreign(X):
        return False
    if compat.is_torch_array(X):
        return bool(X.device.type != "cpu")
    return "cpu" not in str(compat.device(X)).lower()


def work_dtype(X: Array) -> Any:
    """The dtype of products with X: float64 for float64 and integers, else float32."""
    xp = namespace(X)
    floats = (xp.float32, xp.float16) if hasattr(xp, "float16") else (xp.float32,)
    if is_foreign(X) and compat.is_torch_array(X):
        floats = (*floats, xp.bfloat16)
    return xp.float32 if X.dtype in floats else xp.float64


def to_numpy(values: Any) -> np.ndarray:
    """``values`` as a NumPy array on the host."""
    if not is_foreign(values):
        return np.asarray(values)
    if compat.is_torch_array(values):
        return np.asarray(values.detach().cpu())
    xp = compat.array_namespace(values)
    cpu = xp.Device("CPU_DEVICE") if hasattr(xp, "Device") else "cpu"
    return np.asarray(compat.to_device(values, cpu))


def beside(values: Array, X: Array) -> Array:
    """``values`` in the library and on the device of X, in their own dtype."""
    if not is_foreign(X):
        return to_numpy(values)
    if is_foreign(values):
        return compat.to_device(values, compat.device(X))
    return namespace(X).asarray(values, device=compat.device(X))


def like(values: Array, X: Array) -> Array:
    """``values`` in the library, on the device and in the dtype of products with X."""
    return namespace(X).astype(beside(values, X), work_dtype(X), copy=False)


def as_float64(values: Array) -> Array:
    xp = namespace(values)
    return xp.astype(values, xp.float64, copy=False)


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
    """Padded with rows of zeros to a multiple of four, in NumPy.

    OpenBLAS multiplies four columns of a head at a time: seven take 1.4 times as long as eight.
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
        return X.T @ X  # BLAS on the host computes one triangle
    G = namespace(X).empty((d, d), dtype=X.dtype, device=compat.device(X))
    step = d // _GRAM_BANDS
    for start in range(0, d, step):
        band = slice(start, start + step)
        G[band, start:] = X[:, band].T @ X[:, start:]
        G[start + step :, band] = G[band, start + step :].T
    return G


def symmetric_eigen(S: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors as columns."""
    if is_foreign(S):
        return tuple(namespace(S).linalg.eigh(S))
    # The divide and conquer driver: NumPy's takes 2.5 times as long in float32. The transpose needs
    # no copy into LAPACK's order, and the upper half is a tenth quicker.
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
    """BLAS on one thread while any caller is inside.

    The number of threads is one for the whole process: two callers that each restore the number
    they found would end with that of whoever leaves last.
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
    """The BLAS libraries of this process; finding them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas")
