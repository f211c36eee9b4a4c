"""CSV some rows at a time, from a file or the standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from skdare.datasets._columns import checked_header, columns_in
from skdare.datasets._contents import Contents, Entry, Key, reading
from skdare.datasets._csv_cells import (
    CsvBlock,
    CsvLayout,
    TurnedToText,
    csv_lines,
    csv_numbers,
    csv_row_blocks,
    csv_rows,
    refuse_ragged,
    row_blocks,
    some_columns,
)

STDIN = "-"
"""In the place of a path: CSV on the standard input."""

# So many rows, or cells, tell which columns are numbers.
_LOOKED_AT = 100
_MOST_CELLS = 1 << 19


def stream_csv(path: Path, is_text: Callable[[str], bool]) -> Contents:
    """A table whose first rows tell which columns are numbers; the others are read in turn."""
    shown = Path("stdin") if str(path) == STDIN else path
    lines = csv_rows(iter(sys.stdin)) if str(path) == STDIN else csv_lines(path)
    with reading(shown, "CSV in UTF-8"):
        cells = next(lines, [])
    header = checked_header(cells, shown)
    first = list(islice(lines, min(_LOOKED_AT, max(1, _MOST_CELLS // len(header)))))
    refuse_ragged(first, len(header), shown, 0)
    cells_of = zip(*first, strict=True) if first else [()] * len(header)
    columns = dict(zip(header, cells_of, strict=True))
    kinds = {
        name: np.dtype(str if is_text(name) or csv_numbers(column) is None else float)
        for name, column in columns.items()
    }
    place = {name: j for j, name in enumerate(header)}

    def stream(keys: Sequence[Key], rows: int) -> Iterator[list[np.ndarray]]:
        wanted = columns_in(keys)
        text = {place[name] for name in wanted if kinds[name].kind == "U"}
        numeric = sorted({place[name] for name in wanted} - text)
        layout = CsvLayout(shown, len(header), text, numeric)
        column = {j: i for i, j in enumerate(numeric)}

        def taken(block: CsvBlock, key: Key) -> np.ndarray:
            if isinstance(key, tuple):
                if text.isdisjoint(map(place.__getitem__, key)):
                    return some_columns(block.numbers, [column[place[name]] for name in key])
                return np.column_stack([taken(block, name) for name in key])
            j = place[key]
            return np.array(block.text[j]) if j in text else block.numbers[:, column[j]]

        start = 0
        standard = row_blocks(chain(first, lines), len(header), rows)
        for block_rows in standard if str(path) == STDIN else csv_row_blocks(path, len(header)):
            try:
                block = layout.parsed(block_rows, start)
            except TurnedToText as found:
                j, (row, cell) = min(found.cells.items())
                raise ValueError(
                    f"row {row} of {shown} has {cell!r} in column {header[j]!r}, and a number is "
                    "needed; mend it, or choose other columns"
                ) from None
            arrays = [taken(block, key) for key in keys]
            for at in range(0, block.rows, rows):
                yield [values[at : at + rows] for values in arrays]
            start += block.rows

    entries = {name: Entry((len(first),), kind) for name, kind in kinds.items()}
    return Contents(shown, entries, lambda keys: [], True, stream=stream)
