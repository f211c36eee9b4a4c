"""Moments of a stream of rows: a constant cost for each chunk, and old rows may fade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from skdare._validation import check_number
from skdare.arrays import Array, chunk_rows, float64, like, products_of, take, to_numpy
from skdare.persist import FLAG, INTEGER, NUMBER
from skdare.whitening.moments import Moments
from skdare.whitening.sums import RunningSums, point_near_mean

# Chunks of fewer rows are gathered until there are this many: adding a product to the (d, d) sums
# costs the same for one row as for dozens.
_GATHERED_ROWS = 256
# Products of at most this many rows are added at a time, for the same reason; the rows less their
# point are a copy.
_BLOCK_ROWS = 4096
# The sums that a state has, and the axes of its arrays: d features, rows as they come.
_SUMS = ("point", "linear", "cubic", "square")
SHAPES = {"point": "d", "linear": "d", "cubic": "d", "square": "dd", "gathered": "gd", "kept": "md"}
NUMBERS = {"n_rows": INTEGER, "keeps_rows": FLAG, "n": NUMBER, "quartic": NUMBER}


class Forgetting:
    """What rows count after others: half after ``half_life`` of them; None forgets nothing."""

    def __init__(self, half_life: float | None) -> None:
        check_number("half_life", half_life, also=(None,))
        if half_life == 0:
            raise ValueError(
                "half_life is 0, and every row would be forgotten; use a positive number, or leave "
                "it out"
            )
        self.half_life = None if half_life is None else float(half_life)

    def factor(self, m: int) -> float:
        """What a row counts once m others came after it."""
        return 1.0 if self.half_life is None else float(2.0 ** (-m / self.half_life))

    def weights(self, m: int) -> np.ndarray | None:
        """What each of the last m rows counts, the oldest first; None: all the same."""
        if self.half_life is None:
            return None
        return 2.0 ** (-np.arange(m - 1, -1, -1) / self.half_life)


class StreamMoments:
    """Moments of all rows of a stream, and the rows themselves while they are few.

    Parameters
    ----------
    d : int
    forgetting : Forgetting
    """

    def __init__(self, d: int, forgetting: Forgetting) -> None:
        self.d = d
        self.forgetting = forgetting
        self.n_rows = 0
        self._sums: RunningSums | None = None
        self._gathered: list[np.ndarray] = []
        self._kept: list[np.ndarray] | None = []

    def add(self, X: Array) -> None:
        """Take more rows: any array, sparse matrix or reader of rows."""
        m = X.shape[0]
        if self._keeps(X):
            self.n_rows += m
            return
        self.n_rows += m
        if isinstance(X, np.ndarray) and m < _GATHERED_ROWS:
            self._gathered.append(np.array(take(X, slice(0, m))))
            if sum(map(len, self._gathered)) >= _GATHERED_ROWS:
                self._add_gathered()
            return
        self._add_gathered()
        step = max(chunk_rows(X), _BLOCK_ROWS)
        with products_of(X):
            for start in range(0, m, step):
                self._add_block(take(X, slice(start, min(start + step, m))))

    def _add_gathered(self) -> None:
        if self._gathered:
            rows = np.concatenate(self._gathered)
            self._gathered = []
            self._add_block(rows)

    def _add_block(self, rows: Array) -> None:
        m = rows.shape[0]
        weight = self.forgetting.weights(rows.shape[0])
        weight = None if weight is None else like(weight, rows, float64(rows))
        if self._sums is None:
            self._sums = RunningSums(point_near_mean(rows, weight))
        self._sums.move_beside(rows)
        if weight is not None:
            self._sums.decay(self.forgetting.factor(m))
        self._sums.add(rows, weight)
        self._sums.follow()

    def _keeps(self, X: Array) -> bool:
        """Keep rows themselves while they are fewer than features and dense; then sum them up.

        Before that there is no (d, d) matrix.
        """
        if self._kept is None:
            return False
        if self.n_rows + X.shape[0] < self.d and not sparse.issparse(X):
            rows = to_numpy(take(X, slice(0, X.shape[0])))
            self._kept.append(np.array(rows, dtype=np.float64))
            return True
        rows = np.concatenate([np.empty((0, self.d)), *self._kept])
        self._kept = None
        for start in range(0, len(rows), _BLOCK_ROWS):
            self._add_block(rows[start : start + _BLOCK_ROWS])
        return False

    def moments(self) -> Moments:
        """Moments on the host; of few rows, in terms of the rows themselves."""
        if self._kept:
            self._kept = [np.concatenate(self._kept)]
            return Moments.of(self._kept[0], None, self.forgetting.weights(self.n_rows))
        self._add_gathered()
        assert self._sums is not None
        return Moments(*self._sums.about_mean()).to_numpy()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything that the rest of the stream depends on: numbers, and arrays on the host."""
        numbers: dict[str, Any] = {"n_rows": self.n_rows, "keeps_rows": self._kept is not None}
        arrays: dict[str, np.ndarray] = {}
        if self._sums is not None:
            numbers |= {"n": self._sums.n, "quartic": self._sums.quartic}
            arrays |= {name: to_numpy(getattr(self._sums, name)) for name in _SUMS}
        for name, rows in (("gathered", self._gathered), ("kept", self._kept)):
            if rows:
                arrays[name] = np.concatenate(rows)
        return numbers, arrays

    def restore(self, numbers: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a state."""
        self.n_rows = numbers["n_rows"]
        self._kept = None
        if numbers["keeps_rows"]:  # earlier versions summed them up at the same time
            self._kept = [arrays["kept"]] if "kept" in arrays else []
            return
        self._gathered = [arrays["gathered"]] if "gathered" in arrays else []
        if "point" in arrays:
            self._sums = RunningSums(arrays["point"])
            for name in _SUMS:
                setattr(self._sums, name, arrays[name])
            self._sums.n = numbers["n"]
            self._sums.quartic = numbers["quartic"]
