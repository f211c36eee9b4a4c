"""Rows that are read where they are asked for: of a memory-mapped file, or of a dask.array."""

from __future__ import annotations

import mmap
import sys
from bisect import bisect_right
from itertools import accumulate
from typing import Any

import numpy as np

from skdare.arrays import BlockReader, Index, RowReader


class MappedRows(RowReader):
    """Rows of a file that any process with the same file can map.

    Parameters
    ----------
    X : np.memmap
        As `is_mapped` knows it.
    """

    is_portable = True

    def __init__(self, X: np.memmap) -> None:
        if X.mode != "r":
            X.flush()
        self.path = str(X.filename)
        self.offset = _file_offset(X)
        self.shape = X.shape
        self.dtype = X.dtype
        self._X: np.ndarray | None = X

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_X": None}

    def __repr__(self) -> str:
        return f"MappedRows({self.path!r}, {self.shape[0]} rows)"

    def ascending(self, index: Index) -> np.ndarray:
        """A view of some rows by a slice, a copy of others."""
        if self._X is None:
            self._X = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        return np.asarray(self._X[index])


def is_mapped(X: Any) -> bool:
    """Whether X is a table of numbers that lies in a file as it is."""
    return (
        isinstance(X, np.memmap)
        and X.filename is not None
        and X.mode != "c"
        and X.ndim == 2
        and X.size > 0
        and X.dtype.kind in "biuf"
        and bool(X.flags.c_contiguous)
    )


def _file_offset(X: np.memmap) -> int:
    """The byte at which X starts in its file: views keep the offset of the map that they are of."""
    begin = np.frombuffer(X._mmap, np.uint8)  # type: ignore[attr-defined]
    first = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    return first + X.ctypes.data - begin.ctypes.data


class DaskArrayRows(BlockReader):
    """Rows of a dask.array, computed block by block when they are asked for.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d)
        With known chunks, and all features of a row in one.
    """

    def __init__(self, X: Any) -> None:
        self.array = X
        self.shape = X.shape
        self.dtype = X.dtype
        self.ends = [0, *accumulate(X.chunks[0])]
        self._block: tuple[int, int, np.ndarray] | None = None

    def __repr__(self) -> str:
        return f"DaskArrayRows({self.shape[0]} rows in {len(self.ends) - 1} blocks)"

    def _block_of(self, row: int) -> tuple[int, int, np.ndarray]:
        """The last one is kept, as a chunk is often of the same."""
        block = self._block
        if block is None or not block[0] <= row < block[1]:
            b = bisect_right(self.ends, row) - 1
            self._block = block = None
            block = self.ends[b], self.ends[b + 1], np.asarray(self.array.blocks[b].compute())
            self._block = block
        return block


def is_dask_array(X: Any) -> bool:
    """Whether X is a dask.array; Dask is not imported to find out."""
    return "dask.array" in sys.modules and isinstance(X, sys.modules["dask.array"].Array)


def rows_in_blocks(X: Any) -> Any:
    """A dask.array as a table of known size whose blocks have whole rows."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead; X is rows by features")
    if np.isnan(X.shape[1]):
        raise ValueError("X has an unknown number of features; call X.compute_chunk_sizes() first")
    if np.isnan(X.shape[0]):
        X = X.persist().compute_chunk_sizes()
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})
