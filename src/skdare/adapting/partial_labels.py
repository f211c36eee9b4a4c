"""Labels of some rows: which rows have one, and what they are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import column_or_1d

from skdare.arrays import is_foreign, to_numpy
from skdare.checks import is_missing
from skdare.errors import InputError, listed

# Of scikit-learn's semi-supervised estimators.
_UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class PartialLabels:
    known: np.ndarray  # (n,), whether each row is labelled
    codes: np.ndarray  # of the labelled rows: the number of the class, or a number as given
    new_classes: list[Any]  # that the head was not fitted to; their numbers follow the others

    @classmethod
    def of(cls, y: Any, n: int, classes: np.ndarray | None, *, takes_new: bool = False) -> Self:
        """Labels as a caller passes them, one entry per row.

        A row is not labelled if its entry is None, NaN, NaT or pandas' NA. Where there are classes,
        an empty text or the number -1 means the same, as in scikit-learn's semi-supervised
        estimators; unless the head itself has that class, which it then is.
        """
        if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
            raise InputError(f"y is {y!r}", "pass one label per row")
        if isinstance(y, np.ndarray) or (is_foreign(y) and hasattr(y, "dtype")):
            values = to_numpy(y)
        else:
            values = np.empty(len(y), dtype=object)  # NumPy would make text of ["cat", None, -1]
            values[:] = list(y)
        values = column_or_1d(values)
        if len(values) != n:
            raise InputError(
                f"y has {len(values)} entries but X has {n} rows",
                "pass one for each row, and None for a row without label",
            )
        missing = is_missing(values)
        if classes is None:
            return cls(~missing, _numbers(values[~missing]), [])
        if values.dtype.kind == "M" == classes.dtype.kind:
            values = values.astype(classes.dtype)  # dates of another unit are the same dates
        number = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.full(n, _UNLABELLED)
        for i, label in zip(np.flatnonzero(~missing), values[~missing].tolist(), strict=True):
            label = label.item() if isinstance(label, np.generic) else label
            if not isinstance(label, Hashable):
                raise InputError(f"y has the label {label!r}", "use text or numbers")
            if label not in number:
                if label == "" if isinstance(label, str) else label == _UNLABELLED:
                    continue
                if not takes_new:
                    raise InputError(
                        f"y has the class {label!r}, which the head was not fitted to",
                        f"its classes are {listed(classes.tolist())}; None stands for a row "
                        "without label, and new_classes=True takes new ones",
                    )
                label = _like(label, list(number))
                number.setdefault(label, len(number))
            codes[i] = number[label]
        known = codes != _UNLABELLED
        return cls(known, codes[known], list(number)[len(classes) :])


def _numbers(values: np.ndarray) -> np.ndarray:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "y has entries that are not numbers, and the head is a regressor",
            "pass numbers, and None or NaN for a row without label",
        ) from error
    if not np.all(np.isfinite(numbers)):
        raise InputError("y contains infinity", "correct it, or pass None")
    return numbers


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
        )
    return label
