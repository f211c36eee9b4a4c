"""Plain text for the terminal: aligned columns, meaning without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from skdare._safe_text import terminal_safe
from skdare.report._document import Document, Section
from skdare.report._strip import strips
from skdare.report._table import Cell, Table, notes

GAP = "  "
_MARKS = {"bold": "*", "underline": "_"}


def render(document: Document, width: int, *, details: bool = False) -> str:
    """All sections: the advice of each, its picture, its tables; with details, folded ones too."""
    parts = [_table(document.overview, width)] if document.overview else []
    parts += [_section(section, width, details) for section in document.sections]
    return "\n\n".join(parts)


def _section(section: Section, width: int, details: bool) -> str:
    blocks = [terminal_safe(section.title)]
    words = [" ".join(section.verdict), *section.remarks]
    blocks += ["\n".join(_wrapped(line, width) for line in words if line)] if any(words) else []
    if section.picture:
        blocks.append("\n".join(strips(section.picture, width)))
    for part in section.parts:
        if part.folded and not details:
            continue
        # With details, also tables that are folded in a part that is not.
        whole = details and not part.folded
        tables = [table for table in part.tables if whole or not table.detail]
        if tables and (details or part.below):
            blocks.append(
                _wrapped(f"{part.heading}. {part.text}" if details else part.heading, width)
            )
        blocks += [_table(table, width) for table in tables]
    return "\n\n".join(blocks)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(terminal_safe(text), width, break_on_hyphens=False)


def _table(table: Table, width: int) -> str:
    """The table with both intervals, one, or none, as they fit; else in several pieces."""
    for parts in (3, 2, 1):
        columns = [_column(table, i, parts) for i in range(len(table.columns))]
        fits = sum(map(_width, columns)) + len(GAP) * (len(columns) - 1) <= width
        if fits:
            break
    whole = fits or not table.grid
    lines = _side_by_side(columns, table.foot) if whole else _in_pieces(columns, table.foot, width)
    below = [_wrapped(note, width) for note in notes(table, "*", "_", parts)]
    return "\n".join([_wrapped(table.caption, width), *lines, *below])


def _in_pieces(columns: list[list[str]], foot: int, width: int) -> list[str]:
    """As many columns at a time as fit, each piece with the names of the rows."""
    lines: list[str] = []
    names = columns[0]
    rest = columns[1:]
    while rest:
        n = 0
        used = _width(names)
        while n < len(rest) and used + len(GAP) + _width(rest[n]) <= width:
            used += len(GAP) + _width(rest[n])
            n += 1
        n = max(n, 1)
        lines += [*([""] if lines else []), *_side_by_side([names, *rest[:n]], foot)]
        rest = rest[n:]
    return lines


def _column(table: Table, i: int, parts: int) -> list[str]:
    """One column as strings of the same width, its head first."""
    cells = [row[i] for row in table.rows]
    head = terminal_safe(table.columns[i])
    if not i or not any(_is_number(cell) for cell in cells):
        texts = [head, *(terminal_safe(str(cell)) for cell in cells)]
        wide = max(map(len, texts))
        return [text.ljust(wide) for text in texts]
    numbers = max(len(cell.spread.removeprefix("± ")) for cell in cells)
    pieces = [
        [_MARKS.get(cell.mark, "") + cell.text, _padded(cell.spread, numbers), cell.more][:parts]
        for cell in cells
    ]
    wides = [max(len(piece[k]) for piece in pieces) for k in range(parts)]
    texts = [
        " ".join(piece[k].rjust(wides[k]) for k in range(parts) if wides[k]) for piece in pieces
    ]
    wide = max(map(len, [head, *texts]))
    return [text.rjust(wide) for text in [head, *texts]]


def _padded(spread: str, wide: int) -> str:
    """A half width whose sign lines up with those above and below."""
    return "± " + spread[2:].rjust(wide) if spread.startswith("± ") else spread


def _is_number(cell: Cell) -> bool:
    return cell.text.lstrip("+−<").replace(",", "")[:1].isdigit()


def _width(column: Sequence[str]) -> int:
    return len(column[0])


def _side_by_side(columns: Sequence[Sequence[str]], foot: int) -> list[str]:
    lines = [GAP.join(cells).rstrip() for cells in zip(*columns, strict=True)]
    if foot:
        lines.insert(len(lines) - foot, "─" * max(map(len, lines)))
    return lines
