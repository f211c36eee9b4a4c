"""Numbers, sizes and lists of names, as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from skdare._safe_text import counted, terminal_safe
from skdare._scale import NONE, scale_of

_NAMED = 12


def number(n: int) -> str:
    """A whole number with commas between thousands."""
    return f"{n:,}"


def file_size(n: int) -> str:
    """A number of bytes, in a unit that suits it."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:,.1f} {unit}"
    return counted(n, "byte")


def score_text(score: float | None, metric: str) -> str:
    """A score with its unit, and a dash for a missing one."""
    return NONE if score is None else scale_of(metric, [score]).figure(score)


def listed(names: Iterable) -> str:
    """The first dozen names, safe on a terminal, and how many more there are."""
    all_names = [terminal_safe(str(name)) for name in names]
    more = len(all_names) - _NAMED
    return ", ".join(all_names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
