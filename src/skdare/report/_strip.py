"""The picture of differences as text: a strip for each head, for a terminal."""

from __future__ import annotations

import math
from collections import Counter

from skdare._safe_text import terminal_safe, typographic
from skdare.report._plot import Gain, Gains, Plot

MOST_ROWS = 9
WIDEST = 60  # columns of a strip; more would only spread it
NARROWEST = 20
LONGEST_NAME = 24
DOMAIN = "○"
MEAN = "●"
INTERVAL = "─"
ZERO = "│"


def strips(plot: Plot, width: int) -> list[str]:
    """Lines of text for a plot of `Gains`: a title, a row for each head, an axis, a legend."""
    gains = plot.drawing
    assert isinstance(gains, Gains)
    shown = _shown(gains.gains)
    names = [terminal_safe(g.label + "†" * g.adapted)[:LONGEST_NAME] for g in shown]
    wide = max(map(len, names))
    room = max(NARROWEST, min(WIDEST, width - wide - 2))
    scale = _Columns(shown, gains.limit, room)
    legend = f"{DOMAIN} a held-out domain (a digit: how many), {MEAN} mean"
    if any(not math.isnan(g.low) for g in shown):
        legend += f", {INTERVAL} 90 % interval"
    lines = [
        plot.axis[:1].upper() + plot.axis[1:],
        *(f"{name.ljust(wide)}  {scale.row(g)}" for name, g in zip(names, shown, strict=True)),
        f"{' ' * wide}  {scale.axis()}",
        legend,
    ]
    if any(g.adapted for g in shown):
        lines.append("† with unlabelled rows of that domain")
    return [line.rstrip() for line in lines]


def _shown(gains: tuple[Gain, ...]) -> tuple[Gain, ...]:
    """All, or those with the highest means, in their order."""
    if len(gains) <= MOST_ROWS:
        return gains
    best = sorted(gains, key=lambda g: -g.mean)[:MOST_ROWS]
    return tuple(g for g in gains if g in best)


class _Columns:
    """Columns of a strip, over all that is shown and zero."""

    def __init__(self, gains: tuple[Gain, ...], limit: float, room: int) -> None:
        points = [v for g in gains for v in g.points if abs(v) <= limit]
        ends = [v for g in gains for v in (g.mean, g.low, g.high) if not math.isnan(v)]
        self.low = min(0.0, *points, *ends)
        self.high = max(0.0, *points, *ends)
        if self.low == self.high:
            self.low = -1.0
            self.high = 1.0
        self.last = room - 1

    def column(self, value: float) -> int:
        """The column of a value; one beyond the axis has the last."""
        part = (value - self.low) / (self.high - self.low)
        return round(self.last * max(0.0, min(1.0, part)))

    def row(self, gain: Gain) -> str:
        """One strip: the interval, the domains on it, and over all the mean."""
        cells = [" "] * (self.last + 1)
        if not math.isnan(gain.low):
            start = self.column(gain.low)
            stop = self.column(gain.high)
            cells[start : stop + 1] = INTERVAL * (stop + 1 - start)
        cells[self.column(0.0)] = ZERO
        for column, n in Counter(map(self.column, gain.points)).items():
            cells[column] = DOMAIN if n == 1 else str(min(n, 9))
        cells[self.column(gain.mean)] = MEAN
        return "".join(cells)

    def axis(self) -> str:
        """Round numbers under their columns, as many as have room."""
        step = _round_step((self.high - self.low) / 4)
        ticks = range(math.ceil(self.low / step), math.floor(self.high / step) + 1)
        line = ""
        for k in ticks:
            text = typographic(f"{k * step:+.6g}") if k else "0"
            start = self.column(k * step) - (len(text) - 1) // 2
            if start > len(line) or not line:
                line = line.ljust(max(start, 0)) + text
        return line


def _round_step(least: float) -> float:
    """The least of 1, 2 or 5 times a power of ten that is no smaller."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= least * (1 - 1e-9))
