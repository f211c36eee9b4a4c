"""Targets that only some rows have: which rows, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import column_or_1d

from skdare._validation import InputError, check_numbers, is_missing
from skdare.arrays import is_foreign, to_numpy

# Of scikit-learn's semi-supervised estimators.
_UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class PartialLabels:
    """The rows that are labelled, and their labels.

    Parameters
    ----------
    known : boolean array of shape (n,)
        Whether each row is labelled.
    codes : array of shape (m,)
        Of the labelled rows, in their order: the number of the class, or the target of a
        regression in float64.
    added_classes : tuple
        Classes that the head was not fitted to; their numbers follow those of the others.
    """

    known: np.ndarray
    codes: np.ndarray
    added_classes: tuple[Any, ...] = ()

    @classmethod
    def of(
        cls, classes: np.ndarray | None, y: Any, n: int, *, new_classes: bool | None = None
    ) -> Self:
        """Labels as a caller passes them, one entry a row.

        A row is not labelled where its entry is None, NaN, NaT or pandas' NA. Where there are
        classes, an empty text or the number -1 says so, too, as in scikit-learn's semi-supervised
        estimators; unless the head itself has that class, which it then is.

        Parameters
        ----------
        classes : array of shape (k,), or None
            Classes of the head, in order; None of a regressor.
        y : sequence of n entries
        n : int
            How many rows there are.
        new_classes : bool, optional
            Whether to take classes that the head was not fitted to; False says that one may.

        Returns
        -------
        PartialLabels
        """
        values = _as_array(y, n)
        if classes is None:
            return cls(*_numbers(values))
        number = {label: code for code, label in enumerate(classes.tolist())}
        if values.dtype.kind == "M" == classes.dtype.kind:
            values = values.astype(classes.dtype)  # dates of another unit are the same dates
        # Few values differ, and Python looks at those alone.
        distinct, places = _distinct(values)
        if new_classes:
            for label in distinct:
                if label not in number and not _stands_for_none(label):
                    number[_like(label, list(number))] = len(number)
        offered = "" if new_classes is None else ", and new_classes=True takes new ones"
        codes = [_code(value, number, offered) for value in distinct]
        codes = np.array(codes, dtype=np.intp)[places]
        known = codes != _UNLABELLED
        return cls(known, codes[known], tuple(number)[len(classes) :])


def _as_array(y: Any, n: int) -> np.ndarray:
    """One entry a row, each as it was given."""
    if is_foreign(y):
        values = to_numpy(y)
    elif hasattr(y, "to_numpy"):
        values = y.to_numpy()
    elif isinstance(y, np.ndarray):
        values = y
    elif isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise InputError(f"y is {y!r}", "pass one label per row", argument="y")
    else:
        values = np.empty(len(y), dtype=object)  # NumPy would make text of ["cat", None, -1]
        values[:] = list(y)
    values = column_or_1d(values)
    if len(values) != n:
        raise InputError(
            f"y has {len(values)} entries but X has {n} rows",
            "give one a row, and None where a row is not labelled",
            argument="y",
        )
    return values


def _distinct(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The values that occur, and each entry's number among them."""
    if values.dtype != object:
        distinct, places = np.unique(values, return_inverse=True)
        return distinct.tolist(), places
    order: dict[Any, int] = {}
    try:
        numbers = [order.setdefault(_plain(value), len(order)) for value in values]
    except TypeError as error:
        raise InputError(
            "y has labels that are not hashable", "use text or numbers", argument="y"
        ) from error
    return list(order), np.array(numbers, dtype=np.intp)


def _plain(value: Any) -> Any:
    """A label as the classes have it: Python's own; None for all that is missing."""
    if is_missing(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _stands_for_none(value: Any) -> bool:
    """Whether an entry that is no class says that a row is not labelled."""
    if is_missing(value):
        return True
    return bool(value == "" if isinstance(value, str) else value == _UNLABELLED)


def _like(label: Any, classes: list[Any]) -> Any:
    """A new class as the others are: of the same type, so that all of them have an order."""
    kinds = {type(one) for one in classes}
    if int in kinds and isinstance(label, float) and label.is_integer():
        return int(label)  # an array with NaN has no integers
    if kinds == {float} and type(label) is int:
        return float(label)
    if type(label) not in kinds:
        raise InputError(
            f"y has the new class {label!r}, which is of another type than {classes[0]!r}",
            "name all classes by text, or all by numbers",
            argument="y",
        )
    return label


def _code(value: Any, number: dict[Any, int], offered: str) -> int:
    """Number of a class, or -1 for an entry without a label."""
    if not is_missing(value) and value in number:
        return number[value]
    if not _stands_for_none(value):
        raise InputError(
            f"y has the class {value!r}, which the head was not fitted to",
            f"its classes are {_listed(list(number))}; None stands for a row without "
            f"label{offered}",
            argument="y",
        )
    return _UNLABELLED


def _listed(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:10])
    return shown if len(labels) <= 10 else f"{shown} and {len(labels) - 10} more"


def _numbers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which targets are known, and those."""
    if values.dtype == object:
        values = np.array([None if is_missing(value) else value for value in values], dtype=object)
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "y has entries that are not numbers, and the head is a regressor",
            "pass numbers, and None or NaN where a row is not labelled",
            argument="y",
        ) from error
    known = ~np.isnan(numbers)
    if known.any():
        check_numbers(numbers[known])
    return known, numbers[known]
