"""Array libraries, devices and dtypes: which library holds X, and arrays beside it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeVar

import array_api_compat
import numpy as np

from skdare.arrays.readers import RowReader

Array = Any
"""A NumPy array, a SciPy CSR matrix, any array-API array (torch, cupy, ...), or a `RowReader`."""


T = TypeVar("T")

# Of features in float64: their variances, and the inverses of these, are normal numbers.
SMALLEST_SPREAD = 1e-120
_PRECISION = RLock()

# The namespace of each kind of array that was met: finding it takes longer than a small product.
_NAMESPACES: dict[type, Any] = {}


def is_scipy_sparse(X: Array) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    # Importing SciPy takes longer than `skdare check`, and until somebody has nothing is sparse.
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def is_sparse(X: Array) -> bool:
    """Whether rows of X are sparse."""
    if type(X) is np.ndarray:  # asked for every block of rows, and by far the most common answer
        return False
    return is_scipy_sparse(X) or (isinstance(X, RowReader) and X.is_sparse)


def is_foreign(X: Array) -> bool:
    """Whether X is an array-API array that is not NumPy's: it stays in its library and device."""
    if type(X) is np.ndarray:
        return False
    return array_api_compat.is_array_api_obj(X) and not isinstance(X, np.ndarray | np.generic)


def namespace(X: Array) -> Any:
    """The array namespace of X; sparse matrices and rows that lie elsewhere compute in NumPy."""
    kind = type(X)
    if kind not in _NAMESPACES:
        if is_scipy_sparse(X) or isinstance(X, RowReader):
            return np
        _NAMESPACES[kind] = array_api_compat.array_namespace(X)
    return _NAMESPACES[kind]


def like(values: Array, X: Array, dtype: Any = None) -> Array:
    """``values`` as an array in X's namespace, on X's device, in ``dtype`` (default: X's)."""
    xp = namespace(X)
    dtype = work_dtype(X) if dtype is None else dtype
    if xp is np or isinstance(X, np.ndarray) or is_scipy_sparse(X):
        return np.asarray(to_numpy(values) if is_foreign(values) else values, dtype=dtype)
    if type(values) is type(X) and array_api_compat.is_torch_array(X):
        return values.to(X.device, dtype)  # itself where nothing changes, and without a detour
    return xp.asarray(values, dtype=dtype, device=array_api_compat.device(X))


def on_accelerator(X: Array) -> bool:
    """Whether X lies on a device that is not the host's."""
    if isinstance(X, np.ndarray) or not is_foreign(X):
        return False
    if array_api_compat.is_torch_array(X):
        return bool(X.device.type != "cpu")
    return str(array_api_compat.device(X)).lower() not in ("cpu", "cpu_device")


def is_cuda(X: Array) -> bool:
    """Whether X is a torch tensor on a GPU."""
    return is_foreign(X) and array_api_compat.is_torch_array(X) and X.is_cuda


def is_cuda_float32(X: Array) -> bool:
    """Whether products with X can be made quicker by rounding its entries (TF32)."""
    return is_cuda(X) and work_dtype(X) == namespace(X).float32


@contextmanager
def products_of(X: Array, *, coarse: bool = False) -> Iterator[None]:
    """Products of float32 CUDA arrays in full precision, whatever torch is set to, or in TF32.

    TF32 keeps 10 bits of each entry: 2.4 times as fast, and good for three digits.
    """
    if not is_cuda_float32(X):
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


def to_numpy(values: Array) -> np.ndarray:
    """``values`` as a NumPy array on the host."""
    if isinstance(values, np.ndarray):
        return values
    if is_foreign(values):
        if array_api_compat.is_torch_array(values):
            tensor = values.detach()
            host: np.ndarray = (_from_gpu(tensor) if tensor.is_cuda else tensor.cpu()).numpy()
            return host
        xp = array_api_compat.array_namespace(values)
        cpu = xp.Device("CPU_DEVICE") if hasattr(xp, "Device") else "cpu"
        return np.asarray(array_api_compat.to_device(values, cpu))
    return np.asarray(values)


def _from_gpu(values: Array) -> Array:
    """A tensor on the host, by way of memory that the GPU reaches.

    Without it the driver would hold up everything that other threads ask of the GPU.
    """
    import torch

    staged = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    staged.copy_(values, non_blocking=True)
    torch.cuda.current_stream(values.device).synchronize()
    return staged.clone()


def in_background(function: Callable[[], T], X: Array) -> Callable[[], T]:
    """Begin to copy results from a GPU while it goes on; call what is returned for the result.

    Without a GPU the function is called then, and not before.
    """
    if not is_cuda(X):
        return function
    import torch

    stream = torch.cuda.Stream(X.device)
    stream.wait_stream(torch.cuda.current_stream(X.device))

    def copy() -> T:
        with torch.cuda.stream(stream):
            return function()

    pool = ThreadPoolExecutor(1)
    future = pool.submit(copy)
    pool.shutdown(wait=False)
    return future.result


def same_place(X: Array, Y: Array) -> bool:
    """Whether two arrays are in one array library and on one device."""
    if not is_foreign(X) or not is_foreign(Y):
        return not is_foreign(X) and not is_foreign(Y)
    same = namespace(X) is namespace(Y)
    return same and array_api_compat.device(X) == array_api_compat.device(Y)


def work_dtype(X: Array) -> Any:
    """The dtype of products with X: float64 for float64 and integers, else float32."""
    xp = np if isinstance(X, np.ndarray) else namespace(X)
    if X.dtype == xp.float64 or not is_floating(X):
        return xp.float64
    return xp.float32


def float64(X: Array) -> Any:
    """float64 in X's namespace."""
    return namespace(X).float64


def as_float64(values: Array) -> Array:
    """``values`` in float64, in their own namespace and on their own device."""
    xp = namespace(values)
    return xp.astype(values, xp.float64, copy=False)


def is_floating(X: Array) -> bool:
    if isinstance(X, np.ndarray | RowReader) or is_scipy_sparse(X):
        return bool(X.dtype.kind == "f")
    return bool(namespace(X).isdtype(X.dtype, "real floating"))


def largest_feature(X: Array) -> float:
    """What features may reach: their squares in the dtype of products, fourth powers in float64."""
    return 1e70 if work_dtype(X) == float64(X) else 1e19


def smallest_spread(X: Array) -> float:
    """What features must vary by: the dtype of products then holds the inverse, and products."""
    return SMALLEST_SPREAD if work_dtype(X) == float64(X) else 1e-30


def largest_offset(X: Array) -> float:
    """What the mean of a feature may be in units of what varies: products hold its square."""
    return 1e100 if work_dtype(X) == float64(X) else 1e15


def power_of_two_near(size: float) -> float:
    """The power of two nearest to a size; one where the size is zero or not finite.

    As a unit of float32 numbers it keeps squares and products within range, and changes no digit.
    """
    return float(2.0 ** round(np.log2(size))) if 0 < size < np.inf else 1.0


def rounding_unit(X: Array) -> float:
    """The relative distance of the numbers that X can hold; of integers, that of float64."""
    if not is_floating(X):
        return float(np.finfo(np.float64).eps)
    return float(namespace(X).finfo(X.dtype).eps)


def is_real(X: Array) -> bool:
    """Whether an array holds real numbers."""
    if isinstance(X, RowReader):
        return X.dtype.kind in "biuf"
    return bool(namespace(X).isdtype(X.dtype, ("bool", "integral", "real floating")))


def empty(shape: tuple[int, ...], beside: Array) -> Array:
    """An array to be filled, in the dtype, library and device of another."""
    if isinstance(beside, np.ndarray):
        return np.empty(shape, beside.dtype)
    device = array_api_compat.device(beside)
    return namespace(beside).empty(shape, dtype=beside.dtype, device=device)


def identity(S: Array) -> Array:
    """The identity matrix beside S, in its dtype."""
    if isinstance(S, np.ndarray):
        return np.eye(S.shape[0], dtype=S.dtype)
    return namespace(S).eye(S.shape[0], dtype=S.dtype, device=array_api_compat.device(S))
