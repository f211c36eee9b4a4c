"""Rows that lie elsewhere, and of which a chunk at a time is brought into memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

Index = slice | np.ndarray
"""The rows of a domain: a slice where they are contiguous, else their numbers."""


class RowReader(ABC):
    """Rows that lie elsewhere, and of which a chunk at a time is brought into memory.

    Wherever features are taken, one may stand for an array of its ``shape`` and ``dtype``.
    """

    ndim = 2
    shape: tuple[int, int]
    dtype: np.dtype
    is_sparse = False
    # Whether a pickle of it is small, and reads the same rows wherever the same files are.
    is_portable = False

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Some rows, as of a NumPy array: by a number, a slice, a mask, or numbers in any order."""
        if isinstance(index, tuple) and all(i is Ellipsis or i == slice(None) for i in index[1:]):
            index = index[0]
        if isinstance(index, int | np.integer):
            row: np.ndarray = self[np.array([index])][0]
            return row
        if isinstance(index, slice):
            start, stop, step = index.indices(self.shape[0])
            if step == 1:
                return self.ascending(slice(start, max(start, stop)))
            index = np.arange(start, stop, step)
        index = self._numbers(index)
        if np.all(index[1:] >= index[:-1]):
            return self.ascending(index)
        order = np.argsort(index, kind="stable")
        rows = self.ascending(index[order])
        out = np.empty_like(rows)
        out[order] = rows
        return out

    def _numbers(self, index: Any) -> np.ndarray:
        """Row numbers from zero on, of a mask or of numbers."""
        numbers = np.asarray(index)
        n = self.shape[0]
        if numbers.dtype == bool and numbers.shape == (n,):
            return np.flatnonzero(numbers)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise IndexError(
                f"these rows are taken by a slice, a mask of length {n} or a list of numbers, and "
                f"not by {numbers.dtype} of shape {numbers.shape}"
            )
        if numbers.size and not (-n <= numbers.min() and numbers.max() < n):
            low = numbers.min()
            high = numbers.max()
            raise IndexError(f"a row from {low} to {high} was asked for; X has {n}")
        return np.where(numbers < 0, numbers + n, numbers).astype(np.intp)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            "these rows are read a chunk at a time, and this needs an array of them; X[:] loads all"
        )

    @abstractmethod
    def ascending(self, index: Index) -> np.ndarray:
        """Some rows, by a slice without a step or by ascending numbers."""


class BlockReader(RowReader):
    """Rows that lie in blocks, of which one at a time is brought into memory."""

    def ascending(self, index: Index) -> np.ndarray:
        """A copy of some rows."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.shape[0])
            index = np.arange(start, max(start, stop))
        out = np.empty((len(index), self.shape[1]), self.dtype)
        done = 0
        while done < len(index):
            start, stop, rows = self._block_of(int(index[done]))
            until = done + int(np.searchsorted(index[done:], stop))
            out[done:until] = rows[index[done:until] - start]
            del rows  # its memory is free for the next block
            done = until
        return out

    @abstractmethod
    def _block_of(self, row: int) -> tuple[int, int, Any]:
        """The first row of the block with this row, the row after its last, and its rows."""
