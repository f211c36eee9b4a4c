"""Checks of arguments: an error says what was passed, what is needed, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from skdare._input_error import InputError as InputError
from skdare._safe_text import counted
from skdare.arrays import (
    Array,
    Index,
    RowReader,
    column_reach,
    compact,
    is_foreign,
    is_real,
    largest_feature,
    to_numpy,
)
from skdare.arrays.passes import all_within

_PACKAGE = str(Path(__file__).parent)
FEATURE_DTYPES = [np.float64, np.float32, np.float16]
# Weights of rows beyond these would leave nothing of the other rows.
_WEIGHTS = 1e-30, 1e30
# Squares of targets, and weights in their units, stay far from the ends of float64.
LARGEST_TARGET = 1e100
SMALLEST_TARGET = 1e-100
# With more classes than this share of the rows, a target names rows.
_MOST_CLASSES = 0.9

Labels = Collection[Hashable]
"""One label a row: a list, an array, a column of a data frame."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the caller outside this package."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def check_features(estimator: Any, X: Array, *, reset: bool, min_rows: int = 1) -> Array:
    """X as a float array or CSR matrix of its own array library; the caller's memory is untouched.

    Rows on disk or on another machine stay there, and are read once, chunk by chunk.
    """
    from sklearn.utils.validation import _check_feature_names, validate_data

    if not is_foreign(X) and not isinstance(X, RowReader):
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=FEATURE_DTYPES,
            ensure_all_finite=False,  # one pass below finds NaN and values that are too large
            ensure_min_samples=min_rows,
        )
        _check_range(estimator, X, fitted=not reset)
        return X
    if X.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {X.ndim}D array instead", "X is rows by features", argument="X"
        )
    if X.shape[0] < min_rows or X.shape[1] < 1:
        raise InputError(
            f"X has shape {tuple(X.shape)}",
            f"pass at least {counted(min_rows, 'row')}",
            argument="X",
        )
    if not is_real(X):
        raise InputError(f"X has dtype {X.dtype}", "features must be real numbers", argument="X")
    _check_range(estimator, X, fitted=not reset)
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
        _check_feature_names(estimator, np.empty((1, X.shape[1])), reset=True)
    elif X.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input",
            argument="X",
        )
    return X


def _check_range(estimator: Any, X: Array, *, fitted: bool) -> None:
    """Refuse NaN and infinity, and name the first feature whose powers would overflow."""
    limit = largest_feature(X)
    if all_within(X, limit):
        return
    largest = column_reach(X)
    if not np.isfinite(largest).all():
        raise InputError(*_not_finite(estimator, largest, fitted=fitted), argument="X")
    column = int(np.flatnonzero(largest > limit)[0])
    raise InputError(
        f"{feature_name(estimator, column)} reaches {largest[column]:.1e} in absolute value, and "
        f"powers of {X.dtype} features overflow beyond {limit:.0e}",
        # After a fit another scale would be another feature.
        "drop the rows that have it, or prepare them as the training rows were"
        if fitted
        else "divide it by a constant, or standardise it",
        argument="X",
    )


def _not_finite(estimator: Any, largest: np.ndarray, *, fitted: bool) -> tuple[str, str]:
    """Where NaN or infinity is, by the largest entry of each column, and what to do."""
    column = int(np.flatnonzero(~np.isfinite(largest))[0])
    name = feature_name(estimator, column)
    if not np.isnan(largest).any():
        return f"Input X contains infinity, first in {name}", "correct or drop those rows"
    what = f"Input X contains NaN, first in {name}"
    if fitted:
        return what, "fill missing values as before the fit, or drop those rows"
    if "preparation" in estimator.get_params():
        return what, "fill missing values with preparation=SimpleImputer(), or drop those rows"
    return what, "fill missing values with SimpleImputer() in a Pipeline, or drop those rows"


def feature_name(estimator: Any, column: int) -> str:
    """Name of a feature where the estimator was given names, else its number."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"feature {column}" if names is None else f"feature {names[column]!r}"


@dataclass(frozen=True, eq=False)
class DomainRows:
    """Labels of the domains, and the rows of positive weight in each."""

    labels: list[Hashable]
    index: list[Index]


def check_domains(
    domains: Labels | None, n: int, weight: np.ndarray, *, name: str = "domains"
) -> DomainRows:
    """Rows of each domain, from one hashable label a row; None is one domain."""
    if domains is None:
        labels: list[Hashable] = ["all"]
        codes = np.zeros(n, dtype=np.intp)
    else:
        labels, codes = _encode(_as_labels(domains, n, name), name)
    rows = np.flatnonzero(weight > 0)
    # As few bytes as the labels need: NumPy sorts up to two of them by counting.
    short = codes.astype(np.min_scalar_type(len(labels)))[rows]
    rows = rows[np.argsort(short, kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(short, minlength=len(labels)))])
    parts = [rows[start:stop] for start, stop in pairwise(bounds)]
    weighted = [e for e, part in enumerate(parts) if len(part)]
    return DomainRows([labels[e] for e in weighted], [compact(parts[e]) for e in weighted])


def one_row_each(domains: Sequence[Hashable]) -> str:
    """What is wrong with domains of one row."""
    if len(domains) == 1:
        return f"domain {domains[0]!r} has 1 row, and a covariance needs 2"
    return (
        f"{len(domains):,} domains, the first {domains[0]!r}, have 1 row each, and a covariance "
        "needs 2"
    )


def check_groups(groups: Labels, n: int) -> tuple[list[Hashable], np.ndarray]:
    """Distinct groups, and the number of each row's."""
    return _encode(_as_labels(groups, n, "groups"), "groups")


def _as_labels(domains: Any, n: int, name: str) -> Any:
    values = to_numpy(domains) if is_foreign(domains) else domains
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        none = ", or None for one domain" if name == "domains" else ""
        raise InputError(f"{name} is {values!r}", f"pass one label per row{none}", argument=name)
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(
            f"{name} has shape {values.shape}", "pass one label per row", argument=name
        )
    if len(values) != n:
        raise InputError(
            f"{name} has {len(values)} labels but X has {n} rows",
            "pass one label per row",
            argument=name,
        )
    return values


def _encode(values: Any, name: str) -> tuple[list[Hashable], np.ndarray]:
    """Distinct labels, sorted where they can be, and each row's number among them."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        integers, codes = distinct_integers(values)
        return integers.tolist(), codes
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype("datetime64[us]")  # nanoseconds would come out as whole numbers
    if isinstance(values, np.ndarray) and values.dtype != object:
        values = values.tolist()
    try:
        distinct = list(dict.fromkeys(values))
    except TypeError as error:
        raise InputError(
            f"{name} has labels that are not hashable",
            "use strings, numbers or tuples",
            argument=name,
        ) from error
    if any(is_missing(label) for label in distinct):
        row = next(i for i, label in enumerate(values) if is_missing(label))
        raise InputError(
            f"{name} has no label in row {row}", "label or drop that row", argument=name
        )
    try:
        distinct = sorted(distinct)
    except TypeError:
        distinct = sorted(distinct, key=lambda v: (type(v).__name__, repr(v)))
    number = {label: i for i, label in enumerate(distinct)}
    return distinct, np.fromiter(map(number.__getitem__, values), np.intp, len(values))


def distinct_integers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct integers, ascending, and each entry's number among them.

    A table of the integers that occur, where their range is small enough for one, is ten times as
    fast as sorting.
    """
    if not len(values):
        return values, np.empty(0, np.intp)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values):
        return np.unique(values, return_inverse=True)
    # The differences of narrow integers need not fit their type; those of wide ones do here.
    wide = values.astype(np.int64) if values.dtype.itemsize < 8 else values
    offsets = (wide - wide.dtype.type(low)).astype(np.intp)
    occurs = np.bincount(offsets, minlength=high - low + 1) > 0
    places = np.cumsum(occurs) - 1
    distinct = np.flatnonzero(occurs).astype(wide.dtype) + wide.dtype.type(low)
    return distinct.astype(values.dtype), places[offsets]


def is_missing(label: Any) -> bool:
    """Whether a label stands for nothing: None, NaN, or another that equals not even itself."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA compares to nothing
        return True


def check_weights(sample_weight: Array | None, n: int) -> np.ndarray:
    """Non-negative float64 weights, one per row; None is all ones."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    problem = _wrong_weights(weight, n)
    if problem is not None:
        raise InputError(*problem, argument="sample_weight")
    return weight


def _wrong_weights(weight: np.ndarray, n: int) -> tuple[str, str] | None:
    """What is wrong with these weights and what to do, or None where nothing is."""
    if weight.ndim != 1:
        return "Sample weights must be 1D array or scalar", "pass one weight per row"
    if len(weight) != n:
        return (
            f"sample_weight has {len(weight)} entries but X has {n} rows",
            "pass one weight per row",
        )
    if not np.all(np.isfinite(weight)):
        return "sample_weight contains NaN or infinity", "drop those rows, or give them weight 0"
    if np.any(weight < 0):
        return "sample_weight has negative entries", "weights must be zero or more"
    if not weight.any():
        return "sample_weight is zero for every row", "at least one must be positive"
    low, high = _WEIGHTS
    if not low <= weight.max() <= high:
        return (
            f"the largest sample_weight is {weight.max():.1e}, and it must be from {low:.0e} to "
            f"{high:.0e}",
            "multiply or divide all of them by a constant",
        )
    return None


def check_finite_targets(y: np.ndarray) -> None:
    """Refuse NaN, infinity and missing dates among the targets; other labels pass."""
    if y.dtype.kind in "mM" and np.any(np.isnat(y)):
        raise InputError(
            "Input y contains NaT, which is not a date", "drop those rows first", argument="y"
        )
    if np.issubdtype(y.dtype, np.floating) and not np.all(np.isfinite(y)):
        raise InputError("Input y contains NaN or infinity", "drop those rows first", argument="y")


def too_many_classes(classes: int, rows: int) -> str | None:
    """What is wrong with a target that names rows, and not classes; None where nothing is."""
    if classes <= 2 or classes <= _MOST_CLASSES * rows:
        return None
    every = "every row" if classes == rows else "nearly every row"
    return f"{classes:,} classes in {rows:,} rows: {every} is its own class"


def check_numbers(y: np.ndarray) -> None:
    """Refuse targets of a regression whose squares overflow or vanish."""
    check_finite_targets(y)
    largest = float(np.max(np.abs(y)))
    if largest > LARGEST_TARGET or 0 < largest < SMALLEST_TARGET:
        raise InputError(
            f"y reaches {largest:.1e} in absolute value, and numbers from {SMALLEST_TARGET:.0e} to "
            f"{LARGEST_TARGET:.0e} can be fitted",
            "multiply or divide y by a constant",
            argument="y",
        )


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a value that is not one of ``allowed``, and name these."""
    allowed = list(allowed)
    value = bool(value) if isinstance(value, np.bool_) else value
    if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
        names = ", ".join(repr(a) for a in allowed)
        raise InputError(f"{name} is {value!r}", f"use one of {names}", argument=name)


def check_number(
    name: str, value: Any, low: float = 0.0, high: float = np.inf, *, also: tuple[Any, ...] = ()
) -> None:
    """Refuse a value that is neither a number in [low, high] nor one of ``also``."""
    if any((isinstance(value, str) and value == a) or value is a for a in also):
        return
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(
        value, bool
    )
    if not is_number or not low <= float(value) <= high or not np.isfinite(value):
        span = (
            f"a finite number of {low:g} or more" if high == np.inf else f"in [{low:g}, {high:g}]"
        )
        # None is what leaving an argument out means, and no option can be given it.
        extra = "".join(f" or {a!r}" for a in also if a is not None)
        raise InputError(f"{name} is {value!r}", f"it must be {span}{extra}", argument=name)


def check_count(name: str, value: Any, low: int) -> None:
    """Refuse a value that is not a whole number of ``low`` or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise InputError(
            f"{name} is {value!r}", f"it must be a whole number of {low} or more", argument=name
        )


def check_domain_weights(guess: Mapping[Any, float], labels: list[Hashable]) -> list[float]:
    """Weight of each domain, together one; domains that are not in the mapping have weight 0."""
    unknown = [d for d in guess if d not in labels]
    if unknown:
        raise InputError(
            f"guess names domain {unknown[0]!r}",
            f"the training domains are {labels}",
            argument="guess",
        )
    for label, weight in guess.items():
        check_number(f"the weight of domain {label!r} in guess", weight)
    weights = [float(guess.get(label, 0.0)) for label in labels]
    if not sum(weights) > 0:
        raise InputError(
            "guess gives every domain weight 0", "at least one must be positive", argument="guess"
        )
    return [w / sum(weights) for w in weights]
