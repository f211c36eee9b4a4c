"""The numbers of a measurement: how they are written, and how near they must be to what is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

# What rounding leaves of a number that is zero, or of a difference between equals, after a few
# solves of well-conditioned systems; it printed below 1e-9 wherever it was looked at.
ROUNDING = 1e-7
# Powers in question are multiples of 1/2: a fitted one belongs to the nearest.
RATE = 0.25
# Standard errors by which a mean of independent draws may miss: 1 in 16,000 does so by chance.
DEVIATIONS = 4.0
# A share of the whole that is seen without looking closely; differences that a sentence calls
# a difference are larger.
VISIBLE = 0.01


def listed(values: Iterable[float]) -> str:
    """As words, three digits each; what rounding leaves of a zero is a zero."""
    return ", ".join(f"{0.0 if abs(value) < 1e-12 else value:.3g}" for value in values)


def log_slope(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """The power of x that y follows: least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def near(found: float | np.ndarray, said: float | np.ndarray, share: float) -> bool:
    """Whether every number is what is said of it, up to a share of that."""
    return bool(np.all(np.abs(np.subtract(found, said)) <= share * np.abs(said)))
