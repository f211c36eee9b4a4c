"""Figures: plots drawn by matplotlib as SVG, the same bytes for the same plot."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from skdare.report._axis import spaced
from skdare.report._bars import draw_bars, draw_levels, most
from skdare.report._canvas import (
    MARKERS,
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
from skdare.report._plot import Bars, Dots, Gains, Levels, Lines, Plot, Series
from skdare.report._svg import INK, inline

ROOM_FOR_WHISKERS = 13  # rows of dots


def draw(plot: Plot) -> str:
    """The plot as an SVG element for a page."""
    svg = rendered(lambda axes: _drawn(axes, plot), "svg").decode()
    return inline(svg, plot.name, plot.title, plot.alt)


def as_file(plot: Plot, kind: str, remarked: str) -> bytes:
    """The plot as an SVG or PNG file by itself, on white, with small print below."""

    def work(axes: Axes) -> None:
        _drawn(axes, plot)
        remark(axes, remarked)

    return rendered(work, kind, "white")


def _drawn(axes: Axes, plot: Plot) -> None:
    _DRAWERS[type(plot.drawing)](axes, plot, plot.drawing)


def _dots(axes: Axes, plot: Plot, dots: Dots) -> None:
    """A row of dots for each category, with whiskers while there is room for them."""
    many = len(dots.categories) > ROOM_FOR_WHISKERS
    n, step = len(dots.series), 13.0 if many else 10.0 + 5.0 * len(dots.series)
    size(axes, 62 + step * len(dots.categories))
    place = -np.arange(len(dots.categories), dtype=float)
    place[len(place) - dots.foot :] -= 0.4
    colour = colours([s.line for s in dots.series])
    for k, s in enumerate(dots.series):
        y = place + (0 if many else 0.7 * ((n - 1) / 2 - k) / n)
        half = np.full(len(y), np.nan) if many else np.array(s.spread)
        _dot_series(axes, s, y, half, MARKERS[k % 8], colour[s.line], dots.floor)
    if dots.floor is not None and any(v < dots.floor for s in dots.series for v in s.values):
        axes.set_xlim(left=dots.floor)
    axes.set_yticks(place, [short(c, 24) for c in dots.categories])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(place[-1] - 0.7, 0.7)
    axes.set_xlabel(plot.axis)
    axes.spines["left"].set_visible(False)
    guides(axes, "both" if many else "x")
    if dots.foot:
        axes.axhline(place[-dots.foot] + 0.7, color=INK, linewidth=0.6)
    legend(axes, [s.label for s in dots.series])


def _dot_series(
    axes: Axes,
    s: Series,
    y: np.ndarray,
    half: np.ndarray,
    marker: str,
    colour: str,
    floor: float | None,
) -> None:
    """Dots with whiskers; what is below the floor is an arrow at it."""
    x, low = np.array(s.values), -math.inf if floor is None else floor
    inside, below = x >= low, x < low
    look: dict[str, Any] = {"color": colour, "linestyle": "none", "markersize": 4}
    whiskers(axes, x[inside], y[inside], half[inside], vertical=False, colour=colour)
    axes.plot(x[inside], y[inside], marker, label=s.label, **look)
    if below.any():
        axes.plot(np.full(below.sum(), low), y[below], "<", clip_on=False, **look)


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
    _limit(axes, lines, most(plot))
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
    """One line, not joined across a gap."""
    y, half = np.array(s.values), np.nan_to_num(np.array(s.spread))
    for part in pieces:
        x, low, high = places[part], (y - half)[part], (y + half)[part]
        if len(x) > 1:
            axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        else:
            axes.plot([x[0]] * 2, [low[0], high[0]], color=look["color"], alpha=0.35, lw=3)
        named = s.label if part is pieces[-1] else None
        axes.plot(x, y[part], **({"markersize": 3.5, "lw": 1.3, "label": named} | look))


def _limit(axes: Axes, lines: Lines, most: float) -> None:
    """Room for the means; a band may leave the picture, and nothing goes below the floor."""
    means = [v for s in lines.series for v in s.values if not math.isnan(v)]
    means += [level.value for level in lines.levels]
    if not means:
        return
    low, high = min(means), max(means)
    low = max(low, lines.floor) if lines.floor is not None else low
    room = 0.12 * (high - low) or 0.01 * abs(high) or 1.0
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - 4 * room), min(top, high + 4 * room, most))


def _gains(axes: Axes, plot: Plot, gains: Gains) -> None:
    """Points of the domains, and over them the mean with its interval."""
    size(axes, 48 + 26 * len(gains.gains))
    colour = colours([g.line for g in gains.gains])
    for k, g in enumerate(gains.gains):
        hue, points = colour[g.line], np.array(g.points)
        hollow: dict[str, Any] = {"mfc": "none", "mec": hue, "ms": 3.5, "mew": 0.8, "ls": "none"}
        for sign, marker in ((-1, "<"), (1, ">")):
            beyond = points[sign * points > gains.limit]
            axes.plot(0 * beyond + sign * gains.limit, 0 * beyond - k - 0.2, marker, **hollow)
        inside = points[np.abs(points) <= gains.limit]
        axes.plot(inside, 0 * inside - k - 0.2, "o", **hollow)
        axes.plot([g.low, g.high], [-k + 0.12] * 2, color=hue, lw=2.2, solid_capstyle="butt")
        axes.plot(g.mean, -k + 0.12, "o", color=hue, ms=5.5)
    axes.axvline(0, color=INK, linewidth=0.8)
    names = [short(g.label, 24) for g in gains.gains]
    axes.set_yticks([-k for k in range(len(names))], names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(names) + 0.4, 0.6)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(plot.axis)
    guides(axes, "x")


_DRAWERS: dict[type, Callable[[Axes, Plot, Any], None]] = {
    Bars: draw_bars,
    Levels: draw_levels,
    Dots: _dots,
    Lines: _lines,
    Gains: _gains,
}
