"""The cells of a CSV file, block after block of rows: numbers side by side, and text by column."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from skdare.datasets._contents import reading
from skdare.datasets._roles import MISSING

_DELIMITERS = ",;\t"
# Names of a thousand columns tell the delimiter as well as those of a million.
_SNIFFED = 1 << 14
_ROWS_AT_A_TIME = 4096
# Cells are Python's strings, of some sixty bytes each, until they are numbers.
_MOST_CELLS = 1 << 18
_BYTES_AT_A_TIME = 1 << 22
# Of numbers alone; a cell with any other byte is looked at with care.
_PLAIN = b"0123456789+-.eE"
# Labels so near to either end of a line are cut off without taking the line apart.
_NEAR_THE_END = 64


@dataclass(frozen=True, eq=False)
class CsvBlock:
    """Some rows: how many, the columns of numbers side by side, and text by number of column."""

    rows: int
    numbers: np.ndarray
    text: dict[int, list[str]]


class TurnedToText(Exception):
    """Columns of numbers have cells that are none: by column, the first such row and its cell."""

    def __init__(self, cells: Mapping[int, tuple[int, str]]) -> None:
        super().__init__(cells)
        self.cells = cells


def csv_lines(path: Path) -> Iterator[list[str]]:
    """Rows of cells, the header first; blank lines are left out."""
    with reading(path, "CSV in UTF-8"), _opened(path, "rt") as file:
        yield from csv_rows(file)


def csv_rows(file: Iterator[str]) -> Iterator[list[str]]:
    """Rows of cells of an open file, which need not be one that can be read twice."""
    first = next(file, "")
    yield from _split(chain([first], file), _delimiter(first))


def _opened(path: Path, mode: str) -> Any:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    if mode == "rb":
        return opener(path, mode)
    return opener(path, mode, encoding="utf-8-sig", newline="")


def _delimiter(first: str) -> str:
    # The header alone tells the delimiter: further down, a comma may be a decimal point.
    try:
        return csv.Sniffer().sniff(first[:_SNIFFED], _DELIMITERS).delimiter
    except csv.Error:
        return ","


def _split(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    return filter(None, csv.reader(lines, delimiter=delimiter, strict=True))


def csv_blocks(path: Path, width: int, text: set[int]) -> Iterator[CsvBlock]:
    """The rows after the header, each of so many cells; the columns in ``text`` are text.

    The columns of numbers are all others, in their order. Those that turn out to be text join
    ``text``: at once where the first rows tell, else with `TurnedToText` when all rows were seen.
    """
    layout, late, start = CsvLayout(path, width, text), False, 0
    told: dict[int, tuple[int, str]] = {}
    for rows in csv_row_blocks(path, width):
        try:
            block = layout.parsed(rows, start)
        except TurnedToText as found:
            text.update(found.cells)
            told.update(found.cells)
            layout, late = CsvLayout(path, width, text), late or start > 0
            block = layout.parsed(rows, start)
        if not late:
            yield block
        start += block.rows
    if late:
        raise TurnedToText(told)


def csv_row_blocks(path: Path, width: int) -> Iterator[list[Any]]:
    """The rows after the header: lines of bytes while none is quoted, then lists of cells."""
    done = 0
    with reading(path, "CSV in UTF-8"), _opened(path, "rb") as file:
        header = file.readline().rstrip(b"\r\n")
        plain = header and header.count(b'"') % 2 == 0 and b"\r" not in header
        while plain:
            lines = file.readlines(_BYTES_AT_A_TIME)
            if not lines:
                return
            rows = _plain_lines(lines)
            if rows is None:
                break
            if rows:
                yield rows
            done += len(rows)
    yield from row_blocks(islice(csv_lines(path), 1 + done, None), width)


def row_blocks(
    rows: Iterator[list[str]], width: int, most: int | None = None
) -> Iterator[list[Any]]:
    """Lists of cells, not too many at a time."""
    most = min(most or _ROWS_AT_A_TIME, max(1, _MOST_CELLS // width))
    while block := list(islice(rows, most)):
        yield block


def _plain_lines(lines: list[bytes]) -> list[bytes] | None:
    """Lines without their ends, blank ones left out; None where one is quoted or ends oddly."""
    whole = b"".join(lines).replace(b"\r\n", b"\n")
    if any(odd in whole for odd in (b'"', b"\r", b"\0")):
        return None
    return [line for line in whole.split(b"\n") if line]


class CsvLayout:
    """Which columns are text and which are numbers, and how rows become a block.

    Parameters
    ----------
    path : Path
    width : int
        How many columns there are.
    text : collection of int
    numeric : list of int, optional
        Default: all that are not text. Those in neither are passed over.
    """

    def __init__(
        self, path: Path, width: int, text: Collection[int], numeric: list[int] | None = None
    ) -> None:
        self.path, self.width, self.text = path, width, sorted(text)
        self.numeric = [j for j in range(width) if j not in text] if numeric is None else numeric
        self._delimiter: bytes | None = None
        # Lines are cut into cells at both ends, and numbers between; they are not looked at where
        # none is wanted.
        wanted = set(self.numeric)
        apart = [j for j in range(width) if j not in wanted] if wanted else self.text
        self._before = max((j + 1 for j in apart if 2 * j < width), default=0)
        self._after = max((width - j for j in apart if 2 * j >= width), default=0)
        between = range(self._before, width - self._after)
        self._ends = [j for j in self.numeric if j not in between]
        near = max(self._before, self._after) <= _NEAR_THE_END
        self._is_cut = near and len(between) > 0 and self.numeric == sorted(wanted)

    def parsed(self, rows: list[Any], start: int) -> CsvBlock:
        """A block of numbers and text; ``start`` rows came before."""
        if isinstance(rows[0], bytes):
            block = self._of_lines(rows) if self._is_cut else None
            if block is not None:
                return block
            with reading(self.path, "CSV in UTF-8"):
                text = b"\n".join(rows).decode("utf-8")
                rows = list(_split(StringIO(text, newline=""), self.delimiter.decode()))
        return self._of_cells(rows, start)

    @property
    def delimiter(self) -> bytes:
        """What stands between cells, as the header tells."""
        if self._delimiter is None:
            with reading(self.path, "CSV in UTF-8"), _opened(self.path, "rt") as file:
                self._delimiter = _delimiter(next(file, "")).encode()
        return self._delimiter

    def _of_lines(self, lines: list[bytes]) -> CsvBlock | None:
        """Of lines of bytes; None where that needs more care."""
        cut, cells = self.delimiter, []
        text: dict[int, list[bytes]] = {j: [] for j in self.text}
        for line in lines:
            if line.count(cut) != self.width - 1:
                return None
            *first, rest = line.split(cut, self._before)
            between, *last = rest.rsplit(cut, self._after)
            ends = dict(enumerate(first)) | dict(enumerate(last, self.width - self._after))
            for j in self.text:
                text[j].append(ends[j])
            if self.numeric:
                cells += [ends[j] for j in self._ends if j < self._before]
                cells.append(between)
                cells += [ends[j] for j in self._ends if j >= self._before]
        shape = len(lines), len(self.numeric)
        numbers = _plain_numbers(cut.join(cells), cut, shape[0] * shape[1])
        try:
            decoded = {j: [c.decode("utf-8").strip() for c in found] for j, found in text.items()}
        except UnicodeDecodeError:
            return None
        return None if numbers is None else CsvBlock(len(lines), numbers.reshape(shape), decoded)

    def _of_cells(self, rows: list[list[str]], start: int) -> CsvBlock:
        refuse_ragged(rows, self.width, self.path, start)
        text = {j: [row[j].strip() for row in rows] for j in self.text}
        numbers = _numbers_of(rows, self.numeric)
        if numbers is None:
            columns = ((j, [row[j] for row in rows]) for j in self.numeric)
            bad = {j: cells for j, cells in columns if csv_numbers(cells) is None}
            raise TurnedToText({j: _first_text(cells, start) for j, cells in bad.items()})
        return CsvBlock(len(rows), numbers, text)


def refuse_ragged(rows: list[list[str]], width: int, path: Path, start: int) -> None:
    """Every row has a cell for each column."""
    ragged = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if ragged is not None:
        raise ValueError(
            f"row {start + ragged} of {path} has {len(rows[ragged])} cells, but the header "
            f"has {width}; quote cells that hold the delimiter"
        )


def _first_text(cells: list[str], start: int) -> tuple[int, str]:
    row = next(i for i, cell in enumerate(cells) if csv_numbers([cell]) is None)
    return start + row, cells[row]


def _numbers_of(rows: list[list[str]], places: list[int]) -> np.ndarray | None:
    """Columns of numbers side by side, or None where some cell is no number."""
    if len(places) > 1:
        cells = list(chain.from_iterable(map(itemgetter(*places), rows)))
    else:
        cells = [row[j] for row in rows for j in places]
    numbers = csv_numbers(cells)
    return None if numbers is None else numbers.reshape(len(rows), len(places))


def some_columns(numbers: np.ndarray, places: list[int]) -> np.ndarray:
    """Columns of a matrix in this order; no copy where that is all of them."""
    return numbers if places == list(range(numbers.shape[1])) else numbers[:, places]


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


def _plain_numbers(text: bytes, delimiter: bytes, count: int) -> np.ndarray | None:
    """Numbers between delimiters, as Python reads them; None where that takes more care.

    Both parsers round correctly, and refuse what is no number; pyarrow's is twice as fast.
    """
    if not count:
        return np.empty(0)
    if b"(" in text:  # C has numbers such as nan(1)
        return None
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return _numpy_numbers(text, delimiter, count)
    lines = pa.py_buffer(text.replace(delimiter, b"\n") + b"\n")
    try:
        column = arrow_csv.read_csv(
            pa.BufferReader(lines),
            read_options=arrow_csv.ReadOptions(column_names=["x"], use_threads=False),
            parse_options=arrow_csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={"x": pa.float64()}, null_values=list(MISSING)
            ),
        ).column(0)
    except pa.ArrowInvalid:
        return None
    return column.to_numpy() if len(column) == count else None


def _numpy_numbers(text: bytes, delimiter: bytes, count: int) -> np.ndarray | None:
    if text.translate(None, _PLAIN + delimiter):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy before 2.3 warns where it ends too early
        try:
            numbers = np.fromstring(text, sep=delimiter.decode())
        except (ValueError, DeprecationWarning):
            return None
    return numbers if len(numbers) == count else None
