"""The theory as a table for a terminal, and as one page with its figures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from importlib.resources import files
from itertools import zip_longest
from typing import Any
from unicodedata import combining

import numpy as np

from skdare.errors import counted, printable
from skdare.paper.drawing import MARKERS, Figure, Theme, figure, legend
from skdare.paper.theory.charts import Chart, Map
from skdare.paper.theory.claims import NOT_CONFIRMED, VERDICTS, Chapter, Claim

# Widths in letters: of the first column and the last, between columns, and of the whole at least.
_WHERE = 17
_VERDICT = 11
_GAP = 2
_NARROW = 60

# Curves named "X, found" belong to "X".
_TWINS = ("found", "computed", "heads", "measured")
_DECADES = 300.0
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def chapter_text(chapter: Chapter, width: int = 100) -> str:
    """Statements of the paper and what was measured, in columns."""
    lines = [chapter.title, ""]
    for claim in chapter.claims:
        lines += [*_rows(claim, max(width, _NARROW)), ""]
    return "\n".join(lines)


def heading(width: int = 100) -> str:
    """Names of the columns."""
    names = ("where", "the paper says", "we measured", "verdict")
    widths = _widths(max(width, _NARROW))
    return _row([name[: w - _GAP] for name, w in zip(names, widths, strict=True)], widths)


def tally(chapters: Sequence[Chapter]) -> str:
    """Number of statements that hold and do not hold, and how many of the latter are minor."""
    claims = [claim for chapter in chapters for claim in chapter.claims]
    verdicts = [claim.told for claim in claims]
    counts = {verdict: verdicts.count(verdict) for verdict in (*VERDICTS, NOT_CONFIRMED)}
    parts = [f"{count} {_plural(verdict, count)}" for verdict, count in counts.items() if count]
    failed = [claim.kind for claim in claims if claim.told == VERDICTS[-1]]
    minor = [
        f"{counted(count, name)} {where}"
        for kind, name, where in (
            ("proof step", "step", "in proofs"),
            ("notation", "slip", "of notation"),
        )
        if (count := failed.count(kind))
    ]
    note = f" ({', '.join(minor)} among them)" if minor else ""
    return f"{counted(len(claims), 'statement')}: {', '.join(parts)}{note}"


def _plural(verdict: str, count: int) -> str:
    if count == 1:
        return verdict
    return verdict.replace("holds", "hold").replace("does not", "do not")


def _widths(width: int) -> tuple[int, int, int, int]:
    room = width - _WHERE - _VERDICT
    says = int(0.42 * room)
    return _WHERE, says, room - says, _VERDICT


def _rows(claim: Claim, width: int) -> list[str]:
    texts = (claim.where, claim.says, claim.measured, claim.told)
    widths = _widths(width)
    cells = [textwrap.wrap(text, w - _GAP) for text, w in zip(texts, widths, strict=True)]
    return [_row(parts, widths) for parts in zip_longest(*cells, fillvalue="")]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells side by side; a bar or hat over a letter takes no room of its own."""
    row = ""
    for text, width in zip(cells, widths, strict=True):
        row += text + " " * (width - sum(not combining(letter) for letter in text))
    return row.rstrip()


def theory_page(chapters: Sequence[Chapter]) -> str:
    """The theory as one HTML file that opens anywhere."""
    from jinja2 import Environment

    template = files("skdare.paper.theory").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pictures = [[picture_of(picture) for picture in c.pictures] for c in chapters]
    text = environment.from_string(template).render(
        chapters=list(zip(chapters, pictures, strict=True)), tally=tally(chapters)
    )
    return printable(text)


def picture_of(picture: Chart | Map) -> Figure:
    """Curves or a map, drawn."""
    caption = f"{picture.title}. {picture.note}"
    if isinstance(picture, Chart):
        return figure(lambda axes, theme: _chart(axes, theme, picture), 3.4, caption)
    return figure(lambda axes, theme: _map(axes, theme, picture), 3.6, caption)


def _chart(axes: Any, theme: Theme, chart: Chart) -> None:
    """Draw computed lines and measured points; a pair of them has one colour and one name."""
    hues: dict[str, str] = {}
    for name, curve in chart.curves.items():
        base, _, kind = name.rpartition(", ")
        twin = kind in _TWINS and base in hues
        hue = hues[base] if twin else theme.colours[len(hues) % len(theme.colours)]
        hues[base if twin else name] = hue
        look: dict[str, Any] = {"color": hue, "label": None if twin else name}
        if curve.dots:
            look |= {"ls": "none", "marker": MARKERS[len(hues) % 8], "ms": 4, "mfc": "none"}
        else:
            look |= {"lw": 1.3}
        axes.plot(curve.x, curve.y, **look)
    for which in chart.logarithmic:
        _logarithmic(axes, which)
    for name, x in chart.marks.items():
        axes.axvline(x, color=theme.ink, lw=0.7, ls=(0, (3, 2)))
        axes.annotate(
            name,
            (x, 1.0),
            (2, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=7,
            rotation=90,
        )
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    axes.grid(axis="y")
    legend(axes, list(hues))


def _logarithmic(axes: Any, which: str) -> None:
    """Set ticks at powers of ten, or between them if there are few, and write them out."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    low, high = axis.get_view_interval()
    between = (1.0,) if high / low > _DECADES else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=between, numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _written(value)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(NullLocator())


def _written(value: float) -> str:
    """A number such as 1,000 or 0.01; beyond these, a power of ten."""
    if 1e-3 <= value < 1e5:
        return f"{value:,.10g}"
    power = round(np.log10(value))
    return f"10{str(power).translate(_RAISED)}" if np.isclose(value, 10.0**power) else ""


def _map(axes: Any, theme: Theme, grid: Map) -> None:
    """Draw cells around zero: one colour above, another below, with their numbers."""
    from matplotlib.colors import LinearSegmentedColormap

    values = grid.values
    most = max(float(np.nanmax(np.abs(values))), 1e-12)
    ends = (theme.colours[1], theme.page, theme.colours[0])
    colours = LinearSegmentedColormap.from_list("around zero", ends)
    axes.imshow(values, cmap=colours, vmin=-most, vmax=most, aspect="auto", origin="lower")
    for (i, j), value in np.ndenumerate(values):
        ink = theme.page if abs(value) > 0.55 * most else theme.ink
        axes.text(j, i, f"{value:+.1f}", ha="center", va="center", fontsize=6.5, color=ink)
    axes.set_xticks(range(values.shape[1]), [f"{x:.2g}" for x in grid.at_x])
    axes.set_yticks(range(values.shape[0]), [f"{y:.2g}" for y in grid.at_y])
    axes.tick_params(length=0)
    axes.set_xlabel(grid.x)
    axes.set_ylabel(grid.y)
    axes.set_title(grid.value, loc="left", fontsize=9)
