"""Sums over rows with the workers of a Dask cluster: those of one process, to the bit.

Rows are in groups by their size alone (see `skdare.arrays.rows`). A share is some neighbouring
groups, the work of one task. A task reads them from (path, start, stop), or is handed the blocks of
a dask.array, and adds up whole branches of the tree; this process adds up the rest. Everything that
workers hold was made by a task, so Dask makes again what is lost with a worker.
"""

from __future__ import annotations

import mmap
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from skdare.arrays import (
    Array,
    BlockReader,
    Mapped,
    MappedFile,
    Part,
    Rows,
    SpreadRows,
    Tree,
    group_bounds,
    trees_of_groups,
)
from skdare.checks import in_blocks, is_dask_array, rows_of

# With so few groups of rows on disk, this process is quicker than workers.
_FEW_GROUPS = 2
# The arguments of a pass go with each task up to this many bytes: it saves two round trips.
_SMALL = 1 << 20
# Sets of parts for which the data of a share are laid out once.
_LAYOUTS = 8
WORKER_WAIT = 60.0  # seconds


@contextmanager
def placed(X: Array) -> Iterator[Array]:
    """X where a fit should go over it; when the fit is over, workers hold nothing of it any more.

    Workers of the client in scope, if there is one, go over a dask.array and over more than 128 MB
    of rows on disk; this process goes over everything else.
    """
    client = _client_in_scope()
    if client is not None:
        if is_dask_array(X):
            X = _of_blocks(client, in_blocks(X))
        else:
            source = _mapped_rows(X) if is_mapped(X) else X
            if isinstance(source, Rows) and source.is_portable:
                bounds = group_bounds(source)
                if len(bounds) - 1 > _FEW_GROUPS:
                    X = ClusterRows(source.shape, source.dtype, source.read, True, client, bounds)
    try:
        yield rows_of(X)
    finally:
        if isinstance(X, ClusterRows):
            X.close()


@dataclass(frozen=True, eq=False)
class ClusterRows(SpreadRows):
    """Rows that workers go over: those that they read, or the blocks that they hold."""

    client: Any = None
    bounds: Sequence[int] = ()
    blocks: Sequence[Any] = ()  # a future of the rows of each group, unless workers read them
    _layouts: dict[tuple[int, ...], Layout] = field(default_factory=dict)

    def map_reduce(
        self, function: Mapped, parts: Sequence[Part], arguments: Sequence[Any]
    ) -> list[Any]:
        key = tuple(map(id, parts))
        if key not in self._layouts:
            while len(self._layouts) >= _LAYOUTS:
                self._layouts.pop(next(iter(self._layouts)))
            self._layouts[key] = self._laid_out(parts)
        given: Any = list(arguments)
        if _n_bytes(given) > _SMALL:
            given = self._submitted(_itself, given)
        d = self.shape[1]
        tasks = [
            self._submitted(_map_share, function, share, list(self.blocks[groups]), given, d)
            for share, groups in self._layouts[key].shares
        ]
        trees = [Tree() for _ in parts]
        for branches in self._results(tasks):
            for tree, some in zip(trees, branches, strict=True):
                for branch in some:
                    tree.add(branch)
        return [tree.total for tree in trees]

    def close(self) -> None:
        """Let workers drop everything that they hold."""
        for layout in self._layouts.values():
            for share, _ in layout.shares:
                share.release()
        for block in self.blocks:
            block.release()
        self._layouts.clear()

    def _laid_out(self, parts: Sequence[Part]) -> Layout:
        """A share for each thread of the workers, with the columns of its rows."""
        groups = len(self.bounds) - 1
        tasks = min(groups, max(1, sum(self.client.nthreads().values())))
        cuts = [round(task * groups / tasks) for task in range(tasks + 1)]
        shares = []
        for some in (slice(*pair) for pair in pairwise(cuts)):
            span = self.bounds[some.start], self.bounds[some.stop]
            inside = [part.between(*span) or Part(None, slice(0, 0)) for part in parts]
            read = None if self.blocks else self.read
            share = Share(
                some, self.bounds, [replace(part, X=None) for part in inside], read, self.dtype
            )
            shares.append((self._submitted(_itself, share), some))
        return Layout(list(parts), shares)

    def _submitted(self, function: Any, *arguments: Any) -> Any:
        with warnings.catch_warnings():
            # Targets and weights of many rows are large; they go once, and Dask sends them again.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(function, *arguments, pure=False)

    def _results(self, tasks: list[Any]) -> list[Any]:
        """What tasks return, or the error of one."""
        from distributed import CancelledError, KilledWorker, wait

        try:
            while True:
                try:
                    wait(tasks, timeout=WORKER_WAIT)
                    return self.client.gather(tasks)
                except TimeoutError:
                    if not self.client.nthreads():
                        raise RuntimeError(
                            f"the cluster has had no worker for {WORKER_WAIT:.0f} seconds; start "
                            f"one with `dask worker {self.client.scheduler.address}`, and fit "
                            "again: the head and its data are as they were"
                        ) from None
        except KilledWorker as error:
            raise RuntimeError(
                "workers failed repeatedly in one pass; look at their logs: they may have too "
                "little memory for their rows"
            ) from error
        except (CancelledError, OSError) as error:
            if any(task.status == "error" for task in tasks):
                error.add_note("workers read files for themselves, by the same path everywhere")
                raise
            raise RuntimeError(
                "the scheduler is gone; the head and its data are as they were: start it and its "
                "workers again, make a new client, and fit again"
            ) from error
        finally:
            for task in tasks:
                task.release()


@dataclass(frozen=True, eq=False)
class Share:
    """The work of a task: neighbouring groups, and the rows that parts have of them."""

    groups: slice
    bounds: Sequence[int]
    parts: Sequence[Part]
    read: Any  # None: the task is handed the blocks
    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class Layout:
    parts: list[Part]  # kept, so that they are known again
    shares: list[tuple[Any, slice]]


def _itself(value: Any) -> Any:
    return value


def _map_share(
    function: Mapped, share: Share, blocks: Sequence[np.ndarray], arguments: Sequence[Any], d: int
) -> list[list[Any]]:
    """The branches of each part that the groups of a share make."""
    groups = share.groups
    ends = share.bounds[groups.start + 1 : groups.stop + 1]
    read = share.read or BlockReader(ends, lambda b: blocks[b])
    X = Rows((share.bounds[-1], d), share.dtype, read)
    parts = [replace(part, X=X) for part in share.parts]
    trees = trees_of_groups(function, parts, arguments, share.bounds, groups)
    return [tree.branches for tree in trees]


def _n_bytes(values: Any) -> int:
    """Size of the arrays in any nesting of sequences."""
    if isinstance(values, tuple | list):
        return sum(map(_n_bytes, values))
    return getattr(values, "nbytes", 0)


def _of_blocks(client: Any, X: Any) -> ClusterRows:
    """A dask.array whose groups workers compute once, and hold."""
    bounds = group_bounds(Rows(X.shape, X.dtype, X.__getitem__))
    blocks = [client.compute(X[start:stop]) for start, stop in pairwise(bounds)]
    reader = BlockReader(bounds[1:], lambda b: blocks[b].result())
    return ClusterRows(X.shape, X.dtype, reader, False, client, bounds, blocks)


def is_mapped(X: Any) -> bool:
    """Whether X is a table of numbers mapped from a file, in whole rows."""
    return (
        isinstance(X, np.memmap)
        and X.filename is not None
        and X.mode != "c"
        and X.ndim == 2
        and X.size > 0
        and X.dtype.kind in "biuf"
        and bool(X.flags.c_contiguous)
    )


def _mapped_rows(X: np.memmap) -> Rows:
    """Rows of a file that any process with the same file can map."""
    if X.mode != "r":
        X.flush()
    # Views keep the offset of the map that they are of.
    begin = np.frombuffer(X._mmap, np.uint8)  # type: ignore[attr-defined]
    first = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    offset = first + X.ctypes.data - begin.ctypes.data
    file = MappedFile(str(X.filename), X.dtype, offset, X.shape)
    return Rows(X.shape, X.dtype, file, is_portable=True)


def _client_in_scope() -> Any | None:
    """The client that a program has made, if it has; Dask is not imported to look for one."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        distributed.get_worker()
    except ValueError:
        pass
    else:
        return None  # a task would wait for workers that wait for it
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return client if client.status == "running" and not client.asynchronous else None
