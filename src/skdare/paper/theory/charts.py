"""Pictures as data: curves over a pair of axes, and maps over a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LOG_LOG = ("x", "y")


@dataclass(frozen=True, eq=False)
class Curve:
    """A computed line, or measured dots: y against x."""

    x: np.ndarray
    y: np.ndarray
    dots: bool = False

    @classmethod
    def of(cls, function: Callable[[Any], float], x: np.ndarray, *, dots: bool = False) -> Curve:
        """The values of a function, which is given Python's numbers."""
        return cls(x, np.array([function(value) for value in x.tolist()]), dots)


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves by name over one pair of axes, with a note that says what they show.

    ``name`` is unique in a page, ``x`` and ``y`` label the axes, ``logarithmic`` holds "x", "y" or
    both, and ``marks`` are upright lines.
    """

    name: str
    title: str
    x: str
    y: str
    note: str
    curves: Mapping[str, Curve]
    logarithmic: Sequence[str] = ()
    marks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Map:
    """Values over a grid, positive and negative, with a note that says what they show.

    ``values`` has a row for each of ``at_y`` and a column for each of ``at_x``.
    """

    name: str
    title: str
    x: str
    y: str
    value: str
    note: str
    at_x: np.ndarray
    at_y: np.ndarray
    values: np.ndarray
