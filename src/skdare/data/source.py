"""Files of every format: the names of their columns, then their rows, whole or in chunks."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from skdare.data.csv_source import STDIN_NAME, CsvSource
from skdare.data.row_block import (
    LABEL_KINDS,
    RowBlock,
    array_labels,
    reading,
    refuse_doubles,
    refuse_infinity,
    split,
)
from skdare.data.store import MANIFEST, Store
from skdare.errors import InputError, listed, quoted

STDIN = "-"
# `write` has them, too, and `TABLES` in `skdare.cli.outputs`, which does not load this module.
FORMATS = (".csv", ".tsv", ".parquet", ".feather", ".npz")
COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
FEATURE_KEYS = ("x", "features", "embeddings", "embedding", "feats")
# What to do with a file that others write and that is not read.
_ADVICE = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save it as CSV"),
    **dict.fromkeys(
        (".npy", ".pt", ".pth", ".pkl", ".safetensors", ".mat", ".h5"),
        "save the arrays X, y and domains as .npz with numpy.savez",
    ),
}
# Feature hashing makes 2²⁰ features, whose names take 300 MB.
_MOST_FEATURES = 1 << 22


class Source(Protocol):
    """An open file. ``labels`` are columns of labels, even if all of their cells are numbers."""

    columns: list[str]
    candidates: list[str]  # columns that may have a role

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[RowBlock]:
        """All rows in order; without ``rows`` in one block. Each of ``features`` is numbers."""


def open_source(path: str | Path) -> Source:
    """Open a file or feature store; "-" is CSV on the standard input."""
    if str(path) == STDIN:
        return CsvSource(STDIN_NAME, lambda: sys.stdin.buffer, ",")
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file {quoted(path)}", "check the path")
    if path.is_dir():
        if not (path / MANIFEST).exists():
            raise InputError(f"{quoted(path)} is a folder, and not a feature store", "give a file")
        return StoreSource(Store.open(path))
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1] if suffixes and suffixes[-1] in COMPRESSED else ""
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    if not kind or kind[0] not in FORMATS or (packed and kind[0] not in (".csv", ".tsv")):
        usual = f"its name must end in {', '.join(FORMATS)}, or .csv.gz"
        hint = _ADVICE.get(kind[0], usual) if kind else usual
        raise InputError(f"cannot read {quoted(path.name)}", hint)
    if not path.is_file():
        raise InputError(f"{quoted(path)} is a pipe or a device", "write its rows to a file")
    if not path.stat().st_size:
        raise InputError(f"{quoted(path.name)} is empty")
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
    ) -> Iterator[RowBlock]:
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
                if self._parquet is None:  # Feather is memory that is trusted unless it is checked
                    table.validate(full=True)
                # The metadata of pandas may be damaged, and is not needed.
                table = table.select(self.columns).replace_schema_metadata()
                yield self._block(table, labels, features, start)
                start += table.num_rows

    def _block(
        self, table: Any, labels: Sequence[str], features: Sequence[str] | None, start: int
    ) -> RowBlock:
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
                    f"column {quoted(field.name)} has lists of several lengths, or without a value",
                    "write lists of equal length",
                )
            lists[field.name] = cells.flatten().to_numpy().reshape(len(cells), -1)
            table = table.drop_columns(field.name)
        for place, field in enumerate(table.schema):
            if pa.types.is_decimal(field.type) or pa.types.is_null(field.type):
                table = table.set_column(place, field.name, table[field.name].cast(pa.float64()))
        frame = table.to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)
        others = None
        if features is not None:
            wide = {f"{name}_{j}" for name, part in lists.items() for j in range(part.shape[1])}
            others = [name for name in features if name not in wide]
        block = split(frame, labels, others, self.name, start, may_lack_numbers=bool(lists))
        names = [f"{name}_{j}" for name, part in lists.items() for j in range(part.shape[1])]
        parts = [*lists.values()] if not block.names else [block.X, *lists.values()]
        X = np.hstack(parts) if len(parts) > 1 else parts[0]
        refuse_infinity(X, [*block.names, *names], start)
        return RowBlock(X, [*block.names, *names], block.others)


class NpzSource:
    """Arrays of an npz, dense or as scipy saves sparse matrices."""

    def __init__(self, path: Path) -> None:
        with reading(path.name):
            arrays = _arrays(path)
        matrices = [name for name, array in arrays.items() if array.ndim == 2]
        usual = [name for name in matrices if name.lower() in FEATURE_KEYS]
        candidates = usual or matrices
        if len(candidates) != 1:
            held = listed(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
            raise InputError(f"{quoted(path.name)} holds {held}", "call the matrix of features X")
        key = candidates[0]
        X = arrays.pop(key)
        n, d = X.shape
        if X.dtype.kind not in "biuf" or not 0 < d <= _MOST_FEATURES:
            raise InputError(
                f"{quoted(key)} of {quoted(path.name)} has shape {X.shape} and dtype {X.dtype}",
                f"features are numbers, in 1 to {_MOST_FEATURES:,} columns",
            )
        if X.dtype.name not in ("float16", "float32", "float64") or not X.dtype.isnative:
            native = X.dtype.newbyteorder("=")
            exact = native if native.kind == "f" else np.result_type(native, np.float32)
            X = X.astype(min(np.dtype(exact), np.dtype(np.float64), key=lambda t: t.itemsize))
        self.X = X
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
        # An array of another length is not a column: class names, a date.
        self.others = {
            name: array_labels(array.ravel())
            for name, array in arrays.items()
            if array.shape in ((n,), (n, 1)) and array.dtype.kind in LABEL_KINDS
        }
        self.candidates = list(self.others)
        self.columns = [*self.others, *self.names]

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[RowBlock]:
        n = self.X.shape[0]
        for start in range(0, max(n, 1), rows or max(n, 1)):
            part = slice(start, start + (rows or n))
            X = self.X[part]
            refuse_infinity(X, self.names, start)
            others = {name: values[part] for name, values in self.others.items()}
            yield RowBlock(X, self.names, others)


def _arrays(path: Path) -> dict[str, Any]:
    """The arrays of an npz; those of a sparse matrix as one, called X."""
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    arrays = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    if not {"format", "shape", "data"} <= set(arrays):
        return arrays
    of_the_matrix = {"format", "shape", "data", "indices", "indptr", "row", "col", "_is_array"}
    labels = {name: array for name, array in arrays.items() if name not in of_the_matrix}
    return labels | {"X": _sparse(arrays)}


def _sparse(arrays: Mapping[str, np.ndarray]) -> Any:
    """The matrix that scipy saved. Its products do not check indices: wrong ones end the process.

    `check_format` lets through some that do, so all is checked here, before scipy sees it.
    """
    layout, data = arrays["format"].item(), arrays["data"]
    layout = layout.decode() if isinstance(layout, bytes) else layout
    shape = tuple(int(size) for size in arrays["shape"])
    # An array of as many entries is made, and a damaged shape can claim any size.
    if len(shape) != 2 or min(shape) < 0 or sum(shape) > _MOST_FEATURES + 64 * data.size:
        raise ValueError(f"a sparse matrix of shape {shape} has {data.size:,} entries")
    if layout not in ("csr", "csc", "coo"):
        raise ValueError(f"it holds a sparse matrix as {layout}, and csr is needed")
    names = ("row", "col") if layout == "coo" else ("indices", "indptr")
    first, second = (arrays[name] for name in names)
    if any(array.ndim != 1 for array in (data, first, second)) or data.dtype.kind not in "biuf":
        raise ValueError("its sparse matrix has entries or indices of another shape or type")
    if first.dtype.kind not in "iu" or second.dtype.kind not in "iu":
        raise ValueError("its sparse matrix has indices that are not integers")
    if layout == "coo":
        within = _within(first, shape[0]) and _within(second, shape[1])
        sizes = len(first) == len(second) == len(data)
    else:
        major, minor = shape if layout == "csr" else shape[::-1]
        within = _within(first, minor) and _within(second, len(data) + 1)
        sizes = len(first) == len(data) and len(second) == major + 1
        within = within and not second[:1].any() and bool((second[1:] >= second[:-1]).all())
        sizes = sizes and int(second[-1]) == len(data)
    if not within or not sizes:
        raise ValueError("its sparse matrix has indices that are out of bounds or in disorder")
    first, second = first.astype(np.int64), second.astype(np.int64)
    if layout == "coo":
        return scipy.sparse.coo_array((data, (first, second)), shape=shape).tocsr()
    kind = scipy.sparse.csr_array if layout == "csr" else scipy.sparse.csc_array
    return kind((data, first, second), shape=shape).tocsr()


def _within(places: np.ndarray, size: int) -> bool:
    return not len(places) or 0 <= int(places.min()) <= int(places.max()) < size


class StoreSource:
    """A feature store, whose features stay on disk."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.candidates = store.columns
        self.columns = [*store.columns, *store.feature_names]

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[RowBlock]:
        X, names = self.store.X, self.store.feature_names
        others = {name: array_labels(self.store.column(name)) for name in self.store.columns}
        if rows is None:
            yield RowBlock(X, names, others)
            return
        for start in range(0, self.store.rows, rows):
            part = slice(start, start + rows)
            yield RowBlock(X[part], names, {name: values[part] for name, values in others.items()})
