"""Rows that are never all in memory: those of a feature store, or of a source of chunks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from skdare._validation import check_count
from skdare.arrays import BlockReader, Index, RowReader, on_device, to_numpy
from skdare.datasets._manifest import CODEBOOK, CODES
from skdare.datasets._store import Store, open_store
from skdare.datasets._store_codes import decode
from skdare.datasets._table import DomainData

# Maps of shards that are kept open: more than domains are visited in turn, fewer than files.
_OPEN = 16


class StoredRows(BlockReader):
    """The features of a store, read from its shards when they are asked for.

    Parameters
    ----------
    store : Store
    """

    is_portable = True

    def __init__(self, store: Store) -> None:
        manifest = store.manifest
        self.store, self.dtype = store, store.dtypes["features"]
        self.shape = manifest.rows, manifest.features
        self._ends = [0, *accumulate(shard.rows for shard in manifest.shards)]
        self._opened: dict[int, np.ndarray | _CodedRows] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Maps would travel as copies of their rows, and who opens this may work in another folder.
        store = replace(self.store, folder=self.store.folder.absolute())
        return {**self.__dict__, "store": store, "_opened": {}}

    def __repr__(self) -> str:
        return f"StoredRows({str(self.store.folder)!r}, {self.shape[0]} rows)"

    def ascending(self, index: Index) -> np.ndarray:
        """Some rows, float16 as it is and 8-bit codes decoded; a view where a shard has them."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.shape[0])
            s = min(bisect_right(self._ends, start), len(self._ends) - 1) - 1
            if stop <= self._ends[s + 1]:
                return self._shard(s)[start - self._ends[s] : max(start, stop) - self._ends[s]]
            return self.store.rows("features", start, max(start, stop))
        return super().ascending(index)

    def _block_of(self, row: int) -> tuple[int, int, np.ndarray | _CodedRows]:
        s = bisect_right(self._ends, row) - 1
        return self._ends[s], self._ends[s + 1], self._shard(s)

    def _shard(self, s: int) -> np.ndarray | _CodedRows:
        """The map of a shard; the last ones stay open, as a chunk is often of the same."""
        if s not in self._opened:
            if len(self._opened) >= _OPEN:
                self._opened.pop(next(iter(self._opened)))
            shard = self.store.manifest.shards[s]
            rows = self.store.part(shard, "features")
            coded = self.store.manifest.dtype == CODES
            self._opened[s] = _CodedRows(rows, self.store.part(shard, CODEBOOK)) if coded else rows
        return self._opened[s]


@dataclass(frozen=True, eq=False)
class _CodedRows:
    """A shard of 8-bit codes, of which the rows asked for are decoded."""

    codes: np.ndarray
    book: np.ndarray

    def __getitem__(self, index: Index) -> np.ndarray:
        codes = self.codes[index]
        out = np.empty(codes.shape, np.float32)
        decode(codes, self.book, out)
        return out


class ChunkedRows(BlockReader):
    """Rows that a function gives anew, chunk after chunk, as often as it is called.

    Every pass over the data calls it once where the rows of each domain lie together, in the
    order of the domains' labels; else once for each domain. Sort rows by domain.

    Parameters
    ----------
    chunks : callable
        Returns an iterable of arrays of shape (m, d), the same each time.
    rows, features : int
        How many there are in all.
    dtype : dtype, default=float32
        Of every chunk, or one that chunks can be cast to without loss.

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
                "such as lambda: read_chunks(path)"
            )
        check_count("rows", rows, 1)
        check_count("features", features, 1)
        self.chunks, self.shape, self.dtype = chunks, (rows, features), np.dtype(dtype)
        self._source: Iterator[Any] = iter(())
        self._at, self._chunk = rows, np.empty((0, features), self.dtype)

    def __repr__(self) -> str:
        return f"ChunkedRows({self.shape[0]} rows, {self.shape[1]} features)"

    def _block_of(self, row: int) -> tuple[int, int, np.ndarray]:
        """Go on to the chunk that has this row; back to the start where it has gone by."""
        if row < self._at:
            self._source, self._at = iter(self.chunks()), 0
            self._chunk = self._chunk[:0]
        while row >= self._at + len(self._chunk):
            self._at += len(self._chunk)
            self._chunk = self._next()
        end = self._at + len(self._chunk)
        if end > self.shape[0] or (end == self.shape[0] and self._goes_on()):
            raise ValueError(
                f"the chunks go on after the {self.shape[0]} rows that were announced; count them, "
                "and give a label for each"
            )
        return self._at, end, self._chunk

    def _goes_on(self) -> bool:
        """Whether rows come after the last chunk."""
        return any(len(chunk) for chunk in self._source)

    def _next(self) -> np.ndarray:
        try:
            chunk = to_numpy(next(self._source))
        except StopIteration:
            raise ValueError(
                f"the chunks end after {self._at} rows, and {self.shape[0]} were announced; they "
                "must be the same each time"
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


class PreparedRows(RowReader):
    """Rows of another source, or some of them, prepared by a function whenever they are read.

    Parameters
    ----------
    rows : array or RowReader
    prepare : callable
        From an array of rows to one of the same shape, row by row.
    dtype : dtype
        Of what it gives.
    kept : array of ascending row numbers, optional
        Which rows there are. Default: all.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.datasets import PreparedRows
    >>> PreparedRows(np.ones((4, 2)), lambda X: 3 * X, np.float64, np.array([0, 2]))[:]
    array([[3., 3.],
           [3., 3.]])
    """

    def __init__(
        self,
        rows: Any,
        prepare: Callable[[np.ndarray], np.ndarray],
        dtype: np.dtype | type,
        kept: np.ndarray | None = None,
    ) -> None:
        self.rows, self.prepare, self.kept = rows, prepare, kept
        n = rows.shape[0] if kept is None else len(kept)
        self.shape, self.dtype = (n, rows.shape[1]), np.dtype(dtype)

    def __repr__(self) -> str:
        return f"PreparedRows({self.rows!r})"

    def ascending(self, index: Index) -> np.ndarray:
        """Some rows, prepared now."""
        found = self.rows[index if self.kept is None else self.kept[index]]
        return np.asarray(self.prepare(found), dtype=self.dtype)


def open_table(path: str | Path, *, device: str | None = None) -> DomainData:
    """A feature store as a table whose features stay on disk, or are put on a device.

    Labels and domains are read, features when a head asks for them: a chunk at a time, however
    many there are. Every head takes such a table.

    Parameters
    ----------
    path : str or path
    device : str, optional
        Such as ``"cuda"``: features become a torch tensor there, in the dtype of the store, by
        chunks, so that the host never has them all.

    Examples
    --------
    >>> import tempfile
    >>> from skdare import DAREClassifier
    >>> from skdare.datasets import make_latent_domains, open_table, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     table = open_table(f"{folder}/latent")
    ...     DAREClassifier().fit(table.X, table.y, domains=table.domains).coef_.shape
    (1, 8)
    """
    store = open_store(path)
    rows = StoredRows(store)
    X = rows if device is None else on_device(rows, device)
    return store.table(X, 0, store.manifest.rows)
