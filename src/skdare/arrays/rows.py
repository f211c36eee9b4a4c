"""Rows by number, a chunk at a time, wherever they are stored; and sums over rows.

**The one way over rows.** Moments, losses and checks are sums over rows, and each is a function of
some rows that `map_reduce` runs over all of them. Rows fall into groups of neighbours, which depend
on the size of X alone; a function maps the rows that a group has of a domain to a sum, and the sums
of groups are added up as a binary tree. Whoever has some neighbouring groups can add up whole
branches of the tree, so one process and any number of workers give the same bits. Rows on a cluster
(`skdare.cluster`) replace this one loop, and nothing else.

Notation: X (n, d) rows, V (d, k) weights, b (k,) intercept.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from skdare.arrays.libraries import (
    Array,
    as_float64,
    beside,
    float32_products,
    is_foreign,
    like,
    namespace,
    on_accelerator,
    product,
    work_dtype,
)

Index = slice | np.ndarray
"""Rows by number: a slice without a step where they are contiguous, else ascending numbers."""

# On the host a chunk that is gathered should still be in the cache for the second product. On an
# accelerator products should be large, and the scores of a chunk small compared with all rows.
CHUNK_BYTES = 4 << 20
_MOST_ROWS = 8192
_DEVICE_BYTES = 1 << 28
_MOST_DEVICE_ROWS = 1 << 17
# Adding up two groups costs a few (d, d) matrices a domain where their rows cost hundreds.
_GROUP_BYTES = 64 << 20
_MOST_GROUPS = 1024


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows stored outside memory: in files, a feature store, a Dask array, an Arrow table.

    They can be passed wherever an array of features can; one chunk at a time is in memory.

    Parameters
    ----------
    shape : (int, int)
    dtype : numpy.dtype
    read : function
        From a slice without a step, or ascending row numbers, to an array.
    is_portable : bool
        Whether ``read`` can be pickled and gives the same rows in other processes, so that the
        workers of a cluster can read for themselves.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> Rows(X.shape, X.dtype, lambda index: X[index])[[2, 0]]
    array([[4., 5.],
           [0., 1.]])
    """

    shape: tuple[int, int]
    dtype: np.dtype
    read: Callable[[Index], np.ndarray]
    is_portable: bool = False
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Some rows, as from a NumPy array: by number, slice, mask, or numbers in any order."""
        if isinstance(index, slice) and index.step in (None, 1):
            return self.read(slice(*index.indices(len(self))[:2]))
        numbers = np.arange(len(self))[index]
        if numbers.ndim == 0:
            return self.read(numbers[None])[0]
        distinct, places = np.unique(numbers, return_inverse=True)
        return self.read(distinct)[places]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError("these rows are read a chunk at a time; X[:] loads all of them")


@dataclass(frozen=True)
class MappedFile:
    """Reads rows of a file that holds the array itself, as `numpy.memmap` does."""

    path: str
    dtype: np.dtype
    offset: int
    shape: tuple[int, int]

    def __call__(self, index: Index) -> np.ndarray:
        return np.asarray(np.memmap(self.path, self.dtype, "r", self.offset, self.shape)[index])


@dataclass(eq=False)
class BlockReader:
    """Reads rows stored in blocks, such as shards; the last block is kept for the next read.

    Parameters
    ----------
    ends : sequence of int
        The number of rows up to the end of each block.
    block : function
        From the number of a block to its rows.
    """

    ends: Sequence[int]
    block: Callable[[int], np.ndarray]
    _number: int = -1
    _rows: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_number": -1, "_rows": None}

    def __call__(self, index: Index) -> np.ndarray:
        numbers = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        parts = [self.block(0)[:0]] if not len(numbers) else []
        done = 0
        while done < len(numbers):
            number = bisect_right(self.ends, numbers[done])
            if number != self._number:
                self._rows = None  # free before the next one comes
                self._rows = self.block(number)
                self._number = number
            until = int(np.searchsorted(numbers, self.ends[number]))
            places = numbers[done:until] - (self.ends[number] - len(self._rows))
            if isinstance(index, slice):  # a view
                parts.append(self._rows[places[0] : places[-1] + 1])
            else:
                parts.append(self._rows[places])
            done = until
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def length(index: Index) -> int:
    return index.stop - index.start if isinstance(index, slice) else len(index)


def take(X: Array, index: Index) -> Array:
    """The indexed rows, in the dtype of products: a view where possible."""
    if isinstance(X, Rows):
        rows = X.read(index)
    elif isinstance(index, slice):
        rows = X[index, :] if is_foreign(X) else X[index]
    else:
        rows = namespace(X).take(X, beside(index, X), axis=0) if is_foreign(X) else X[index]
    dtype = work_dtype(X)
    if rows.dtype == dtype:
        return rows
    return rows.astype(dtype) if not is_foreign(X) else namespace(X).astype(rows, dtype)


def chunks(
    X: Array, index: Index, *, columns: int = 0, n_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[slice, Array]]:
    """Places within the index, and their rows in the dtype of products: views where possible.

    ``columns`` is how many columns of scores are made of the rows.
    """
    n = length(index)
    step = _chunk_rows(X, n_bytes, columns)
    if on_accelerator(X):
        is_view = isinstance(index, slice) and work_dtype(X) == X.dtype
        width = columns if is_view and columns else X.shape[1]
        most = min(_MOST_DEVICE_ROWS, max(256, _DEVICE_BYTES // (4 * width)))
        step = -(-n // max(1, -(-n // most)))  # chunks alike, so that none is inefficiently small
    for start in range(0, n, step):
        place = slice(start, min(start + step, n))
        if isinstance(index, slice):
            yield place, take(X, slice(index.start + place.start, index.start + place.stop))
        else:
            yield place, take(X, index[place])


def _chunk_rows(X: Array, n_bytes: int, columns: int = 0) -> int:
    # At least 256: below that the cost of each chunk's loss shows. Scores are in float64.
    return min(_MOST_ROWS, max(256, n_bytes // (4 * max(1, X.shape[1] + 2 * columns))))


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows, and columns with an entry for each of them."""

    X: Array
    index: Index
    columns: tuple[Array, ...] = ()

    def between(self, start: int, stop: int) -> Part | None:
        """Those of its rows with numbers from start to stop, if any."""
        index = self.index
        if isinstance(index, slice):
            first = min(max(start - index.start, 0), length(index))
            last = min(max(stop - index.start, 0), length(index))
            rows: Index = slice(index.start + first, index.start + last)
        else:
            first, last = np.searchsorted(index, [start, stop]).tolist()
            rows = index[first:last]
        if first == last:
            return None
        return Part(self.X, rows, tuple(column[first:last, ...] for column in self.columns))

    def within(self, X: Array, start: int) -> Part:
        """The same rows, by their numbers in X, which begins with row ``start``."""
        index = self.index
        if isinstance(index, slice):
            return replace(self, X=X, index=slice(index.start - start, index.stop - start))
        return replace(self, X=X, index=index - start)


Mapped = Callable[[Part, Any], Any]
"""From some rows of a part, and the part's argument, to a sum over these rows."""


def map_reduce(function: Mapped, parts: Sequence[Part], arguments: Sequence[Any]) -> list[Any]:
    """The sum over the rows of each part; what ``function`` returns adds up with ``+``.

    All parts are of rows of one X. A function that runs on a cluster is one of a module.
    """
    X = parts[0].X
    if isinstance(X, SpreadRows):
        return X.map_reduce(function, parts, arguments)
    bounds = group_bounds(X)
    if len(bounds) == 2:
        return [function(*pair) for pair in zip(parts, arguments, strict=True)]
    trees = trees_of_groups(function, parts, arguments, bounds, slice(0, len(bounds) - 1))
    return [tree.total for tree in trees]


def trees_of_groups(
    function: Mapped,
    parts: Sequence[Part],
    arguments: Sequence[Any],
    bounds: Sequence[int],
    groups: slice,
) -> list[Tree]:
    """The sums of some groups, a group at a time, so that each is read once."""
    trees = [Tree() for _ in parts]
    for number in range(groups.start, groups.stop):
        for tree, part, argument in zip(trees, parts, arguments, strict=True):
            rows = part.between(bounds[number], bounds[number + 1])
            tree.add((0, number, None if rows is None else function(rows, argument)))
    return trees


class SpreadRows(Rows):
    """Rows that workers go over; see `skdare.cluster`."""

    @abstractmethod
    def map_reduce(
        self, function: Mapped, parts: Sequence[Part], arguments: Sequence[Any]
    ) -> list[Any]: ...


def group_bounds(X: Array) -> list[int]:
    """Where groups begin, and the last one ends: a power of two of them, each of whole chunks."""
    n = X.shape[0]
    if is_foreign(X):
        return [0, n]
    n_bytes = n * X.shape[1] * X.dtype.itemsize
    if sparse.issparse(X):
        n_bytes = X.data.nbytes + X.indices.nbytes
    wanted = max(1, min(-(-n_bytes // _GROUP_BYTES), _MOST_GROUPS))
    groups = 1 << (wanted - 1).bit_length()
    if groups == 1:
        return [0, n]
    step = _chunk_rows(X, CHUNK_BYTES)
    inner = {round(g * n / groups / step) * step for g in range(1, groups)}
    return sorted({0, n, *(bound for bound in inner if bound < n)})


Branch = tuple[int, int, Any]
"""Level and place in the tree, of the groups from place << level on, and their sum.

None is what no row has added to yet.
"""


@dataclass
class Tree:
    """A sum of branches that are given from left to right: siblings are added up as they meet."""

    branches: list[Branch] = field(default_factory=list)

    def add(self, branch: Branch) -> None:
        level, place, total = branch
        while place % 2 and self.branches and self.branches[-1][:2] == (level, place - 1):
            total = _plus(self.branches.pop()[2], total)
            level += 1
            place //= 2
        self.branches.append((level, place, total))

    @property
    def total(self) -> Any:
        total = None
        for _, _, left in reversed(self.branches):
            total = _plus(left, total)
        return total


def _plus(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right


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
