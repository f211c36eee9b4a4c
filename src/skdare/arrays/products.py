"""Products, sums and decompositions in any array library.

Notation: X (n, d) rows, V (d, k) weights, R (n, k) residuals.
"""

from __future__ import annotations

import array_api_compat
import numpy as np

from skdare.arrays.libraries import (
    Array,
    as_float64,
    is_scipy_sparse,
    like,
    namespace,
    on_accelerator,
)

# OpenBLAS multiplies without packing up to 1e6 multiply-adds, and for the few columns of a head
# that is up to twice as fast as one large product (12 columns or fewer; more columns pack well).
_TILE_PRODUCTS = 1_000_000
_TILE_COLUMNS = 12

# A Gram matrix in four bands costs 5/8 of the whole product.
_GRAM_BANDS = 4


def product(X: Array, V: Array) -> Array:
    """X V for a chunk of rows."""
    step = _tile(X, V.shape[1])
    if step is None or step >= X.shape[0]:
        return X @ V
    F = np.empty((X.shape[0], V.shape[1]), dtype=X.dtype)
    for i in range(0, X.shape[0], step):
        np.matmul(X[i : i + step], V, out=F[i : i + step])
    return F


def affine(X: Array, V: Array, offset: Array) -> Array:
    """X V + offset for a chunk of rows, in float64.

    Products in float32 are accurate enough, but a float32 loss breaks line searches. On an
    accelerator several columns stay in float32, where memory is the limit: their losses are
    summed in float64 there.
    """
    if V.shape[1] > 1 and on_accelerator(X):
        if array_api_compat.is_torch_array(X):
            return offset.to(X.dtype).addmm(X, V)
        return X @ V + namespace(X).astype(offset, X.dtype)[None, :]
    F = as_float64(product(X, V))
    F += offset
    return F


def entries(F: Array, columns: Array) -> Array:
    """F[i, columns[i]] of every row."""
    if _indexes_pairs(F):
        return F[_arange(F), columns]
    return namespace(F).sum(F * indicators(F, columns), axis=1)


def subtract_at(F: Array, columns: Array, amount: float) -> Array:
    """F with an amount less at F[i, columns[i]] of every row; F itself may be changed."""
    if _indexes_pairs(F):
        F[_arange(F), columns] -= amount
        return F
    return F - amount * indicators(F, columns)


def indicators(F: Array, columns: Array) -> Array:
    """One where F has the given column, else zero."""
    xp = namespace(F)
    numbers = like(np.arange(F.shape[1]), F, columns.dtype)
    return xp.astype(columns[:, None] == numbers[None, :], F.dtype)


def _indexes_pairs(F: Array) -> bool:
    """Whether F takes a pair of integer arrays as an index, which the standard does not ask."""
    return isinstance(F, np.ndarray) or array_api_compat.is_torch_array(F)


def _arange(F: Array) -> Array:
    if isinstance(F, np.ndarray):
        return np.arange(F.shape[0])
    return namespace(F).arange(F.shape[0], device=array_api_compat.device(F))


def transposed_product(X: Array, R: Array) -> Array:
    """Xᵀ R for a chunk of rows."""
    if is_scipy_sparse(X):
        return X.T @ R
    xp = namespace(X)
    step = _tile(X, R.shape[1])
    if step is None or step >= X.shape[0]:
        # (RᵀX)ᵀ, not XᵀR: the long side of the result is then the contiguous one, which is up
        # to ten times faster in MKL and never slower in OpenBLAS.
        return xp.matrix_transpose(xp.matrix_transpose(R) @ X)
    G = np.zeros((R.shape[1], X.shape[1]), dtype=X.dtype)
    for i in range(0, X.shape[0], step):
        G += R[i : i + step].T @ X[i : i + step]
    return G.T


def _tile(X: Array, columns: int) -> int | None:
    if not isinstance(X, np.ndarray) or columns > _TILE_COLUMNS:
        return None
    return max(16, _TILE_PRODUCTS // (int(X.shape[1]) * columns))


def gram(X: Array) -> Array:
    """Xᵀ X as a dense matrix."""
    if is_scipy_sparse(X):
        return (X.T @ X).toarray()
    if on_accelerator(X) and X.shape[1] % _GRAM_BANDS == 0:
        return _upper_gram(X)
    return namespace(X).matrix_transpose(X) @ X


def _upper_gram(X: Array) -> Array:
    """Xᵀ X from the bands above its diagonal: BLAS on the host does so by itself."""
    xp = namespace(X)
    d = X.shape[1]
    step = d // _GRAM_BANDS
    G = xp.zeros((d, d), dtype=X.dtype, device=array_api_compat.device(X))
    for start in range(0, d, step):
        band = slice(start, start + step)
        G[band, start:] = xp.matrix_transpose(X[:, band]) @ X[:, start:]
        G[start + step :, band] = xp.matrix_transpose(G[band, start + step :])
    return G


def dot(a: Array, b: Array) -> float:
    """The inner product of two vectors, on the host."""
    return float(a @ b)


def largest(values: Array) -> float:
    """The largest absolute entry, on the host; NaN if there is one, zero of an empty array."""
    xp = namespace(values)
    return float(xp.max(xp.abs(values))) if values.shape[0] else 0.0


def symmetric_eigen(S: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    if isinstance(S, np.ndarray):
        from scipy import linalg

        # SciPy's divide and conquer driver: NumPy's takes 2.5 times as long in float32.
        # SciPy 1.13 gives it too little room for a matrix of one entry.
        driver = "evd" if len(S) > 1 else "ev"
        values, vectors = linalg.eigh(S, driver=driver, check_finite=False)
    else:
        values, vectors = namespace(S).linalg.eigh(S)
    return values, vectors
