"""CSV on disk or on the standard input."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from skdare.data.row_block import (
    MISSING,
    RowBlock,
    is_number,
    reading,
    refuse_doubles,
    refuse_infinity,
    split,
    typed,
)
from skdare.errors import InputError, counted, quoted

if TYPE_CHECKING:
    import pandas as pd

STDIN_NAME = "the standard input"
# pandas takes 20 to 40 µs for each column, whatever its length.
_WIDE = 256
_LINES_BYTES = 1 << 20
# A header of a million columns is a tenth of this; a damaged file may be one line of any length.
_MOST_HEADER = 1 << 26


class CsvSource:
    """A header and a line for each row, with commas, semicolons or tabs between cells."""

    def __init__(
        self, name: str, open_file: Callable[[], IO[bytes]], usual: str, *, wide: bool = False
    ) -> None:
        self.name = name
        self._open = open_file
        self._may_be_wide = wide
        with reading(name):
            file = open_file()
            header = file.readline(_MOST_HEADER)
            if name != STDIN_NAME:
                file.close()
            self._file = file if name == STDIN_NAME else None  # which cannot be opened twice
            text = self._header(header)
            # Where there is no such separator, the usual one.
            self.separator = max((usual, ",", ";", "\t"), key=text.count)
            cells = next(csv.reader([text], delimiter=self.separator))
            self.columns = [cell.strip() for cell in cells]
        if all(is_number(cell) for cell in self.columns):
            raise InputError(
                f"{quoted(name)} starts with numbers", "its first line must name the columns"
            )
        if self.columns[0] == "":  # as pandas and R write row names
            self.columns[0] = "index"
        if "" in self.columns:
            place = self.columns.index("") + 1
            raise InputError(f"column {place} of {quoted(name)} has no name", "give it one")
        refuse_doubles(self.columns, name)
        self.candidates = self.columns

    def _header(self, line: bytes) -> str:
        """The first line as text, if it is one that the rest can be read by."""
        name = quoted(self.name)
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{name} is text in UTF-16", "save it as UTF-8")
        if line.startswith(b"PK\3\4"):
            raise InputError(f"{name} is a zip archive or an Excel file", "save it as CSV")
        text = line.decode("utf-8-sig").rstrip("\r\n")
        if not text.strip():
            raise InputError(f"{name} is empty, or its first line is")
        if "\0" in text:
            raise InputError(f"{name} has a NUL byte", "save it as plain text in UTF-8")
        if "\r" in text:
            raise InputError(
                f"{name} has lines that end in carriage returns", "save it as plain text in UTF-8"
            )
        if len(line) == _MOST_HEADER:
            raise InputError(f"the first line of {name} does not end", "write a line for each row")
        if text.count('"') % 2:
            raise InputError(
                f"the first line of {name} ends within quotation marks",
                "write the names of the columns without line breaks",
            )
        return text

    def blocks(
        self, labels: Sequence[str], features: Sequence[str] | None, rows: int | None
    ) -> Iterator[RowBlock]:
        import pandas as pd

        if rows is None and self._may_be_wide and len(self.columns) > _WIDE:
            block = self._wide_block(labels)
            if block is not None:
                yield block
                return
        as_text = set(labels) if features is None else set(self.columns) - set(features)
        options: dict[str, Any] = {
            "sep": self.separator,
            "names": self.columns,
            "header": None,
            "index_col": False,
            "keep_default_na": False,
            "na_values": MISSING,
            "skipinitialspace": True,
            "low_memory": False,
            "dtype": dict.fromkeys(as_text, str),
        }
        start = 0
        if self._file is not None:
            for part in self._parts(self._file, rows):
                with reading(self.name, start), _no_surplus_cells():
                    frame = pd.read_csv(io.BytesIO(part), **options)
                    self._refuse_short_lines(frame, io.BytesIO(part), start)
                yield split(frame, labels, features, self.name, start)
                start += len(frame)
            return
        with self._rows() as file:
            with reading(self.name):
                reader = pd.read_csv(file, iterator=True, **options)
            while rows is not None or not start:
                with reading(self.name), _no_surplus_cells():
                    try:
                        frame = reader.read(rows)
                    except StopIteration:
                        return
                    with self._rows() as again:
                        self._refuse_short_lines(frame, again, start, skip=start)
                yield split(frame, labels, features, self.name, start)
                start += len(frame)

    @staticmethod
    def _parts(file: IO[bytes], rows: int | None) -> Iterator[bytes]:
        """Lines of what cannot be read twice, some at a time; a cell may have several lines."""
        while lines := list(islice(file, rows)):
            while sum(line.count(b'"') for line in lines) % 2 and (line := file.readline()):
                lines.append(line)
            if any(line.strip() for line in lines):
                yield b"".join(lines)

    @contextmanager
    def _rows(self) -> Iterator[IO[bytes]]:
        """The file after its first line."""
        if self._file is not None:
            yield self._file
            return
        with self._open() as file:
            file.readline()
            yield file

    def text(self) -> pd.DataFrame:
        """All cells as text."""
        import pandas as pd

        with self._rows() as file, reading(self.name):
            return pd.read_csv(
                file, sep=self.separator, names=self.columns, header=None, index_col=False,
                dtype=str, keep_default_na=False, skipinitialspace=True,
            )  # fmt: skip

    def _refuse_short_lines(
        self, frame: pd.DataFrame, raw: IO[bytes], start: int, skip: int = 0
    ) -> None:
        """Refuse a line that was cut off, which pandas fills: then the last column is empty."""
        if not frame.iloc[:, -1].isna().any():
            return
        with io.TextIOWrapper(raw, "utf-8", newline="") as text:
            lines = (cells for cells in csv.reader(text, delimiter=self.separator) if cells)
            for row, cells in enumerate(islice(lines, skip, skip + len(frame))):
                if len(cells) < len(self.columns):
                    raise InputError(
                        f"row {start + row + 1:,} of {quoted(self.name)} has "
                        f"{counted(len(cells), 'cell')}, and the header {len(self.columns):,}",
                        "complete that line",
                    )

    def _wide_block(self, labels: Sequence[str]) -> RowBlock | None:
        """A wide table, some lines at a time; None if a cell is not a number, or is quoted.

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
        others = pd.DataFrame()
        if names:
            with reading(self.name):
                others = pd.read_csv(
                    io.BytesIO(b"\n".join(label_lines)),
                    sep=self.separator,
                    names=names,
                    header=None,
                    dtype=str,
                    keep_default_na=False,
                    na_values=MISSING,
                    skip_blank_lines=False,
                )
        features = [name for name in self.columns if name not in set(labels)]
        X = np.concatenate(parts) if parts else np.empty((0, len(features)))
        refuse_infinity(X, features)
        return RowBlock(X, features, {name: typed(others[name]) for name in names})


@contextmanager
def _no_surplus_cells() -> Iterator[None]:
    """Refuse cells that have no column, about which pandas only warns."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        yield
