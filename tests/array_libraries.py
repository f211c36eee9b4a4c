"""The array libraries in which the floor must compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

LIBRARIES = ("numpy", "torch", "array_api_strict")
libraries = pytest.mark.parametrize("library", LIBRARIES)


def held_in(library: str, values: Any, dtype: str | None = None) -> Any:
    """An array of this library; the test is skipped where it is not installed."""
    array = np.array(values, dtype=dtype)
    if library == "numpy":
        return array
    return pytest.importorskip(library, reason=f"{library} is not installed").asarray(array)


def rows_at_a_time(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Cut rows into chunks of this many."""
    monkeypatch.setattr("skdare.arrays.rows._chunk_rows", lambda *_: rows)
