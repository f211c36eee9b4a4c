"""A way through parts that workers visit: laid out once, and again when some are lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from skdare.arrays import Index, length
from skdare.arrays.passes import Route, RowPart, Visit
from skdare.engines._cluster import Lost, release
from skdare.engines._share import Group, Share, visit_share
from skdare.engines._tree import Found, Node, root, total

if TYPE_CHECKING:
    from skdare.engines._spread import ClusterRows, Span

# What a pass brings along goes with each task up to so many bytes: it saves two rounds of talk
# (10 of 25 ms a pass with two workers here). More is handed over once, and fetched from there.
_SMALL = 1 << 20
# A pass that loses workers again and again is given up: it may be what kills them.
_ATTEMPTS = 5


def _size(values: Any) -> int:
    """Bytes of the arrays in any nesting of tuples, lists and dicts."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, tuple | list):
        return sum(_size(value) for value in values)
    return getattr(values, "nbytes", 0)


class SpreadRoute(Route):
    """Parts of rows that lie with workers, each visited there, and the others here.

    Targets and weights are handed over once; what a worker took with it is handed over again, and
    the pass is made again.
    """

    def __init__(self, X: ClusterRows, parts: Sequence[RowPart]) -> None:
        self.X, self.parts = X, parts
        self.there = [part.X is X for part in parts]
        self._spans: list[Span] = []
        self._shares: list[Any] = []
        self._seen: list[list[int]] = []

    def run(self, visit: Visit, brought: Iterable[Any]) -> list[Any]:
        given = list(brought)
        for attempt in range(_ATTEMPTS):
            try:
                found = self._pass(visit, given)
                break
            except Lost as lost:
                self.close()
                if attempt == _ATTEMPTS - 1:
                    raise RuntimeError(
                        f"workers were lost in each of {_ATTEMPTS} tries of one pass; look at "
                        "their logs: they may have too little memory for their rows"
                    ) from lost
                time.sleep(0.2 * attempt)  # what has gone may not have been noticed everywhere
        return [
            found[p] if there else visit(self.parts[p], given[p])
            for p, there in enumerate(self.there)
        ]

    def close(self) -> None:
        """Let go of what workers hold for this plan."""
        release(self._shares)
        self._spans, self._shares = [], []

    def _pass(self, visit: Visit, brought: Sequence[Any]) -> Found:
        cluster = self.X.cluster
        if not self._shares:
            self._lay_out()
        along = {p: value for p, value in enumerate(brought) if self.there[p]}
        made: list[Any] = []
        try:
            if _size(along) > _SMALL:
                made = cluster.hold([along])
                carried = made * len(self._spans)
            else:
                carried = [{p: along[p] for p in seen} for seen in self._seen]
            tasks = self._submit(visit, carried)
            made += tasks
            places = {span.place for span in self._spans if span.place is not None}
            known: dict[Node, Found] = {}
            for result in cluster.results(tasks, places):
                known |= result
        finally:
            release(made)
        return total(root(self.X.groups), known.get)

    def _submit(self, visit: Visit, carried: Sequence[Any]) -> list[Any]:
        """One task for each share."""
        tasks = []
        for span, share, brought in zip(self._spans, self._shares, carried, strict=True):
            rows = [self.X.rows(group) for group in range(span.start, span.stop)]
            held = [] if self.X.reader is not None else rows
            arguments = (visit_share, visit, share, held, brought)
            tasks.append(self.X.cluster.submit(*arguments, place=span.place))
        return tasks

    def _lay_out(self) -> None:
        spans = self.X.spans()
        self.X.settle(spans)
        groups = self._groups()
        shares = [
            Share(span.start, groups[span.start : span.stop], self.X.reader, self.X.device)
            for span in spans
        ]
        self._seen = [
            sorted({p for group in share.groups for p in group.parts}) for share in shares
        ]
        hold, pairs = self.X.cluster.hold, zip(shares, spans, strict=True)
        self._shares = [hold([share], span.place)[0] for share, span in pairs]
        self._spans = spans

    def _groups(self) -> list[Group]:
        """Every group with its share of each part."""
        bounds = np.asarray(self.X.bounds)
        groups = [Group(slice(int(a), int(b)), {}) for a, b in pairwise(bounds)]
        for p, part in enumerate(self.parts):
            if not self.there[p]:
                continue
            places = _places(part.index, bounds)
            for group, (start, stop) in zip(groups, pairwise(places), strict=True):
                if start < stop:
                    columns = tuple(column[start:stop] for column in part.columns)
                    group.parts[p] = _cut(part.index, start, stop), columns
        return groups


def _places(index: Index, bounds: np.ndarray) -> np.ndarray:
    """How many of the indexed rows lie before each bound."""
    if isinstance(index, slice):
        return np.clip(bounds - index.start, 0, length(index))
    return np.searchsorted(index, bounds)


def _cut(index: Index, start: int, stop: int) -> Index:
    """Some of the indexed rows."""
    if isinstance(index, slice):
        return slice(index.start + int(start), index.start + int(stop))
    return index[start:stop]
