"""Where the values of a sweep stand on their axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from skdare.report._numbers import number

UNEVEN = 3.0  # widest step over narrowest from which an axis is logarithmic
MOST_TICKS = 9


@dataclass(frozen=True)
class Axis:
    """Places of values, in order.

    Parameters
    ----------
    places : list of float
    pieces : list of slice
        Which values a line may join.
    ticks : (list of float, list of str)
    gap : float or None
        Where the axis is broken.
    """

    places: list[float]
    pieces: list[slice]
    ticks: tuple[list[float], list[str]]
    gap: float | None = None


def spaced(x: Sequence[float]) -> Axis:
    """Even steps for even ratios where values grow by ratios; a zero then stands apart."""
    positive = [v for v in x if v > 0]
    whole = slice(0, len(x))
    steps = [b - a for a, b in pairwise(positive)]
    if len(steps) < 2 or min(x) < 0 or max(steps) < UNEVEN * min(steps):
        places = [float(v) for v in x]
        return Axis(places, [whole], _ticks(places, x))
    places = [math.log10(v) for v in positive]
    if len(positive) == len(x):
        return Axis(places, [whole], _ticks(places, x))
    step = max(places[1] - places[0], (places[-1] - places[0]) / 10)
    zero = places[0] - step
    all_places = [zero, *places]
    pieces = [slice(0, 1), slice(1, len(x))]
    return Axis(all_places, pieces, _ticks(all_places, x), (zero + places[0]) / 2)


def _ticks(places: list[float], x: Sequence[float]) -> tuple[list[float], list[str]]:
    """Ticks at the values, every so many where they would touch."""
    span = (places[-1] - places[0]) or 1.0
    kept = [len(places) - 1]
    for i in reversed(range(len(places))):
        if places[kept[0]] - places[i] >= span / MOST_TICKS:
            kept.insert(0, i)
    return [places[i] for i in kept], [number(x[i]) for i in kept]
