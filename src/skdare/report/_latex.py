r"""LaTeX: table environments with booktabs, marked like the paper's Table 1."""

from __future__ import annotations

from skdare._safe_text import terminal_safe
from skdare.report._document import Document
from skdare.report._table import Cell, Table, notes

WIDE = 96  # characters that about fill a line of a page
TURNED = 7  # a grid with no more rows than this has heads as rows, as in the paper
_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "†": r"$\dagger$",
    "‖": r"$\|$",
    "Ŵ": r"$\hat{W}$",
    "σ̂": r"$\hat{\sigma}$",
    "√": r"$\surd$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "…": r"\dots{}",
    "²": r"\textsuperscript{2}",
    "ⁿ": r"\textsuperscript{n}",
}
_SUPERSCRIPTS = dict(zip("⁻⁰¹³⁴⁵⁶⁷⁸⁹", "-013456789", strict=True))


def render(document: Document) -> str:
    r"""One table environment after another, to \input or to copy from."""
    lines = [
        r"% Needs \usepackage{booktabs}, \usepackage{graphicx} and \usepackage[T1]{fontenc}.",
        "",
    ]
    if document.overview:
        lines += [_table(document.overview, document.title)]
    for section in document.sections:
        for part in section.parts:
            # Options and failures say how the run went; no paper prints them as tables.
            shown = [t for t in part.tables if not t.detail and t.name != "failures"]
            title = f"{part.heading.lower()}; {section.title}" if part.below else section.title
            lines += [_table(table, title) for table in shown]
    return "\n".join(lines)


def _table(table: Table, title: str) -> str:
    if table.grid and len(table.rows) <= TURNED:
        table = table.turned()
    sentences = [f"{table.caption} ({title}).", *notes(table, "Bold", "Underlined")]
    caption = " ".join(escape(sentence) for sentence in sentences)
    wide = table.width > WIDE
    start = r"\resizebox{\textwidth}{!}{%" if wide else "%"
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            rf"  \centering\small\setlength{{\tabcolsep}}{{4pt}}{start}",
            *_tabular(table),
            *(["  }%"] if wide else []),
            rf"  \caption{{{caption}}}",
            r"\end{table}",
            "",
        ]
    )


def _tabular(table: Table) -> list[str]:
    body = [_line([_cell(cell) for cell in cells]) for cells in table.body]
    foot = [_line([_cell(cell) for cell in cells]) for cells in table.rows[len(table.body) :]]
    return [
        rf"  \begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"    \toprule",
        _line([escape(name) for name in table.columns]),
        r"    \midrule",
        *body,
        *([r"    \midrule", *foot] if foot else []),
        r"    \bottomrule",
        r"  \end{tabular}",
    ]


def _line(cells: list[str]) -> str:
    line = " & ".join(cells)
    # The end of the row before looks for a star or an option here, past the end of its line.
    guard = "{}" if line.startswith(("[", "*")) else ""
    return f"    {guard}{line} \\\\"


def _cell(cell: Cell) -> str:
    """A cell whose mark covers mean and interval, as in the paper."""
    text = escape(str(cell))
    if cell.mark == "bold":
        return rf"\textbf{{{text}}}"
    return rf"\underline{{{text}}}" if cell.mark == "underline" else text


def escape(text: str) -> str:
    """Text with its special characters escaped."""
    text = terminal_safe(" ".join(text.split())).replace("σ̂", "\0")
    return "".join(_character(c) for c in text)


def _character(c: str) -> str:
    if c == "\0":
        return _ESCAPES["σ̂"]
    if c in _SUPERSCRIPTS:
        return rf"\textsuperscript{{{_SUPERSCRIPTS[c]}}}"
    return _ESCAPES.get(c, c)
