"""Rows on their way to a head that is fitted already: a file of any size, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skdare.datasets._contents import Contents
from skdare.datasets._csv_stream import STDIN, stream_csv
from skdare.datasets._entries import (
    called,
    columns_of,
    feature_names_of,
    main_entry,
    named_entry,
    side_by_side,
)
from skdare.datasets._read import is_csv, opened
from skdare.datasets._roles import decode, features_matrix, refuse_infinity

# Features of a chunk take about as many bytes; of very many features more, as each column of a
# chunk takes its time however few rows it has.
_CHUNK_BYTES = 1 << 24
_MOST_ROWS = 1 << 14
_LEAST_ROWS = 128


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Some rows.

    Parameters
    ----------
    start : int
        How many rows of the source came before.
    X : array of shape (m, d)
    beside : dict
        What was asked for beside the features, by role, one value a row.
    """

    start: int
    X: np.ndarray
    beside: dict[str, np.ndarray]


class RowSource:
    """The rows of a file or feature store, which may be larger than memory, in order.

    ``.npz``, ``.npy``, Parquet, CSV, ``.csv.gz``, safetensors and feature stores are read as rows
    are asked for; ``.pt``, and arrays in Fortran order, are loaded.

    Parameters
    ----------
    path : str or Path
        As for `read`, or an array in a ``.npy`` file; "-" is CSV on the standard input.
    names : sequence of str, optional
        The features in their order: columns of a table are taken by these names, and those of an
        array where the file names them.
    key : str, optional
        As ``features`` in `read`, where no names are known.
    beside : mapping from "id", "target" or "domains" to a key, optional
        What else is wanted of every row; a key that is None goes by a name of the role.

    Attributes
    ----------
    features : int
    rows : int or None
        How many there are; None where only reading all of them tells.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skdare.datasets import RowSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/new.npy", np.ones((5, 3)))
    ...     source = RowSource(f"{folder}/new.npy")
    ...     [chunk.X.shape for chunk in source.chunks(2)]
    [(2, 3), (2, 3), (1, 3)]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        names: Sequence[str] | None = None,
        key: str | None = None,
        beside: Mapping[str, str | None] | None = None,
    ) -> None:
        self.path = path
        wanted = dict(beside or {})
        self._contents = opened_rows(path, lambda name: name in wanted.values())
        self._beside = {role: _beside(self._contents, role, k) for role, k in wanted.items()}
        self._keys = self._features(names, key)
        entries = [self._contents.entries[k] for k in self._keys]
        self._wide = len(entries) == 1 and len(entries[0].shape) == 2
        self._order = self._by_name(names) if self._wide else None
        width = entries[0].shape[1] if self._wide else len(entries)
        self.features = width if self._order is None else len(self._order)
        if not self.features:
            raise ValueError(
                f"{self._contents.path} has no features; give rows of at least 1 feature"
            )
        self.rows = None if _is_csv(path) else entries[0].shape[0]
        self._check_rows()

    def __repr__(self) -> str:
        return f"RowSource({str(self.path)!r}, {self.features} features)"

    def _features(self, names: Sequence[str] | None, key: str | None) -> list[str]:
        contents = self._contents
        main = main_entry(contents, key)
        if main is not None:
            return [main]
        if names is None:
            return columns_of(contents, key, set(self._beside.values()))
        missing = [name for name in names if name not in contents.entries]
        if missing:
            raise ValueError(
                f"{contents.path} has no column {missing[0]!r}, which the training rows have; it "
                f"has {contents.listing()}"
            )
        return list(names)

    def _by_name(self, names: Sequence[str] | None) -> np.ndarray | None:
        """Which columns of a matrix are asked for, where the file names them in its own way."""
        own = feature_names_of(self._contents, self._keys)
        if names is None or own is None or list(names) == list(own):
            return None
        place = {name: j for j, name in enumerate(own)}
        missing = [name for name in names if name not in place]
        if missing:
            raise ValueError(
                f"{self._contents.path} has no feature {missing[0]!r}, which the training rows "
                f"have; it has {', '.join(map(str, own[:5]))}{' and others' * (len(own) > 5)}"
            )
        return np.array([place[name] for name in names])

    def _check_rows(self) -> None:
        """Every row has all that is asked for."""
        for role, key in self._beside.items():
            shape = self._contents.entries[key].shape
            if self.rows is not None and shape != (self.rows,):
                raise ValueError(
                    f"{role} {key!r} in {self._contents.path} has shape {shape} and the features "
                    f"{self.rows} rows; one value a row is needed"
                )

    def chunks(self, rows: int | None = None) -> Iterator[RowChunk]:
        """All rows, so many at a time; by default about 16 MB."""
        n = rows or rows_at_a_time(self.features)
        features = side_by_side(self._contents, self._keys)
        keys, start = [features, *self._beside.values()], 0
        for found, *others in self._contents.visit(keys, n):
            what = f"features in {self._contents.path}"
            X = features_matrix(found, what)
            X = X if self._order is None else X[:, self._order]
            refuse_infinity(X, what, None if self._wide else self._keys, start)
            beside = {
                role: self._named(role, values)
                for role, values in zip(self._beside, others, strict=True)
            }
            yield RowChunk(start, X, beside)
            start += len(X)
        if not start:
            raise ValueError(f"{self._contents.path} has no rows; there is nothing to look at")

    def _named(self, role: str, values: np.ndarray) -> np.ndarray:
        """Labels by their names, and text as text."""
        names = self._contents.names.get(role)
        if names is not None:
            return decode(values, names, f"{role} in {self._contents.path}")
        if values.dtype.kind == "S":
            return np.strings.decode(values, "utf-8", "backslashreplace")
        return np.asarray(values)


def rows_at_a_time(features: int) -> int:
    """How many rows a chunk has."""
    return max(_LEAST_ROWS, min(_MOST_ROWS, _CHUNK_BYTES // (8 * features)))


def _is_csv(path: str | Path) -> bool:
    return str(path) == STDIN or is_csv(Path(path))


def opened_rows(path: str | Path, is_text: Callable[[str], bool]) -> Contents:
    """What a file holds; of CSV, only the first rows are looked at, and some columns are text."""
    if not _is_csv(path) or (str(path) != STDIN and not Path(path).is_file()):
        return opened(Path(path))
    return stream_csv(Path(path), is_text)


def _beside(contents: Contents, role: str, key: str | None) -> str:
    return named_entry(contents, role, key or next(iter(called(contents, role)), None))
