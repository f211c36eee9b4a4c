"""Plots as data: what to draw, in the units of the axis, and the words that go with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from skdare.report._numbers import number

UNEVEN = 3.0  # widest step over narrowest from which an axis is logarithmic
MOST_TICKS = 9


@dataclass(frozen=True)
class Series:
    """Values of one line, and the ends of their intervals; missing ones are NaN.

    ``saw_labels`` says that the line was trained with labels of the domain it is scored on.
    """

    line: str
    label: str
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    saw_labels: bool = False


@dataclass(frozen=True)
class Bars:
    """The bars of the paper's first figure: a group for each category, with their numbers.

    The last group, the average, stands apart, and in each group the series that saw labels.
    """

    categories: tuple[str, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Dots:
    """A row of dots for each category, open where they saw labels.

    The last row, an average or a new domain, stands apart. Values below ``floor`` are drawn at it
    as an arrow.
    """

    categories: tuple[str, ...]
    series: tuple[Series, ...]
    floor: float | None = None


@dataclass(frozen=True)
class Level:
    """A value that does not depend on x."""

    line: str
    label: str
    value: float


@dataclass(frozen=True)
class Lines:
    """Lines over x, with levels across."""

    x: tuple[float, ...]
    x_label: str
    series: tuple[Series, ...]
    levels: tuple[Level, ...]
    floor: float | None = None


@dataclass(frozen=True)
class Gain:
    """Differences of one head from the baseline: a point for each domain, mean and interval.

    ``adapted`` says that the head has used unlabelled rows of each of these domains, ``written`` is
    the mean in figures.
    """

    line: str
    label: str
    points: tuple[float, ...]
    mean: float
    low: float
    high: float
    written: str
    adapted: bool = False


@dataclass(frozen=True)
class Gains:
    """A row of differences for each head, heads that adapt last.

    Points beyond ± ``limit`` are drawn there as arrows.
    """

    gains: tuple[Gain, ...]
    limit: float


@dataclass(frozen=True)
class Plot:
    """A drawing and its words.

    Parameters
    ----------
    name : str
    title : str
    axis : str
        What the values are, with their unit.
    drawing : Bars, Dots, Lines or Gains
    caption : str
    alt : str
        What a reader who cannot see it needs to know.
    """

    name: str
    title: str
    axis: str
    drawing: Bars | Dots | Lines | Gains
    caption: str
    alt: str

    @property
    def tall(self) -> bool:
        """Much higher than others, so that something may stand beside it."""
        return isinstance(self.drawing, Dots) and len(self.drawing.categories) > 10

    @property
    def wide(self) -> bool:
        """Whether the plot is as wide as the page, where others are half as wide."""
        return isinstance(self.drawing, Bars)


@dataclass(frozen=True)
class Axis:
    """Where the values of a sweep stand, the ticks, and where the axis is broken, if it is."""

    places: list[float]
    ticks: tuple[list[float], list[str]]
    gap: float | None

    @property
    def pieces(self) -> list[slice]:
        """Which values a line may join: not those on either side of the gap."""
        n = len(self.places)
        return [slice(0, n)] if self.gap is None else [slice(0, 1), slice(1, n)]


def spaced(x: Sequence[float]) -> Axis:
    """Even steps for even ratios where values grow by ratios; a zero then stands apart."""
    positive = [v for v in x if v > 0]
    steps = [b - a for a, b in pairwise(positive)]
    if len(steps) < 2 or min(x) < 0 or max(steps) < UNEVEN * min(steps):
        places = [float(v) for v in x]
    else:
        places = [math.log10(v) for v in positive]
    gap = None
    if len(places) < len(x):
        zero = places[0] - max(places[1] - places[0], (places[-1] - places[0]) / 10)
        gap = (zero + places[0]) / 2
        places.insert(0, zero)
    return Axis(places, _ticks(places, x), gap)


def _ticks(places: list[float], x: Sequence[float]) -> tuple[list[float], list[str]]:
    """Ticks at the values, without those that would touch the next one."""
    span = (places[-1] - places[0]) or 1.0
    ticked = [len(places) - 1]
    for i in reversed(range(len(places))):
        if places[ticked[0]] - places[i] >= span / MOST_TICKS:
            ticked.insert(0, i)
    return [places[i] for i in ticked], [number(x[i]) for i in ticked]
