"""Tables of columns: CSV and Parquet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skdare.datasets._contents import Contents, Entry, Key, needing, reading
from skdare.datasets._csv_cells import (
    TurnedToText,
    csv_blocks,
    csv_lines,
    csv_numbers,
    some_columns,
)

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_PADDED = re.compile(r"-?0[0-9]+")


def read_csv(path: Path, is_label: Callable[[str], bool]) -> Contents:
    """Comma, semicolon or tab between cells, with a header; gzip where the name ends so.

    Numbers are converted some rows at a time, so the text of a large file is never held whole; the
    columns that ``is_label`` picks stay text until all their cells are known.
    """
    header = csv_header(path)
    labels = {j for j, name in enumerate(header) if is_label(name)}
    text = set(labels)
    try:
        blocks = list(csv_blocks(path, len(header), text))
    except TurnedToText:  # numbers at first: read once more, keeping those cells as they are
        blocks = list(csv_blocks(path, len(header), text))
    cells = {j: [cell for block in blocks for cell in block.text[j]] for j in sorted(text)}
    # Text that is no label stays a list: one long cell would widen all rows of an array.
    columns: dict[str, Any] = {
        header[j]: typed_labels(found) if j in labels else found for j, found in cells.items()
    }
    numeric = [name for j, name in enumerate(header) if j not in text]
    numbers = np.concatenate([block.numbers for block in blocks] or [np.empty((0, len(numeric)))])
    place = {name: j for j, name in enumerate(numeric)}
    rows = len(numbers)
    kinds = {name: getattr(column, "dtype", np.dtype(str)) for name, column in columns.items()}
    entries = {name: Entry((rows,), kinds.get(name, numbers.dtype)) for name in header}

    def load(keys: Sequence[Key]) -> list[np.ndarray]:
        return [matrix(key) if isinstance(key, tuple) else one(key) for key in keys]

    def one(key: str) -> np.ndarray:
        return np.asarray(columns[key]) if key in columns else numbers[:, place[key]]

    def matrix(key: tuple[str, ...]) -> np.ndarray:
        if not columns.keys().isdisjoint(key):
            return np.column_stack([one(name) for name in key])
        return some_columns(numbers, [place[name] for name in key])

    return Contents(path, entries, load, True)


def csv_header(path: Path) -> list[str]:
    return checked_header(next(csv_lines(path), []), path)


def checked_header(cells: list[str], path: Path) -> list[str]:
    """Names of columns, each of them once."""
    header = [name.strip() for name in cells]
    if not header:
        raise ValueError(f"{path} is empty; a header and rows are needed")
    if csv_numbers([name for name in header if name] or ["x"]) is not None:
        raise ValueError(f"{path} starts with numbers; a header that names its columns is needed")
    header[0] = header[0] or "index"
    if "" in header:
        raise ValueError(f"column {header.index('')} of {path} has no name; name it in the header")
    return distinct(header, path)


def distinct(names: list[str], path: Path) -> list[str]:
    """The names themselves, refused where two are alike."""
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise ValueError(f"{path} has {times} columns called {name!r}; rename all but one")
    return names


def typed_labels(cells: list[str]) -> np.ndarray:
    """Labels as integers or numbers where all are; codes such as 007 stay text."""
    if all(map(_WHOLE.fullmatch, cells)):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    numbers = None if any(map(_PADDED.fullmatch, cells)) else csv_numbers(cells)
    return np.array(cells) if numbers is None else numbers


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

    entries = dict(zip(names, map(Entry, shapes, dtypes), strict=True))
    return Contents(path, entries, load, tabular=True, stream=stream)


def column_item(kind: Any) -> Any:
    """The type of the items of a list, or the type itself."""
    return kind.value_type if hasattr(kind, "value_field") else kind


def column_dtype(kind: Any) -> np.dtype:
    """NumPy's counterpart of a type of numbers; all else is read as text."""
    from pyarrow import types

    if types.is_decimal(kind):
        return np.dtype(np.float64)
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype() if plain else str)


def _shape(file: Any, column: Any) -> tuple[int, ...]:
    """Rows, and for lists the length of the first one; loading checks the others."""
    rows = file.metadata.num_rows
    if column_item(column.type) == column.type:
        return (rows,)
    if hasattr(column.type, "list_size"):
        return (rows, column.type.list_size)
    first = next(file.iter_batches(1, columns=[column.name]), None)
    return (rows, len(first.column(0)[0].as_py() or ()) if first is not None else 0)


def column_values(column: Any, what: str) -> np.ndarray:
    """A column of a Parquet file as an array; lists of numbers are its rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column_item(column.type) != column.type:
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) > 1 or None in lengths:
            raise ValueError(
                f"{what} has lists of several lengths; every row needs as many numbers"
            )
        parts = [part.flatten().to_numpy(zero_copy_only=False) for part in column.chunks]
        flat = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return flat.reshape(len(column), lengths[0] if lengths else 1)
    if column_dtype(column.type).kind == "U":
        return np.array([cell_text(cell) for cell in column.to_pylist()])
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif pa.types.is_boolean(column.type) and column.null_count:
        column = column.cast(pa.int8())
    return column.to_numpy()


def columns_in(keys: Sequence[Key]) -> list[str]:
    """The columns that keys stand for."""
    return [name for key in keys for name in ((key,) if isinstance(key, str) else key)]


def table_values(
    table: Any, keys: Sequence[Key], path: Path, one: Callable[[str], np.ndarray] | None = None
) -> list[np.ndarray]:
    """What keys stand for in an Arrow table; ``one`` reads a column where that differs."""
    read = one or (lambda name: column_values(table.column(name), f"{name} in {path}"))
    return [read(key) if isinstance(key, str) else _matrix(table, key, read) for key in keys]


def _matrix(table: Any, names: tuple[str, ...], read: Callable[[str], np.ndarray]) -> np.ndarray:
    """Columns side by side."""
    import pyarrow as pa

    part = table.select(list(names))
    kinds = set(part.schema.types)
    # All in one go where Arrow can: of a hundred thousand columns each takes its time.
    if len(kinds) == 1 and pa.types.is_floating(*kinds) and hasattr(pa.RecordBatch, "to_tensor"):
        batches = part.combine_chunks().to_batches()
        if len(batches) == 1:
            return batches[0].to_tensor(null_to_nan=True).to_numpy()
    return np.column_stack([read(name) for name in names])


def cell_text(cell: Any) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    return "" if cell is None else str(cell)
