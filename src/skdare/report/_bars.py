"""Bars: groups of them by held-out domain, and the paper's first figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from skdare.report._canvas import colours, guides, legend, short, size, strokes, whiskers
from skdare.report._plot import Bars, Levels, Plot, Series
from skdare.report._svg import FIRST, INK, PAPER

CHEATS = ("ceiling", "end-to-end")
# Of the first figure, in points: as wide as a page, more where that leaves too little for a bar
# or a group, and the room that a character of a name takes.
WIDE, HIGH, BAR, GROUP, CHARACTER = 620.0, 240.0, 17.0, 60.0, 5.2
# Between bars that have seen labels and others, in bars; before the average, in groups.
GAP, APART = 0.4, 0.2


def draw_bars(axes: Axes, plot: Plot, bars: Bars) -> None:
    """Groups of bars; an axis that does not start at zero is cut and says so."""
    size(axes, 205)
    n, colour = len(bars.series), colours([s.line for s in bars.series])
    floor, top, wide = *bar_ends(bars.series), 0.84 / n
    for k, s in enumerate(bars.series):
        x = np.arange(len(bars.categories)) + (k - (n - 1) / 2) * wide
        y, pale = np.array(s.values), s.line.startswith(CHEATS)
        look: dict[str, Any] = {"color": colour[s.line], "alpha": 0.5 if pale else 1.0}
        axes.bar(x, y - floor, 0.86 * wide, bottom=floor, label=s.label, **look)
        whiskers(axes, x, y, np.array(s.spread), vertical=True)
    axes.set_ylim(floor, min(top + 0.03 * (top - floor), most(plot)))
    axes.set_xticks(range(len(bars.categories)), list(bars.categories))
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(bars.categories) - 0.5)
    axes.set_ylabel(plot.axis)
    _cut(axes, floor, 0.012)
    guides(axes, "y")
    legend(axes, [s.label for s in bars.series])


def bar_ends(series: Sequence[Series]) -> tuple[float, float]:
    """Top, and zero; or a round number where all bars are so tall that their tops look alike."""
    values = np.array([s.values for s in series])
    half = np.nan_to_num(np.array([s.spread for s in series]))
    if not np.isfinite(values).any():
        return 0.0, 1.0
    low, high = float(np.nanmin(values - half)), float(np.nanmax(values + half))
    # No bar may be without height, be it the only one.
    room = max(0.2 * (high - low), 1.0)
    floor = max(0, 10 * math.floor((low - room) / 10)) if low > 0.5 * high else 0
    return float(floor), max(high, floor + 1.0)


def most(plot: Plot) -> float:
    """Where the axis ends at the latest: no accuracy is above 100 %."""
    return 100.5 if plot.axis.endswith("(%)") else math.inf


def _cut(axes: Axes, floor: float, wide: float) -> None:
    """Say that an axis does not start at zero."""
    if floor:
        strokes(axes, [(0, 0.025), (0, 0.055)], wide, axes.transAxes)
        said = f"axis starts at {floor:g}"
        axes.set_xlabel(said, loc="left", fontsize=7.5, style="italic", labelpad=2)


def draw_levels(axes: Axes, plot: Plot, levels: Levels) -> None:
    """Groups of bars with their numbers at the foot, where no whisker is."""
    n, groups = len(levels.series), len(levels.categories)
    width = max(WIDE, BAR * n * groups, GROUP * groups)
    size(axes, HIGH, width)
    floor, top = bar_ends(levels.series)
    axes.set_ylim(floor, min(top + 0.03 * (top - floor), most(plot)))
    gap = GAP * (len(set(levels.seen)) > 1)
    wide = 0.88 / (n + gap)
    place = np.arange(groups) + APART * (np.arange(groups) == groups - 1)
    for k, (s, seen) in enumerate(zip(levels.series, levels.seen, strict=True)):
        x = place + (k + gap * seen - (n - 1 + gap) / 2) * wide
        _level(axes, s, x, 0.9 * wide, floor)
    room = int(width / groups / CHARACTER)
    axes.set_xticks(place, [short(name, room) for name in levels.categories])
    axes.get_xticklabels()[-1].set_fontweight("bold")
    axes.axvline(place[-1] - (1 + APART) / 2, color=INK, linewidth=0.5, alpha=0.35)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, place[-1] + 0.5)
    axes.set_ylabel(plot.axis)
    _cut(axes, floor, 0.007)
    guides(axes, "y")
    legend(axes, [s.label for s in levels.series], WIDE)


def _level(axes: Axes, s: Series, x: np.ndarray, wide: float, floor: float) -> None:
    """The bars of one series, each with its number where it is tall enough."""
    y, look = np.array(s.values), FIRST[s.line]
    hues: dict[str, Any] = {"facecolor": look.fill, "edgecolor": look.edge}
    axes.bar(x, y - floor, wide, bottom=floor, label=s.label, linewidth=0.7, **hues)
    # A rim in the colour of the page, as half of a whisker lies on a bar as dark as itself.
    for colour, stroke in ((PAPER, 2.4), (INK, 0.9)):
        whiskers(axes, x, y, np.array(s.spread), vertical=True, colour=colour, stroke=stroke)
    point = (axes.get_ylim()[1] - floor) / (0.75 * HIGH)
    for left, value in zip(x, y, strict=True):
        if value - floor > 24 * point:
            axes.annotate(
                f"{value:.1f}",
                (left, floor),
                (0.4, 4),
                textcoords="offset points",
                rotation=90,
                ha="center",
                va="bottom",
                fontsize=7,
                color=look.text,
            )
