"""Some rows of a stream, evenly spread over it."""

from __future__ import annotations

import numpy as np

from skdare.adapting.stream_moments import Forgetting
from skdare.arrays import Array, dense_rows

# A mixture needs the means of classes: a thousand rows know one far better than domains resemble
# each other. The thresholds of a guard are far wider than what its rows leave open.
FOR_A_MIXTURE = 8192
FOR_A_GUARD = 1024
_MOST_NUMBERS = 1 << 24
# In half-lives: a row of this age counts a millionth.
REMEMBERED = 20


class RowSample:
    """Every row of a stream while they are few, then every second, fourth, eighth and so on.

    Rows that are all but forgotten are dropped. Which rows are kept depends on their number in the
    stream alone, not on how it is cut.

    Parameters
    ----------
    d : int
    forgetting : Forgetting
    most_rows : int
    """

    def __init__(self, d: int, forgetting: Forgetting, most_rows: int) -> None:
        self.forgetting = forgetting
        self.n_seen = 0
        self._limit = max(2, min(most_rows, _MOST_NUMBERS // d))
        self._chunks: list[np.ndarray] = [np.empty((0, d), dtype=np.float32)]

    def add(self, X: Array) -> None:
        """Take more rows: any array, sparse matrix or reader of rows."""
        step = self._step
        numbers = np.arange(-self.n_seen % step, X.shape[0], step)
        self.n_seen += X.shape[0]
        if len(numbers):
            self._chunks.append(dense_rows(X, numbers))
        thinned = self._step // step
        if thinned > 1:
            self._chunks = [np.concatenate(self._chunks)[::thinned]]
        if len(self._chunks) > self._limit:
            self._drop_forgotten()

    def weighted_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows, and what each counts."""
        self._drop_forgotten()
        rows = self._chunks[0]
        half_life = self.forgetting.half_life
        age = self.n_seen - 1 - self.numbers
        weight = np.ones(len(rows)) if half_life is None else 2.0 ** (-age / half_life)
        return rows, weight

    def restore(self, rows: np.ndarray, n_seen: int) -> None:
        """Go on from these rows of a stream."""
        self.n_seen = n_seen
        if len(rows) != len(self.numbers):
            raise ValueError("the sample does not have the rows of such a stream")
        self._chunks = [rows]

    def _drop_forgotten(self) -> None:
        rows = np.concatenate(self._chunks)
        self._chunks = [rows[len(rows) - len(self.numbers) :]]

    @property
    def _remembered(self) -> int:
        """How many of the last rows still count."""
        half_life = self.forgetting.half_life
        if half_life is None:
            return self.n_seen
        return min(self.n_seen, max(2, int(np.ceil(REMEMBERED * half_life))))

    @property
    def _step(self) -> int:
        """The rows kept are those whose number is a multiple of this."""
        step = 1
        while -(-self._remembered // step) > self._limit:
            step *= 2
        return step

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of the rows kept."""
        step = self._step
        first = self.n_seen - self._remembered
        return np.arange(first + -first % step, self.n_seen, step)
