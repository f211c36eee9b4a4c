"""Markdown: the report without its figures, tables with pipes."""

from __future__ import annotations

from skdare._safe_text import terminal_safe
from skdare.report._document import Document, Section, SectionPart
from skdare.report._table import Cell, Table, notes


def render(document: Document) -> str:
    """The report as one Markdown file."""
    blocks = [f"# {_escape(document.title)}"]
    if document.overview:
        blocks.append(_table(document.overview))
    one = len(document.sections) == 1
    for section in document.sections:
        blocks += [] if one else [f"## {_escape(section.title)}"]
        blocks += _section(section, "##" if one else "###")
    blocks.append("## Method")
    blocks.append("\n".join(f"- **{name}.** {_escape(text)}" for name, text in document.notes))
    return "\n\n".join(blocks) + "\n"


def _section(section: Section, level: str) -> list[str]:
    blocks = [_escape(" ".join(section.verdict))] if section.verdict else []
    if section.remarks:
        blocks.append("\n".join(f"- {_escape(remark)}" for remark in section.remarks))
    for part in section.parts:
        # Figures are left out here, and so is a part that has nothing else; a heading stays.
        if part.tables or part.text or part.facts or not part.plots:
            blocks += _part(part, level)
    return blocks


def _part(part: SectionPart, level: str) -> list[str]:
    blocks = [f"{level}{'#' if part.below else ''} {_escape(part.heading)}"]
    if part.text:
        blocks.append(_escape(part.text))
    if part.facts:
        blocks.append("\n".join(f"- {term}: {_escape(text)}" for term, text in part.facts))
    return blocks + [_table(table) for table in part.tables]


def _table(table: Table) -> str:
    lines = [
        f"**{_escape(table.caption)}**",
        "",
        _line([_escape(name) for name in table.columns]),
        _line(["---", *("---:" for _ in table.columns[1:])]),
        *(_line([_cell(cell) for cell in cells]) for cells in table.rows),
    ]
    note = " ".join(_escape(text) for text in notes(table, "Bold", "Underlined"))
    return "\n".join([*lines, "", note] if note else lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = _escape(cell.text)
    if cell.mark == "bold":
        text = f"**{text}**"
    elif cell.mark == "underline":
        text = f"<u>{text}</u>"
    return " ".join(part for part in (text, cell.spread, cell.more) if part)


def _escape(text: str) -> str:
    """Text in which no character is markup."""
    text = terminal_safe(" ".join(text.split()))
    for character in "\\`*_[]|<>#":
        text = text.replace(character, f"\\{character}")
    return text
