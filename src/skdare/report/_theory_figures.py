"""Pictures of the theory: curves and maps, drawn as SVG."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from skdare.report._canvas import MARKERS, guides, legend, rendered, size
from skdare.report._svg import INK, PALETTE, inline
from skdare.theory._charts import Chart, Map

# Elsewhere grey is the baseline's; here the first curves have colours.
_ORDER = (1, 2, 3, 4, 5, 6, 7, 0)
# Curves named "X, found" belong to "X".
_TWINS = ("found", "computed", "heads", "measured")
_DECADES = 300.0
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_AROUND_ZERO = ("#c44e00", "#f4f2ec", "#0067a5")


def draw(picture: Chart | Map) -> str:
    """The picture as an SVG element for a page."""
    svg = rendered(lambda axes: _drawn(axes, picture), "svg").decode()
    return inline(svg, picture.name, picture.title, picture.note)


def _drawn(axes: Axes, picture: Chart | Map) -> None:
    if isinstance(picture, Chart):
        _chart(axes, picture)
    else:
        _map(axes, picture)


def _chart(axes: Axes, chart: Chart) -> None:
    """Draw computed lines and measured points; a pair of them has one colour and one name."""
    size(axes, 215)
    hues: dict[str, str] = {}
    for name, curve in chart.curves.items():
        base, _, kind = name.rpartition(", ")
        twin = kind in _TWINS and base in hues
        hue = hues[base] if twin else PALETTE[_ORDER[len(hues) % len(_ORDER)]]
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
        axes.axvline(x, color=INK, lw=0.7, ls=(0, (3, 2)))
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
    guides(axes, "y")
    legend(axes, list(hues))


def _logarithmic(axes: Axes, which: str) -> None:
    """Set ticks at powers of ten, or between them where there are few, and write them out."""
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


def _map(axes: Axes, grid: Map) -> None:
    """Draw cells around zero: one colour above, another below, with their numbers."""
    size(axes, 230)
    values = grid.values
    most = max(float(np.nanmax(np.abs(values))), 1e-12)
    colours = LinearSegmentedColormap.from_list("around zero", _AROUND_ZERO)
    norm = TwoSlopeNorm(0.0, -most, most)
    for (i, j), value in np.ndenumerate(values):
        cell: dict[str, Any] = {"facecolor": colours(norm(value)), "edgecolor": "none"}
        axes.bar(j, 1.0, 1.0, bottom=i - 0.5, **cell)
        dark = abs(value) > 0.55 * most
        text = f"{value:+.1f}"
        ink = "#ffffff" if dark else "#111213"
        axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color=ink)
    axes.set_xlim(-0.5, values.shape[1] - 0.5)
    axes.set_ylim(-0.5, values.shape[0] - 0.5)
    axes.set_xticks(range(values.shape[1]), [f"{x:.2g}" for x in grid.at_x])
    axes.set_yticks(range(values.shape[0]), [f"{y:.2g}" for y in grid.at_y])
    axes.tick_params(length=0)
    axes.set_xlabel(grid.x)
    axes.set_ylabel(grid.y)
    axes.set_title(grid.value, loc="left", fontsize=8.5)
