"""Features as 8-bit codes, and the numbers that a type of features can hold.

Notation: X (n, d) rows, C (n, d) codes, book (2, d) the offset and the step of each feature.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skdare.arrays import chunk_rows
from skdare.datasets._manifest import CODES

_LAST = 255


def blocks(X: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows in their own type, some at a time, so that a memory map is never loaded whole."""
    step = chunk_rows(X)
    for start in range(0, len(X), step):
        yield start, X[start : start + step]


def refuse_beyond(X: np.ndarray, dtype: str, what: str = "X") -> None:
    """Refuse features that a type cannot hold: infinity, what overflows, NaN among codes."""
    # Half of float32 for codes: the range of a feature, largest less smallest, must fit too.
    limit = np.finfo(np.float32).max / 2 if dtype == CODES else np.finfo(dtype).max
    for start, rows in blocks(X):
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
                f"{dtype} ends at {float(limit):.6g}; mend that row, or use a wider type"
            )


def codebook(pieces: Sequence[np.ndarray]) -> np.ndarray:
    """Offset and step of each feature, such that codes 0 to 255 span its range.

    Affine, not symmetric: features after a ReLU have one sign, and half of the codes would idle.
    """
    ends = [(rows.min(axis=0), rows.max(axis=0)) for X in pieces for _, rows in blocks(X)]
    low = np.min([a for a, _ in ends], axis=0).astype(np.float32)
    high = np.max([b for _, b in ends], axis=0).astype(np.float32)
    return np.stack([low, (high.astype(np.float64) - low) / _LAST]).astype(np.float32)


def encode(X: np.ndarray, book: np.ndarray) -> np.ndarray:
    """The codes nearest to X, which is taken as float32, the type that they decode to."""
    offset, step = book.astype(np.float64)
    # A constant feature has step 0, and is its offset whatever the code.
    C = (X.astype(np.float32, copy=False) - offset) / np.where(step > 0, step, 1.0)
    return np.clip(np.rint(C), 0, _LAST).astype(np.uint8)


def decode(C: np.ndarray, book: np.ndarray, out: np.ndarray) -> None:
    """Offset plus step times code, in float32, into ``out``.

    Off by at most half a step, that is (largest - smallest) / 510 of the feature in its shard,
    and the rounding of float32.
    """
    offset, step = book
    np.multiply(C, step, out=out)
    out += offset
