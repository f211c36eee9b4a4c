"""Writing a feature store: a table at once, or rows as they come, so that a killed run can go on.

The files of a shard are written first, then the manifest that names them. Until it is replaced,
which happens in one step, the store is what it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import index
from pathlib import Path
from reprlib import repr as short
from typing import Any, BinaryIO, Self
from weakref import finalize

import numpy as np
from numpy.typing import ArrayLike

from skdare.arrays import RowReader, chunks
from skdare.datasets._domain_data import DomainData, guess_task
from skdare.datasets._manifest import (
    CODEBOOK,
    CODES,
    MANIFEST,
    NEEDED,
    OPTIONAL,
    Manifest,
    Shard,
    StoredFile,
)
from skdare.datasets._roles import assemble
from skdare.datasets._store_encoding import (
    EncodedRows,
    StoreSchema,
    codebook,
    encode_features,
    row_blocks,
)
from skdare.datasets._store_reader import open_store
from skdare.persist import PARTIAL, lock_folder, whole_file, whole_folder

# One shard is held in memory while it fills, and is lost when the process is killed: small
# enough to sit beside a network, and large enough that most sets are one shard, a memory map.
_SHARD_BYTES = 256 << 20
_KEYS = "|".join((*NEEDED, *OPTIONAL, CODEBOOK))
_PARTIAL_END = rf"((\.[0-9a-f]{{32}})?{re.escape(PARTIAL)})"
_STORE_FILE = re.compile(
    rf"({_KEYS})-\d{{5,}}\.npy{_PARTIAL_END}?|{re.escape(MANIFEST)}{_PARTIAL_END}"
)


class StoreWriter:
    """Write a feature store row by row, in such a way that a killed run can go on.

    Rows are held until they fill a shard, whose files are then written whole and named by the
    manifest in one step. Until `finish`, or the end of a ``with`` block without an exception, the
    store says that it is unfinished, and `read` refuses it. What was not yet in a shard is lost
    with the process; ``rows`` says from where to go on.

    Parameters
    ----------
    path : str or Path
        The folder; it must not exist, unless ``resume``.
    features : int
        Features of a row.
    dtype : {"float64", "float32", "float16", "uint8"}
        How features are stored. "uint8": as 8-bit codes between the smallest and the largest value
        of each feature in a shard, read back as float32 and off by at most 1/510 of that range.
    classes : list, optional
        All class names, in order: a label that is not among them is refused. Default: labels
        that are text become class names as they come, numbers and booleans stay what they are.
    domains : list, optional
        All domain names, in the same manner. Default: names are taken as they come.
    feature_names : list of str, optional
    made : dict, optional
        How the features were made, stored as JSON: backbone, weights, transform and so on.
    rows_per_shard : int, optional
        Default: as many as 256 MiB of features in memory have. Where rows are slow to make, give
        fewer, so that less is lost.
    resume : bool
        Go on with an unfinished store, which must have been begun with the same arguments, but
        for ``rows_per_shard``. If the path has no store yet, begin one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skdare.datasets import StoreWriter, read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with StoreWriter(f"{folder}/pets", features=2, made={"backbone": "none"}) as writer:
    ...         writer.append(np.eye(2), ["cat", "dog"], ["photo", "sketch"])
    ...         writer.append(np.ones((1, 2)), ["cat"], ["sketch"])
    ...     read(f"{folder}/pets").y
    array(['cat', 'dog', 'cat'], dtype='<U3')
    """

    def __init__(
        self,
        path: str | Path,
        *,
        features: int,
        dtype: str = "float32",
        classes: ArrayLike | None = None,
        domains: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        made: Mapping[str, Any] | None = None,
        rows_per_shard: int | None = None,
        resume: bool = False,
    ) -> None:
        self.path = Path(path)
        manifest = Manifest(
            index(features),
            dtype if isinstance(dtype, str) else np.dtype(dtype).name,
            None if classes is None else np.asarray(classes).tolist(),
            [] if domains is None else np.asarray(domains).tolist(),
            None if feature_names is None else [str(name) for name in feature_names],
            None if made is None else dict(made),
        ).checked(self.path)
        self._rows_per_shard = _shard_rows(manifest) if rows_per_shard is None else rows_per_shard
        if self._rows_per_shard < 1:
            raise ValueError(f"rows_per_shard is {rows_per_shard}; at least 1 is needed")
        if not (resume and self.path.is_dir()):
            refuse_existing(self.path)
            _make_store(self.path, manifest)
        self._shards = _ShardWriter(
            self.path, lambda begun: _refuse_other_store(begun, manifest, self.path)
        )
        lists = {"classes": classes, "domains": domains}
        fixed = {what for what, names in lists.items() if names is not None}
        self._schema = self._shards.schema(fixed)
        self._held: list[EncodedRows] = []
        self._held_rows = 0
        self._open = True

    @property
    def rows(self) -> int:
        """Rows that are safely on disk."""
        return self._shards.manifest.rows

    def append(self, X: Any, labels: Any, domains: Any, split: Any = None, ids: Any = None) -> None:
        """Add rows; where one of them is refused, none is added.

        Parameters
        ----------
        X : array of shape (n, d)
        labels : n class names, or numbers
        domains : n domain names
        split : n bool, optional
            True where the row is reserved. For all rows of a store or for none, as are ids.
        ids : n str, optional
            What rows are called, such as ``art/dog/001.jpg``.
        """
        self._refuse_closed()
        if not len(X):
            return
        rows, self._schema = self._schema.encode(X, labels, domains, split, ids)
        try:
            self._fill(rows)
        except BaseException:
            self.close()  # some rows of the batch are on disk and others are not: go on from there
            raise

    def finish(self) -> None:
        """Write the rows that are held, and mark the store as finished."""
        self._refuse_closed()
        if not self.rows and not self._held:
            raise ValueError(f"{self.path} has no rows; append some before it is finished")
        try:
            self._write(finished=True)
        finally:
            self.close()

    def close(self) -> None:
        """Leave the store as it is on disk; where it is unfinished it can be resumed."""
        self._open = False
        self._drop_held()
        self._shards.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None and self._open:
            self.finish()
        self.close()

    def _fill(self, rows: EncodedRows) -> None:
        """Fill shards with views of the rows, and hold a copy of those that are left."""
        n = len(rows["labels"])
        start = 0
        while start < n:
            stop = min(n, start + self._rows_per_shard - self._held_rows)
            self._held.append({key: values[start:stop] for key, values in rows.items()})
            self._held_rows += stop - start
            start = stop
            if self._held_rows == self._rows_per_shard:
                self._write(finished=False)
        if self._held:  # the caller may use the arrays again
            last = {key: values.copy() for key, values in self._held[-1].items()}
            last["features"] = last["features"].astype(_memory_dtype(self._shards.manifest.dtype))
            self._held[-1] = last

    def _write(self, *, finished: bool) -> None:
        if self._held:
            self._shards.add(self._held)
        self._shards.commit(self._schema, finished=finished)
        self._drop_held()

    def _drop_held(self) -> None:
        self._held = []
        self._held_rows = 0

    def _refuse_closed(self) -> None:
        if not self._open:
            raise ValueError(f"the writer of {self.path} is closed; open it again with resume=True")


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
        Features that are read some rows at a time, as from `stream_table`, are also written so.
    dtype : {"float64", "float32", "float16", "uint8"}, optional
        How features are stored, as in `StoreWriter`. Default: their own.
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
    if rows_per_shard is None and not lazy:
        rows_per_shard = len(data.X)
    with (
        whole_folder(path) as folder,
        StoreWriter(
            folder,
            features=data.X.shape[1],
            dtype=data.X.dtype.name if dtype is None else dtype,
            # A list of classes also keeps their type: JSON tells 1 from "1" and from true.
            classes=np.unique(data.y) if guess_task(data.y) == "classification" else None,
            domains=np.unique(data.domains),
            feature_names=data.feature_names,
            made=data.made,
            rows_per_shard=rows_per_shard,
        ) as writer,
    ):
        # All rows at once where they are in memory, else some at a time.
        parts = chunks(data.X, slice(0, len(data.X))) if lazy else [(slice(None), data.X)]
        for rows, X in parts:
            split = None if data.split is None else data.split[rows]
            names = None if ids is None else ids[rows]
            writer.append(X, data.y[rows], data.domains[rows], split, names)


def append_rows(path: str | Path, data: DomainData, *, ids: Any = None) -> None:
    """Add rows to a finished feature store, as one more shard.

    Until all of them are on disk the store is what it was. Classes and domains that it did not
    have are added to it; the features must be as many and of the same type (any, where the store
    has codes), and made in the same way where ``data`` says how.

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
    shards = _ShardWriter(path, lambda manifest: _refuse_other_rows(manifest, data, path))
    try:
        schema = shards.schema(fixed=())
        rows, schema = schema.encode(data.X, data.y, data.domains, data.split, ids)
        shards.add([rows])
        shards.commit(schema, finished=True)
    finally:
        shards.close()


def checked_table(data: DomainData) -> DomainData:
    """The data as `read` would give it back, refused where it could not."""
    arrays = {"features": data.X, "target": data.y, "domains": data.domains}
    if data.split is not None:
        arrays["split"] = data.split
    where = {"features": "X", "target": "y", "domains": "domains", "split": "split"}
    return replace(assemble(arrays, where, data.name, data.feature_names), made=data.made)


def refuse_existing(path: Path) -> None:
    """Refuse to overwrite anything."""
    if path.exists():
        resume = ", or resume it if it is unfinished" if (path / MANIFEST).exists() else ""
        raise FileExistsError(
            f"{path} exists already; choose another name, or remove it first{resume}"
        )


class _ShardWriter:
    """A store that one process adds shards to; none of them counts until `commit`.

    What a killed process left beside the files that the manifest names is removed.

    Parameters
    ----------
    folder : Path
    refuse : callable
        Raises where the manifest is not one to go on with; nothing is touched then.
    """

    def __init__(self, folder: Path, refuse: Callable[[Manifest], None]) -> None:
        # Locked before it is read: another process may be about to replace the manifest.
        descriptor = lock_folder(folder)
        self._unlock = None if descriptor is None else finalize(self, os.close, descriptor)
        try:
            store = open_store(folder, unfinished=True)
            self.folder = folder
            self.manifest = store.manifest
            self._dtypes = store.dtypes
            self._added: list[Shard] = []
            refuse(self.manifest)
            _drop_orphans(folder, self.manifest)
        except BaseException:
            self.close()
            raise

    def schema(self, fixed: Iterable[str]) -> StoreSchema:
        """How the next rows are encoded; the names of ``fixed`` may not grow."""
        return StoreSchema.from_manifest(self.manifest, self._dtypes, set(fixed))

    def add(self, pieces: Sequence[EncodedRows]) -> None:
        """Write the files of one more shard, which has these rows one after the other."""
        number = self._next_number()
        files: dict[str, StoredFile] = {}
        for key in pieces[0]:
            columns = [piece[key] for piece in pieces]
            if key == "features":
                files |= self._features(columns, number)
                continue
            dtype = np.result_type(*columns)
            if dtype.kind == "S":
                # As wide as the longest here, and not in the batches that they came in: a shard
                # has the same bytes however its rows arrived.
                longest = max(int(np.strings.str_len(ids).max()) for ids in columns)
                dtype = np.dtype(f"S{max(1, longest)}")
            shape = (sum(map(len, columns)),)
            files[key] = _save_rows(self.folder, _file_name(key, number), columns, shape, dtype)
        rows = sum(len(piece["labels"]) for piece in pieces)
        self._added.append(Shard(rows, files))

    def _next_number(self) -> int:
        """The number in the names of the next files, which no file of the store may have."""
        names = [file.name for file in self.manifest.files]
        first = len(self.manifest.shards) + len(self._added)
        free = (n for n in count(first) if not any(x.endswith(_file_name("", n)) for x in names))
        return next(free)

    def _features(self, columns: list[np.ndarray], number: int) -> dict[str, StoredFile]:
        dtype = self.manifest.dtype
        name = _file_name("features", number)
        shape = (sum(map(len, columns)), self.manifest.features)
        parts: Iterator[np.ndarray] = (rows for X in columns for _, rows in row_blocks(X))
        if dtype != CODES:
            return {"features": _save_rows(self.folder, name, parts, shape, dtype)}
        book = codebook(columns)
        coded = (encode_features(rows, book) for rows in parts)
        book_name = _file_name(CODEBOOK, number)
        return {
            "features": _save_rows(self.folder, name, coded, shape, dtype),
            CODEBOOK: _save_rows(self.folder, book_name, [book], book.shape, book.dtype),
        }

    def commit(self, schema: StoreSchema, *, finished: bool) -> None:
        """Replace the manifest: from now on all shards count, with the names so far."""
        manifest = replace(
            self.manifest,
            shards=(*self.manifest.shards, *self._added),
            finished=finished,
            classes=None if schema.classes is None else list(schema.classes.values),
            domains=list(schema.domains.values),
        )
        manifest.write(self.folder)
        self.manifest = manifest
        self._added = []

    def close(self) -> None:
        """Let others write to the store."""
        if self._unlock is not None:
            self._unlock()


def _make_store(path: Path, manifest: Manifest) -> None:
    """Make a store without rows, which appears whole or not at all."""
    with whole_folder(path) as folder:
        folder.mkdir()
        manifest.write(folder)


def _memory_dtype(dtype: str) -> np.dtype:
    """The dtype in which features are held until their shard is written."""
    return np.dtype(np.float32 if dtype == CODES else dtype)


def _shard_rows(manifest: Manifest) -> int:
    row_bytes = manifest.features * _memory_dtype(manifest.dtype).itemsize
    return max(1, _SHARD_BYTES // row_bytes)


def _refuse_other_store(begun: Manifest, asked: Manifest, path: Path) -> None:
    """Refuse to go on with a store that was begun in another way."""
    if begun.finished:
        raise FileExistsError(f"{path} is finished already; choose another name, or append_rows")
    before = _facts(begun)
    now = _facts(asked)
    for what in dict.fromkeys((*before, *now)):
        if what in ("classes", "domains") and not now[what]:  # taken as they come
            continue
        if before.get(what) != now.get(what):
            raise ValueError(
                f"{path} was begun with {what} {short(before.get(what))}, but "
                f"{short(now.get(what))} is asked for; ask for the same, or choose another name"
            )


def _facts(manifest: Manifest) -> dict[str, Any]:
    names = ("features", "dtype", "feature_names", "classes", "domains")
    made = {f"made[{key!r}]": value for key, value in (manifest.made or {}).items()}
    return {name: getattr(manifest, name) for name in names} | made


def _refuse_other_rows(manifest: Manifest, data: DomainData, path: Path) -> None:
    """Refuse rows that differ from those of the store."""
    if manifest.version == 1:
        raise ValueError(f"{path} has version 1, which cannot grow; read it and write it again")
    if not manifest.finished:
        raise ValueError(f"{path} is unfinished; run the command that made it again first")
    dtype = str(data.X.dtype)
    if manifest.dtype not in (CODES, dtype):
        raise ValueError(f"X has dtype {dtype}, but {path} has {manifest.dtype}; convert X to that")
    for what in ("feature_names", "made"):
        before = getattr(manifest, what)
        now = getattr(data, what)
        if now is not None and json.loads(json.dumps(now, default=dict)) != before:
            raise ValueError(f"{what} is not that of {path}; all rows of a store are made alike")


def _file_name(key: str, number: int) -> str:
    return f"{key}-{number:05d}.npy"


def _drop_orphans(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed process left; files that no store would write are not touched."""
    names = {file.name for file in manifest.files}
    for path in folder.iterdir():
        if path.name not in names and _STORE_FILE.fullmatch(path.name):
            path.unlink()


def _save_rows(
    folder: Path, name: str, parts: Iterable[np.ndarray], shape: tuple[int, ...], dtype: Any
) -> StoredFile:
    """Write an ``.npy`` file part after part; it has its name only once it is whole on disk."""
    kind = np.dtype(dtype).newbyteorder("<")
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with whole_file(folder / name) as file:
        hashed = _HashedFile(file)
        np.lib.format.write_array_header_1_0(hashed, header)
        for part in parts:
            hashed.write(np.ascontiguousarray(part, dtype=kind).data)
    return StoredFile(name, hashed.bytes, hashed.digest.hexdigest())


class _HashedFile:
    """A file with the checksum of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: Any) -> None:
        self.file.write(data)
        self.digest.update(data)
        self.bytes += memoryview(data).nbytes
