"""Predictions on their way out: CSV, JSON lines or Parquet, some rows at a time."""

from __future__ import annotations

import gzip
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from skdare._safe_text import csv_writer
from skdare._safe_text import spreadsheet_safe as safe_field
from skdare.datasets._contents import needing
from skdare.persist import whole_file

Columns = Mapping[str, np.ndarray]


class RowWriter(ABC):
    """Takes columns of equal length, chunk after chunk; `rows_to` opens one."""

    @abstractmethod
    def write(self, columns: Columns) -> None:
        """Add rows; the columns are the same each time."""

    def close(self) -> None:  # noqa: B027 (most have nothing to do)
        """Nothing more will come."""


class _Csv(RowWriter):
    def __init__(self, file: IO[str], path: Path | None) -> None:
        self._writer = csv_writer(file)
        self._begun = False

    def write(self, columns: Columns) -> None:
        if not self._begun:
            self._writer.writerow(columns)
            self._begun = True
        self._writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


class _JsonLines(RowWriter):
    def __init__(self, file: IO[str], path: Path | None) -> None:
        self._file = file

    def write(self, columns: Columns) -> None:
        for row in zip(*(values.tolist() for values in columns.values()), strict=True):
            named = dict(zip(columns, map(_plain, row), strict=True))
            self._file.write(json.dumps(named, ensure_ascii=False) + "\n")


class _Parquet(RowWriter):
    def __init__(self, file: IO[bytes], path: Path | None) -> None:
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


class _SpreadsheetSafe(RowWriter):
    """Rows in which no text is a formula, to another writer."""

    def __init__(self, writer: RowWriter) -> None:
        self._writer = writer

    def write(self, columns: Columns) -> None:
        self._writer.write({safe_field(name): _safe(c) for name, c in columns.items()})


def _safe(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "biuf":
        return values
    return np.array([safe_field(value) for value in values.tolist()], dtype=object)


_KINDS: dict[str, Any] = {
    ".csv": _Csv,
    ".csv.gz": _Csv,
    ".jsonl": _JsonLines,
    ".parquet": _Parquet,
}
OUTPUTS: Sequence[str] = tuple(_KINDS)
"""Suffixes of files that `rows_to` writes."""
_STREAMED = tuple(kind for kind in _KINDS if not kind.endswith(".gz"))


def _suffix_of(path: Path) -> str:
    """Which of the kinds that are written a path is; any other is refused."""
    name = path.name.lower()
    # The longest first: .csv.gz ends in no .csv, but a suffix may end in another.
    found = next((s for s in sorted(_KINDS, key=len, reverse=True) if name.endswith(s)), None)
    if found is None:
        raise ValueError(f"{path} is of no kind that is written; name it {', '.join(OUTPUTS)}")
    return found


@contextmanager
def rows_to(
    target: str | Path | IO[str] | IO[bytes],
    *,
    kind: str | None = None,
    spreadsheet_safe: bool = False,
) -> Iterator[RowWriter]:
    """A writer of rows to a file, which appears whole or not at all, or to an open stream.

    Parameters
    ----------
    target : str, Path or stream
        A file in the place of which this one comes; its suffix says what is written:
        ``.csv``, ``.csv.gz``, ``.jsonl`` or ``.parquet``. A stream, of bytes for Parquet and else
        of text, stays open.
    kind : suffix, optional
        What to write to a stream: ``".csv"``, the default, ``".jsonl"`` or ``".parquet"``.
    spreadsheet_safe : bool, default=False
        Of CSV: put an apostrophe before text that begins with ``=``, ``+``, ``-``, ``@``, a tab or
        the end of a line, which a spreadsheet would run as a formula. Numbers stay as they are.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from skdare.datasets import rows_to
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with rows_to(f"{folder}/out.csv") as writer:
    ...         writer.write({"id": np.arange(2), "prediction": np.array(["a", "b"])})
    ...     print(Path(f"{folder}/out.csv").read_text())
    id,prediction
    0,a
    1,b
    <BLANKLINE>
    """
    if not isinstance(target, str | Path):
        if kind not in (None, *_STREAMED):
            raise ValueError(
                f"kind is {kind!r}, which no stream is written as; choose {', '.join(_STREAMED)}"
            )
        _refuse_safe(spreadsheet_safe, kind or ".csv")
        with closing(_KINDS[kind or ".csv"](target, None)) as writer:
            yield _SpreadsheetSafe(writer) if spreadsheet_safe else writer
        return
    path = Path(target)
    suffix = _suffix_of(path)
    _refuse_safe(spreadsheet_safe, suffix)
    # Closed in this order, also after an error: a Parquet writer that lives on would write to a
    # file that is gone.
    with (
        whole_file(path) as raw,
        encoded(raw, path) as file,
        closing(_KINDS[suffix](file, path)) as writer,
    ):
        yield _SpreadsheetSafe(writer) if spreadsheet_safe else writer


def _refuse_safe(asked: bool, suffix: str) -> None:
    if asked and not suffix.startswith(".csv"):
        raise ValueError(f"spreadsheet_safe is for CSV, and this is {suffix}; leave it out")


@contextmanager
def encoded(raw: BinaryIO, path: Path) -> Iterator[Any]:
    """What is written to a file of this name: text, packed or not, or bytes."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield raw
    elif suffix == ".gz":
        with gzip.GzipFile("", "wb", fileobj=raw) as packed, _text(packed) as text:
            yield text
    else:
        with _text(raw) as text:
            yield text


@contextmanager
def _text(file: Any) -> Iterator[IO[str]]:
    """Text that goes to a file of bytes, which stays open."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        text.detach()


def _plain(value: Any) -> Any:
    """What JSON has a word for: a number that is none is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
