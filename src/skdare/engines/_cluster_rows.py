"""Rows that lie with the workers of a cluster, and the routes through them.

The rows are cut into groups by their size alone, so that results do not depend on the workers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakSet

from scipy import sparse

from skdare.arrays import Array, Index, RowReader, chunk_rows, is_sparse
from skdare.arrays.passes import Route, RowPart, SpreadRows
from skdare.engines._cluster import Cluster, release
from skdare.engines._route import ClusterRoute
from skdare.engines._sources import DaskArrayRows

# Bytes of the rows of a group at most, until there are as many groups as any cluster can use.
# Adding up two groups costs a few (d, d) matrices a domain where their rows cost hundreds.
GROUP_BYTES = 64 << 20
MOST_GROUPS = 1024
# Groups that are sent together.
_SENT_TOGETHER = 4


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
        self.cluster = cluster
        self.source = source
        self.bounds = bounds
        self.device = device
        self.shape = tuple(source.shape)
        self.dtype = source.dtype
        self.is_sparse = is_sparse(source)
        self._routes: WeakSet[ClusterRoute] = WeakSet()
        if device is not None and self.is_sparse:
            raise ValueError(f"X is sparse, and device={device!r} keeps dense rows; set it to None")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} rows in {self.groups} groups)"

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.bounds) - 1

    def ascending(self, index: Index) -> Array:
        return self.source[index]

    def route(self, parts: Sequence[RowPart]) -> Route:
        new = ClusterRoute(self, parts)
        self._routes.add(new)
        return new

    @property
    def reader(self) -> RowReader | None:
        """What workers read the rows with, where they are not sent."""
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
        """Release everything that workers hold."""
        for existing in self._routes:
            existing.close()


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
            for i in range(0, len(missing), _SENT_TOGETHER):
                some = missing[i : i + _SENT_TOGETHER]
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
        self._blocks = []
        self._kept = None
