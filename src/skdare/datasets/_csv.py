"""CSV: read as one stream of blocks of rows, of which a table in memory is the concatenation.

A block has its columns of numbers side by side, and its columns of text as lists of cells. In lines
without quotes the ends of all cells are found in one go, and the numbers are parsed where they lie,
by pyarrow where it is installed. Every other line goes through Python's csv module. All give the
same numbers.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import chain, compress, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skdare._input_error import InputError
from skdare._safe_text import counted
from skdare.datasets._contents import (
    LABEL_KEYS,
    ArrayInfo,
    Contents,
    Key,
    TableArrays,
    numbered_row,
    reading,
)
from skdare.datasets._entries import column_names, distinct, not_a_number
from skdare.datasets._roles import MISSING
from skdare.datasets._row_writer import encoded
from skdare.datasets._store_encoding import row_blocks

STDIN = "-"
"""In the place of a path: CSV on the standard input."""

_KIND = "CSV in UTF-8"
_DELIMITERS = ",;\t"
# Names of a thousand columns tell the delimiter as well as those of a million.
_SNIFFED = 1 << 14
_ROWS_AT_A_TIME = 4096
# Cells are Python's strings, of some sixty bytes each, until they are numbers.
_CELLS_AT_A_TIME = 1 << 18
_BYTES_AT_A_TIME = 1 << 22
# A stream tells which columns are numbers from this many rows, or cells.
_FIRST_ROWS = 100
_FIRST_CELLS = 1 << 19
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_PADDED_NUMBER = re.compile(r"-?0[0-9]+")
# Places in a block, which pyarrow counts in 32 bits.
_PLACE = np.int32


class PlainBlock:
    """Lines of bytes without quotes, of which blank ones do not count.

    Parameters
    ----------
    raw : bytes
        The lines, each with its end but perhaps the last.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._rows: int | None = None

    def __len__(self) -> int:
        if self._rows is None:
            self._rows = len(self.lines())
        return self._rows

    def counted(self, rows: int) -> None:
        """Take note of the number of rows, which a parser has found without cutting lines."""
        self._rows = rows

    def lines(self) -> list[bytes]:
        """The lines without their ends."""
        return [line for line in self.raw.replace(b"\r\n", b"\n").split(b"\n") if line]


# Rows before they are parsed: lines of bytes without quotes, or lists of cells.
RawRows = PlainBlock | list[list[str]]


def read_csv(path: Path, is_label: Callable[[str], bool]) -> Contents:
    """A whole table; ``is_label`` picks columns that stay text until all their cells are known."""
    table = CsvTable(path)
    labels = [name for name in table.header if is_label(name)]
    block = table.read(labels)
    # Text that is not a label stays a list: one long cell would widen all rows of an array.
    typed = {name: typed_labels(block.text[name]) for name in labels}
    dtypes = {name: np.dtype(str) for name in block.text}
    dtypes |= {name: _dtype_of_known(block.text[name], typed[name]) for name in labels}
    block = replace(block, text={**block.text, **typed})
    shape = (block.rows,)
    entries = {
        name: ArrayInfo(shape, dtypes.get(name, block.numbers.dtype)) for name in table.header
    }
    return Contents(
        path,
        entries,
        lambda keys: [block.values(key) for key in keys],
        tabular=True,
        place=table.place,
    )


def stream_csv(path: str | Path, is_text: Callable[[str], bool]) -> Contents:
    """A table, or the standard input, whose first rows tell which columns are numbers."""
    table = CsvTable(path)
    rows, text = table.first_text({name for name in table.header if is_text(name)})
    entries = {
        name: ArrayInfo((rows,), np.dtype(str if name in text else float)) for name in table.header
    }

    def stream(keys: Sequence[Key], rows: int) -> Iterator[list[np.ndarray]]:
        wanted = [name for key in keys for name in ((key,) if isinstance(key, str) else key)]
        numeric = [name for name in dict.fromkeys(wanted) if name not in text]
        for block in table.blocks(text.intersection(wanted), numeric, rows):
            arrays = [block.values(key) for key in keys]
            for start in range(0, block.rows, rows):
                yield [values[start : start + rows] for values in arrays]

    def load(keys: Sequence[Key]) -> list[np.ndarray]:
        parts = list(stream(keys, _ROWS_AT_A_TIME))
        return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]

    return Contents(table.path, entries, load, stream, tabular=True, place=table.place)


@dataclass(frozen=True, eq=False)
class CsvBlock:
    """Some rows of a table.

    Parameters
    ----------
    numbers : array of shape (n, m)
        The columns of numbers side by side.
    places : mapping from name to int
        Which column of ``numbers`` is which.
    text : mapping from name to list of str or array
        The columns of text.
    rows : int
    """

    numbers: np.ndarray
    places: Mapping[str, int]
    text: Mapping[str, Any]
    rows: int

    def values(self, key: Key) -> np.ndarray:
        """One column, or several side by side."""
        if isinstance(key, str):
            if key in self.text:
                return np.asarray(self.text[key])
            return self.numbers[:, self.places[key]]
        if not self.text.keys().isdisjoint(key):
            return np.column_stack([self.values(name) for name in key])
        places = [self.places[name] for name in key]
        # No copy where that is all of them.
        if places == list(range(self.numbers.shape[1])):
            return self.numbers
        return self.numbers[:, places]


class _NotNumbers(Exception):
    """Cells in columns of numbers that are text: by column, the first such row and its cell."""

    def __init__(self, cells: Mapping[str, tuple[int, str]]) -> None:
        super().__init__(cells)
        self.cells = cells


class CsvTable:
    """A CSV file with a header, or the standard input, which can be read only once.

    Comma, semicolon or tab between cells; gzip where the name ends in ``.gz``.

    Parameters
    ----------
    path : str or Path
        "-" is the standard input.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path("stdin" if str(path) == STDIN else path)
        self._stdin: Iterator[list[str]] | None = None
        if str(path) == STDIN:
            with reading(self.path, _KIND):
                first = next(sys.stdin, "")
                self.delimiter = _sniff(first)
                self._stdin = _split(chain([first], sys.stdin), self.delimiter, self.path)
                cells = next(self._stdin, [])
        else:
            with reading(self.path, _KIND), _open(self.path, "rt") as file:
                self.delimiter = _sniff(next(file, ""))
            cells = next(self._cells(), [])
        self.header = _checked_header(cells, self.path)

    def read(self, text: Collection[str], numeric: Collection[str] | None = None) -> CsvBlock:
        """All rows; a column with any cell that is not a number is text from top to bottom.

        Parameters
        ----------
        text : collection of str
            Columns that are text whatever their cells are.
        numeric : collection of str, optional
            Columns to read beside these, as numbers where all their cells are. Default: all others.
        """
        columns = self.header if numeric is None else numeric
        text = set(text)
        parser = self._parser(text, columns)
        blocks: list[CsvBlock] = []
        late = False
        for start, rows in self._raw_blocks():
            try:
                block = parser.parse(rows, start)
            except _NotNumbers as error:
                text |= error.cells.keys()
                late = late or start > 0
                parser = self._parser(text, columns)
                block = parser.parse(rows, start)
            if not late:
                blocks.append(block)
        if late:  # numbers at first: read once more, with those columns as text
            blocks = [parser.parse(rows, start) for start, rows in self._raw_blocks()]
        return parser.join(blocks)

    def first_text(self, text: Collection[str]) -> tuple[int, set[str]]:
        """The number of first rows that were looked at, and the columns that are text there."""
        most = min(_FIRST_ROWS, max(1, _FIRST_CELLS // len(self.header)))
        if self._stdin is None:
            block = next((block for _, block in self._raw_blocks()), [])
            rows: RawRows = (
                PlainBlock(b"\n".join(block.lines()[:most]))
                if isinstance(block, PlainBlock)
                else block[:most]
            )
        else:
            cells = list(islice(self._stdin, most))
            self._stdin = chain(cells, self._stdin)
            rows = cells
        try:
            self._parser(text, self.header).parse(rows, 0)
        except _NotNumbers as error:
            return len(rows), {*text, *error.cells}
        return len(rows), set(text)

    def blocks(
        self, text: Collection[str], numeric: Collection[str], most: int
    ) -> Iterator[CsvBlock]:
        """These columns of all rows in turn; of the standard input at most ``most`` at a time."""
        parser = self._parser(text, numeric)
        for start, rows in self._raw_blocks(most):
            try:
                yield parser.parse(rows, start)
            except _NotNumbers as error:
                name, (row, cell) = min(error.cells.items(), key=lambda item: item[1][0])
                place = f"{self.place(row)} of {self.path}"
                raise InputError(*not_a_number(place, cell, name)) from None

    def place(self, row: int) -> str:
        """What errors call a row: the line of the file that it ends in."""
        if self._stdin is not None:
            return numbered_row(row)
        with _open(self.path, "rt") as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            next(islice(filter(None, reader), row + 1, None), None)
            return f"line {reader.line_num}"

    def _parser(self, text: Collection[str], columns: Collection[str]) -> _BlockParser:
        text = set(text)
        numeric = set(columns) - text
        return _BlockParser(
            self,
            [j for j, name in enumerate(self.header) if name in text],
            [j for j, name in enumerate(self.header) if name in numeric],
        )

    def _raw_blocks(self, most: int = _ROWS_AT_A_TIME) -> Iterator[tuple[int, RawRows]]:
        """Rows after the header, some at a time, and how many came before them.

        They are blocks of lines until one is quoted, and lists of cells from there on.
        """
        start = 0
        cells = self._stdin
        if cells is None:
            with reading(self.path, _KIND), _open(self.path, "rb") as file:
                header = file.readline().rstrip(b"\r\n")
                plain = header and header.count(b'"') % 2 == 0 and b"\r" not in header
                while plain:
                    raw = file.read(_BYTES_AT_A_TIME)
                    if not raw:
                        return
                    rows = _plain_block(raw + file.readline())
                    if rows is None:
                        break
                    if rows.raw.lstrip(b"\r\n"):
                        yield start, rows
                    start += len(rows)
            cells = islice(self._cells(), 1 + start, None)
        most = min(most, max(1, _CELLS_AT_A_TIME // len(self.header)))
        while block := list(islice(cells, most)):
            yield start, block
            start += len(block)

    def _cells(self) -> Iterator[list[str]]:
        """Cells of every row of the file, the header first."""
        with reading(self.path, _KIND), _open(self.path, "rt") as file:
            yield from _split(file, self.delimiter, self.path)


def _open(path: Path, mode: str) -> Any:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    if mode == "rb":
        return opener(path, mode)
    return opener(path, mode, encoding="utf-8-sig", newline="")


def _sniff(first: str) -> str:
    """The delimiter; the header alone tells it: further down, a comma may be a decimal point."""
    try:
        return csv.Sniffer().sniff(first[:_SNIFFED], _DELIMITERS).delimiter
    except csv.Error:
        return ","


def _split(lines: Iterable[str], delimiter: str, path: Path) -> Iterator[list[str]]:
    """Cells of every line that is not blank."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        yield from filter(None, reader)
    except csv.Error as error:
        raise InputError(
            f"{path} cannot be read as CSV from line {reader.line_num} on ({error})",
            "close or double the quotes there, or write the file again",
        ) from error


def _plain_block(raw: bytes) -> PlainBlock | None:
    """Whole lines as a block; None where one is quoted or ends oddly."""
    if b'"' in raw or b"\0" in raw:
        return None
    if b"\r" in raw:
        codes = np.frombuffer(raw, np.uint8)
        returns = np.flatnonzero(codes == ord("\r"))
        if raw.endswith(b"\r") or np.any(codes[returns + 1] != ord("\n")):
            return None
    return PlainBlock(raw)


class _BlockParser:
    """Turns rows into a block; columns that are neither text nor numeric are passed over.

    Parameters
    ----------
    table : CsvTable
    text, numeric : ascending list of int
        Which columns are text, and which are numbers.
    """

    def __init__(self, table: CsvTable, text: list[int], numeric: list[int]) -> None:
        self.table = table
        self.text = text
        self.numeric = numeric
        self.width = len(table.header)
        self.places = {table.header[j]: place for place, j in enumerate(numeric)}

    def parse(self, rows: RawRows, start: int) -> CsvBlock:
        """A block of these rows; ``start`` rows came before."""
        if isinstance(rows, PlainBlock):
            block = self._plain(rows)
            if block is not None:
                return block
            with reading(self.table.path, _KIND):
                text = rows.raw.decode("utf-8")
                lines = StringIO(text, newline="")
                rows = list(filter(None, csv.reader(lines, delimiter=self.table.delimiter)))
        return self._split_all(rows, start)

    def join(self, blocks: list[CsvBlock]) -> CsvBlock:
        """All rows of these blocks, as one."""
        names = [self.table.header[j] for j in self.text]
        text = {name: [cell for block in blocks for cell in block.text[name]] for name in names}
        empty = np.empty((0, len(self.numeric)))
        numbers = np.concatenate([block.numbers for block in blocks] or [empty])
        return CsvBlock(numbers, self.places, text, len(numbers))

    def _block(self, numbers: np.ndarray, text: Iterable[list[str]], rows: int) -> CsvBlock:
        names = (self.table.header[j] for j in self.text)
        return CsvBlock(
            numbers.reshape(rows, len(self.numeric)),
            self.places,
            dict(zip(names, text, strict=True)),
            rows,
        )

    def _plain(self, rows: PlainBlock) -> CsvBlock | None:
        """Take the cells of plain lines; None where they need more care."""
        cells = PlainCells.of(rows.raw, self.table.delimiter, self.width)
        if cells is None:
            return None
        rows.counted(cells.rows)
        numbers = cells.numbers(self.numeric)
        if numbers is None:
            return None
        try:
            text = [cells.text(j) for j in self.text]
        except UnicodeDecodeError:
            return None
        return self._block(numbers, text, cells.rows)

    def _split_all(self, rows: list[list[str]], start: int) -> CsvBlock:
        """Take every cell of rows that were split."""
        ragged = next((i for i, row in enumerate(rows) if len(row) != self.width), None)
        if ragged is not None:
            raise ValueError(
                f"{self.table.place(start + ragged)} of {self.table.path} has "
                f"{counted(len(rows[ragged]), 'cell')}, but the header has {self.width}; "
                "complete it, or quote cells that hold the delimiter"
            )
        text = [[row[j].strip() for row in rows] for j in self.text]
        if len(self.numeric) > 1:
            cells = list(chain.from_iterable(map(itemgetter(*self.numeric), rows)))
        else:
            cells = [row[j] for row in rows for j in self.numeric]
        numbers = parse_numbers(cells)
        if numbers is None:
            columns = ((j, [row[j] for row in rows]) for j in self.numeric)
            bad = {j: column for j, column in columns if parse_numbers(column) is None}
            raise _NotNumbers(
                {self.table.header[j]: _first_text(column, start) for j, column in bad.items()}
            )
        return self._block(numbers, text, len(rows))


def _first_text(cells: list[str], start: int) -> tuple[int, str]:
    row = next(i for i, cell in enumerate(cells) if parse_numbers([cell]) is None)
    return start + row, cells[row]


def _checked_header(cells: list[str], path: Path) -> list[str]:
    """Names of the columns, each of them once."""
    header = [name.strip() for name in cells]
    if not header:
        raise ValueError(f"{path} is empty; a header and rows are needed")
    if parse_numbers([name for name in header if name] or ["x"]) is not None:
        raise ValueError(f"{path} starts with numbers; a header that names its columns is needed")
    header[0] = header[0] or "index"
    if "" in header:
        raise ValueError(f"column {header.index('')} of {path} has no name; name it in the header")
    return distinct(header, path)


def typed_labels(cells: list[str]) -> np.ndarray:
    """Labels as integers or numbers where all are; codes such as 007 stay text."""
    if all(map(_WHOLE_NUMBER.fullmatch, cells)):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    numbers = None if any(map(_PADDED_NUMBER.fullmatch, cells)) else parse_numbers(cells)
    return np.array(cells) if numbers is None else numbers


def _dtype_of_known(cells: list[str], labels: np.ndarray) -> np.dtype:
    """The type of those labels that are not missing."""
    if labels.dtype.kind != "f" or not np.isnan(labels).any():
        return labels.dtype
    return typed_labels([cell for cell in cells if cell not in MISSING]).dtype


def parse_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """Cells as float64 with NaN where they are missing, or None if one is not a number."""
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        filled = ("nan" if cell.strip() in MISSING else cell for cell in cells)
        try:
            values = np.fromiter(map(float, filled), np.float64, len(cells))
        except ValueError:
            return None
    # Python reads 1_2 as 12; in a file it is a name.
    return None if "_" in "".join(cells) else values


@dataclass(frozen=True, eq=False)
class PlainCells:
    """Where the cells of plain lines begin and end.

    Parameters
    ----------
    raw : bytes
    delimiter : bytes
    starts, ends : arrays of shape (rows, columns)
        Spaces around a cell are not of it.
    """

    raw: bytes
    delimiter: bytes
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, raw: bytes, delimiter: str, width: int) -> PlainCells | None:
        """Cells of lines that all have this many; None for others, blank lines among them."""
        if not raw.endswith(b"\n"):
            raw += b"\n"
        if len(raw) > np.iinfo(_PLACE).max:
            return None
        codes = np.frombuffer(raw, np.uint8)
        is_line_end = codes == ord("\n")
        stops = np.flatnonzero((codes == ord(delimiter)) | is_line_end).astype(_PLACE)
        rows = np.count_nonzero(is_line_end)
        if len(stops) != rows * width or not is_line_end[stops[width - 1 :: width]].all():
            return None
        ends = stops.reshape(rows, width)
        starts = np.concatenate([np.zeros(1, _PLACE), stops[:-1] + 1]).reshape(rows, width)
        ends[:, -1] -= codes[ends[:, -1] - 1] == ord("\r")
        if width == 1 and np.any(starts == ends):
            return None
        while (spaces := (codes[starts] == ord(" ")) & (starts < ends)).any():
            starts += spaces
        while (spaces := (codes[ends - 1] == ord(" ")) & (starts < ends)).any():
            ends -= spaces
        return cls(raw, delimiter.encode(), starts, ends)

    @property
    def rows(self) -> int:
        return len(self.starts)

    def text(self, column: int) -> list[str]:
        """The cells of a column."""
        places = zip(self.starts[:, column].tolist(), self.ends[:, column].tolist(), strict=True)
        return [self.raw[start:end].decode("utf-8").strip() for start, end in places]

    def numbers(self, columns: Sequence[int]) -> np.ndarray | None:
        """These columns side by side, as Python reads numbers; None where one takes more care.

        NaN where a cell is missing. Both parsers round correctly; pyarrow's is six times as fast.
        """
        if not columns:
            return np.empty((self.rows, 0))
        if b"(" in self.raw or b"_" in self.raw:  # C has nan(1) for a number, and Python 1_2
            return None
        # A slice is a view, and most tables have their features side by side.
        one_run = columns[-1] - columns[0] == len(columns) - 1
        chosen: Any = slice(columns[0], columns[-1] + 1) if one_run else list(columns)
        wanted = np.zeros(self.starts.shape, dtype=bool)
        wanted[:, chosen] = True
        missing = wanted & self._are_missing()
        try:
            values = np.array(self._parsed(wanted & ~missing)[:, chosen])
        except ValueError:
            return None
        values[missing[:, chosen]] = np.nan
        return values

    def _are_missing(self) -> np.ndarray:
        """Which cells stand for nothing."""
        codes = np.frombuffer(self.raw, np.uint8)
        lengths = self.ends - self.starts
        missing = lengths == 0
        for word in filter(None, MISSING):
            places = np.flatnonzero(lengths == len(word))
            for j, letter in enumerate(word.encode()):
                places = places[codes[self.starts.flat[places] + j] == letter]
            missing.flat[places] = True
        return missing

    def _parsed(self, wanted: np.ndarray) -> np.ndarray:
        """Cells that are wanted as numbers, among others that are anything."""
        try:
            import pyarrow as pa
        except ImportError:
            cells = self.raw.replace(b"\n", self.delimiter).split(self.delimiter)
            values = np.empty(wanted.shape)
            values[wanted] = list(map(float, compress(cells, wanted.ravel().tolist())))
            return values
        # An array of text is the places at which one cell ends and the next begins. The delimiters
        # between are cells too, which are null as all are that are not wanted: nothing is copied.
        places = np.concatenate([self.starts.ravel()[:, None], self.ends.ravel()[:, None]], axis=1)
        offsets = np.append(places, _PLACE(len(self.raw)))
        valid = np.zeros((wanted.size, 2), dtype=bool)
        valid[:, 0] = wanted.ravel()
        texts = pa.StringArray.from_buffers(
            valid.size,
            pa.py_buffer(offsets),
            pa.py_buffer(self.raw),
            pa.py_buffer(np.packbits(valid, bitorder="little")),
        )
        numbers = texts.cast(pa.float64()).buffers()[1]  # ArrowInvalid is a ValueError
        return np.frombuffer(numbers, np.float64, valid.size)[::2].reshape(wanted.shape)


def write_csv(file: BinaryIO, arrays: TableArrays, path: Path) -> None:
    """Write features as columns, and labels after them; compressed where the name ends in .gz."""
    labels = [key for key in LABEL_KEYS if key in arrays]
    with encoded(file, path) as text:
        csv.writer(text).writerow([*column_names(arrays, path), *labels])
        for start, X in row_blocks(arrays["X"]):
            beside = _Lines()
            cells = (arrays[key][start : start + len(X)].tolist() for key in labels)
            csv.writer(beside).writerows(zip(*cells, strict=True))
            # Numbers need no quotes, which the writer would look for in each.
            numbers = (",".join(map(repr, row)) for row in X.tolist())
            text.writelines(map("{},{}".format, numbers, beside))


class _Lines(list[str]):
    """Lines of a CSV writer, in the place of a file."""

    write = list.append
