"""Findings: a statement about a new domain, how worrying it is, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skdare._validation import check_choice

# Rows below which nothing is said: halves of them still have moments.
MIN_ROWS = 20
# From harmless to not; the last says that there is nothing to go by.
LEVELS = ("fine", "look", "alarm", "unknown")


@dataclass(frozen=True, eq=False)
class Finding:
    """One answer.

    Parameters
    ----------
    name : str
        Such as "adjustment".
    question : str
    answer : str
        One or two sentences.
    level : one of `LEVELS`
    numbers : mapping
        What the answer is made of, ready for JSON.
    """

    name: str
    question: str
    answer: str
    level: str = "fine"
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("level", self.level, LEVELS)


def cannot_say(name: str, question: str, needed: str) -> Finding:
    """No statement, and what one would take."""
    return Finding(name, question, f"cannot say, {needed}", "unknown")


def percent(share: float) -> str:
    """A share in percent, with a digit where it is small; no line ends before the sign."""
    return f"{100 * share:.1f}\u00a0%" if abs(share) < 0.0995 else f"{100 * share:.0f}\u00a0%"


def points(difference: float) -> str:
    """A difference of shares in points, with its sign."""
    return f"{100 * difference:+.1f}\u00a0points"


def number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}"
