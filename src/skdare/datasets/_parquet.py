"""Parquet: tables of columns, read and written through Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skdare.datasets._arrow import (
    column_dtype,
    column_item,
    columns_in,
    table_values,
)
from skdare.datasets._contents import (
    LABEL_KEYS,
    ArrayInfo,
    Contents,
    Key,
    TableArrays,
    needing,
    reading,
)
from skdare.datasets._entries import column_names, distinct


def read_parquet(path: Path) -> Contents:
    """Columns of numbers, text or lists of numbers; only those that are chosen are loaded."""
    with needing("parquet", path):
        import pyarrow as pa
        import pyarrow.parquet as pq
    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        shapes = [_shape(file, column) for column in schema]
    names = distinct(schema.names, path)
    dtypes = [column_dtype(column_item(column.type)) for column in schema]

    def load(keys: Sequence[Key]) -> list[np.ndarray]:
        with reading(path, "Parquet"), pq.ParquetFile(path) as file:
            table = file.read(columns=columns_in(keys))
        return table_values(table, keys, path)

    def stream(keys: Sequence[Key], rows: int) -> Iterator[list[np.ndarray]]:
        # Neither ahead nor a row group at once: pages are read as rows are asked for.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
            batches = file.iter_batches(rows, columns=columns_in(keys), use_threads=False)
            while True:
                with reading(path, "Parquet"):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield table_values(pa.Table.from_batches([batch]), keys, path)

    entries = dict(zip(names, map(ArrayInfo, shapes, dtypes), strict=True))
    return Contents(path, entries, load, stream, tabular=True)


def _shape(file: Any, column: Any) -> tuple[int, ...]:
    """Rows, and for lists the length of the first one; loading checks the others."""
    rows = file.metadata.num_rows
    if column_item(column.type) == column.type:
        return (rows,)
    if hasattr(column.type, "list_size"):
        return (rows, column.type.list_size)
    first = next(file.iter_batches(1, columns=[column.name]), None)
    return (rows, len(first.column(0)[0].as_py() or ()) if first is not None else 0)


def write_parquet(file: BinaryIO, arrays: TableArrays, path: Path) -> None:
    """Write features that have names as columns, and others as one column of lists."""
    with needing("parquet", path):
        import pyarrow as pa
        import pyarrow.parquet as pq
    X = arrays["X"]
    if "feature_names" in arrays:
        names = column_names(arrays, path)
        columns = {name: pa.array(X[:, j]) for j, name in enumerate(names)}
    else:
        flat = pa.array(np.ascontiguousarray(X).ravel())
        columns = {"features": pa.FixedSizeListArray.from_arrays(flat, X.shape[1])}
    labels = {key: pa.array(arrays[key]) for key in LABEL_KEYS if key in arrays}
    pq.write_table(pa.table(columns | labels), file)
