"""A feature store: a folder with shards of ``.npy`` files and a manifest that names them.

The files of a shard are written first, then the manifest is replaced in one step. Until then the
store is what it was, so a killed run loses the rows that were not yet in a shard, and goes on.

Other columns, such as ``y``, ``domains`` and ``id``, are stored as numbers or as text. Repeated
text is stored as codes, and the manifest has their names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout

from skdare.arrays import BlockReader, Rows
from skdare.data.domain_data import ROLES, DomainData
from skdare.data.row_block import LABEL_KINDS, refuse_doubles
from skdare.errors import InputError, counted, quoted
from skdare.files import whole_file, whole_folder

MANIFEST = "manifest.json"
DTYPES = ("float64", "float32", "float16")
_FORMAT = "skdare-features"
_VERSION = 3
# One shard is held in memory while it fills: small enough to fit next to a network, and large
# enough that most sets are one shard, which is a memory map.
_SHARD_BYTES = 256 << 20


@dataclass(frozen=True)
class Shard:
    """Some rows: their files by column, and the checksum of each."""

    rows: int
    files: dict[str, str]
    sha256: dict[str, str]


@dataclass(frozen=True)
class Store:
    """Contents of a feature store; its rows stay on disk.

    Parameters
    ----------
    folder : Path
    feature_names : list of str
    dtype : {"float64", "float32", "float16"}
        How the features are stored.
    columns : list of str
        The other columns.
    names : dict
        Text of the codes of a column.
    shards : list of Shard
    made : dict
        How the features were made.
    finished : bool
        Whether all rows are there.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.data import Store, make_latent_domains, read, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     Store.open(f"{folder}/latent").rows, read(f"{folder}/latent").X.shape
    (1200, (1200, 8))
    """

    folder: Path
    feature_names: list[str]
    dtype: str
    columns: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    shards: list[Shard] = field(default_factory=list)
    made: dict[str, Any] = field(default_factory=dict)
    finished: bool = False

    @classmethod
    def open(cls, folder: str | Path, *, unfinished: bool = False) -> Self:
        """Read a manifest, and check that every file is there and as large as it should be."""
        folder = Path(folder)
        path = folder / MANIFEST
        if not path.is_file():
            raise InputError(f"{quoted(folder)} is not a feature store", f"it has no {MANIFEST}")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            version = content.pop("format"), content.pop("version")
            shards = [Shard(**shard) for shard in content.pop("shards")]
            store = cls(folder, shards=shards, **content)
            if version != (_FORMAT, _VERSION) or store.dtype not in DTYPES:
                raise ValueError(f"format {version}, {store.dtype}")
            store._check_types()
            store._check_files()
        except InputError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{quoted(path)} is damaged or of another version: {str(error)[:80]}",
                "write the store again",
            ) from error
        if not store.finished and not unfinished:
            raise InputError(
                f"{quoted(folder)} is unfinished, with {counted(store.rows, 'row')}",
                "run the command that made it again, and it continues",
            )
        return store

    def _check_types(self) -> None:
        texts = [self.feature_names, self.columns, *self.names.values()]
        texts += [[*shard.files.values(), *shard.sha256.values()] for shard in self.shards]
        for names in texts:
            if type(names) is not list or not all(type(name) is str for name in names):
                raise ValueError(f"names are {names!r:.40}")
        for shard in self.shards:
            if (
                type(shard.rows) is not int
                or shard.rows < 1
                or set(shard.files) != set(shard.sha256)
            ):
                raise ValueError(f"a shard is {shard!r:.40}")
        if type(self.finished) is not bool or type(self.made) is not dict:
            raise ValueError(f"finished is {self.finished!r:.40}, made is {self.made!r:.40}")
        if self.finished and not self.shards:
            raise ValueError("it has no rows")
        if len(set(self.columns)) < len(self.columns) or not set(self.names) <= set(self.columns):
            raise ValueError(f"columns are {self.columns!r:.40}")

    def _check_files(self) -> None:
        d = len(self.feature_names)
        for shard in self.shards:
            if set(shard.files) != {"X", *self.columns}:
                raise ValueError(f"a shard has {sorted(shard.files)}")
            for column, name in shard.files.items():
                if Path(name).name != name or (self.folder / name).is_symlink():
                    raise ValueError(f"a file is called {name!r}")
                values = self._file(shard, column)
                shape = (shard.rows, d) if column == "X" else (shard.rows,)
                kinds = "i" if column in self.names else LABEL_KINDS
                right = values.dtype.kind in kinds if column != "X" else values.dtype == self.dtype
                if values.shape != shape or not right:
                    raise InputError(
                        f"{quoted(self.folder / name)} has shape {values.shape} and dtype "
                        f"{values.dtype}, which is not what was written",
                        "write the store again",
                    )

    @property
    def rows(self) -> int:
        """Rows that are safely on disk."""
        return sum(shard.rows for shard in self.shards)

    def _file(self, shard: Shard, column: str) -> np.ndarray:
        path = self.folder / shard.files[column]
        try:
            if not path.is_file():
                raise FileNotFoundError(path)
            return np.lib.format.open_memmap(path, mode="r")
        except Exception as error:  # NumPy parses headers with Python's own parser
            raise InputError(
                f"{quoted(path)} is missing or damaged", "write the store again"
            ) from error

    @property
    def X(self) -> Any:
        """The features of all rows, which stay on disk: a memory map, or rows of several shards."""
        if len(self.shards) == 1:
            return self._file(self.shards[0], "X")
        ends = np.cumsum([shard.rows for shard in self.shards]).tolist()
        shape = (self.rows, len(self.feature_names))
        read = BlockReader(ends, self.block)
        return Rows(shape, np.dtype(self.dtype), read, is_portable=True)

    def block(self, number: int) -> np.ndarray:
        """The features of one shard."""
        return self._file(self.shards[number], "X")

    def column(self, name: str) -> np.ndarray:
        """All values of a column that is not a feature."""
        values = np.concatenate([self._file(shard, name) for shard in self.shards])
        if name not in self.names:
            return values
        if len(values) and not 0 <= values.min() <= values.max() < len(self.names[name]):
            raise InputError(
                f"{quoted(self.folder)} has codes of {name} without a name", "write it again"
            )
        return np.array(self.names[name])[values]

    def damaged(self) -> list[str]:
        """Files whose checksum is not the one in the manifest."""
        return [
            name
            for shard in self.shards
            for column, name in shard.files.items()
            if _sha256(self.folder / name) != shard.sha256[column]
        ]

    def write_manifest(self) -> None:
        content = asdict(self) | {"format": _FORMAT, "version": _VERSION}
        del content["folder"]
        with whole_file(self.folder / MANIFEST) as file:
            file.write(json.dumps(content, indent=1).encode())


class StoreWriter:
    """Write a feature store some rows at a time, so that a killed run can go on.

    Parameters
    ----------
    folder : path
        It must not exist, unless the store in it is unfinished and was begun alike.
    feature_names : sequence of str
    dtype : {"float64", "float32", "float16"}
    made : mapping, optional
        How the features were made; it must be the same when a run goes on.
    rows_per_shard : int, optional
        Default: as many as 256 MiB have. Give fewer where rows are slow to make.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skdare.data import StoreWriter, read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with StoreWriter(f"{folder}/pets", ["a", "b"]) as writer:
    ...         writer.append(np.eye(2), y=["cat", "dog"], domains=["photo", "sketch"])
    ...     read(f"{folder}/pets").y.tolist()
    ['cat', 'dog']
    """

    def __init__(
        self,
        folder: str | Path,
        feature_names: Sequence[str],
        *,
        dtype: str = "float32",
        made: Mapping[str, Any] | None = None,
        rows_per_shard: int | None = None,
    ) -> None:
        folder = Path(folder)
        if dtype not in DTYPES:
            raise InputError(f"a store of {dtype} is not possible", f"use {', '.join(DTYPES)}")
        names = list(map(str, feature_names))
        refuse_doubles(names, str(folder))
        try:
            made_of: dict[str, Any] = json.loads(json.dumps(dict(made or {}), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InputError(f"made is not JSON: {error}", "use text and finite numbers") from error
        begun = (folder / MANIFEST).exists()
        if folder.exists() and not begun:
            raise InputError(f"{quoted(folder)} exists already", "choose another name")
        folder.mkdir(parents=True, exist_ok=True)
        row_bytes = max(1, len(names)) * np.dtype(dtype).itemsize
        self._rows_per_shard = rows_per_shard or max(1, _SHARD_BYTES // row_bytes)
        self._held: list[dict[str, np.ndarray]] = []
        self._lock = FileLock(folder / ".lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise InputError(
                f"another process is writing to {quoted(folder)}", "wait for it"
            ) from error
        self.store = Store(folder, names, dtype, made=made_of)
        try:
            if begun:
                self._continue()
            else:
                self.store.write_manifest()
        except BaseException:
            self._lock.release()
            raise

    def _continue(self) -> None:
        begun = Store.open(self.store.folder, unfinished=True)
        if begun.finished:
            raise InputError(f"{quoted(begun.folder)} exists already", "choose another name")
        for name in ("feature_names", "dtype", "made"):
            before = getattr(begun, name)
            if before != getattr(self.store, name):
                raise InputError(
                    f"{quoted(begun.folder)} was begun with another {name}: {str(before)[:80]}",
                    "give the same, or choose another name",
                )
        self.store = begun

    @property
    def rows(self) -> int:
        """Rows that are safely on disk, after which to continue."""
        return self.store.rows

    @property
    def held_rows(self) -> int:
        """Rows in memory, until their shard is full."""
        return sum(len(part["X"]) for part in self._held)

    def append(self, X: Any, /, **columns: Any) -> None:
        """Add rows and their other columns, which are the same each time."""
        if "X" in columns:
            raise InputError("a column is called 'X', as the features are", "rename it")
        rows = {"X": np.asarray(X)} | {name: np.array(v) for name, v in columns.items()}
        before = self._held[0] if self._held else dict.fromkeys(["X", *self.store.columns])
        if (self._held or self.store.shards) and set(rows) != set(before):
            raise InputError(f"columns {sorted(rows)} follow {sorted(before)}", "give the same")
        d = len(self.store.feature_names)
        if rows["X"].shape[1:] != (d,) or rows["X"].dtype.kind not in "biuf":
            raise InputError(
                f"X has shape {rows['X'].shape} and dtype {rows['X'].dtype}",
                f"pass rows of {counted(d, 'number')}",
            )
        for name in columns:
            if rows[name].shape != rows["X"].shape[:1]:
                raise InputError(
                    f"{name} has shape {rows[name].shape} and X has {len(rows['X']):,} rows",
                    "give one value for each row",
                )
            if rows[name].dtype.kind not in LABEL_KINDS + "O":
                raise InputError(f"{name} has dtype {rows[name].dtype}", "use numbers or text")
        with np.errstate(over="ignore"):
            X = rows["X"].astype(self.store.dtype, order="C")  # rows are contiguous on disk
        if np.isinf(X).any():
            largest = float(np.nanmax(np.abs(rows["X"])))
            if np.isinf(largest):
                raise InputError("X has infinity", "put a number there, or NaN")
            raise InputError(
                f"X reaches {largest:.3g}, which {self.store.dtype} cannot hold", "use float64"
            )
        rows["X"] = X
        start = 0
        while start < len(X):
            room = self._rows_per_shard - self.held_rows
            self._held.append({name: v[start : start + room] for name, v in rows.items()})
            start += room
            if self.held_rows == self._rows_per_shard:
                self._write_shard(finished=False)

    def _write_shard(self, *, finished: bool) -> None:
        """Write the rows that are held, then the manifest that names their files."""
        store = self.store
        if self._held:
            number = len(store.shards)
            files, sums, names = {}, {}, dict(store.names)
            for i, column in enumerate(self._held[0]):
                values = np.concatenate([part[column] for part in self._held])
                is_text = values.dtype.kind in "UO"
                if is_text and store.shards and column in ROLES.values() and column not in names:
                    raise InputError(
                        f"column {column} has numbers at first, and then '{values[0]}'",
                        "give it as text from the start",
                    )
                if is_text or column in names:
                    text = ["" if value is None else str(value) for value in values.tolist()]
                    values = np.array(text)
                if column in names or (is_text and column in ROLES.values()):
                    known = {text: code for code, text in enumerate(names.get(column, []))}
                    codes = [known.setdefault(value, len(known)) for value in text]
                    values, names[column] = np.array(codes, np.int32), list(known)
                files[column] = f"{'features' if column == 'X' else f'column{i}'}-{number:05d}.npy"
                path = store.folder / files[column]
                with path.open("wb") as file:
                    np.save(file, values, allow_pickle=False)
                    file.flush()
                    os.fsync(file.fileno())
                sums[column] = _sha256(path)
            shard = Shard(sum(len(part["X"]) for part in self._held), files, sums)
            columns = [column for column in self._held[0] if column != "X"]
            store = replace(store, columns=columns, names=names, shards=[*store.shards, shard])
        store = replace(store, finished=finished)
        store.write_manifest()
        self.store = store
        self._held = []

    def finish(self) -> None:
        """Write the rows that are held, and mark the store as finished."""
        if not self.rows and not self._held:
            raise InputError(f"{quoted(self.store.folder)} has no rows", "append some first")
        self._write_shard(finished=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self._lock.release()


def write_store(
    folder: str | Path,
    data: DomainData,
    *,
    dtype: str | None = None,
    made: Mapping[str, Any] | None = None,
) -> None:
    """Write a table as a feature store, which `read` reads: a folder, whole or not there."""
    columns = data.labels
    columns |= {name: values for name, values in data.ids.items() if name not in columns}
    dtype = dtype or (data.X.dtype.name if data.X.dtype.name in DTYPES else "float32")
    with whole_folder(folder) as partial:
        with StoreWriter(partial, data.feature_names.tolist(), dtype=dtype, made=made) as writer:
            step = writer._rows_per_shard
            for start in range(0, data.X.shape[0], step):
                part = slice(start, start + step)
                X = data.X[part].toarray() if hasattr(data.X, "toarray") else data.X[part]
                writer.append(X, **{name: values[part] for name, values in columns.items()})
        (partial / ".lock").unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
