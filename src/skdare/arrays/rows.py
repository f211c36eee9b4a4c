"""Rows by index, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator

import array_api_compat
import numpy as np

from skdare.arrays.libraries import (
    Array,
    is_floating,
    is_foreign,
    is_scipy_sparse,
    namespace,
    on_accelerator,
    to_numpy,
    work_dtype,
)
from skdare.arrays.readers import Index

# Rows are visited in chunks of about this many bytes. On a CPU a gathered chunk should still be
# warm for the second product; on an accelerator products should be large, and the scores of a
# chunk small beside the rows of all.
_CHUNK_BYTES_HOST = 4 << 20
_CHUNK_BYTES_DEVICE = 1 << 28


_MAX_CHUNK_ROWS_HOST = 8192
_MAX_CHUNK_ROWS_DEVICE = 1 << 17


def evenly_spread(rows: np.ndarray, most: int) -> np.ndarray:
    """All of these rows, or ``most`` of them, evenly spread."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def is_within(X: Array, index: Index, limit: float) -> bool:
    """Whether every entry of the indexed rows is a number from -limit to limit."""
    if not is_floating(X):
        return True
    for _, rows in chunks(X, index):
        values = rows.data if is_scipy_sparse(rows) else rows
        if 0 in values.shape:
            continue
        xp = namespace(values)
        # Not-a-number is the largest and the smallest wherever there is one, and fails both.
        if not (float(xp.max(values)) <= limit and float(xp.min(values)) >= -limit):
            return False
    return True


def column_reach(X: Array) -> np.ndarray:
    """The largest absolute entry of each column, on the host; NaN where there is one."""
    reach = np.zeros(X.shape[1])
    for _, rows in chunks(X, slice(0, X.shape[0])):
        if is_scipy_sparse(rows):
            top = abs(rows).max(axis=0).toarray().ravel()
        else:
            top = to_numpy(namespace(rows).max(namespace(rows).abs(rows), axis=0))
        reach = np.maximum(reach, top)
    return reach


def chunk_rows(X: Array, *, columns: int | None = None) -> int:
    """How many rows of X to visit at a time: copied, or for this many columns of scores."""
    d = max(1, int(X.shape[1]))
    if on_accelerator(X):
        width = d if columns is None else max(1, columns)
        return min(_MAX_CHUNK_ROWS_DEVICE, max(256, _CHUNK_BYTES_DEVICE // (4 * width)))
    # At least 256 rows: below that the per-chunk cost of the loss shows.
    return min(_MAX_CHUNK_ROWS_HOST, max(256, _CHUNK_BYTES_HOST // (4 * d)))


def length(index: Index) -> int:
    """How many rows an index selects."""
    return index.stop - index.start if isinstance(index, slice) else len(index)


def compact(numbers: np.ndarray) -> Index:
    """Ascending row numbers as a slice where they are contiguous, so that no row is copied."""
    if len(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers):
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def take(X: Array, index: Index) -> Array:
    """Rows of X in the dtype of products: a view where ``index`` is a slice and none is cast."""
    if isinstance(index, slice):
        rows = X[index, :] if is_foreign(X) else X[index]
    elif is_foreign(X):
        xp = namespace(X)
        numbers = xp.asarray(index, device=array_api_compat.device(X))
        rows = xp.take(X, numbers, axis=0)
    else:
        rows = X[index]
    dtype = work_dtype(X)
    if rows.dtype == dtype:
        return rows
    return rows.astype(dtype) if not is_foreign(X) else namespace(X).astype(rows, dtype)


def dense_rows(X: Array, index: Index) -> np.ndarray:
    """Rows of X on the host, as an array that is not sparse."""
    rows = take(X, index)
    dense: np.ndarray = rows.toarray() if is_scipy_sparse(rows) else to_numpy(rows)
    return dense


def chunks(X: Array, index: Index, *, columns: int | None = None) -> Iterator[tuple[slice, Array]]:
    """Visit the indexed rows in order: (their place within the index, the rows).

    With ``columns``, chunks suit this many columns of scores where rows are not copied.
    """
    views = isinstance(index, slice) and work_dtype(X) == X.dtype
    n = length(index)
    step = chunk_rows(X, columns=columns if views else None)
    if on_accelerator(X):
        step = -(-n // max(1, -(-n // step)))  # chunks alike, so that none is too small to pay
    for start in range(0, n, step):
        place = slice(start, min(start + step, n))
        if isinstance(index, slice):
            yield place, take(X, slice(index.start + place.start, index.start + place.stop))
        else:
            yield place, take(X, index[place])
