"""The rows of a file of any size, some at a time, for a head that is fitted already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skdare.datasets._contents import Contents
from skdare.datasets._entries import (
    called,
    columns_of,
    feature_names_of,
    main_entry,
    named_columns,
    named_entry,
    side_by_side,
)
from skdare.datasets._formats import is_csv, open_stream
from skdare.datasets._roles import decode, features_matrix, refuse_infinity

# Features of a chunk take about this many bytes; with very many features they take more, as each
# column of a chunk takes its time however few rows it has.
_CHUNK_BYTES = 1 << 24
_MOST_ROWS = 1 << 14
_LEAST_ROWS = 128


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Some rows of a source, and what stands beside them.

    Parameters
    ----------
    start : int
        How many rows of the source came before.
    X : array of shape (m, d)
    beside : dict
        What was asked for beside the features, by role, one value per row.
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
        What else is wanted of every row; a key that is None goes by a name of the role. Domains
        that are not named and not there are left out.
    usual : mapping from a role to a key, optional
        What a role that is not named is called first, where the file has an entry of that name.

    Attributes
    ----------
    features : int
    rows : int or None
        How many there are; None where only reading all of them tells.
    columns : dict
        The entry of each role that was asked for beside the features.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skdare.datasets._row_source import RowSource
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
        usual: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        wanted = dict(beside or {})
        usual = {role: name for role, name in (usual or {}).items() if role in wanted}
        named = {*wanted.values(), *usual.values()}
        contents = open_stream(path, lambda name: name in named)
        self._contents = contents
        entries = {
            role: _beside(contents, role, name, usual.get(role)) for role, name in wanted.items()
        }
        self._beside = {role: entry for role, entry in entries.items() if entry is not None}
        self._keys = self._features(names, key)
        shape = contents.entries[self._keys[0]].shape
        # Whether one array has all features, and not a column each.
        self._is_matrix = len(self._keys) == 1 and len(shape) == 2
        self._order = self._by_name(names) if self._is_matrix else None
        width = shape[1] if self._is_matrix else len(self._keys)
        self.features = width if self._order is None else len(self._order)
        if not self.features:
            raise ValueError(f"{contents.path} has no features; give rows of at least 1 feature")
        self.rows = None if is_csv(path) else shape[0]
        self._check_rows()

    @property
    def columns(self) -> dict[str, str]:
        return dict(self._beside)

    def place(self, row: int) -> str:
        """What errors call a row of a number: its line, or the number."""
        return self._contents.place(row)

    def __repr__(self) -> str:
        return f"RowSource({str(self.path)!r}, {self.features} features)"

    def _features(self, names: Sequence[str] | None, key: str | None) -> list[str]:
        main = main_entry(self._contents, key)
        if main is not None:
            return [main]
        if names is not None:
            return named_columns(self._contents, names)
        return columns_of(self._contents, key, set(self._beside.values()))

    def _by_name(self, names: Sequence[str] | None) -> np.ndarray | None:
        """Which columns of a matrix to take, where the file names them in another order."""
        in_file = feature_names_of(self._contents, self._keys)
        if names is None or in_file is None or list(names) == list(in_file):
            return None
        place = {name: j for j, name in enumerate(in_file)}
        absent = next((name for name in names if name not in place), None)
        if absent is not None:
            listed = ", ".join(map(str, in_file[:5])) + " and others" * (len(in_file) > 5)
            raise ValueError(
                f"{self._contents.path} has no feature {absent!r}, which the training rows have; "
                f"it has {listed}"
            )
        return np.array([place[name] for name in names])

    def _check_rows(self) -> None:
        """Refuse values beside the features that are not one per row."""
        for role, key in self._beside.items():
            shape = self._contents.entries[key].shape
            if self.rows is not None and shape != (self.rows,):
                raise ValueError(
                    f"{role} {key!r} in {self._contents.path} has shape {shape} and the features "
                    f"{self.rows} rows; one value per row is needed"
                )

    def chunks(self, rows: int | None = None) -> Iterator[RowChunk]:
        """All rows, at most ``rows`` at a time; by default about 16 MB."""
        keys = [side_by_side(self._contents, self._keys), *self._beside.values()]
        what = f"the table of features in {self._contents.path}"
        start = 0
        for values, *others in self._contents.visit(keys, rows or rows_at_a_time(self.features)):
            X = features_matrix(values, what)
            X = X if self._order is None else X[:, self._order]
            names = None if self._is_matrix else self._keys
            refuse_infinity(X, what, names, start, self._contents.place)
            beside = {
                role: self._named(role, column)
                for role, column in zip(self._beside, others, strict=True)
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


def _beside(contents: Contents, role: str, key: str | None, usual: str | None) -> str | None:
    """The entry of a role; None for domains that nothing names."""
    if key is None:
        key = usual if usual in contents.entries else next(iter(called(contents, role)), None)
    return None if key is None and role == "domains" else named_entry(contents, role, key)
