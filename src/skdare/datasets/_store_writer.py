"""Writing a feature store as rows come, so that a killed run can go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from reprlib import repr as short
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdare.datasets._manifest import CODES, MANIFEST, Manifest, checked
from skdare.datasets._store_rows import Rows, Scheme
from skdare.datasets._store_shards import Shards, new_folder

# One shard is held in memory while it fills, and is lost when the process is killed: small
# enough to sit beside a network, and large enough that most sets are one shard, a memory map.
_SHARD_BYTES = 256 << 20


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
        How features are kept. "uint8": as 8-bit codes between the smallest and the largest value
        of each feature in a shard, read back as float32 and off by at most 1/510 of that range.
    classes : list, optional
        All class names, in order: a label that is not among them is refused. Default: labels
        that are text become class names as they come, numbers and booleans stay what they are.
    domains : list, optional
        All domain names, in the same manner. Default: names are taken as they come.
    feature_names : list of str, optional
    made : dict, optional
        How the features were made, kept as JSON: backbone, weights, transform and so on.
    rows_per_shard : int, optional
        Default: as many as 256 MiB of features in memory have. Where rows are slow to make, give
        fewer, so that less is lost.
    resume : bool
        Go on with an unfinished store, which must have been begun with the same arguments, but
        for ``rows_per_shard``; or begin, where there is none.

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
        asked = Manifest(
            index(features),
            dtype if isinstance(dtype, str) else np.dtype(dtype).name,
            None if classes is None else np.asarray(classes).tolist(),
            [] if domains is None else np.asarray(domains).tolist(),
            None if feature_names is None else [str(name) for name in feature_names],
            None if made is None else dict(made),
        )
        asked = checked(asked, self.path)
        self._rows_per_shard = _shard_rows(asked) if rows_per_shard is None else rows_per_shard
        if self._rows_per_shard < 1:
            raise ValueError(f"rows_per_shard is {rows_per_shard}; at least 1 is needed")
        if not (resume and self.path.is_dir()):
            refuse_existing(self.path)
            new_folder(self.path, asked)
        self._shards = Shards(self.path, lambda found: _refuse_other(found, asked, self.path))
        given = {"classes": classes, "domains": domains}
        fixed = {what for what, names in given.items() if names is not None}
        self._scheme = Scheme.of(self._shards.manifest, self._shards.store.dtypes, fixed)
        self._held: list[Rows] = []
        self._held_rows, self._open = 0, True

    @property
    def rows(self) -> int:
        """Rows that are safely on file."""
        return self._shards.manifest.rows

    def append(self, X: Any, labels: Any, domains: Any, split: Any = None, ids: Any = None) -> None:
        """Add rows; where some are refused, none is added.

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
        rows, self._scheme = self._scheme.encode(X, labels, domains, split, ids)
        try:
            self._take(rows)
        except BaseException:
            self.close()  # some rows of the batch are on file and others are not: go on from there
            raise

    def finish(self) -> None:
        """Write what is held, and say that the store is whole."""
        self._refuse_closed()
        if not self.rows and not self._held:
            raise ValueError(f"{self.path} has no rows; append some before it is finished")
        try:
            self._write(finished=True)
        finally:
            self.close()

    def close(self) -> None:
        """Leave the store as it is on file; where it is unfinished it can be resumed."""
        self._open, self._held, self._held_rows = False, [], 0
        self._shards.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None and self._open:
            self.finish()
        self.close()

    def _take(self, rows: Rows) -> None:
        """Fill shards with views of the rows, and hold a copy of those that are left."""
        n, start = len(rows["labels"]), 0
        while start < n:
            stop = min(n, start + self._rows_per_shard - self._held_rows)
            self._held.append({key: values[start:stop] for key, values in rows.items()})
            self._held_rows += stop - start
            start = stop
            if self._held_rows == self._rows_per_shard:
                self._write(finished=False)
        if self._held:  # the caller may use the arrays again
            last = {key: values.copy() for key, values in self._held[-1].items()}
            last["features"] = last["features"].astype(_held_dtype(self._shards.manifest.dtype))
            self._held[-1] = last

    def _write(self, *, finished: bool) -> None:
        if self._held:
            self._shards.add(self._held)
        self._shards.commit(self._scheme, finished=finished)
        self._held, self._held_rows = [], 0

    def _refuse_closed(self) -> None:
        if not self._open:
            raise ValueError(f"the writer of {self.path} is closed; open it again with resume=True")


def _held_dtype(dtype: str) -> np.dtype:
    return np.dtype(np.float32 if dtype == CODES else dtype)


def _shard_rows(manifest: Manifest) -> int:
    row = manifest.features * _held_dtype(manifest.dtype).itemsize
    return max(1, _SHARD_BYTES // row)


def refuse_existing(path: Path) -> None:
    """Nothing is ever overwritten."""
    if path.exists():
        unfinished = "" if not (path / MANIFEST).exists() else ", or resume it if it is unfinished"
        raise FileExistsError(
            f"{path} exists already; choose another name, or remove it first{unfinished}"
        )


def _refuse_other(found: Manifest, asked: Manifest, path: Path) -> None:
    """Rows made in another way do not belong to the same store."""
    if found.finished:
        raise FileExistsError(f"{path} is finished already; choose another name, or append_rows")
    before, now = _facts(found), _facts(asked)
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
