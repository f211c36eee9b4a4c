"""Rows on their way into a feature store: checked, and labels turned into codes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdare.arrays import to_numpy
from skdare.datasets._manifest import OPTIONAL, Manifest
from skdare.datasets._roles import MISSING
from skdare.datasets._store_codes import refuse_beyond

Rows = dict[str, np.ndarray]
"""Some rows, by what the files of a shard hold: features, labels, domains, split, ids."""

_KINDS = {"U": "text", "b": "booleans", "i": "whole numbers", "f": "numbers"}


@dataclass(frozen=True)
class Names:
    """Names by code; a list that is not ``fixed`` grows with those it has not met."""

    values: tuple[Any, ...] = ()
    fixed: bool = False

    def encode(self, labels: np.ndarray, what: str) -> tuple[np.ndarray, Names]:
        """Codes of the labels, and the names with new ones in the order they came."""
        if self.values:
            labels = _same_kind(labels, np.array(self.values).dtype.kind, what)
        present, first, place = np.unique(labels, return_index=True, return_inverse=True)
        code = {name: i for i, name in enumerate(self.values)}
        for name in present[np.argsort(first)].tolist():
            if name not in code and self.fixed:
                raise ValueError(
                    f"{what} has {name!r}, which is not among the {len(self.values)} names given; "
                    "add it to them, or give none to take names as they come"
                )
            code.setdefault(name, len(code))
        codes = np.array([code[name] for name in present.tolist()], dtype=np.int32)
        return codes[place], replace(self, values=tuple(code))


@dataclass(frozen=True)
class Scheme:
    """How rows are stored; each batch may add names, and the first one settles what is open.

    ``classes`` is None where labels are numbers, of the kind ``numbers``; before the first rows
    both may be open, as is ``optional``: which of split and ids rows have.
    """

    features: int
    dtype: str
    classes: Names | None
    domains: Names
    numbers: str | None = None
    optional: frozenset[str] | None = None

    @classmethod
    def of(cls, manifest: Manifest, dtypes: Mapping[str, np.dtype], fixed: Container[str]) -> Self:
        """How the rows of a store go on: as those that are there."""
        known = manifest.classes
        classes = None if known is None else Names(tuple(known), "classes" in fixed)
        domains = Names(tuple(manifest.domains), "domains" in fixed)
        numbers = optional = None
        if manifest.shards:
            numbers = dtypes["labels"].kind if known is None else None
            optional = frozenset(OPTIONAL) & dtypes.keys()
        return cls(manifest.features, manifest.dtype, classes, domains, numbers, optional)

    def encode(
        self, X: Any, labels: Any, domains: Any, split: Any = None, ids: Any = None
    ) -> tuple[Rows, Scheme]:
        """Rows as they are stored; nothing is changed where they are refused."""
        X = to_numpy(X)
        if X.ndim != 2 or X.shape[1] != self.features or X.dtype.kind not in "biuf":
            raise ValueError(
                f"X has shape {X.shape} and dtype {X.dtype}; rows of {self.features} numbers "
                "are needed"
            )
        scheme = self._settled({"split": split is not None, "ids": ids is not None})
        targets, scheme = scheme._targets(_column(labels, "labels", len(X)))
        places, named = self.domains.encode(_domains(domains, len(X)), "domains")
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
        return rows, replace(scheme, domains=named)

    def _settled(self, given: dict[str, bool]) -> Scheme:
        """Split and ids are there for all rows or for none."""
        for what, present in given.items():
            if self.optional is not None and present != (what in self.optional):
                before, now = ("has", "these lack") if not present else ("lacks", "these have")
                raise ValueError(f"the store {before} {what}, and {now} them; all rows or none do")
        return replace(self, optional=frozenset(what for what, has in given.items() if has))

    def _targets(self, labels: np.ndarray) -> tuple[np.ndarray, Scheme]:
        kind = labels.dtype.kind
        _refuse_missing(labels, "labels")
        if self.classes is None and self.numbers is None and kind != "U":
            return labels, replace(self, numbers=kind)
        if self.numbers is not None:
            return _same_kind(labels, self.numbers, "labels"), self
        codes, classes = (self.classes or Names()).encode(labels, "labels")
        return codes, replace(self, classes=classes)


def _column(values: Any, what: str, rows: int) -> np.ndarray:
    """One value a row: text, booleans, int64 or float64."""
    column = to_numpy(values)
    if column.dtype.kind == "O":  # pandas keeps text so
        column = np.array(column.tolist())
    if column.dtype.kind == "S":
        column = np.strings.decode(column, "utf-8", "backslashreplace")
    if column.ndim != 1 or column.dtype.kind not in "biufU":
        raise ValueError(
            f"{what} has shape {column.shape} and dtype {column.dtype}; one string or number a row "
            "is needed"
        )
    if len(column) != rows:
        raise ValueError(f"{what} has {len(column)} values but X has {rows} rows; give one a row")
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
    """Labels of the kind of those before them; whole numbers also pass as numbers."""
    if labels.dtype.kind != kind and (labels.dtype.kind, kind) != ("i", "f"):
        raise ValueError(
            f"{what} are {_KINDS[labels.dtype.kind]}, but those of the store are {_KINDS[kind]}; "
            "convert them"
        )
    return labels.astype(np.float64) if kind == "f" else labels


def _refuse_missing(labels: np.ndarray, what: str) -> None:
    """What readers take for a missing value is not written."""
    if labels.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(labels))
    elif labels.dtype.kind == "U":
        missing = np.flatnonzero(np.isin(np.strings.strip(labels), MISSING))
    else:
        return
    if len(missing):
        told = labels[missing[0]].item()
        raise ValueError(f"{what} has {told!r} in row {missing[0]}; every row needs a {what[:-1]}")
