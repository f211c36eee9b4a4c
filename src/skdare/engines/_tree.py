"""Sums over groups in one fixed order: a binary tree over their numbers.

Whoever has neighbouring groups adds up whole branches and passes on those; the result does not
depend on who had which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Node = tuple[int, int]
"""Level and place: the groups from ``place << level`` to ``(place + 1) << level``."""

PartResults = dict[int, Any]
"""Results by the number of the part that they are of."""


def root(groups: int) -> Node:
    """The node of all groups."""
    return (groups - 1).bit_length(), 0


def branches(start: int, stop: int) -> Iterator[Node]:
    """The fewest nodes that have the groups from ``start`` to ``stop``."""
    while start < stop:
        fits = (stop - start).bit_length() - 1
        level = min(fits, (start & -start).bit_length() - 1) if start else fits
        yield level, start >> level
        start += 1 << level


def total(node: Node, results_at: Callable[[Node], PartResults | None]) -> PartResults:
    """The sum at a node, from results at it or below."""
    results = results_at(node)
    level, place = node
    if results is not None or level == 0:
        return results or {}
    left, right = (total((level - 1, 2 * place + side), results_at) for side in (0, 1))
    for part, result in right.items():
        left[part] = left[part] + result if part in left else result
    return left
