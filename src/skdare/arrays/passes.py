"""Passes over rows, wherever they lie: a function goes to the rows, and sums come back.

A pass visits parts, each some rows of one X with what belongs to them (targets, weights). In this
process it visits them one after the other; rows that lie with workers are visited there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skdare.arrays.libraries import Array
from skdare.arrays.readers import Index, RowReader
from skdare.arrays.rows import is_within


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some rows, and columns with an entry for each of them.

    Parameters
    ----------
    X : array of shape (n, d)
    index : slice or array of int
        The rows of X that are meant.
    columns : tuple of arrays
        One entry for each indexed row.
    """

    X: Array
    index: Index
    columns: tuple[Array, ...]


Visit = Callable[[RowPart, Any], Any]
"""What to compute of a part and of what a pass brings along; results of one part's rows add up."""


class Route(ABC):
    """Parts that are visited again and again."""

    @abstractmethod
    def run(self, visit: Visit, arguments: Iterable[Any]) -> Iterable[Any]:
        """One result for each part, in order; ``arguments`` has an entry for each part."""


class SpreadRows(RowReader):
    """Rows that lie with workers.

    Code that knows nothing of workers reads them like any others, through this process; passes go
    to where they lie.
    """

    @abstractmethod
    def route(self, parts: Sequence[RowPart]) -> Route:
        """A way through parts, some of which are of these rows."""


class _Local(Route):
    def __init__(self, parts: Sequence[RowPart]) -> None:
        self.parts = parts

    def run(self, visit: Visit, arguments: Iterable[Any]) -> Iterator[Any]:
        for part, argument in zip(self.parts, arguments, strict=True):
            yield visit(part, argument)


def route(parts: Sequence[RowPart]) -> Route:
    """How to visit these parts."""
    for part in parts:
        if isinstance(part.X, SpreadRows):
            return part.X.route(parts)
    return _Local(parts)


def visit_once(visit: Visit, parts: Sequence[RowPart]) -> list[Any]:
    """One result for each part, of one pass that brings nothing along."""
    return list(route(parts).run(visit, [None] * len(parts)))


def all_within(X: Array, limit: float) -> bool:
    """Whether every entry is a number from -limit to limit, looked at where the rows lie."""
    whole = RowPart(X, slice(0, X.shape[0]), ())
    return not any(route([whole]).run(_count_beyond, [limit]))


def _count_beyond(part: RowPart, limit: float) -> int:
    return int(not is_within(part.X, part.index, limit))
