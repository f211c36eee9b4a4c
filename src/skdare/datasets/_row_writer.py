"""Predictions on their way out: CSV, JSON lines or Parquet, some rows at a time."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from skdare.datasets._contents import needing
from skdare.datasets._store_shards import beside

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
        self._writer, self._begun = csv.writer(file, lineterminator="\n"), False

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


_KINDS: dict[str, Any] = {
    ".csv": _Csv,
    ".csv.gz": _Csv,
    ".jsonl": _JsonLines,
    ".parquet": _Parquet,
}
OUTPUTS: Sequence[str] = tuple(_KINDS)
"""Suffixes of files that `rows_to` writes."""


def suffix_of(path: str | Path) -> str:
    """Which of the kinds that are written a path is; any other is refused."""
    name = Path(path).name.lower()
    # The longest first: .csv.gz ends in no .csv, but a suffix may end in another.
    found = next((s for s in sorted(_KINDS, key=len, reverse=True) if name.endswith(s)), None)
    if found is None:
        raise ValueError(f"{path} is of no kind that is written; name it {', '.join(OUTPUTS)}")
    return found


@contextmanager
def rows_to(target: str | Path | IO[str], *, kind: str | None = None) -> Iterator[RowWriter]:
    """A writer of rows to a file, which appears whole or not at all, or to an open stream.

    Parameters
    ----------
    target : str, Path or text stream
        A file in the place of which this one comes; its suffix says what is written:
        ``.csv``, ``.csv.gz``, ``.jsonl`` or ``.parquet``.
    kind : suffix, optional
        What to write to a stream; ``".csv"`` by default.

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
        yield _KINDS[kind or ".csv"](target, None)
        return
    path = Path(target)
    suffix = suffix_of(path)
    part = beside(path)
    try:
        with _opened(part, suffix) as file:
            writer = _KINDS[suffix](file, path)
            yield writer
            writer.close()
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _opened(part: Path, suffix: str) -> Any:
    if suffix == ".parquet":
        return part.open("wb")
    opener: Any = gzip.open if suffix.endswith(".gz") else open
    return opener(part, "wt", encoding="utf-8", newline="")


def _plain(value: Any) -> Any:
    """What JSON has a word for: a number that is none is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
