"""CSV some rows at a time, from a file or the standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path

import numpy as np

from skdare.datasets._columns import checked_header, csv_lines, csv_numbers, csv_rows, refuse_ragged
from skdare.datasets._contents import Contents, Entry, reading

STDIN = "-"
"""In the place of a path: CSV on the standard input."""

# Cells are Python's strings, of some sixty bytes each, until they are numbers.
_MOST_CELLS = 1 << 16
_LOOKED_AT = 100


def stream_csv(path: Path, is_text: Callable[[str], bool]) -> Contents:
    """A table whose first rows tell which columns are numbers; the others are read in turn."""
    shown = Path("stdin") if str(path) == STDIN else path
    lines = csv_rows(iter(sys.stdin)) if str(path) == STDIN else csv_lines(path)
    with reading(shown, "CSV in UTF-8"):
        cells = next(lines, [])
    header = checked_header(cells, shown)
    first = list(islice(lines, _LOOKED_AT))
    refuse_ragged(first, header, shown, 0)
    cells_of = zip(*first, strict=True) if first else [()] * len(header)
    columns = dict(zip(header, cells_of, strict=True))
    kinds = {
        name: np.dtype(str if is_text(name) or csv_numbers(column) is None else float)
        for name, column in columns.items()
    }
    place = {name: j for j, name in enumerate(header)}

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        again = chain(first, lines) if str(path) == STDIN else islice(csv_lines(path), 1, None)
        start, most = 0, min(rows, max(1, _MOST_CELLS // len(header)))
        while block := list(islice(again, most)):
            refuse_ragged(block, header, shown, start)
            numeric = [place[k] for k in keys if kinds[k].kind == "f"]
            numbers = _all_numbers(block, numeric)
            columns = {} if numbers is None else dict(zip(numeric, numbers.T, strict=True))
            yield [
                columns[place[k]]
                if place[k] in columns
                else _column(block, place[k], k, kinds[k], shown, start)
                for k in keys
            ]
            start += len(block)

    entries = {name: Entry((len(first),), kind) for name, kind in kinds.items()}
    return Contents(shown, entries, lambda keys: [], True, stream=stream)


def _all_numbers(block: list[list[str]], places: list[int]) -> np.ndarray | None:
    """Columns of numbers in one go, or None where some cell is no number: that is told apart."""
    if len(places) < 2:
        return None
    cells = list(chain.from_iterable(map(itemgetter(*places), block)))
    numbers = csv_numbers(cells)
    return None if numbers is None else numbers.reshape(len(block), len(places))


def _column(
    block: list[list[str]], j: int, name: str, kind: np.dtype, path: Path, start: int
) -> np.ndarray:
    cells = [row[j] for row in block]
    if kind.kind == "U":
        return np.array([cell.strip() for cell in cells])
    numbers = csv_numbers(cells)
    if numbers is None:
        bad = next(i for i, cell in enumerate(cells) if csv_numbers([cell]) is None)
        raise ValueError(
            f"row {start + bad} of {path} has {cells[bad]!r} in column {name!r}, and a number is "
            "needed; mend it, or choose other columns"
        )
    return numbers
