"""Putting the rows of a fit where its engine works, and clearing them away at its end."""

from __future__ import annotations

from typing import Self

from skdare.arrays import Array, RowReader, is_foreign
from skdare.arrays.passes import SpreadRows
from skdare.engines._cluster import Cluster
from skdare.engines._cluster_rows import (
    MOST_GROUPS,
    BlockRows,
    ClusterRows,
    FileRows,
    HeldRows,
    cut,
)
from skdare.engines._engine import DaskEngine, client_in_scope, needed_client
from skdare.engines._sources import (
    DaskArrayRows,
    MappedRows,
    is_dask_array,
    is_mapped,
    rows_in_blocks,
)

# With this few groups of rows on disk, visiting them here is quicker than by way of workers.
_FEW_GROUPS = 2


def as_rows(X: Array) -> Array:
    """X as it is; a dask.array as rows that are read block by block."""
    return DaskArrayRows(rows_in_blocks(X)) if is_dask_array(X) else X


class Placement:
    """Rows on their way to an engine; on leaving it, workers hold nothing any more.

    Parameters
    ----------
    engine : "auto", "local", "dask" or DaskEngine
        "auto" takes a client in scope for rows that lie on disk, more than 128 MB of them, or in
        a dask.array.
    """

    def __init__(self, engine: str | DaskEngine) -> None:
        self.engine = DaskEngine() if engine == "dask" else engine
        self._placed: list[ClusterRows] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for rows in self._placed:
            rows.close()

    def from_disk(self, X: Array) -> Array:
        """Rows on disk or in blocks as those of workers, before anything looks at them."""
        if is_dask_array(X):
            X = rows_in_blocks(X)
            cluster = self._cluster()
            if cluster is None:
                return DaskArrayRows(X)
            if X.numblocks[0] > MOST_GROUPS:
                X = X.rechunk({0: -(-X.shape[0] // MOST_GROUPS)})
            return self._keep(BlockRows(cluster, X, self._device))
        if not is_mapped(X) and not (isinstance(X, RowReader) and X.is_portable):
            return X
        cluster = self._cluster()
        if cluster is None:
            return X
        source = MappedRows(X) if is_mapped(X) else X
        bounds = cut(source)
        if len(bounds) - 1 <= _FEW_GROUPS and not isinstance(self.engine, DaskEngine):
            return X
        return self._keep(FileRows(cluster, source, bounds, self._device))

    def from_memory(self, X: Array) -> Array:
        """Rows in memory as those of workers, where that was asked for."""
        if isinstance(X, SpreadRows) or not isinstance(self.engine, DaskEngine):
            return X
        if is_foreign(X):
            raise TypeError(
                f"X is a {type(X).__module__}.{type(X).__name__}, and workers are handed NumPy "
                "arrays; pass X as one, and DaskEngine(device=...) to compute elsewhere"
            )
        cluster = Cluster(needed_client(self.engine))
        return self._keep(HeldRows(cluster, X, cut(X), self._device))

    @property
    def _device(self) -> str | None:
        return self.engine.device if isinstance(self.engine, DaskEngine) else None

    def _cluster(self) -> Cluster | None:
        if isinstance(self.engine, DaskEngine):
            return Cluster(needed_client(self.engine))
        client = client_in_scope() if self.engine == "auto" else None
        return None if client is None else Cluster(client)

    def _keep(self, rows: ClusterRows) -> ClusterRows:
        self._placed.append(rows)
        return rows
