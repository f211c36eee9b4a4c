"""Plots as data: what to draw, in the units of the axis, and the words that go with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """Values of one line, NaN where there is none, and the half widths of their intervals."""

    line: str
    label: str
    values: tuple[float, ...]
    spread: tuple[float, ...]


@dataclass(frozen=True)
class Bars:
    """A group of bars for each category."""

    categories: tuple[str, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Levels:
    """Groups of bars with their numbers; the last group, the average, stands apart.

    So do, in each group, the series that have ``seen`` labels of the domain.
    """

    categories: tuple[str, ...]
    series: tuple[Series, ...]
    seen: tuple[bool, ...]


@dataclass(frozen=True)
class Dots:
    """A row of dots for each category; the last ``foot`` rows stand apart.

    Values below ``floor`` are drawn at it as an arrow.
    """

    categories: tuple[str, ...]
    series: tuple[Series, ...]
    foot: int = 0
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
    """Differences of one head from the baseline: a point a domain, their mean and interval."""

    line: str
    label: str
    points: tuple[float, ...]
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Gains:
    """A row of differences for each head; points beyond ± ``limit`` are drawn there as arrows."""

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
    drawing : Bars, Levels, Dots, Lines or Gains
    caption : str
    alt : str
        What a reader who cannot see it needs to know.
    """

    name: str
    title: str
    axis: str
    drawing: Bars | Levels | Dots | Lines | Gains
    caption: str
    alt: str

    @property
    def tall(self) -> bool:
        """Much higher than others, so that something may stand beside it."""
        return isinstance(self.drawing, Dots) and len(self.drawing.categories) > 10

    @property
    def wide(self) -> bool:
        """As wide as the page, where others are half as wide."""
        return isinstance(self.drawing, Levels)
