"""What a file holds before its arrays are loaded: named entries with shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

_LISTED = 20
# An entry by its name, or columns of a table side by side, as one matrix.
Key = str | tuple[str, ...]
Stream = Callable[[list[Any], int], Iterator[list[np.ndarray]]]


@dataclass(frozen=True)
class Entry:
    """The looks of one array or column."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def numeric(self) -> bool:
        return self.dtype.kind in "biuf"

    def __str__(self) -> str:
        return f"{self.shape} {'str' if self.dtype.kind in 'SU' else self.dtype}"


@dataclass(frozen=True, eq=False)
class Contents:
    """The entries of a file, and how to load some of them.

    In a table (``tabular``) the features may be spread over many entries, and a tuple of names asks
    for these columns side by side. ``names`` gives, by
    role, the labels that integer codes stand for; ``made`` says how the features were made.
    ``stream`` visits entries some rows at a time, where the file can be read so.
    """

    path: Path
    entries: dict[str, Entry]
    load: Callable[[list[Any]], list[np.ndarray]]
    tabular: bool = False
    names: Mapping[str, Sequence[Any] | None] = field(default_factory=dict)
    feature_names: list[str] | None = None
    made: Mapping[str, Any] | None = None
    stream: Stream | None = None

    def visit(self, keys: list[Any], rows: int) -> Iterator[list[np.ndarray]]:
        """So many rows of these entries at a time, in order."""
        if self.stream is not None:
            yield from self.stream(keys, rows)
            return
        loaded = self.load(keys)
        for start in range(0, len(loaded[0]), rows):
            yield [values[start : start + rows] for values in loaded]

    def listing(self) -> str:
        """The entries with shapes and dtypes, for errors."""
        shown = [f"{key} {entry}" for key, entry in islice(self.entries.items(), _LISTED)]
        more = len(self.entries) - _LISTED
        return (", ".join(shown) or "nothing") + (f" and {more} more" if more > 0 else "")


@contextmanager
def reading(what: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises on a broken file into one sentence that names the file."""
    try:
        yield
    except (MemoryError, ImportError, PermissionError):
        raise
    except FileNotFoundError as error:
        raise ValueError(f"{what} is missing; it was there when its folder was written") from error
    except Exception as error:
        raise ValueError(
            f"{what} cannot be read as {kind}; it is truncated, or something else"
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
