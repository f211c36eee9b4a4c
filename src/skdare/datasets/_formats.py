"""The kinds of files that tables are read from and written to, in one place.

To add one, write a module like `_parquet` with its reader, which returns `Contents` that load whole
columns or stream rows, and its writer; add a writer of single rows to `_row_writer` if there is to
be one; and add a line to `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from skdare.datasets._contents import Contents, TableArrays, numbered_row
from skdare.datasets._csv import STDIN, CsvTable, read_csv, stream_csv, write_csv
from skdare.datasets._hugging_face import is_hugging_face, read_hugging_face
from skdare.datasets._numpy_files import read_npy, read_npz, write_npz
from skdare.datasets._parquet import read_parquet, write_parquet
from skdare.datasets._row_writer import (
    CsvRowWriter,
    JsonLinesRowWriter,
    ParquetRowWriter,
    RowWriter,
)
from skdare.datasets._safetensors import read_safetensors, write_safetensors
from skdare.datasets._store_reader import read_store
from skdare.datasets._torch_files import read_torch
from skdare.persist import open_file

# Whether a column is a label. Only text asks: other files know the types of their columns.
IsLabel = Callable[[str], bool]


@dataclass(frozen=True)
class Format:
    """A kind of file, by the end of its name.

    Parameters
    ----------
    suffix : str
    read : callable, optional
        From a path to the `Contents` of the file, which load columns or stream rows when asked.
    write : callable, optional
        Writes a table to an open file.
    row_writer : callable, optional
        From an open file and its path (None for a stream) to a writer of single rows.
    """

    suffix: str
    read: Callable[[Path, IsLabel], Contents] | None = None
    write: Callable[[BinaryIO, TableArrays, Path], None] | None = None
    row_writer: Callable[[Any, Path | None], RowWriter] | None = None


def _typed(read: Callable[[Path], Contents]) -> Callable[[Path, IsLabel], Contents]:
    """A reader of files that know the types of their columns, so that it need not ask."""
    return lambda path, is_label: read(path)


FORMATS = (
    Format(".npz", _typed(read_npz), write_npz),
    Format(".npy", _typed(read_npy)),
    Format(".csv", read_csv, write_csv, CsvRowWriter),
    Format(".csv.gz", read_csv, write_csv, CsvRowWriter),
    Format(".jsonl", row_writer=JsonLinesRowWriter),
    Format(".parquet", _typed(read_parquet), write_parquet, ParquetRowWriter),
    Format(".safetensors", _typed(read_safetensors), write_safetensors),
    Format(".pt", _typed(read_torch)),
    Format(".pth", _typed(read_torch)),
)


def format_of(path: Path) -> Format | None:
    """The format of a file by the end of its name, or None if it is not known."""
    name = path.name.lower()
    return next((kind for kind in FORMATS if name.endswith(kind.suffix)), None)


def suffixes(formats: Iterable[Format]) -> str:
    """The suffixes of some formats, in words."""
    *first, last = [kind.suffix for kind in formats]
    return f"{', '.join(first)} or {last}"


def open_contents(path: Path, is_label: IsLabel) -> Contents:
    """What a file, a feature store or a folder of a Hugging Face dataset holds."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the path of a file or a store")
    if path.is_dir():
        return read_hugging_face(path) if is_hugging_face(path) else read_store(path)
    kind = format_of(path)
    if kind is None or kind.read is None:
        raise ValueError(
            f"cannot read {path}: its name must end in {suffixes(k for k in FORMATS if k.read)}, "
            "or it must be a feature store"
        )
    open_file(path).close()  # refuses pipes and devices
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; write it again")
    return kind.read(path, is_label)


def open_stream(path: str | Path, is_text: IsLabel) -> Contents:
    """What a file holds, to be read some rows at a time; "-" is CSV on the standard input.

    Of CSV only the first rows are read now, and the columns that ``is_text`` picks are text.
    """
    if is_csv(path) and (str(path) == STDIN or Path(path).is_file()):
        return stream_csv(path, is_text)
    return open_contents(Path(path), is_text)


def is_csv(path: str | Path) -> bool:
    """Whether a path is a CSV file by its name, or the standard input."""
    kind = format_of(Path(path))
    return str(path) == STDIN or (kind is not None and kind.read is read_csv)


def row_place(path: str | Path, row: int) -> str:
    """What people call a row of a file: its line in CSV, else its number."""
    if is_csv(path) and Path(path).is_file():
        return CsvTable(path).place(row)
    return numbered_row(row)


def stem(path: Path) -> str:
    """The name of a file or store, without its suffix."""
    kind = format_of(path)
    if path.is_dir() or kind is None:
        return path.resolve().name
    return path.name[: -len(kind.suffix)]
