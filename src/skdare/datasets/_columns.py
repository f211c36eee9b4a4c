"""Tables of columns: CSV and Parquet."""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from skdare.datasets._contents import Contents, Entry, needing, reading
from skdare.datasets._roles import MISSING

_DELIMITERS = ",;\t"
_ROWS_AT_A_TIME = 4096
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_PADDED = re.compile(r"-?0[0-9]+")


def read_csv(path: Path, is_label: Callable[[str], bool]) -> Contents:
    """Comma, semicolon or tab between cells, with a header; gzip where the name ends so.

    Numbers are converted a few thousand rows at a time, so the text of a large file is never
    held whole; the columns that ``is_label`` picks stay text until all their cells are known.
    """
    header = csv_header(path)
    text = {j for j, name in enumerate(header) if is_label(name)}
    labels = frozenset(text)
    blocks, late = csv_blocks(path, header, text)
    if late:  # numbers at first, then text: read once more, keeping those cells as they are
        blocks, _ = csv_blocks(path, header, text)
    columns: dict[str, Any] = {}
    for j, name in enumerate(header):
        if j in text:
            cells = [cell for block in blocks[j] for cell in block]
            columns[name] = typed_labels(cells) if j in labels else cells
        else:
            columns[name] = np.concatenate(blocks[j] or [np.empty(0)])
    # Text that is no label stays a list: one long cell would widen all rows of an array.
    kinds = {name: getattr(column, "dtype", np.dtype(str)) for name, column in columns.items()}
    entries = {name: Entry((len(column),), kinds[name]) for name, column in columns.items()}
    return Contents(path, entries, lambda keys: [np.asarray(columns[k]) for k in keys], True)


def csv_lines(path: Path) -> Iterator[list[str]]:
    """Rows of cells, the header first; blank lines are left out."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with reading(path, "CSV in UTF-8"), opener(path, "rt", encoding="utf-8-sig", newline="") as f:
        yield from csv_rows(f)


def csv_rows(file: Iterator[str]) -> Iterator[list[str]]:
    """Rows of cells of an open file, which need not be one that can be read twice."""
    # The header alone tells the delimiter: further down, a comma may be a decimal point.
    first = next(file, "")
    try:
        delimiter = csv.Sniffer().sniff(first, _DELIMITERS).delimiter
    except csv.Error:
        delimiter = ","
    yield from filter(None, csv.reader(chain([first], file), delimiter=delimiter, strict=True))


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


def csv_blocks(path: Path, header: list[str], text: set[int]) -> tuple[list[list[Any]], bool]:
    """Cells by column, in blocks of rows: numbers, or text; columns of text join ``text``."""
    blocks: list[list[Any]] = [[] for _ in header]
    late, lines, start = False, islice(csv_lines(path), 1, None), 0
    while rows := list(islice(lines, _ROWS_AT_A_TIME)):
        refuse_ragged(rows, header, path, start)
        for j, cells in enumerate(zip(*rows, strict=True)):
            numbers = None if j in text else csv_numbers(cells)
            if numbers is None:
                late |= j not in text and bool(blocks[j])
                text.add(j)
            blocks[j].append([c.strip() for c in cells] if numbers is None else numbers)
        start += len(rows)
    return blocks, late


def refuse_ragged(rows: list[list[str]], header: list[str], path: Path, start: int) -> None:
    """Every row has a cell for each column."""
    ragged = next((i for i, row in enumerate(rows) if len(row) != len(header)), None)
    if ragged is not None:
        raise ValueError(
            f"row {start + ragged} of {path} has {len(rows[ragged])} cells, but the header "
            f"has {len(header)}; quote cells that hold the delimiter"
        )


def csv_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """Cells as float64 with NaN where they are missing, or None if one is no number."""
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        known = ("nan" if cell.strip() in MISSING else cell for cell in cells)
        try:
            values = np.fromiter(map(float, known), np.float64, len(cells))
        except ValueError:
            return None
    # Python reads 1_2 as 12; in a file it is a name.
    return None if "_" in "".join(cells) else values


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

    def load(keys: list[str]) -> list[np.ndarray]:
        with reading(path, "Parquet"), pq.ParquetFile(path) as file:
            table = file.read(columns=keys)
        return [column_values(table.column(key), f"{key} in {path}") for key in keys]

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        # Neither ahead nor a row group at once: pages are read as rows are asked for.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
            batches = file.iter_batches(rows, columns=keys, use_threads=False)
            while True:
                with reading(path, "Parquet"):
                    batch = next(batches, None)
                if batch is None:
                    return
                table = pa.Table.from_batches([batch])
                yield [column_values(table.column(key), f"{key} in {path}") for key in keys]

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


def cell_text(cell: Any) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    return "" if cell is None else str(cell)
