"""Rows that lie with the workers of a cluster, and plans that visit them there.

The rows are cut into groups by their size alone, so that results do not depend on the workers.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakSet

import numpy as np
from scipy import sparse

from skdare._array import Array, Index, RowReader, chunk_rows, is_sparse, length
from skdare.engines._cluster import Cluster, Lost, release
from skdare.engines._share import Group, Share, visit_share
from skdare.engines._sources import DaskArrayRows
from skdare.engines._tree import Found, Node, root, total
from skdare.passes import Part, Plan, SpreadRows, Visit

# A group has at most so many bytes of rows, until there are as many groups as any cluster can use.
# Adding up two groups costs a few (d, d) matrices a domain where their rows cost hundreds.
GROUP_BYTES = 64 << 20
MOST_GROUPS = 1024
# What a pass brings along goes with each task up to so many bytes: it saves two rounds of talk
# (10 of 25 ms a pass with two workers here). More is handed over once, and fetched from there.
_SMALL = 1 << 20
# Groups that are handed over together.
_HANDED = 4
# A pass that loses workers again and again is given up: it may be what kills them.
_ATTEMPTS = 5


def cut(X: Array) -> list[int]:
    """Bounds of the groups of X: a power of two of them, each of whole chunks."""
    n = X.shape[0]
    size = n * X.shape[1] * X.dtype.itemsize
    if sparse.issparse(X):
        size = X.data.nbytes + X.indices.nbytes
    wanted = max(1, min(-(-size // GROUP_BYTES), MOST_GROUPS))
    groups = 1 << (wanted - 1).bit_length()
    step = min(chunk_rows(X), -(-n // groups))
    inner = {round(g * n / groups / step) * step for g in range(1, groups)}
    return [0, *sorted(bound for bound in inner if 0 < bound < n), n]


def _size(values: Any) -> int:
    """Bytes of the arrays in any nesting of tuples, lists and dicts."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, tuple | list):
        return sum(_size(value) for value in values)
    return getattr(values, "nbytes", 0)


class ClusterRows(SpreadRows):
    """Rows that workers visit.

    Parameters
    ----------
    cluster : Cluster
    source : RowReader or array
        Gives the rows to code that knows nothing of workers.
    bounds : sequence of int
        Where groups begin, and the last one ends.
    device : str, optional
        Where workers keep them as torch tensors.
    """

    def __init__(
        self, cluster: Cluster, source: Array, bounds: Sequence[int], device: str | None
    ) -> None:
        self.cluster, self.source, self.bounds, self.device = cluster, source, bounds, device
        self.shape, self.dtype = tuple(source.shape), source.dtype
        self.is_sparse = is_sparse(source)
        self._plans: WeakSet[_Spread] = WeakSet()
        if device is not None and self.is_sparse:
            raise ValueError(f"X is sparse, and device={device!r} keeps dense rows; set it to None")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} rows in {self.groups} groups)"

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.bounds) - 1

    def ascending(self, index: Index) -> Array:
        return self.source[index]

    def plan(self, parts: Sequence[Part]) -> Plan:
        made = _Spread(self, parts)
        self._plans.add(made)
        return made

    @property
    def reader(self) -> RowReader | None:
        """What workers read the rows with, where they are not handed over."""
        return None

    def spans(self) -> list[Span]:
        """Which groups each task visits, and where: neighbours, about as many for each place."""
        places = self.cluster.places()
        tasks = min(len(places), self.groups)
        bounds = [round(t * self.groups / tasks) for t in range(tasks + 1)]
        return [
            Span(start, stop, place)
            for (start, stop), place in zip(pairwise(bounds), places, strict=False)
        ]

    @abstractmethod
    def settle(self, spans: Sequence[Span]) -> None:
        """Bring the rows of groups that nobody holds to where they will be visited."""

    @abstractmethod
    def rows(self, group: int) -> Any | None:
        """The future of a group's rows, or None where workers read them."""

    def close(self) -> None:
        """Let go of everything that workers hold."""
        for made in self._plans:
            made.close()


@dataclass(frozen=True)
class Span:
    """Neighbouring groups, and the worker that visits them; None: wherever their rows lie."""

    start: int
    stop: int
    place: str | None


class FileRows(ClusterRows):
    """Rows that every worker reads from the same files."""

    @property
    def reader(self) -> RowReader | None:
        return self.source

    def settle(self, spans: Sequence[Span]) -> None:
        return

    def rows(self, group: int) -> None:
        return None


class HeldRows(ClusterRows):
    """Rows of this process, handed over once, group by group."""

    def __init__(
        self, cluster: Cluster, source: Array, bounds: Sequence[int], device: str | None
    ) -> None:
        super().__init__(cluster, source, bounds, device)
        self._held: dict[int, Any] = {}

    def settle(self, spans: Sequence[Span]) -> None:
        alive = self.cluster.held(list(self._held.values()))
        pairs = zip(self._held.items(), alive, strict=True)
        self._held = {group: future for (group, future), there in pairs if there}
        for span in spans:
            missing = [g for g in range(span.start, span.stop) if g not in self._held]
            for i in range(0, len(missing), _HANDED):
                some = missing[i : i + _HANDED]
                rows = [self.source[self.bounds[g] : self.bounds[g + 1]] for g in some]
                futures = self.cluster.hold(rows, span.place)
                self._held |= dict(zip(some, futures, strict=True))

    def rows(self, group: int) -> Any:
        return self._held[group]

    def close(self) -> None:
        super().close()
        release(self._held.values())
        self._held = {}


class BlockRows(ClusterRows):
    """The blocks of a dask.array, computed once, and visited where they lie.

    The scheduler knows how they were made, and makes those again that are lost.
    """

    def __init__(self, cluster: Cluster, X: Any, device: str | None) -> None:
        from distributed import futures_of

        self._kept = cluster.client.persist(X)
        source = DaskArrayRows(self._kept)
        super().__init__(cluster, source, source.ends, device)
        by_key = {future.key: future for future in futures_of(self._kept)}
        self._blocks = [by_key[key] for (key,) in self._kept.__dask_keys__()]

    def spans(self) -> list[Span]:
        self.cluster.places()
        return [Span(group, group + 1, None) for group in range(self.groups)]

    def settle(self, spans: Sequence[Span]) -> None:
        return

    def rows(self, group: int) -> Any:
        return self._blocks[group]

    def close(self) -> None:
        super().close()
        release(self._blocks)
        self._blocks, self._kept = [], None


class _Spread(Plan):
    """Parts of rows that lie with workers, each visited there, and the others here.

    Targets and weights are handed over once; what a worker took with it is handed over again, and
    the pass is made again.
    """

    def __init__(self, X: ClusterRows, parts: Sequence[Part]) -> None:
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
