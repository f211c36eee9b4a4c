"""A table into a feature store: a new one, or one that has rows already."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skdare.arrays import RowReader, chunks
from skdare.datasets._manifest import CODES, Manifest
from skdare.datasets._roles import assemble
from skdare.datasets._store_rows import Scheme
from skdare.datasets._store_shards import Shards
from skdare.datasets._store_writer import StoreWriter, refuse_existing
from skdare.datasets._table import DomainData, guess_task
from skdare.persist import whole_folder


def write_store(
    path: str | Path,
    data: DomainData,
    *,
    dtype: str | None = None,
    rows_per_shard: int | None = None,
    ids: Any = None,
) -> None:
    """Write a feature store: a folder of ``.npy`` files that heads can read without loading it.

    The folder appears whole or not at all, and an existing one is never overwritten.

    Parameters
    ----------
    path : str or Path
    data : DomainData
        Features that are read some rows at a time, as of `stream_table`, are also written so.
    dtype : {"float64", "float32", "float16", "uint8"}, optional
        How features are kept, as in `StoreWriter`. Default: as they are.
    rows_per_shard : int, optional
        Default: all rows in one shard, which `read` need not load; of features that are read some
        rows at a time, as many as `StoreWriter` takes.
    ids : n str, optional
        What rows are called.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, read, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     read(f"{folder}/latent").X.shape
    (1200, 8)
    """
    path = Path(path)
    refuse_existing(path)
    lazy = isinstance(data.X, RowReader)
    data = data if lazy else checked_table(data)
    dtype = data.X.dtype.name if dtype is None else dtype
    if rows_per_shard is None and not lazy:
        rows_per_shard = len(data.X)
    with (
        whole_folder(path) as folder,
        StoreWriter(
            folder,
            features=data.X.shape[1],
            dtype=dtype,
            # A list of classes also keeps their type: JSON tells 1 from "1" and from true.
            classes=np.unique(data.y) if guess_task(data.y) == "classification" else None,
            domains=np.unique(data.domains),
            feature_names=data.feature_names,
            made=data.made,
            rows_per_shard=rows_per_shard,
        ) as writer,
    ):
        for rows, X in _parts(data):
            split = None if data.split is None else data.split[rows]
            names = None if ids is None else ids[rows]
            writer.append(X, data.y[rows], data.domains[rows], split, names)


def _parts(data: DomainData) -> Iterator[tuple[slice, np.ndarray]]:
    """All rows at once where they are in memory, else some at a time."""
    if isinstance(data.X, RowReader):
        return chunks(data.X, slice(0, len(data.X)))
    return iter([(slice(None), data.X)])


def append_rows(path: str | Path, data: DomainData, *, ids: Any = None) -> None:
    """Add rows to a finished feature store, as one more shard.

    Until all of them are on disk the store is what it was. Classes and domains that it did not
    have are added to it; the features must be as many and of the same type (any, where the store
    keeps codes), and made in the same way where ``data`` says how.

    Parameters
    ----------
    path : str or Path
    data : DomainData
    ids : n str, optional
        What rows are called; needed where the store has them.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import append_rows, make_latent_domains, read, write_store
    >>> data = make_latent_domains(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", data)
    ...     append_rows(f"{folder}/latent", data)
    ...     read(f"{folder}/latent").X.shape
    (2400, 8)
    """
    path = Path(path)
    if not len(data.X):
        raise ValueError("X has no rows; there is nothing to append")
    if not path.is_dir():
        raise FileNotFoundError(f"{path} does not exist; write_store makes a new store")
    shards = Shards(path, lambda found: _refuse_other(found, data, path))
    try:
        scheme = Scheme.of(shards.manifest, shards.store.dtypes, fixed=())
        rows, scheme = scheme.encode(data.X, data.y, data.domains, data.split, ids)
        shards.add([rows])
        shards.commit(scheme, finished=True)
    finally:
        shards.close()


def checked_table(data: DomainData) -> DomainData:
    """The data as `read` would give it back, refused where it could not."""
    arrays = {"features": data.X, "target": data.y, "domains": data.domains}
    if data.split is not None:
        arrays["split"] = data.split
    where = {"features": "X", "target": "y", "domains": "domains", "split": "split"}
    return replace(assemble(arrays, where, data.name, data.feature_names), made=data.made)


def _refuse_other(found: Manifest, data: DomainData, path: Path) -> None:
    if found.version == 1:
        raise ValueError(f"{path} has version 1, which cannot grow; read it and write it again")
    if not found.finished:
        raise ValueError(f"{path} is unfinished; run the command that made it again first")
    dtype = str(data.X.dtype)
    if found.dtype not in (CODES, dtype):
        raise ValueError(f"X has dtype {dtype}, but {path} has {found.dtype}; convert X to that")
    for what in ("feature_names", "made"):
        before, now = getattr(found, what), getattr(data, what)
        if now is not None and json.loads(json.dumps(now, default=dict)) != before:
            raise ValueError(f"{what} is not that of {path}; rows of one store are made alike")
