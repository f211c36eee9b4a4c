"""Figures: plots drawn by matplotlib, the same bytes for the same plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from skdare.report._canvas import (
    MARKERS,
    WIDTH,
    colours,
    guides,
    legend,
    remark,
    rendered,
    short,
    size,
    strokes,
    whiskers,
)
from skdare.report._plot import Bars, Dots, Gain, Gains, Lines, Plot, Series, spaced
from skdare.report._svg import FIRST, INK, PAPER, inline

ROOM_FOR_WHISKERS = 13  # rows of dots
CHARACTER = 5.2  # points that a character of a name takes
# Of bars, in points: as wide as a page, more where that leaves too little for a bar or a group.
PAGE = 620.0
HEIGHT = 240.0
BAR = 17.0
GROUP = 60.0
# A head in a picture of differences, and the heading of several, in points.
ROW = 25.0
HEADING = 13.0
# Between bars that saw labels and others, in bars; before the average, in groups.
GAP = 0.4
APART = 0.2


def draw(plot: Plot) -> str:
    """The plot as an SVG element for a page."""
    svg = rendered(lambda axes: draw_on(axes, plot), "svg").decode()
    return inline(svg, plot.name, plot.title, plot.alt)


def as_file(plot: Plot, kind: str, caption: str) -> bytes:
    """The plot as an SVG or PNG file by itself, on white, with its caption below."""

    def work(axes: Axes) -> None:
        draw_on(axes, plot)
        remark(axes, caption)

    return rendered(work, kind, "white")


def draw_on(axes: Axes, plot: Plot) -> None:
    """Draw the plot on axes of its own."""
    _DRAWERS[type(plot.drawing)](axes, plot, plot.drawing)


# Bars


def _bars(axes: Axes, plot: Plot, bars: Bars) -> None:
    """Groups of bars; an axis that does not start at zero is cut and says so."""
    n = len(bars.series)
    groups = len(bars.categories)
    width = max(PAGE, BAR * n * groups, GROUP * groups)
    size(axes, HEIGHT, width)
    floor, top = _bar_ends(bars.series)
    axes.set_ylim(floor, min(top + 0.03 * (top - floor), _highest(plot)))
    gap = GAP * (len({s.saw_labels for s in bars.series}) > 1)
    step = 0.88 / (n + gap)
    place = np.arange(groups, dtype=float)
    place[-1] += APART
    for k, s in enumerate(bars.series):
        x = place + (k + gap * s.saw_labels - (n - 1 + gap) / 2) * step
        _bar_series(axes, s, x, 0.9 * step, floor)
    room = int(width / groups / CHARACTER)
    axes.set_xticks(place, [short(name, room) for name in bars.categories])
    axes.get_xticklabels()[-1].set_fontweight("bold")
    axes.axvline(place[-1] - (1 + APART) / 2, color=INK, linewidth=0.5, alpha=0.35)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, place[-1] + 0.5)
    axes.set_ylabel(plot.axis)
    if floor:
        strokes(axes, [(0, 0.025), (0, 0.055)], 0.007, axes.transAxes)
        start = f"axis starts at {floor:g}"
        axes.set_xlabel(start, loc="left", fontsize=7.5, style="italic", labelpad=2)
    guides(axes, "y")
    legend(axes, [s.label for s in bars.series], PAGE)


def _bar_ends(series: Sequence[Series]) -> tuple[float, float]:
    """Foot and top: the foot is zero, or a round number where all bars would look alike."""
    values = np.array([s.values for s in series])
    if not np.isfinite(values).any():
        return 0.0, 1.0
    low = float(np.nanmin([values, [s.low for s in series]]))
    high = float(np.nanmax([values, [s.high for s in series]]))
    # Every bar needs some height, even if it is the only one.
    room = max(0.2 * (high - low), 1.0)
    floor = max(0, 10 * math.floor((low - room) / 10)) if low > 0.5 * high else 0
    return float(floor), max(high, floor + 1.0)


def _ends(s: Series) -> np.ndarray:
    """Lower and upper ends of the intervals, (2, values)."""
    return np.array([s.low, s.high])


def _bar_series(axes: Axes, s: Series, x: np.ndarray, wide: float, floor: float) -> None:
    """The bars of one series with whiskers, and with numbers at the foot of those tall enough."""
    y = np.array(s.values)
    look = FIRST[s.line]
    hues: dict[str, Any] = {"facecolor": look.fill, "edgecolor": look.edge}
    axes.bar(x, y - floor, wide, bottom=floor, label=s.label, linewidth=0.7, **hues)
    # A rim in the colour of the page, as half of a whisker lies on a bar as dark as itself.
    for colour, stroke in ((PAPER, 2.4), (INK, 0.9)):
        whiskers(axes, x, y, _ends(s), vertical=True, colour=colour, stroke=stroke)
    point = (axes.get_ylim()[1] - floor) / (0.75 * HEIGHT)
    turned: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 7}
    turned["textcoords"] = "offset points"
    for left, value in zip(x, y, strict=True):
        if value - floor > 24 * point:
            axes.annotate(f"{value:.1f}", (left, floor), (0.4, 4), color=look.text, **turned)


def _highest(plot: Plot) -> float:
    """Where the axis ends at the latest: no accuracy is above 100 %."""
    return 100.5 if plot.axis.endswith("(%)") else math.inf


# Dots


def _dots(axes: Axes, plot: Plot, dots: Dots) -> None:
    """A row of dots for each category, with whiskers while there is room for them."""
    many = len(dots.categories) > ROOM_FOR_WHISKERS
    n = len(dots.series)
    size(axes, 62 + (13.0 if many else 10.0 + 5.0 * n) * len(dots.categories))
    place = -np.arange(len(dots.categories), dtype=float)
    place[-1] -= 0.4
    colour = colours([s.line for s in dots.series])
    for k, s in enumerate(dots.series):
        y = place + (0 if many else 0.7 * ((n - 1) / 2 - k) / n)
        ends = np.full((2, len(y)), np.nan) if many else _ends(s)
        _dot_series(axes, s, y, ends, MARKERS[k % 8], colour[s.line], dots.floor)
    if dots.floor is not None and any(v < dots.floor for s in dots.series for v in s.values):
        axes.set_xlim(left=dots.floor)
    _named_rows(axes, place, dots.categories)
    axes.set_ylim(place[-1] - 0.7, 0.7)
    axes.axhline(place[-1] + 0.7, color=INK, linewidth=0.6)
    axes.set_xlabel(plot.axis)
    guides(axes, "both" if many else "x")
    # The legend starts where the names of the rows end.
    names = CHARACTER * min(24, max(map(len, dots.categories)))
    legend(axes, [s.label for s in dots.series], WIDTH - names)


def _dot_series(
    axes: Axes,
    s: Series,
    y: np.ndarray,
    ends: np.ndarray,
    marker: str,
    colour: str,
    floor: float | None,
) -> None:
    """Dots with whiskers; what is below the floor is an arrow at it."""
    x = np.array(s.values)
    low = -math.inf if floor is None else floor
    inside = x >= low
    below = x < low
    look: dict[str, Any] = {"color": colour, "linestyle": "none", "markersize": 4}
    look |= {"mfc": PAPER} if s.saw_labels else {}
    whiskers(axes, x[inside], y[inside], ends[:, inside], vertical=False, colour=colour)
    axes.plot(x[inside], y[inside], marker, label=s.label, **look)
    if below.any():
        axes.plot(np.full(below.sum(), low), y[below], "<", clip_on=False, **look)


def _named_rows(axes: Axes, place: Sequence[float] | np.ndarray, names: Sequence[str]) -> None:
    """Names at the left in place of an axis."""
    axes.set_yticks(place, [short(name, 24) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


# Gains


def _gains(axes: Axes, plot: Plot, gains: Gains) -> None:
    """Points of the domains, and over them the mean with its interval; heads that adapt apart."""
    colour = colours([g.line for g in gains.gains])
    kinds = {g.adapted for g in gains.gains}
    places: list[float] = []
    y = 0.0
    headed: set[bool] = set()
    for g in gains.gains:
        if len(kinds) > 1 and g.adapted not in headed:
            headed.add(g.adapted)
            heading: dict[str, Any] = {"fontsize": 7.5, "style": "italic", "va": "center"}
            words = "with unlabelled rows of it" if g.adapted else "knowing nothing of the domain"
            across = axes.get_yaxis_transform()
            heading |= {"bbox": {"facecolor": PAPER, "edgecolor": "none", "pad": 0.5}}
            axes.text(0.005, y - HEADING / 2, words, transform=across, **heading)
            y -= HEADING
        places.append(y - ROW / 2)
        _gain(axes, g, places[-1], gains.limit, colour[g.line])
        y -= ROW
    size(axes, 40 - y)
    axes.axvline(0, color=INK, linewidth=0.8)
    _named_rows(axes, places, [g.label for g in gains.gains])
    axes.set_ylim(y, 0.0)
    axes.set_xlabel(plot.axis)
    guides(axes, "x")


def _gain(axes: Axes, g: Gain, y: float, limit: float, hue: str) -> None:
    """One row of `Gains`, its mean in figures at the right."""
    points = np.array(g.points)
    hollow: dict[str, Any] = {"mfc": "none", "mec": hue, "ms": 3.8, "mew": 0.9, "ls": "none"}
    for sign, marker in ((-1, "<"), (1, ">")):
        beyond = points[sign * points > limit]
        axes.plot(0 * beyond + sign * limit, 0 * beyond + y - 4, marker, **hollow)
    inside = points[np.abs(points) <= limit]
    axes.plot(inside, 0 * inside + y - 4, "o", **hollow)
    axes.plot([g.low, g.high], [y + 4] * 2, color=hue, lw=2.2, solid_capstyle="butt")
    axes.plot(g.mean, y + 4, "o", color=hue, ms=5.5)
    mean: dict[str, Any] = {"va": "center", "fontweight": "bold", "color": hue}
    axes.text(1.01, y, g.written, transform=axes.get_yaxis_transform(), **mean)


# Lines


def _lines(axes: Axes, plot: Plot, lines: Lines) -> None:
    """Lines with bands over x, levels across; a zero on a logarithmic axis stands apart."""
    size(axes, 190)
    axis = spaced(lines.x)
    # Variants of one head share its colour, and differ in stroke and marker.
    base = [s.line.partition(" (")[0] for s in lines.series]
    colour = colours([*base, *(level.line for level in lines.levels)])
    for k, s in enumerate(lines.series):
        variant = base[:k].count(base[k])
        look: dict[str, Any] = {"color": colour[base[k]], "marker": MARKERS[k % 8]}
        look |= {"mfc": "none", "ls": (0, (1, 1.2))} if variant else {}
        _line(axes, s, np.array(axis.places), axis.pieces, look)
    for level in lines.levels:
        hue = colour[level.line]
        axes.axhline(level.value, color=hue, lw=1.1, ls=(0, (4, 2.5)), label=level.label)
    _limit(axes, lines, _highest(plot))
    axes.set_xticks(*axis.ticks)
    axes.set_xlabel(lines.x_label)
    axes.set_ylabel(plot.axis)
    if axis.gap is not None:
        wide = 0.007 * (axis.places[-1] - axis.places[0])
        marks = [(axis.gap - 1.6 * wide, 0.0), (axis.gap + 1.6 * wide, 0.0)]
        strokes(axes, marks, wide, axes.get_xaxis_transform())
    guides(axes, "y")
    legend(axes, [*(s.label for s in lines.series), *(v.label for v in lines.levels)])


def _line(
    axes: Axes, s: Series, places: np.ndarray, pieces: list[slice], look: dict[str, Any]
) -> None:
    """One line with its band, not joined across a gap."""
    y = np.array(s.values)
    ends = np.where(np.isnan(_ends(s)), y, _ends(s))
    for piece in pieces:
        x, low, high = places[piece], ends[0, piece], ends[1, piece]
        if len(x) > 1:
            axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        else:
            axes.plot([x[0]] * 2, [low[0], high[0]], color=look["color"], alpha=0.35, lw=3)
        label = s.label if piece is pieces[-1] else None
        axes.plot(x, y[piece], **({"markersize": 3.5, "lw": 1.3, "label": label} | look))


def _limit(axes: Axes, lines: Lines, highest: float) -> None:
    """Room for the means; a band may leave the picture, and nothing goes below the floor."""
    means = [v for s in lines.series for v in s.values if not math.isnan(v)]
    means += [level.value for level in lines.levels]
    if not means:
        return
    low = min(means) if lines.floor is None else max(min(means), lines.floor)
    high = max(means)
    room = 0.12 * (high - low) or 0.01 * abs(high) or 1.0
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - 4 * room), min(top, high + 4 * room, highest))


_DRAWERS: dict[type, Callable[[Axes, Plot, Any], None]] = {
    Bars: _bars,
    Dots: _dots,
    Gains: _gains,
    Lines: _lines,
}
