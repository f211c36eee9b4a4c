"""The labelled rows of a stream: few, so all of them are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from skdare._safe_text import counted
from skdare._validation import InputError, warn
from skdare.adapting.row_sample import REMEMBERED
from skdare.adapting.stream_moments import Forgetting
from skdare.arrays import Array, compact, dense_rows
from skdare.fitting.partial_labels import PartialLabels


def row_digest(row: np.ndarray) -> str:
    """A checksum of the values of a row in single precision."""
    return hashlib.blake2b(row.astype(np.float32).tobytes(), digest_size=8).hexdigest()


class StreamLabels:
    """Labelled rows, their labels, and their numbers in the stream.

    Parameters
    ----------
    d : int
    classes : array of shape (k,), or None
        Of a regressor None.
    forgetting : Forgetting

    Attributes
    ----------
    classes : array, or None
        Those of the head, and the new ones behind them.
    takes_new_classes : bool
        Whether labels may name other classes, whose numbers then follow.
    """

    def __init__(self, d: int, classes: np.ndarray | None, forgetting: Forgetting) -> None:
        self.classes = classes
        self._known_classes = 0 if classes is None else len(classes)
        self.takes_new_classes = False
        self._forgetting = forgetting
        self.X = np.empty((0, d))
        # Class numbers, or targets as they were given.
        self.codes = np.empty(0, dtype=float if classes is None else np.intp)
        self.numbers = np.empty(0, dtype=np.intp)

    def __len__(self) -> int:
        return len(self.codes)

    def read(self, y: Any, n: int) -> PartialLabels:
        """Labels as a caller passes them, one entry for each of n rows."""
        return PartialLabels.of(self.classes, y, n, new_classes=self.takes_new_classes)

    def add(self, X: Array, labels: PartialLabels, first: int) -> None:
        """Take the labelled ones of some rows, of which the first has this number."""
        places = np.flatnonzero(labels.known)
        if not len(places):
            return
        rows = dense_rows(X, compact(places))
        if labels.added_classes:
            self.add_classes(labels.added_classes)
        self.X = np.concatenate([self.X, rows.astype(np.float64)])
        self.codes = np.concatenate([self.codes, labels.codes])
        self.numbers = np.concatenate([self.numbers, first + places])

    def add_classes(self, labels: Sequence[Any]) -> None:
        """Take classes that the head was not fitted to."""
        assert self.classes is not None
        # Text may be longer than that of the others.
        kind = None if self.classes.dtype.kind == "U" else self.classes.dtype
        self.classes = np.array([*self.classes.tolist(), *labels], dtype=kind)

    @property
    def has_added_classes(self) -> bool:
        """Whether there are classes that the head was not fitted to."""
        return self.classes is not None and len(self.classes) > self._known_classes

    @property
    def added_classes(self) -> np.ndarray:
        """Classes that the head was not fitted to, in the order of their numbers."""
        assert self.classes is not None
        return self.classes[self._known_classes :]

    def counts_of_added_classes(self) -> str:
        """How many labels each class has that the head was not fitted to."""
        assert self.classes is not None
        counts = np.bincount(self.codes, minlength=len(self.classes))[self._known_classes :]
        pairs = zip(self.added_classes.tolist(), counts.tolist(), strict=True)
        return ", ".join(f"{label!r} ({counted(count, 'label')})" for label, count in pairs)

    def forget(self, n_seen: int) -> None:
        """Drop the rows that all but count for nothing once n rows were seen."""
        half_life = self._forgetting.half_life
        if half_life is None or not len(self):
            return
        kept = n_seen - 1 - self.numbers <= REMEMBERED * half_life
        self.X = self.X[kept]
        self.codes = self.codes[kept]
        self.numbers = self.numbers[kept]

    @property
    def are_of_one_class(self) -> bool:
        """Whether labels name a single class, from which little can be learnt."""
        return self.classes is not None and len(np.unique(self.codes)) == 1

    def weight(self, n_seen: int) -> np.ndarray:
        """What each labelled row counts once n rows were seen."""
        half_life = self._forgetting.half_life
        if half_life is None:
            return np.ones(len(self))
        return 2.0 ** (-(n_seen - 1 - self.numbers) / half_life)

    @property
    def digests(self) -> list[str]:
        """What tells whether a row was labelled."""
        return [row_digest(row) for row in self.X]

    def codes_of(self, numbers: np.ndarray) -> np.ndarray:
        """Class numbers of the rows with these numbers; -1 for a new class, or without a label."""
        codes = np.full(len(numbers), -1, dtype=np.intp)
        places = np.searchsorted(self.numbers, numbers)
        known = places < len(self)
        known[known] = self.numbers[places[known]] == numbers[known]
        codes[known] = self.codes[places[known]]
        return np.where(codes < self._known_classes, codes, -1)

    def check(self) -> None:
        """Refuse labels that contradict each other or are of one class; name missing classes."""
        if self.classes is None or not len(self):
            return
        self._refuse_contradictions(self.classes.tolist())
        present = np.unique(self.codes)
        if self.are_of_one_class:
            labels = counted(len(self), "label")
            raise InputError(
                f"there {'is' if len(self) == 1 else 'are'} {labels}, all of class "
                f"{self.classes.tolist()[present[0]]!r}",
                "label rows of another class too, or set force=True",
                argument="y",
            )
        absent = np.setdiff1d(np.arange(len(self.classes)), present)
        if len(absent):
            named = ", ".join(repr(label) for label in self.classes[absent[:5]].tolist())
            more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
            warn(
                f"no labelled row is of class {named}{more}; labels of the other classes say "
                "little of where these lie"
            )

    def _refuse_contradictions(self, classes: list[Any]) -> None:
        _, first, which = np.unique(self.X, axis=0, return_index=True, return_inverse=True)
        like = first[which.ravel()]  # the first row that is the same
        different = np.flatnonzero(self.codes[like] != self.codes)
        if len(different):
            one = different[0]
            other = like[one]
            raise InputError(
                f"rows {self.numbers[other]} and {self.numbers[one]} are the same and are labelled "
                f"{classes[self.codes[other]]!r} and {classes[self.codes[one]]!r}",
                "correct one of them, or set force=True if rows of both classes can look alike",
                argument="y",
            )

    def restore(self, X: np.ndarray, codes: np.ndarray, numbers: np.ndarray) -> None:
        """Go on from the labelled rows of a stream that was saved."""
        self.X = X.astype(np.float64)
        self.codes = codes.astype(self.codes.dtype)
        self.numbers = numbers.astype(np.intp)
        known = self.classes is None or bool(
            ((self.codes >= 0) & (self.codes < len(self.classes))).all()
        )
        if not (known and bool((np.diff(self.numbers) > 0).all())):
            raise ValueError("the labels are not those of such a stream")
