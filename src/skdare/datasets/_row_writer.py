"""Rows, such as predictions, written some at a time: CSV, JSON lines or Parquet."""

from __future__ import annotations

import gzip
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skdare._safe_text import csv_writer, spreadsheet_safe
from skdare.datasets._contents import needing

Columns = Mapping[str, np.ndarray]


class RowWriter(ABC):
    """Writes columns of equal length to an open file, chunk after chunk."""

    @abstractmethod
    def write(self, columns: Columns) -> None:
        """Add rows; the columns are the same each time."""

    def close(self) -> None:  # noqa: B027 (most have nothing to do)
        """Write what is left."""


class CsvRowWriter(RowWriter):
    """A header and a line for each row."""

    def __init__(self, file: Any, path: Path | None) -> None:
        self._writer = csv_writer(file)
        self._begun = False

    def write(self, columns: Columns) -> None:
        if not self._begun:
            self._writer.writerow(columns)
            self._begun = True
        self._writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


class JsonLinesRowWriter(RowWriter):
    """A JSON object on a line for each row."""

    def __init__(self, file: Any, path: Path | None) -> None:
        self._file = file

    def write(self, columns: Columns) -> None:
        for row in zip(*(values.tolist() for values in columns.values()), strict=True):
            document = dict(zip(columns, map(_finite_or_none, row), strict=True))
            self._file.write(json.dumps(document, ensure_ascii=False) + "\n")


def _finite_or_none(value: Any) -> Any:
    """Null in the place of NaN and infinity, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class ParquetRowWriter(RowWriter):
    """A row group for each chunk."""

    def __init__(self, file: Any, path: Path | None) -> None:
        with needing("parquet", path or Path("Parquet")):
            import pyarrow.parquet  # noqa: F401 (asked for before any work)
        self._file = file
        self._writer: Any = None

    def write(self, columns: Columns) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class SpreadsheetSafe(RowWriter):
    """Rows in which no text is a formula, to another writer."""

    def __init__(self, writer: RowWriter) -> None:
        self._writer = writer

    def write(self, columns: Columns) -> None:
        self._writer.write({spreadsheet_safe(name): _safe(c) for name, c in columns.items()})


def _safe(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "biuf":
        return values
    return np.array([spreadsheet_safe(value) for value in values.tolist()], dtype=object)


@contextmanager
def encoded(raw: BinaryIO, path: Path) -> Iterator[Any]:
    """The file to write to for this name: bytes for Parquet, else text, compressed for ``.gz``."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield raw
    elif suffix == ".gz":
        with gzip.GzipFile("", "wb", fileobj=raw) as compressed, _text(compressed) as text:
            yield text
    else:
        with _text(raw) as text:
            yield text


@contextmanager
def _text(file: Any) -> Iterator[io.TextIOWrapper]:
    """Text that goes to a file of bytes, which stays open."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        text.detach()
