"""Tables as data: every format writes the same cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

# What the trials are that an interval is over.
SPLITS = "splits of the same rows"
NETWORKS = "each with its own network and split"
BOTH = "each with its own split, and its own network where features were fine-tuned"


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text : str
    spread : str
        Half width of its interval.
    more : str
        Half width of the paper's interval; the first to go where there is no room.
    mark : str
        "bold", "underline" or empty.
    """

    text: str
    spread: str = ""
    more: str = ""
    mark: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.text, self.spread, self.more) if part)


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the first cell of a row is its name.

    Parameters
    ----------
    name : str
    caption : str
    columns : tuple of str
    rows : tuple of tuples of Cell
    notes : tuple of str
    foot : int
        How many of the last rows stand apart.
    detail : bool
        For those who look closer: closed at first, and left out where room is short.
    grid : bool
        Every cell is the same kind of number, so rows and columns may change places.
    baseline : str
        The head that underlined cells are above; empty where cells cannot be marked.
    trials : int
        Number of trials behind the intervals after ±; 0 if the table has no intervals.
    kind : str
        What those trials are.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    foot: int = 0
    detail: bool = False
    grid: bool = False
    baseline: str = ""
    trials: int = 0
    kind: str = SPLITS

    @property
    def body(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that do not stand apart."""
        return self.rows[: len(self.rows) - self.foot]

    def turned(self) -> Self:
        """The table with rows and columns exchanged."""
        heads = tuple(str(row[0]) for row in self.rows)
        rows = tuple(
            (Cell(column), *(row[i] for row in self.rows))
            for i, column in enumerate(self.columns)
            if i
        )
        corner = "" if self.columns[0] == "held out" else self.columns[0]
        return replace(self, columns=(corner, *heads), rows=rows, foot=0)

    @property
    def width(self) -> int:
        """Characters of a row, if each column is as wide as its widest cell."""
        columns = zip(self.columns, *([str(c) for c in cells] for cells in self.rows), strict=True)
        return sum(max(map(len, column)) + 2 for column in columns)


def row(name: str, cells: Iterable[Cell | str]) -> tuple[Cell, ...]:
    """A row of cells after its name."""
    return (Cell(name), *(c if isinstance(c, Cell) else Cell(c) for c in cells))


def _interval_note(table: Table, parts: int = 3) -> str:
    """What stands after ± and in brackets, if this many parts of each cell are shown."""
    if table.trials < 2:
        return "One trial, so no interval over trials." if table.trials else ""
    if parts == 1:
        return "Intervals are left out to save room."
    note = f"After ±: the t 90 % interval over {table.trials} trials, {table.kind}"
    if parts == 3 and any(cell.more for cells in table.rows for cell in cells):
        note += "; in brackets: the paper's normal 90 %, 1.645 σ̂/√n, which is too narrow"
    return note + "."


def notes(table: Table, bold: str, underline: str, parts: int = 3) -> list[str]:
    """The notes under a table, with a format's words for its marks."""
    sentences = (_mark_note(table, bold, underline), _interval_note(table, parts), *table.notes)
    return [sentence for sentence in sentences if sentence]


def _mark_note(table: Table, bold: str, underline: str) -> str:
    """What the marks of a table mean; empty without marks."""
    if not table.baseline or not any(cell.mark for cells in table.rows for cell in cells):
        return ""
    return (
        f"{bold}: highest mean by one-sided paired t-tests over trials at p = 0.1. "
        f"{underline}: above {table.baseline} by the same test."
    )
