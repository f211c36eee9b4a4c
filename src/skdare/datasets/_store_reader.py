"""Reading a feature store: whole, in chunks, some rows, or as rows that stay on disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from skdare.arrays import Array, BlockReader, Index, on_device
from skdare.datasets._contents import ArrayInfo, Contents
from skdare.datasets._domain_data import DomainData
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
from skdare.datasets._store_check import damage, open_rows
from skdare.datasets._store_encoding import decode_features

_KINDS = {"labels": "numbers", "domains": "whole numbers", "split": "booleans", "ids": "text"}
_ALL = (*NEEDED, *OPTIONAL)
# Maps of shards that stay open: more than domains are visited in turn, fewer than files.
_OPEN = 16


@dataclass(frozen=True, eq=False)
class Store:
    """The rows of a store. Files are opened when they are needed: hundreds would stay open."""

    folder: Path
    manifest: Manifest
    dtypes: dict[str, np.dtype]

    def rows(self, key: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows of one kind of file; a memory map where one shard has them undecoded."""
        stop = self.manifest.rows if stop is None else stop
        starts = [0, *accumulate(shard.rows for shard in self.manifest.shards)]
        overlaps = [
            (shard, max(0, start - first), min(stop - first, shard.rows))
            for shard, first in zip(self.manifest.shards, starts, strict=False)
            if first < stop and start < first + shard.rows
        ]
        coded = key == "features" and self.manifest.dtype == CODES
        if len(overlaps) == 1 and not coded:
            shard, begin, end = overlaps[0]
            return self.part(shard, key)[begin:end]
        width = (self.manifest.features,) if key == "features" else ()
        rows = np.empty((max(0, stop - start), *width), self.dtypes[key])
        done = 0
        for shard, begin, end in overlaps:
            out = rows[done : done + end - begin]
            part = self.part(shard, key)[begin:end]
            if coded:
                decode_features(part, self.part(shard, CODEBOOK), out)
            else:
                out[...] = part
            done += end - begin
        return rows

    def part(self, shard: Shard, key: str) -> np.ndarray:
        """One file of a shard, as a memory map."""
        d = self.manifest.features
        shape = {"features": (shard.rows, d), CODEBOOK: (2, d)}.get(key, (shard.rows,))
        dtypes = {"features": self.manifest.dtype, CODEBOOK: "float32"}
        return open_rows(self.folder, shard.files[key], shape, dtypes.get(key) or _KINDS[key])

    def ids(self) -> np.ndarray | None:
        """What rows are called, as text; None where that was not kept."""
        if "ids" not in self.dtypes:
            return None
        ids = np.asarray(self.rows("ids"))
        return np.strings.decode(ids, "utf-8", "surrogateescape") if ids.dtype.kind == "S" else ids

    def data(self, start: int, stop: int) -> DomainData:
        """Some rows, with labels by their names."""
        return self.table(self.rows("features", start, stop), start, stop)

    def table(self, X: Array, start: int, stop: int) -> DomainData:
        """The labels of some rows, by their names, beside these features."""
        labels = self.rows("labels", start, stop)
        if self.manifest.classes is None:
            y = np.asarray(labels, self.dtypes["labels"])
        else:
            y = decode(labels, self.manifest.classes, f"labels in {self.folder}")
        domains = self.rows("domains", start, stop)
        return DomainData(
            X,
            y,
            decode(domains, self.manifest.domains, f"domains in {self.folder}"),
            np.array(self.rows("split", start, stop)) if "split" in self.dtypes else None,
            self.folder.resolve().name,
            self.manifest.feature_names,
            self.manifest.made,
        )


def open_store(path: str | Path, keys: Iterable[str] = _ALL, *, unfinished: bool = False) -> Store:
    """A store whose files of these kinds are there, and have the size and shape they should.

    All but the features, which are large, are also compared with their checksums.
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
        key: np.result_type(*(_checked_dtype(store, shard, key) for shard in manifest.shards))
        for key in keys
        if key in present
    }
    return replace(store, dtypes=dtypes)


def _checked_dtype(store: Store, shard: Shard, key: str) -> np.dtype:
    """The dtype in which a file of a shard is read: codes have that of their codebook."""
    problem = damage(store.folder, shard.files[key], hashed=key != "features")
    if problem:
        name = store.folder / shard.files[key].name
        raise ValueError(f"{name} {problem}; write the store again")
    dtype = store.part(shard, key).dtype
    if key == "features" and store.manifest.dtype == CODES:
        return _checked_dtype(store, shard, CODEBOOK)
    return dtype.newbyteorder("=")


def read_store(path: Path) -> Contents:
    """Contents of a feature store; one shard stays a memory map, several become one array.

    Features stored as 8-bit codes are decoded to float32 when they are loaded.
    """
    store = open_store(path)
    manifest = store.manifest
    entries = {key: ArrayInfo((manifest.rows,), dtype) for key, dtype in store.dtypes.items()}
    shape = (manifest.rows, manifest.features)
    entries["features"] = replace(entries["features"], shape=shape)

    def load(keys: list[str]) -> list[np.ndarray]:
        return [store.rows(key) for key in keys]

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        for start in range(0, manifest.rows, rows):
            stop = min(start + rows, manifest.rows)
            yield [store.rows(key, start, stop) for key in keys]

    return Contents(
        path,
        entries,
        load,
        stream=stream,
        names={"target": manifest.classes, "domains": manifest.domains},
        feature_names=manifest.feature_names,
        made=manifest.made,
    )


def read_chunks(path: str | Path, rows: int = 65536) -> Iterator[DomainData]:
    """Visit the rows of a feature store in order, some at a time.

    No more than one chunk is in memory, and its features only where they cross from one shard to
    the next or are stored as 8-bit codes; elsewhere they are a view of the memory map.

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
    """Read the features of some rows of a feature store, and nothing else.

    Parameters
    ----------
    path : str or Path
        A finished store.
    start, stop : int
        The first row, and the one after the last. Default: all rows.

    Returns
    -------
    array of shape (stop - start, d)
        A memory map where one shard has the rows undecoded, else an array in memory.

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
        raise ValueError(f"start is {start} and stop is {stop}, but {path} has {n} rows")
    return store.rows("features", start, stop)


def read_ids(path: str | Path) -> np.ndarray | None:
    """Read what the rows of a feature store are called.

    Parameters
    ----------
    path : str or Path
        A finished store.

    Returns
    -------
    array of str, of shape (n,), or None
        None where the store was written without ids.
    """
    return open_store(path, ("ids",)).ids()


@dataclass(frozen=True)
class StoreInfo:
    """A feature store in short.

    Parameters
    ----------
    finished : bool
        Whether all rows that were to come are there.
    version : int
        Version of the format.
    rows, features : int
    dtype : str
        How the features are stored.
    shards, files, bytes : int
        How many there are.
    classes : list or None
        Class names; None where labels are numbers.
    domains : dict from name to int
        Rows of each domain.
    reserved : dict from name to int, or None
        Reserved rows of each domain; None where the store has no split.
    feature_names : list of str, optional
    made : dict, optional
        How the features were made.
    """

    finished: bool
    version: int
    rows: int
    features: int
    dtype: str
    shards: int
    files: int
    bytes: int
    classes: list[Any] | None
    domains: Mapping[Any, int]
    reserved: Mapping[Any, int] | None
    feature_names: list[str] | None
    made: Mapping[str, Any] | None


def store_info(path: str | Path) -> StoreInfo:
    """Describe a feature store, finished or not.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    StoreInfo

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, store_info, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     store_info(f"{folder}/latent").domains
    {0: 300, 1: 300, 2: 300, 3: 300}
    """
    store = open_store(path, ("domains", "split"), unfinished=True)
    manifest = store.manifest
    codes = store.rows("domains") if manifest.shards else np.empty(0, np.intp)
    decode(codes, manifest.domains, f"domains in {path}")  # refuses codes without a name
    has_split = "split" in store.dtypes
    files = [store.folder / file.name for file in manifest.files]
    return StoreInfo(
        finished=manifest.finished,
        version=manifest.version,
        rows=manifest.rows,
        features=manifest.features,
        dtype=manifest.dtype,
        shards=len(manifest.shards),
        files=len(files),
        bytes=sum(file.stat().st_size for file in files if file.is_file()),
        classes=manifest.classes,
        domains=_counts(manifest.domains, codes),
        reserved=_counts(manifest.domains, codes[store.rows("split")]) if has_split else None,
        feature_names=manifest.feature_names,
        made=manifest.made,
    )


def _counts(names: list[Any], codes: np.ndarray) -> dict[Any, int]:
    counts = np.bincount(codes, minlength=len(names)).tolist()
    return dict(zip(names, counts, strict=True))


class StoredRows(BlockReader):
    """The features of a store, read from its shards when they are asked for.

    Parameters
    ----------
    store : Store
    """

    is_portable = True

    def __init__(self, store: Store) -> None:
        manifest = store.manifest
        self.store = store
        self.dtype = store.dtypes["features"]
        self.shape = (manifest.rows, manifest.features)
        self._starts = [0, *accumulate(shard.rows for shard in manifest.shards)]
        self._opened: dict[int, np.ndarray | _CodedRows] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A map would be pickled as a copy of its rows, and another process may have another
        # working folder.
        store = replace(self.store, folder=self.store.folder.absolute())
        return {**self.__dict__, "store": store, "_opened": {}}

    def __repr__(self) -> str:
        return f"StoredRows({str(self.store.folder)!r}, {self.shape[0]} rows)"

    def ascending(self, index: Index) -> np.ndarray:
        """Some rows, 8-bit codes decoded; a view where one shard has them in a row."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.shape[0])
            stop = max(start, stop)
            s = min(bisect_right(self._starts, start), len(self._starts) - 1) - 1
            if stop <= self._starts[s + 1]:
                return self._shard(s)[start - self._starts[s] : stop - self._starts[s]]
            return self.store.rows("features", start, stop)
        return super().ascending(index)

    def _block_of(self, row: int) -> tuple[int, int, np.ndarray | _CodedRows]:
        s = bisect_right(self._starts, row) - 1
        return self._starts[s], self._starts[s + 1], self._shard(s)

    def _shard(self, s: int) -> np.ndarray | _CodedRows:
        """The map of a shard; the last ones stay open, as the next chunk is often of the same."""
        if s not in self._opened:
            if len(self._opened) >= _OPEN:
                self._opened.pop(next(iter(self._opened)))
            shard = self.store.manifest.shards[s]
            rows = self.store.part(shard, "features")
            coded = self.store.manifest.dtype == CODES
            self._opened[s] = _CodedRows(rows, self.store.part(shard, CODEBOOK)) if coded else rows
        return self._opened[s]


@dataclass(frozen=True, eq=False)
class _CodedRows:
    """A shard of 8-bit codes, of which the rows asked for are decoded."""

    codes: np.ndarray
    book: np.ndarray

    def __getitem__(self, index: Index) -> np.ndarray:
        codes = self.codes[index]
        out = np.empty(codes.shape, np.float32)
        decode_features(codes, self.book, out)
        return out


def open_table(path: str | Path, *, device: str | None = None) -> DomainData:
    """Open a feature store as a table whose features stay on disk, or go to a device.

    Labels and domains are read now, and features when a head asks for them: a chunk at a time,
    however many there are. Every head takes such a table.

    Parameters
    ----------
    path : str or path
    device : str, optional
        Such as ``"cuda"``: features become a torch tensor there, in the dtype of the store, by
        chunks, so that the host never has them all.

    Examples
    --------
    >>> import tempfile
    >>> from skdare import DAREClassifier
    >>> from skdare.datasets import make_latent_domains, open_table, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     table = open_table(f"{folder}/latent")
    ...     DAREClassifier().fit(table.X, table.y, domains=table.domains).coef_.shape
    (1, 8)
    """
    store = open_store(path)
    rows = StoredRows(store)
    X = rows if device is None else on_device(rows, device)
    return store.table(X, 0, store.manifest.rows)
