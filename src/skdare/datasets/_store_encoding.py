"""How rows are encoded in a feature store: labels as codes of names, features as 8-bit codes.

Notation: X (n, d) rows, C (n, d) codes, book (2, d) the offset and the step of each feature.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdare.arrays import chunk_rows, to_numpy
from skdare.datasets._manifest import CODES, OPTIONAL, Manifest
from skdare.datasets._roles import MISSING

EncodedRows = dict[str, np.ndarray]
"""Some rows, by the files of a shard: features, labels, domains, split, ids."""

_LAST_CODE = 255
_KINDS = {"U": "text", "b": "booleans", "i": "whole numbers", "f": "numbers"}


@dataclass(frozen=True)
class LabelNames:
    """Names by code; a list that is not ``fixed`` grows as new names come."""

    values: tuple[Any, ...] = ()
    fixed: bool = False

    def encode(self, labels: np.ndarray, what: str) -> tuple[np.ndarray, LabelNames]:
        """Codes of the labels, and the names, with new ones in the order they came."""
        if self.values:
            labels = _same_kind(labels, np.array(self.values).dtype.kind, what)
        present, first, place = np.unique(labels, return_index=True, return_inverse=True)
        codes = {name: code for code, name in enumerate(self.values)}
        for name in present[np.argsort(first)].tolist():
            if name not in codes and self.fixed:
                raise ValueError(
                    f"{what} has {name!r}, which is not among the {len(self.values)} names given; "
                    "add it to them, or give none to take names as they come"
                )
            codes.setdefault(name, len(codes))
        encoded = np.array([codes[name] for name in present.tolist()], dtype=np.int32)
        return encoded[place], replace(self, values=tuple(codes))


@dataclass(frozen=True)
class StoreSchema:
    """How the rows of a store are encoded.

    Each batch may add names, and the first one settles what is open: whether labels are names
    (``classes``) or numbers of the dtype kind ``numbers``, and which of split and ids rows have
    (``optional``).
    """

    features: int
    dtype: str
    classes: LabelNames | None
    domains: LabelNames
    numbers: str | None = None
    optional: frozenset[str] | None = None

    @classmethod
    def from_manifest(
        cls, manifest: Manifest, dtypes: Mapping[str, np.dtype], fixed: Container[str]
    ) -> Self:
        """The schema of the rows that a store has, for rows that are added to it."""
        names = manifest.classes
        classes = None if names is None else LabelNames(tuple(names), "classes" in fixed)
        domains = LabelNames(tuple(manifest.domains), "domains" in fixed)
        numbers = None
        optional = None
        if manifest.shards:
            numbers = dtypes["labels"].kind if names is None else None
            optional = frozenset(OPTIONAL) & dtypes.keys()
        return cls(manifest.features, manifest.dtype, classes, domains, numbers, optional)

    def encode(
        self, X: Any, labels: Any, domains: Any, split: Any = None, ids: Any = None
    ) -> tuple[EncodedRows, StoreSchema]:
        """Encoded rows and the schema after them; rows that are refused change nothing."""
        X = to_numpy(X)
        if X.ndim != 2 or X.shape[1] != self.features or X.dtype.kind not in "biuf":
            raise ValueError(
                f"X has shape {X.shape} and dtype {X.dtype}; rows of {self.features} numbers "
                "are needed"
            )
        schema = self._settle({"split": split is not None, "ids": ids is not None})
        targets, schema = schema._targets(_column(labels, "labels", len(X)))
        places, names = self.domains.encode(_domains(domains, len(X)), "domains")
        rows = {"features": X, "labels": targets, "domains": places}
        if split is not None:
            rows["split"] = _column(split, "split", len(X))
            if rows["split"].dtype.kind != "b":
                raise ValueError(f"split has {rows['split'][0]!r}; True marks the reserved rows")
        if ids is not None:
            text = _column(ids, "ids", len(X)).astype(str)
            # UTF-8, a quarter of NumPy's text; names of files need not be valid, and come back.
            rows["ids"] = np.strings.encode(text, "utf-8", "surrogateescape")
        refuse_beyond(X, self.dtype)
        return rows, replace(schema, domains=names)

    def _settle(self, present: dict[str, bool]) -> StoreSchema:
        """Split and ids are there for all rows or for none."""
        for what, has in present.items():
            if self.optional is not None and has != (what in self.optional):
                differ = "lacks {}, and these have" if has else "has {}, and these lack"
                raise ValueError(
                    f"the store {differ.format(what)} them; give them for all rows or for none"
                )
        return replace(self, optional=frozenset(what for what, has in present.items() if has))

    def _targets(self, labels: np.ndarray) -> tuple[np.ndarray, StoreSchema]:
        kind = labels.dtype.kind
        _refuse_missing(labels, "labels")
        if self.classes is None and self.numbers is None and kind != "U":
            return labels, replace(self, numbers=kind)
        if self.numbers is not None:
            return _same_kind(labels, self.numbers, "labels"), self
        codes, classes = (self.classes or LabelNames()).encode(labels, "labels")
        return codes, replace(self, classes=classes)


def _column(values: Any, what: str, rows: int) -> np.ndarray:
    """One value per row: text, booleans, int64 or float64."""
    column = to_numpy(values)
    if column.dtype.kind == "O":  # as pandas holds text
        column = np.array(column.tolist())
    if column.dtype.kind == "S":
        column = np.strings.decode(column, "utf-8", "backslashreplace")
    if column.ndim != 1 or column.dtype.kind not in "biufU":
        raise ValueError(
            f"{what} has shape {column.shape} and dtype {column.dtype}; give one string or number "
            "per row"
        )
    if len(column) != rows:
        raise ValueError(f"{what} has {len(column)} values but X has {rows} rows; give one per row")
    if column.dtype == np.uint64 and rows and column.max() >> np.uint64(63):
        raise ValueError(f"{what} has {column.max()}, beyond 64-bit whole numbers; use strings")
    if column.dtype.kind in "iuf":
        # One width for all: which one a batch came in says nothing about the next.
        return column.astype(np.float64 if column.dtype.kind == "f" else np.int64, copy=False)
    return column


def _domains(values: Any, rows: int) -> np.ndarray:
    domains = _column(values, "domains", rows)
    if domains.dtype.kind not in "Ui":
        raise ValueError(
            f"domains are {_KINDS[domains.dtype.kind]}; name them by strings or whole numbers"
        )
    _refuse_missing(domains, "domains")
    return domains


def _same_kind(labels: np.ndarray, kind: str, what: str) -> np.ndarray:
    """Labels of the same kind as those before them; whole numbers also pass as numbers."""
    if labels.dtype.kind != kind and (labels.dtype.kind, kind) != ("i", "f"):
        raise ValueError(
            f"{what} are {_KINDS[labels.dtype.kind]}, but those of the store are {_KINDS[kind]}; "
            "convert them"
        )
    return labels.astype(np.float64) if kind == "f" else labels


def _refuse_missing(labels: np.ndarray, what: str) -> None:
    """Refuse to write what readers take for a missing value."""
    if labels.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(labels))
    elif labels.dtype.kind == "U":
        missing = np.flatnonzero(np.isin(np.strings.strip(labels), MISSING))
    else:
        return
    if len(missing):
        value = labels[missing[0]].item()
        raise ValueError(f"{what} has {value!r} in row {missing[0]}; every row needs a {what[:-1]}")


def row_blocks(X: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows in their own type, some at a time, so that a memory map is never loaded whole."""
    step = chunk_rows(X)
    for start in range(0, len(X), step):
        yield start, X[start : start + step]


def refuse_beyond(X: np.ndarray, dtype: str, what: str = "X") -> None:
    """Refuse features that a type cannot hold: infinity, what overflows, NaN among codes."""
    # Half of float32 for codes: the range of a feature, largest less smallest, must fit too.
    limit = np.finfo(np.float32).max / 2 if dtype == CODES else np.finfo(dtype).max
    for start, rows in row_blocks(X):
        if dtype == CODES and np.isnan(rows).any():
            row, column = np.argwhere(np.isnan(rows))[0]
            raise ValueError(
                f"{what} has NaN in row {start + row}, column {column}, and 8-bit codes have no "
                "place for it; impute it, or use float16"
            )
        # A float64 limit: compared with Python's number, float16 rows would overflow themselves.
        beyond = np.abs(rows) > np.float64(limit)
        if beyond.any():
            row, column = np.argwhere(beyond)[0]
            raise ValueError(
                f"{what} has {rows[row, column]} in row {start + row}, column {column}, and "
                f"{dtype} ends at {float(limit):.6g}; correct that row, or use a wider type"
            )


def codebook(pieces: Sequence[np.ndarray]) -> np.ndarray:
    """Offset and step of each feature, such that codes 0 to 255 span its range.

    Affine, not symmetric: features after a ReLU have one sign, and half of the codes would idle.
    """
    ends = [(rows.min(axis=0), rows.max(axis=0)) for X in pieces for _, rows in row_blocks(X)]
    low = np.min([smallest for smallest, _ in ends], axis=0).astype(np.float32)
    high = np.max([largest for _, largest in ends], axis=0).astype(np.float32)
    return np.stack([low, (high.astype(np.float64) - low) / _LAST_CODE]).astype(np.float32)


def encode_features(X: np.ndarray, book: np.ndarray) -> np.ndarray:
    """The codes nearest to X, which is taken as float32, the type that they decode to."""
    offset, step = book.astype(np.float64)
    # A constant feature has step 0, and is its offset whatever the code.
    C = (X.astype(np.float32, copy=False) - offset) / np.where(step > 0, step, 1.0)
    return np.clip(np.rint(C), 0, _LAST_CODE).astype(np.uint8)


def decode_features(C: np.ndarray, book: np.ndarray, out: np.ndarray) -> None:
    """Offset plus step times code, in float32, into ``out``.

    Off by at most half a step, that is (largest - smallest) / 510 of the feature in its shard,
    and the rounding of float32.
    """
    offset, step = book
    np.multiply(C, step, out=out)
    out += offset
