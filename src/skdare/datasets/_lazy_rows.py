"""Rows that are never all in memory: chunks that a function gives, or rows prepared as read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from skdare._validation import check_count
from skdare.arrays import BlockReader, Index, RowReader, to_numpy


class ChunkedRows(BlockReader):
    """Rows that a function gives chunk after chunk, as often as it is called.

    Every pass over the data calls it once where the rows of each domain lie together, in the
    order of the domains' labels, and else once per domain: sort rows by domain.

    Parameters
    ----------
    chunks : callable
        Returns an iterable of arrays of shape (m, d), the same each time.
    rows, features : int
        How many there are in all.
    dtype : dtype, default=float32
        The dtype of every chunk, or one that chunks can be cast to without loss.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare import ERMClassifier
    >>> from skdare.datasets import ChunkedRows, make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> X = ChunkedRows(lambda: np.array_split(data.X, 7), *data.X.shape, data.X.dtype)
    >>> head = ERMClassifier().fit(X, data.y)
    >>> bool(np.allclose(head.coef_, ERMClassifier().fit(data.X, data.y).coef_))
    True
    """

    def __init__(
        self,
        chunks: Callable[[], Iterable[Any]],
        rows: int,
        features: int,
        dtype: np.dtype | type = np.float32,
    ) -> None:
        if not callable(chunks):
            raise TypeError(
                f"chunks is a {type(chunks).__name__}; pass a function that gives the chunks anew, "
                "such as lambda: (part.X for part in read_chunks(path))"
            )
        check_count("rows", rows, 1)
        check_count("features", features, 1)
        self.chunks = chunks
        self.shape = (rows, features)
        self.dtype = np.dtype(dtype)
        self._source: Iterator[Any] = iter(())
        self._start = rows  # of the chunk that was read last
        self._chunk = np.empty((0, features), self.dtype)

    def __repr__(self) -> str:
        return f"ChunkedRows({self.shape[0]} rows, {self.shape[1]} features)"

    def _block_of(self, row: int) -> tuple[int, int, np.ndarray]:
        """Go on to the chunk that has this row; begin again where it came before."""
        if row < self._start:
            self._source = iter(self.chunks())
            self._start = 0
            self._chunk = self._chunk[:0]
        while row >= self._start + len(self._chunk):
            self._start += len(self._chunk)
            self._chunk = self._next()
        end = self._start + len(self._chunk)
        if end > self.shape[0] or (end == self.shape[0] and self._goes_on()):
            raise ValueError(
                f"the chunks go on after the {self.shape[0]} rows that were announced; count them, "
                "and give a label for each"
            )
        return self._start, end, self._chunk

    def _goes_on(self) -> bool:
        """Whether rows come after the last chunk."""
        return any(len(chunk) for chunk in self._source)

    def _next(self) -> np.ndarray:
        try:
            chunk = to_numpy(next(self._source))
        except StopIteration:
            raise ValueError(
                f"the chunks end after {self._start} rows, and {self.shape[0]} were announced; "
                "they must be the same each time"
            ) from None
        if chunk.ndim != 2 or chunk.shape[1] != self.shape[1]:
            raise ValueError(
                f"a chunk has shape {chunk.shape}, and {self.shape[1]} features were announced; "
                "give rows by features"
            )
        if not np.can_cast(chunk.dtype, self.dtype, "safe"):
            raise ValueError(
                f"a chunk is {chunk.dtype}, and {self.dtype} was announced; pass "
                f"dtype={str(chunk.dtype)!r}"
            )
        return chunk


def transformed(steps: Sequence[tuple[str, Any]], rows: np.ndarray) -> np.ndarray:
    """Rows after the fitted steps of a pipeline, in single precision at least.

    The mean of float16 rows is not a float16.
    """
    if steps and rows.dtype == np.float16:
        rows = rows.astype(np.float32)
    for _, step in steps:
        rows = step.transform(rows)
    return rows


class PreparedRows(RowReader):
    """Rows, or some of them, that a function prepares whenever they are read.

    Parameters
    ----------
    rows : array or RowReader
    prepare : callable
        From an array of rows to one of the same shape, row by row.
    dtype : dtype
        The dtype of prepared rows.
    index : array of ascending row numbers, optional
        The rows to take. Default: all.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.datasets._lazy_rows import PreparedRows
    >>> PreparedRows(np.ones((4, 2)), lambda X: 3 * X, np.float64, np.array([0, 2]))[:]
    array([[3., 3.],
           [3., 3.]])
    """

    def __init__(
        self,
        rows: Any,
        prepare: Callable[[np.ndarray], np.ndarray],
        dtype: np.dtype | type,
        index: np.ndarray | None = None,
    ) -> None:
        self.rows = rows
        self.prepare = prepare
        self.index = index
        self.shape = (rows.shape[0] if index is None else len(index), rows.shape[1])
        self.dtype = np.dtype(dtype)

    def __repr__(self) -> str:
        return f"PreparedRows({self.rows!r})"

    def ascending(self, index: Index) -> np.ndarray:
        """Some rows, prepared now."""
        rows = self.rows[index if self.index is None else self.index[index]]
        return np.asarray(self.prepare(rows), dtype=self.dtype)
