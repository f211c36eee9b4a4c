"""What a file holds before its arrays are loaded: names with shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from skdare._input_error import InputError

_LISTED_FIRST = 7
_LISTED_LAST = 3
# An array by its name, or columns of a table side by side, as one matrix.
Key = str | tuple[str, ...]
Load = Callable[[list[Any]], list[np.ndarray]]
Stream = Callable[[list[Any], int], Iterator[list[np.ndarray]]]
# What is written to a file, by the names it has there: X, then labels and names.
TableArrays = dict[str, Any]
LABEL_KEYS = ("y", "domain", "split", "id")


def numbered_row(row: int) -> str:
    """What errors call a row of an array; people count from 1, arrays from 0."""
    return f"row {row} (counted from 0)"


@dataclass(frozen=True)
class ArrayInfo:
    """The shape and dtype of an array or column that is not loaded."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def numeric(self) -> bool:
        return self.dtype.kind in "biuf"

    def __str__(self) -> str:
        kind = "number" if self.numeric else "text" if self.dtype.kind in "SU" else "other value"
        if not self.shape:
            return f"one {kind}"
        size = " × ".join(f"{length:,}" for length in self.shape)
        return f"{size} {kind}s"


@dataclass(frozen=True, eq=False)
class Contents:
    """The arrays of a file, and how to load some of them.

    Parameters
    ----------
    path : Path
        The file, as messages name it.
    entries : dict
        The shape and dtype of each array or column, by name.
    load : callable
        From a list of keys to their arrays.
    stream : callable, optional
        From a list of keys and a number of rows to an iterator over that many rows of each array.
        Default: ``load``, and slices of what it gives.
    tabular : bool
        Whether this is a table, whose features may be spread over many columns; a key that is a
        tuple of names then asks for these columns side by side.
    names : mapping from role to sequence
        The labels that integer codes stand for.
    feature_names : list of str, optional
    made : mapping, optional
        How the features were made.
    place : callable
        From the number of a row to what errors call it, such as its line.
    """

    path: Path
    entries: dict[str, ArrayInfo]
    load: Load
    stream: Stream | None = None
    tabular: bool = False
    names: Mapping[str, Sequence[Any] | None] = field(default_factory=dict)
    feature_names: list[str] | None = None
    made: Mapping[str, Any] | None = None
    place: Callable[[int], str] = numbered_row

    def visit(self, keys: list[Any], rows: int) -> Iterator[list[np.ndarray]]:
        """All rows of these arrays in order, at most ``rows`` at a time."""
        if self.stream is not None:
            yield from self.stream(keys, rows)
            return
        loaded = self.load(keys)
        for start in range(0, len(loaded[0]), rows):
            yield [values[start : start + rows] for values in loaded]

    def listing(self) -> str:
        """The first and last few names, and of arrays what they hold, for errors."""
        names = [self._named(key) for key in self.entries]
        more = len(names) - _LISTED_FIRST - _LISTED_LAST
        if more > 0:
            names[_LISTED_FIRST:-_LISTED_LAST] = [f"… ({more:,} more)"]
        return ", ".join(names) or "nothing"

    def _named(self, key: str) -> str:
        entry = self.entries[key]
        # Of columns, which all have as many rows, only text is worth a word.
        if self.tabular and len(entry.shape) == 1:
            return key if entry.numeric else f"{key} (text)"
        return f"{key} ({entry})"


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises on a broken file into one sentence that names the file."""
    try:
        yield
    except (MemoryError, ImportError, PermissionError, InputError):
        raise
    except FileNotFoundError as error:
        raise ValueError(f"{path} is missing; it was there when its folder was written") from error
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as {kind}; it is truncated, or something else"
        ) from error


@contextmanager
def needing(extra: str, path: Path) -> Iterator[None]:
    """Say which extra to install where an optional package is missing."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{path} needs the package {error.name or extra}; pip install 'skdare[{extra}]'"
        ) from error
