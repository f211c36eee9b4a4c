"""Records to Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np


def floored(score: float) -> float:
    """A score no lower than -1: one exploding R² must not drown the other domains."""
    return max(score, -1.0)


def percent(score: float) -> str:
    """A score as a number out of a hundred."""
    return f"{100 * score:.1f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is right-aligned."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def average(records: Iterable[dict], *keys: str, value: str = "score") -> dict[tuple, float]:
    """Mean score of the records that share these keys."""
    return _reduce(records, keys, value, np.mean)


def worst(records: Iterable[dict], *keys: str, value: str = "score") -> dict[tuple, float]:
    """Least score of the records that share these keys."""
    return _reduce(records, keys, value, np.min)


def _reduce(records, keys, value, how: Callable) -> dict[tuple, float]:
    groups: dict[tuple, list[float]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in keys), []).append(floored(record[value]))
    return {key: float(how(scores)) for key, scores in groups.items()}


def unique(records: Iterable[dict], key: str) -> list:
    """The values of a key, in the order they first appear."""
    return list(dict.fromkeys(record[key] for record in records))
