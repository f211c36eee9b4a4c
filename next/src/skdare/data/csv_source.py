"""CSV, on disk or on the standard input: a header, and a line for each row."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import IO, TYPE_CHECKING

import numpy as np

from skdare.data.block import (
    MISSING,
    Block,
    is_number,
    reading,
    refuse_doubles,
    refuse_infinity,
    split,
    typed,
)
from skdare.errors import InputError, counted

if TYPE_CHECKING:
    import pandas as pd

STDIN_NAME = "the standard input"
# pandas takes 20 to 40 µs for each column, whatever its length.
_WIDE = 256
_LINES_BYTES = 1 << 20


class CsvSource:
    """Text: a header, and a line for each row. Comma, semicolon or tab between cells."""

    def __init__(
        self, name: str, open_file: Callable[[], IO[bytes]], usual: str, *, wide: bool = False
    ) -> None:
        self.name = name
        self._open = open_file
        self._may_be_wide = wide
        with reading(name):
            file = open_file()
            header = file.readline()
            if name != STDIN_NAME:
                file.close()
            if header.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise InputError(f"'{name}' is text in UTF-16", "save it as UTF-8")
            text = header.decode("utf-8-sig").rstrip("\r\n")
            if not text.strip():
                raise InputError(f"'{name}' is empty, or its first line is")
            self._file = file if name == STDIN_NAME else None  # which cannot be opened twice
            # Where there is no such separator, the usual one.
            self.separator = max((usual, ",", ";", "\t"), key=text.count)
            cells = next(csv.reader([text.split("\r")[0]], delimiter=self.separator))
            self.columns = [cell.strip() for cell in cells]
        if "\r" in text or "\0" in text:
            what = "a NUL byte" if "\0" in text else "lines that end in carriage returns"
            raise InputError(f"'{name}' has {what}", "save it as plain text in UTF-8")
        if all(is_number(cell) for cell in self.columns):
            raise InputError(
                f"'{name}' starts with numbers", "its first line must name the columns"
            )
        if self.columns[0] == "":  # as pandas and R write row names
            self.columns[0] = "index"
        if "" in self.columns:
            place = self.columns.index("") + 1
            raise InputError(f"column {place} of '{name}' has no name", "give it one")
        refuse_doubles(self.columns, name)
        self.candidates = self.columns

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[Block]:
        import pandas as pd

        if rows is None and self._may_be_wide and len(self.columns) > _WIDE:
            block = self._wide_block(labels)
            if block is not None:
                yield block
                return
        exact = {}
        # From 3.1 on pandas reads every number exactly, and warns of the option that asks for it.
        if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
            exact["float_precision"] = "round_trip"
        as_text = set(labels) if features is None else set(self.columns) - set(features)
        start = 0
        with self._rows() as file:
            with reading(self.name):
                reader = pd.read_csv(
                    file,
                    sep=self.separator,
                    names=self.columns,
                    header=None,
                    index_col=False,
                    keep_default_na=False,
                    na_values=MISSING,
                    skipinitialspace=True,
                    low_memory=False,
                    dtype=dict.fromkeys(as_text, str),
                    iterator=True,
                    **exact,
                )
            while rows is not None or not start:
                with reading(self.name), warnings.catch_warnings():
                    # Of cells that have no column.
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    try:
                        frame = reader.read(rows)
                    except StopIteration:
                        return
                    self._refuse_short_lines(frame, start)
                yield split(frame, labels, features, self.name, start)
                start += len(frame)

    @contextmanager
    def _rows(self) -> Iterator[IO[bytes]]:
        """The file after its first line."""
        if self._file is not None:
            yield self._file
            return
        with self._open() as file:
            file.readline()
            yield file

    def _refuse_short_lines(self, frame: pd.DataFrame, start: int) -> None:
        """Where the last column is empty, a line may have been cut off, which pandas fills."""
        empty = np.flatnonzero(frame.iloc[:, -1].isna())
        if not len(empty) or self._file is not None:
            return
        with self._rows() as raw:
            text = io.TextIOWrapper(raw, "utf-8", newline="")
            lines = (cells for cells in csv.reader(text, delimiter=self.separator) if cells)
            for row, cells in enumerate(islice(lines, start, start + len(frame))):
                if len(cells) < len(self.columns):
                    raise InputError(
                        f"row {start + row + 1} of '{self.name}' has "
                        f"{counted(len(cells), 'cell')}, and the header {len(self.columns):,}",
                        "complete that line",
                    )

    def _wide_block(self, labels: Sequence[str]) -> Block | None:
        """A wide table, some lines at a time; None if a cell is no number, or is quoted.

        A sixth of pandas' time at 100,000 columns. Labels are read by pandas, as everywhere.
        """
        import pandas as pd
        import pyarrow as pa

        d = len(self.columns)
        places = sorted(self.columns.index(name) for name in labels)
        is_number = np.ones(d, dtype=bool)
        is_number[places] = False
        separator = self.separator.encode()
        parts: list[np.ndarray] = []
        label_lines: list[bytes] = []
        with reading(self.name), self._rows() as file:
            while raw := file.read(_LINES_BYTES) + file.readline():
                if b"\r" in raw:
                    raw = raw.replace(b"\r\n", b"\n")
                raw = raw if raw.endswith(b"\n") else raw + b"\n"
                data = np.frombuffer(raw, np.uint8)
                ends = np.flatnonzero((data == separator[0]) | (data == 10))
                rows, rest = divmod(len(ends), d)
                newlines = np.flatnonzero(data[ends] == 10)
                if b'"' in raw or rest or newlines.tolist() != list(range(d - 1, rows * d, d)):
                    return None
                # Cells, and the character after each, in turn: those and labels are not parsed.
                offsets = np.zeros(2 * len(ends) + 1, np.int32)
                offsets[1::2] = ends
                offsets[2::2] = ends + 1
                parsed = np.zeros(2 * len(ends), dtype=bool)
                parsed[::2] = np.tile(is_number, rows)
                buffers = np.packbits(parsed, bitorder="little"), offsets, raw
                bitmap, where, text = map(pa.py_buffer, buffers)
                cells = pa.StringArray.from_buffers(len(parsed), where, text, bitmap)
                try:
                    numbers = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
                except pa.ArrowInvalid:  # text or a missing value, which pandas deals with
                    return None
                parts.append(numbers[::2].reshape(rows, d)[:, is_number])
                starts, stops = offsets[:-1:2].reshape(rows, d), ends.reshape(rows, d)
                label_lines += [
                    separator.join(raw[starts[i, j] : stops[i, j]] for j in places)
                    for i in range(rows)
                ]
        names = [self.columns[j] for j in places]
        others = (
            pd.read_csv(
                io.BytesIO(b"\n".join(label_lines)),
                sep=self.separator,
                names=names,
                header=None,
                dtype=str,
                keep_default_na=False,
                na_values=MISSING,
                skip_blank_lines=False,
            )
            if names
            else pd.DataFrame()
        )
        features = [name for name in self.columns if name not in set(labels)]
        X = np.concatenate(parts) if parts else np.empty((0, len(features)))
        refuse_infinity(X, features)
        return Block(X, features, {name: typed(others[name]) for name in names})
