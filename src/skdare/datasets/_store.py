"""Reading a feature store: whole, in chunks, or the features of some rows only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from skdare.arrays import Array
from skdare.datasets._contents import Contents, Entry
from skdare.datasets._manifest import (
    CODEBOOK,
    CODES,
    NEEDED,
    OPTIONAL,
    Manifest,
    Shard,
    read_manifest,
)
from skdare.datasets._roles import decode
from skdare.datasets._store_codes import decode as decode_features
from skdare.datasets._store_files import damage, open_rows
from skdare.datasets._table import DomainData

_KINDS = {"labels": "numbers", "domains": "whole numbers", "split": "booleans", "ids": "text"}
_ALL = (*NEEDED, *OPTIONAL)


@dataclass(frozen=True, eq=False)
class Store:
    """The rows of a store. Files are opened when they are needed: hundreds stay open otherwise."""

    folder: Path
    manifest: Manifest
    dtypes: dict[str, np.dtype]

    def rows(self, key: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows of one kind of file: a memory map where one shard has them as they are."""
        stop = self.manifest.rows if stop is None else stop
        ends = [0, *accumulate(shard.rows for shard in self.manifest.shards)]
        within = [
            (shard, max(0, start - first), min(stop - first, shard.rows))
            for shard, first in zip(self.manifest.shards, ends, strict=False)
            if first < stop and start < first + shard.rows
        ]
        coded = key == "features" and self.manifest.dtype == CODES
        if len(within) == 1 and not coded:
            shard, a, b = within[0]
            return self.part(shard, key)[a:b]
        shape = (max(0, stop - start), *((self.manifest.features,) if key == "features" else ()))
        rows, done = np.empty(shape, self.dtypes[key]), 0
        for shard, a, b in within:
            place = rows[done : done + b - a]
            if coded:
                decode_features(self.part(shard, key)[a:b], self.part(shard, CODEBOOK), place)
            else:
                place[...] = self.part(shard, key)[a:b]
            done += b - a
        return rows

    def part(self, shard: Shard, key: str) -> np.ndarray:
        """One file of a shard, as a memory map."""
        d, dtype = self.manifest.features, self.manifest.dtype
        shape = {"features": (shard.rows, d), CODEBOOK: (2, d)}.get(key, (shard.rows,))
        kind = {"features": dtype, CODEBOOK: "float32"}.get(key) or _KINDS[key]
        return open_rows(self.folder, shard.files[key], shape, kind)

    def ids(self) -> np.ndarray | None:
        """What rows are called, as text; None where that was not kept."""
        if "ids" not in self.dtypes:
            return None
        ids = np.asarray(self.rows("ids"))
        return np.strings.decode(ids, "utf-8", "surrogateescape") if ids.dtype.kind == "S" else ids

    def data(self, start: int, stop: int) -> DomainData:
        """Some rows, labels by their names."""
        return self.table(self.rows("features", start, stop), start, stop)

    def table(self, X: Array, start: int, stop: int) -> DomainData:
        """These features beside the labels of some rows, by their names."""
        labels, where = self.rows("labels", start, stop), f"in {self.folder}"
        if self.manifest.classes is not None:
            labels = decode(labels, self.manifest.classes, f"labels {where}")
        return DomainData(
            X,
            np.asarray(labels, self.dtypes["labels"] if self.manifest.classes is None else None),
            decode(self.rows("domains", start, stop), self.manifest.domains, f"domains {where}"),
            np.array(self.rows("split", start, stop)) if "split" in self.dtypes else None,
            self.folder.resolve().name,
            self.manifest.feature_names,
            self.manifest.made,
        )


def open_store(path: str | Path, keys: Iterable[str] = _ALL, *, unfinished: bool = False) -> Store:
    """A store whose files of these kinds are there, and have the size and shape they should.

    The small ones, all but the features, are also compared with their checksums.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if not manifest.finished and not unfinished:
        raise ValueError(
            f"{folder} is unfinished, with {manifest.rows} rows on file; "
            "run the command that made it again, and it goes on from there"
        )
    store = Store(folder, manifest, {})
    present = manifest.shards[0].files if manifest.shards else {}
    dtypes = {
        key: np.result_type(*(_looked_at(store, shard, key) for shard in manifest.shards))
        for key in keys
        if key in present
    }
    return replace(store, dtypes=dtypes)


def _looked_at(store: Store, shard: Shard, key: str) -> np.dtype:
    """The dtype in which a file of a shard is read: codes have that of their codebook."""
    wrong = damage(store.folder, shard.files[key], hashed=key != "features")
    if wrong:
        name = store.folder / shard.files[key].name
        raise ValueError(f"{name} {wrong}; write the store again")
    dtype = store.part(shard, key).dtype
    if key == "features" and store.manifest.dtype == CODES:
        return _looked_at(store, shard, CODEBOOK)
    return dtype.newbyteorder("=")


def read_store(path: Path) -> Contents:
    """A feature store; one shard stays a memory map, several become one array when loaded.

    Features kept as 8-bit codes are decoded to float32 when loaded.
    """
    store = open_store(path)
    manifest = store.manifest
    entries = {key: Entry((manifest.rows,), dtype) for key, dtype in store.dtypes.items()}
    shape = (manifest.rows, manifest.features)
    entries["features"] = replace(entries["features"], shape=shape)
    names = {"target": manifest.classes, "domains": manifest.domains}

    def load(keys: list[str]) -> list[np.ndarray]:
        return [store.rows(key) for key in keys]

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        for start in range(0, manifest.rows, rows):
            stop = min(start + rows, manifest.rows)
            yield [store.rows(key, start, stop) for key in keys]

    kept = (manifest.feature_names, manifest.made)
    return Contents(path, entries, load, False, names, *kept, stream)


def read_chunks(path: str | Path, rows: int = 65536) -> Iterator[DomainData]:
    """Visit the rows of a feature store in order, some at a time.

    No more than one chunk is held at once, and its features only where they cross from one
    shard to the next or are kept as 8-bit codes; elsewhere they are a view of the memory map.

    Parameters
    ----------
    path : str or Path
        A finished store.
    rows : int
        The most rows of a chunk.

    Returns
    -------
    iterator of DomainData

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, read_chunks, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     [len(chunk.X) for chunk in read_chunks(f"{folder}/latent", rows=500)]
    [500, 500, 200]
    """
    if rows < 1:
        raise ValueError(f"rows is {rows}; chunks have at least 1")
    store = open_store(path)
    n = store.manifest.rows
    return (store.data(start, min(start + rows, n)) for start in range(0, n, rows))


def read_features(path: str | Path, start: int = 0, stop: int | None = None) -> np.ndarray:
    """The features of some rows of a feature store, and nothing else.

    Parameters
    ----------
    path : str or Path
        A finished store.
    start, stop : int
        The first row, and the one after the last. Default: all rows.

    Returns
    -------
    array of shape (stop - start, d)
        A memory map where one shard has the rows as they are, else an array in memory.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, read_features, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     read_features(f"{folder}/latent", 10, 25).shape
    (15, 8)
    """
    store = open_store(path, ("features",))
    n = store.manifest.rows
    stop = n if stop is None else stop
    if not 0 <= start <= stop <= n:
        raise ValueError(f"rows {start} to {stop} are asked for, but {path} has {n}")
    return store.rows("features", start, stop)


def read_ids(path: str | Path) -> np.ndarray | None:
    """What the rows of a feature store are called, or None where that was not kept.

    Parameters
    ----------
    path : str or Path
        A finished store.

    Returns
    -------
    array of str, of shape (n,), or None
    """
    return open_store(path, ("ids",)).ids()
