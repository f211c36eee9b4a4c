"""What all figures share: size, style, colours, legends."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from skdare.report._svg import INK, PALETTE

# In points, which become units of the SVG: at the width of a phone one is about one pixel.
WIDTH = 340.0
POINT = 1 / 72
MARKERS = "osD^vPX<"
DPI = 220  # of a PNG
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "skdare",
    "text.parse_math": False,
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.4,
    "legend.labelspacing": 0.35,
}
# The colour of each line, if it is free: a head looks the same in every figure.
_COLOUR_OF = {
    "erm": 0,
    "dare": 1,
    "dare-cv": 3,
    "dare-cv-adapted": 4,
    "reweighted": 3,
    "groupdro": 5,
    "irm": 4,
    "adapted": 6,
    "labels": 2,
    "anchor": 7,
    "ceiling-exact": 2,
    "ceiling-sgd": 5,
    "ceiling-exact (pretrained features)": 3,
    "end-to-end": 4,
    "network": 7,
    "retrain": 3,
    "retrain+sources": 4,
}


def rendered(draw: Callable[[Axes], None], kind: str, background: str = "none") -> bytes:
    """A figure in the style of all figures, as SVG or PNG: ``draw`` fills its axes."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        figure = Figure(layout="constrained", facecolor=background)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0.0)
        draw(axes)
        out = io.BytesIO()
        if kind == "svg":
            FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
        else:
            figure.set_dpi(DPI)
            FigureCanvasAgg(figure).print_png(out, metadata={"Software": None})
    return out.getvalue()


def colours(lines: Sequence[str]) -> dict[str, str]:
    """A colour for each line, all different while there are enough."""
    chosen: dict[str, int] = {}
    for line in dict.fromkeys(lines):
        usual = _COLOUR_OF.get(line)
        free = [i for i in range(2, len(PALETTE)) if i not in chosen.values()]
        later = {_COLOUR_OF[x] for x in lines if x in _COLOUR_OF and x not in chosen}
        choice = [i for i in free if i not in later] or free or [len(chosen) % len(PALETTE)]
        chosen[line] = choice[0] if usual is None or usual in chosen.values() else usual
    return {line: PALETTE[i] for line, i in chosen.items()}


def size(axes: Axes, height: float, width: float = WIDTH) -> None:
    """Size of the figure in points."""
    figure: Any = axes.figure
    figure.set_size_inches(width * POINT, height * POINT)


def whiskers(
    axes: Axes,
    x: np.ndarray,
    y: np.ndarray,
    ends: np.ndarray,
    *,
    vertical: bool,
    colour: str = INK,
    stroke: float = 0.8,
) -> None:
    """Intervals, ``ends`` of shape (2, points), through the points that have one."""
    finite = np.isfinite(ends).all(axis=0) & np.isfinite(x) & np.isfinite(y)
    centre = (y if vertical else x)[finite]
    # A point that rounding puts outside its own interval must not fail the figure.
    lengths = np.maximum([centre - ends[0, finite], ends[1, finite] - centre], 0.0)
    side: dict[str, Any] = {"yerr" if vertical else "xerr": lengths}
    if finite.any():
        axes.errorbar(x[finite], y[finite], **side, fmt="none", ecolor=colour, elinewidth=stroke)


def remark(axes: Axes, text: str) -> None:
    """Small print below everything, for which the figure grows."""
    figure: Any = axes.figure
    width, height = figure.get_size_inches() / POINT
    lines = textwrap.wrap(text, int(width / 3.6), break_on_hyphens=False)
    figure.set_size_inches(width * POINT, (height + 9.5 * len(lines) + 4) * POINT)
    figure.supxlabel("\n".join(lines), x=0.008, ha="left", fontsize=7, linespacing=1.35)


def guides(axes: Axes, which: Any) -> None:
    """Faint lines to read values by."""
    axes.grid(axis=which, color=INK, alpha=0.13, linewidth=0.5)


def short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def legend(axes: Axes, labels: Sequence[str], width: float = WIDTH) -> None:
    """Above the plot, in as many columns as the labels leave room for."""
    room = [26 + 4.6 * len(text) for text in labels]
    columns = len(labels) if sum(room) <= width else max(1, int(width // max(room)))
    columns = math.ceil(len(labels) / math.ceil(len(labels) / columns))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.01), ncols=columns, borderaxespad=0, handlelength=1.4
    )


def strokes(axes: Axes, places: Sequence[tuple[float, float]], wide: float, transform: Any) -> None:
    """Short strokes that say an axis is cut here."""
    for x, y in places:
        axes.plot(
            [x - wide, x + wide],
            [y - 0.015, y + 0.015],
            transform=transform,
            color=INK,
            linewidth=0.8,
            clip_on=False,
        )
