"""What a file holds: its columns first, then its rows, all at once or some at a time."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from skdare.data.block import (
    Block,
    array_labels,
    reading,
    refuse_doubles,
    refuse_infinity,
    split,
)
from skdare.data.csv_source import STDIN_NAME, CsvSource
from skdare.data.store import MANIFEST, Store
from skdare.errors import InputError

STDIN = "-"
FORMATS = (".csv", ".tsv", ".parquet", ".feather", ".npz")
COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
FEATURE_KEYS = ("x", "features", "embeddings", "embedding", "feats")
_SPARSE_ARRAYS = {"data", "indices", "indptr", "shape", "format"}


class Source(Protocol):
    """An open file. ``labels`` are columns that are no numbers whatever they look like."""

    columns: list[str]
    candidates: list[str]  # columns that may have a role

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[Block]:
        """All rows in order; without ``rows`` in one block. With ``features`` those are numbers."""


def open_source(path: str | Path) -> Source:
    """The columns of a file or feature store; "-" is CSV on the standard input."""
    if str(path) == STDIN:
        return CsvSource(STDIN_NAME, lambda: sys.stdin.buffer, ",")
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file '{path}'", "check the path")
    if path.is_dir():
        if not (path / MANIFEST).exists():
            raise InputError(f"'{path}' is a folder and no feature store", "give a file")
        return StoreSource(Store.open(path))
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1] if suffixes and suffixes[-1] in COMPRESSED else ""
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    if not kind or kind[0] not in FORMATS or (packed and kind[0] not in (".csv", ".tsv")):
        raise InputError(
            f"cannot tell the format of '{path.name}'",
            f"its name must end in {', '.join(FORMATS)}, or .csv.gz",
        )
    if not path.stat().st_size:
        raise InputError(f"'{path.name}' is empty")
    if kind[0] in (".csv", ".tsv"):
        opener: Callable[..., Any] = COMPRESSED.get(packed, open)
        usual = "," if kind[0] == ".csv" else "\t"
        return CsvSource(path.name, lambda: opener(path, "rb"), usual, wide=not packed)
    return NpzSource(path) if kind[0] == ".npz" else ArrowSource(path, kind[0])


class ArrowSource:
    """Parquet and Feather; a column of lists of numbers, such as embeddings, is many features."""

    def __init__(self, path: Path, kind: str) -> None:
        import pyarrow.feather
        import pyarrow.parquet

        self.name = path.name
        with reading(path.name):
            if kind == ".parquet":
                self._parquet = pyarrow.parquet.ParquetFile(path)
                schema = self._parquet.schema_arrow
            else:
                self._parquet = None
                self._table = pyarrow.feather.read_table(path, memory_map=True)
                schema = self._table.schema
        self.columns = [name for name in schema.names if not name.startswith("__index_level_")]
        refuse_doubles(self.columns, path.name)
        self.candidates = self.columns

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[Block]:
        import pyarrow as pa

        start = 0
        tables: Iterator[Any]
        with reading(self.name):
            if self._parquet is None:
                n = self._table.num_rows
                step = rows or max(n, 1)
                tables = (self._table.slice(i, step) for i in range(0, max(n, 1), step))
            elif rows is None:
                tables = iter([self._parquet.read(self.columns)])
            else:
                batches = self._parquet.iter_batches(rows, columns=self.columns)
                tables = (pa.Table.from_batches([batch]) for batch in batches)
            for table in tables:
                # What pandas has noted beside it may be damaged, and is not needed.
                table = table.select(self.columns).replace_schema_metadata()
                yield self._block(table, labels, features, start)
                start += table.num_rows

    def _block(
        self, table: Any, labels: Sequence[str], features: Sequence[str] | None, start: int
    ) -> Block:
        import pandas as pd
        import pyarrow as pa

        lists: dict[str, np.ndarray] = {}
        for field in table.schema:
            if not pa.types.is_nested(field.type) or field.name in labels:
                continue
            is_list = pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type)
            is_list = is_list or pa.types.is_large_list(field.type)
            if not is_list or not pa.types.is_floating(field.type.value_type):
                table = table.drop_columns(field.name)
                continue
            cells = table[field.name].combine_chunks()
            widths = np.unique(cells.value_lengths().to_numpy(zero_copy_only=False))
            if len(widths) > 1 or cells.null_count or cells.flatten().null_count:
                raise InputError(
                    f"column '{field.name}' has lists of several lengths, or without a value",
                    "write lists of equal length",
                )
            lists[field.name] = cells.flatten().to_numpy().reshape(len(cells), -1)
            table = table.drop_columns(field.name)
        frame = table.to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)
        given = None
        if features is not None:
            wide = {f"{name}_{j}" for name, part in lists.items() for j in range(part.shape[1])}
            given = [name for name in features if name not in wide]
        block = split(frame, labels, given, self.name, start, may_lack_numbers=bool(lists))
        names = [f"{name}_{j}" for name, part in lists.items() for j in range(part.shape[1])]
        parts = [*lists.values()] if not block.names else [block.X, *lists.values()]
        X = np.hstack(parts) if len(parts) > 1 else parts[0]
        refuse_infinity(X, [*block.names, *names], start)
        return Block(X, [*block.names, *names], block.others)


class NpzSource:
    """Arrays of an npz, dense or as scipy saves sparse matrices."""

    def __init__(self, path: Path) -> None:
        with reading(path.name):
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            if set(arrays) >= _SPARSE_ARRAYS:
                arrays["X"] = scipy.sparse.load_npz(path).tocsr()
                arrays = {name: a for name, a in arrays.items() if name not in _SPARSE_ARRAYS}
        matrices = [name for name, array in arrays.items() if array.ndim == 2]
        usual = [name for name in matrices if name.lower() in FEATURE_KEYS]
        candidates = usual or matrices
        if len(candidates) != 1:
            held = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
            raise InputError(f"'{path.name}' holds {held}", "call the matrix of features X")
        key = candidates[0]
        X = arrays.pop(key)
        n, d = X.shape
        if X.dtype.kind not in "biuf" or not d:
            raise InputError(f"{key} of '{path.name}' has shape {X.shape} and dtype {X.dtype}")
        self.X = X if X.dtype.name in ("float16", "float32", "float64") else X.astype(np.float32)
        self.names = [f"x{j}" for j in range(d)]
        for name in ("feature_names", "features"):
            if (
                name in arrays
                and arrays[name].shape == (d,)
                and (name not in FEATURE_KEYS or n != d)
            ):
                self.names = [str(each) for each in arrays.pop(name)]
                break
        refuse_doubles(self.names, path.name)
        # What has another length is not of rows: class names, a date.
        of_rows = {name: a.ravel() for name, a in arrays.items() if a.shape in ((n,), (n, 1))}
        self.others = {name: array_labels(values) for name, values in of_rows.items()}
        self.candidates = list(self.others)
        self.columns = [*self.others, *self.names]

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[Block]:
        n = self.X.shape[0]
        for start in range(0, max(n, 1), rows or max(n, 1)):
            part = slice(start, start + (rows or n))
            X = self.X[part]
            refuse_infinity(X, self.names, start)
            others = {name: values[part] for name, values in self.others.items()}
            yield Block(X, self.names, others)


class StoreSource:
    """A feature store, whose features stay on disk."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.candidates = store.columns
        self.columns = [*store.columns, *store.feature_names]

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[Block]:
        X, names = self.store.X, self.store.feature_names
        others = {name: self.store.column(name) for name in self.store.columns}
        if rows is None:
            yield Block(X, names, others)
            return
        for start in range(0, self.store.rows, rows):
            part = slice(start, start + rows)
            yield Block(X[part], names, {name: values[part] for name, values in others.items()})
