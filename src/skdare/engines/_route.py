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
from skdare.engines._share import RowGroup, Share, visit_share
from skdare.engines._tree import Node, PartResults, root, total

if TYPE_CHECKING:
    from skdare.engines._cluster_rows import ClusterRows, Span

# The arguments of a pass go with each task up to this many bytes: it saves two rounds of talk (10
# of 25 ms a pass with two workers here). More is sent once, and fetched from there.
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


class ClusterRoute(Route):
    """Parts of rows that lie with workers, each visited there, and the others here.

    Targets and weights are sent once; what a lost worker had is sent again, and the pass is made
    again.
    """

    def __init__(self, X: ClusterRows, parts: Sequence[RowPart]) -> None:
        self.X = X
        self.parts = parts
        self.there = [part.X is X for part in parts]
        self._spans: list[Span] = []
        self._shares: list[Any] = []
        self._part_numbers: list[list[int]] = []

    def run(self, visit: Visit, arguments: Iterable[Any]) -> list[Any]:
        arguments = list(arguments)
        for attempt in range(_ATTEMPTS):
            try:
                results = self._pass(visit, arguments)
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
            results[p] if there else visit(self.parts[p], arguments[p])
            for p, there in enumerate(self.there)
        ]

    def close(self) -> None:
        """Release what workers hold for this route."""
        release(self._shares)
        self._spans = []
        self._shares = []

    def _pass(self, visit: Visit, arguments: Sequence[Any]) -> PartResults:
        cluster = self.X.cluster
        if not self._shares:
            self._lay_out()
        sent = {p: argument for p, argument in enumerate(arguments) if self.there[p]}
        futures: list[Any] = []
        try:
            if _size(sent) > _SMALL:
                futures = cluster.hold([sent])
                by_task = futures * len(self._spans)
            else:
                by_task = [{p: sent[p] for p in numbers} for numbers in self._part_numbers]
            tasks = self._submit(visit, by_task)
            futures = futures + tasks
            places = {span.place for span in self._spans if span.place is not None}
            by_node: dict[Node, PartResults] = {}
            for result in cluster.results(tasks, places):
                by_node |= result
        finally:
            release(futures)
        return total(root(self.X.groups), by_node.get)

    def _submit(self, visit: Visit, by_task: Sequence[Any]) -> list[Any]:
        """One task for each share."""
        cluster = self.X.cluster
        tasks = []
        for span, share, arguments in zip(self._spans, self._shares, by_task, strict=True):
            rows = [self.X.rows(group) for group in range(span.start, span.stop)]
            if self.X.reader is not None:
                rows = []
            tasks.append(
                cluster.submit(visit_share, visit, share, rows, arguments, place=span.place)
            )
        return tasks

    def _lay_out(self) -> None:
        spans = self.X.spans()
        self.X.settle(spans)
        groups = self._groups()
        shares = [
            Share(span.start, groups[span.start : span.stop], self.X.reader, self.X.device)
            for span in spans
        ]
        self._part_numbers = [
            sorted({p for group in share.groups for p in group.parts}) for share in shares
        ]
        hold = self.X.cluster.hold
        pairs = zip(shares, spans, strict=True)
        self._shares = [hold([share], span.place)[0] for share, span in pairs]
        self._spans = spans

    def _groups(self) -> list[RowGroup]:
        """Every group with its share of each part."""
        bounds = np.asarray(self.X.bounds)
        groups = [RowGroup(slice(int(a), int(b)), {}) for a, b in pairwise(bounds)]
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
