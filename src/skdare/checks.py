"""What callers pass, checked once, at the public door: inside, nothing is checked again."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from itertools import accumulate
from numbers import Integral, Real
from typing import Any, Literal

import array_api_compat as compat
import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from skdare.arrays import (
    Array,
    BlockReader,
    Index,
    Part,
    Rows,
    SpreadRows,
    chunks,
    map_reduce,
    namespace,
    to_numpy,
    work_dtype,
)
from skdare.errors import InputError, listed

Label = str | int | float | bool
"""Name of a domain."""

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None
"""Weight of each class in the loss: equal, as given, or None for what the rows weigh."""

_FLOATS = [np.float64, np.float32, np.float16]
# Powers of larger features overflow: in float64 squared norms of second moments are needed.
_LARGEST = {"float64": 1e75, "float32": 1e11}
# Numbers that are looked at twice faster than they are cut into chunks.
_CACHED = 1 << 18


def check_rows(
    X: Array,
    name: str,
    *,
    features: int | None = None,
    least: int = 1,
    feature_names: Sequence[str] | None = None,
) -> Array:
    """Rows of finite features, in their own library; a float memory map is not copied."""
    X = rows_of(X)
    if isinstance(X, Rows) or (compat.is_array_api_obj(X) and not compat.is_numpy_array(X)):
        if X.ndim != 2 or X.shape[0] < least:
            raise InputError(
                f"X has shape {tuple(X.shape)}", f"pass at least {least} rows of features"
            )
    else:
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=_FLOATS,
            ensure_all_finite=False,  # below, without a copy, and naming the feature
            ensure_min_samples=least,
        )
    if features is not None and X.shape[1] != features:
        raise InputError(
            f"X has {X.shape[1]} features, but {name} is expecting {features} features as input"
        )
    largest = _LARGEST["float32" if "64" not in str(work_dtype(X)) else "float64"]
    everyone = Part(X, slice(0, X.shape[0]))
    if isinstance(X, SpreadRows):
        is_within = not map_reduce(_count_beyond, [everyone], [largest])[0]
    elif isinstance(X, Rows) or X.shape[0] * X.shape[1] > _CACHED:  # a chunk at a time
        is_within = not _count_beyond(everyone, largest)
    else:
        is_within = _is_within(X, largest)
    if is_within:
        return X
    missing, infinite, large = map_reduce(_count_by_column, [everyone], [largest])[0]
    column = int(np.flatnonzero(missing + infinite + large)[0])
    feature = f"feature {column}" if feature_names is None else f"feature {feature_names[column]!r}"
    if missing[column]:
        raise InputError(
            f"Input X contains NaN, first in {feature}",
            "fill missing values with preparation='auto', or drop the rows",
        )
    if infinite[column]:
        raise InputError(f"Input X contains infinity, first in {feature}", "correct those rows")
    raise InputError(
        f"{feature} reaches beyond {largest:.0e}, where powers of {X.dtype} features overflow",
        "divide it by a constant, or standardise it",
    )


def _is_within(X: Array, largest: float) -> bool:
    """Whether all entries are numbers of at most this size; NaN is not within anything."""
    values = X.data if sparse.issparse(X) else X
    xp = namespace(values)
    if 0 in values.shape:
        return True
    return float(xp.max(values)) <= largest and float(xp.min(values)) >= -largest


def _count_beyond(part: Part, largest: float) -> int:
    """How many chunks have an entry that is not within this size."""
    return sum(not _is_within(rows, largest) for _, rows in chunks(part.X, part.index))


def _count_by_column(part: Part, largest: float) -> np.ndarray:
    """How many entries of each feature are NaN, infinite, and too large."""
    counts = np.zeros((3, part.X.shape[1]))
    for _, rows in chunks(part.X, part.index):
        rows = rows.toarray() if sparse.issparse(rows) else to_numpy(rows)
        size = np.abs(rows)
        counts += [
            np.isnan(rows).sum(axis=0),
            np.isinf(rows).sum(axis=0),
            ((size > largest) & np.isfinite(rows)).sum(axis=0),
        ]
    return counts


def is_dask_array(X: Any) -> bool:
    """Whether X is a dask.array; Dask is not imported to find out."""
    return "dask.array" in sys.modules and isinstance(X, sys.modules["dask.array"].Array)


def in_blocks(X: Any) -> Any:
    """A dask.array as a table of known size whose blocks have whole rows."""
    if X.ndim != 2:
        raise InputError(f"X has {X.ndim} dimensions", "pass rows by features")
    if np.isnan(X.shape[1]):
        raise InputError("X has an unknown number of features", "call X.compute_chunk_sizes()")
    if np.isnan(X.shape[0]):
        X = X.persist().compute_chunk_sizes()
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def rows_of(X: Array) -> Array:
    """A dask.array as rows that are computed block by block; everything else unchanged."""
    if not is_dask_array(X):
        return X
    X = in_blocks(X)
    ends = [*accumulate(X.chunks[0])]
    reader = BlockReader(ends, lambda b: np.asarray(X.blocks[b].compute()))
    return Rows(X.shape, X.dtype, reader)


def check_targets(y: Any, n: int) -> np.ndarray:
    """One target for each row: numbers, or labels of one type."""
    if hasattr(y, "__len__") and not isinstance(y, str | bytes):
        y = _entries(y)
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1:
        _refuse_missing(y)
        y = _of_one_type(y)
    y = column_or_1d(y, warn=True)
    if len(y) != n:
        raise InputError(f"y has {len(y)} entries but X has {n} rows", "pass one for each row")
    _refuse_missing(y)
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise InputError(f"Input y contains infinity, first in row {row}", "correct those rows")
    return y


def check_numbers(y: np.ndarray) -> np.ndarray:
    """Targets of a regressor in float64."""
    if y.dtype.kind in "biuf":
        return y.astype(np.float64)
    wrong = next((entry for entry in y.tolist() if not isinstance(entry, Real)), y.tolist()[0])
    raise InputError(f"y has {wrong!r}, which is not a number", "pass numbers, or use a classifier")


def _refuse_missing(y: np.ndarray) -> None:
    missing = is_missing(y)
    if np.any(missing):
        row = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"Input y contains NaN or None: y has no target in row {row}", "drop those rows first"
        )


def _of_one_type(y: np.ndarray) -> np.ndarray:
    """Objects in the dtype of their values; text stays text."""
    entries = y.tolist()
    kinds = {_kind_of(entry) for entry in entries}
    if kinds == {"text"} or not kinds:
        return y
    if len(kinds) > 1 or kinds == {"other"}:
        names = sorted({type(entry).__name__ for entry in entries})
        raise InputError(
            f"y has targets of several types ({', '.join(names)})"
            if len(names) > 1
            else f"y has targets of type {names[0]}",
            "pass numbers, or labels of one type",
        )
    return np.array(entries)


def _kind_of(entry: Any) -> str:
    kinds = {"text": str, "truth": bool | np.bool_, "number": Real, "date": date | np.datetime64}
    return next((name for name, kind in kinds.items() if isinstance(entry, kind)), "other")


def check_weights(weight: Any, n: int) -> np.ndarray:
    weight = np.ones(n) if weight is None else to_numpy(weight).astype(np.float64)
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.ndim != 1:
        raise InputError("Sample weights must be 1D array or scalar", "pass one weight per row")
    if len(weight) != n:
        raise InputError(
            f"sample_weight has {len(weight)} entries but X has {n} rows", "pass one for each row"
        )
    if not np.all(weight >= 0) or not np.isfinite(weight.sum()):
        raise InputError(
            "sample_weight has negative entries, NaN or infinity", "use numbers of zero or more"
        )
    if not 1e-30 <= weight.max() <= 1e30:
        raise InputError(
            "sample_weight is zero for every row"
            if not weight.any()
            else f"the largest sample_weight is {weight.max():.1e}",
            "at least one must be positive, and the largest between 1e-30 and 1e30",
        )
    return weight


def check_domains(
    domains: Collection[Label] | None, weight: np.ndarray
) -> tuple[list[Label], list[Index]]:
    """Labels of the domains, and their rows of positive weight: as a slice where contiguous."""
    n = len(weight)
    labels: list[Label] = ["all"]
    codes = np.zeros(n, dtype=np.intp)
    if domains is not None:
        labels, codes = check_labels("domains", domains, n)
    rows = np.flatnonzero(weight > 0)
    # As few bytes as the labels need: NumPy sorts up to two of them by counting.
    short = codes.astype(np.min_scalar_type(len(labels)))[rows]
    rows = rows[np.argsort(short, kind="stable")]
    parts = np.split(rows, np.cumsum(np.bincount(short, minlength=len(labels)))[:-1])
    index = [
        slice(int(part[0]), int(part[-1]) + 1) if part[-1] - part[0] + 1 == len(part) else part
        for part in parts
        if len(part)
    ]
    return [name for name, part in zip(labels, parts, strict=True) if len(part)], index


def check_labels(name: str, values: Any, n: int) -> tuple[list[Label], np.ndarray]:
    """Distinct labels, in order, and the number of each row's; dates become text."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InputError(f"{name} is {values!r}", "pass one label per row")
    values = _entries(values)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or len(values) != n:
        raise InputError(
            f"{name} has {len(values)} labels but X has {n} rows"
            if values.ndim == 1
            else f"{name} has shape {values.shape}",
            "pass one label per row",
        )
    missing = np.flatnonzero(is_missing(values))
    if len(missing):
        raise InputError(f"{name} has no label in row {missing[0]}", "label or drop that row")
    values = values.astype(str) if values.dtype.kind in "mM" else values
    try:
        distinct, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"{name} has labels of several types, or that are not hashable",
            "name all by text, or all by numbers",
        ) from error
    labels = [
        label.item() if isinstance(label, np.generic) else label for label in distinct.tolist()
    ]
    labels = [str(label) if isinstance(label, date) else label for label in labels]
    wrong = [label for label in labels if not isinstance(label, str | int | float)]
    if wrong:
        raise InputError(f"{name} has the label {wrong[0]!r}", "use text or numbers")
    return labels, codes


def _entries(values: Any) -> np.ndarray:
    """An array on the host; of a list, entry by entry: NumPy would make text of ["a", nan]."""
    if not hasattr(values, "dtype"):
        values = np.array([*values, None], dtype=object)[:-1]
    return to_numpy(values)


def is_missing(values: np.ndarray) -> np.ndarray:
    """Which entries stand for nothing: None, NaN, NaT, or pandas' NA, which equals nothing."""
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype != object:
        return np.zeros(values.shape, bool)
    return np.array([value is None or _differs_from_itself(value) for value in values], bool)


def _differs_from_itself(value: Any) -> bool:
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True


def check_number(
    name: str, value: Any, low: float = 0.0, high: float = np.inf, *, also: Collection[Any] = ()
) -> None:
    if type(value) in (str, type(None)) and value in also:
        return
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or not np.isfinite(value):
        span = f"in [{low:g}, {high:g}]"
        if high == np.inf:
            span = f"a finite number of {low:g} or more"
        extra = "".join(f" or {choice!r}" for choice in also)
        raise InputError(f"{name} is {value!r}", f"it must be {span}{extra}")


def check_count(name: str, value: Any, low: int = 1) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise InputError(f"{name} is {value!r}", f"it must be a whole number of {low} or more")


def check_choice(name: str, value: Any, allowed: Collection[Any]) -> None:
    value = bool(value) if isinstance(value, np.bool_) else value
    same_type = [choice for choice in allowed if type(choice) is type(value)]
    if type(value) not in (str, bool, type(None)) or value not in same_type:
        raise InputError(f"{name} is {value!r}", f"use one of {', '.join(map(repr, allowed))}")


def check_class_weight(class_weight: ClassWeight) -> None:
    """Refuse what is neither None, "balanced" nor a mapping to positive numbers."""
    if isinstance(class_weight, Mapping):
        for label, weight in class_weight.items():
            name = f"the weight of class {label!r} in class_weight"
            check_number(name, weight)
            if not weight > 0:
                raise InputError(f"{name} is 0", "drop the rows of a class to be ignored")
    elif class_weight is not None and not (
        isinstance(class_weight, str) and class_weight == "balanced"
    ):
        raise InputError(
            f"class_weight is {class_weight!r}",
            "use None, 'balanced', or a mapping from class to weight",
        )


def check_names(what: str, kind: str, named: Mapping[Any, Any], known: Sequence[Any]) -> None:
    """Refuse a mapping that names something that is not there."""
    for name in named:
        if name not in known:
            raise InputError(f"{what} names {kind} {name!r}", f"there are {listed(known)}")
