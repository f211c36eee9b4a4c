"""State of a stream of rows of a new domain: sums, a sample of the rows, and labels.

It is what a file of a stream holds. Nothing in it depends on how the stream was cut into chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Annotated

import numpy as np
from scipy import sparse

from skdare.adapting.partial_labels import PartialLabels
from skdare.arrays import Array, take, to_numpy
from skdare.fitting.mixture import Sample
from skdare.whitening.moments import Moments

# Chunks of fewer rows are gathered until there are this many: adding to the (d, d) sums costs the
# same for one row as for dozens.
_GATHERED_ROWS = 256
_MOST_SAMPLED = 1 << 24
# In half-lives: a row of this age counts a millionth.
_REMEMBERED = 20


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The labelled rows of a stream, few enough that all are kept."""

    X: Annotated[np.ndarray, "l d"]
    numbers: Annotated[np.ndarray, "l"]  # in the stream
    T: Annotated[np.ndarray, "l"]  # class numbers, or targets as they were given

    def __len__(self) -> int:
        return len(self.T)

    def __getitem__(self, index: np.ndarray) -> LabelledRows:
        return LabelledRows(self.X[index], self.numbers[index], self.T[index])

    def __add__(self, other: LabelledRows) -> LabelledRows:
        return LabelledRows(
            np.concatenate([self.X, other.X]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.T, other.T]),
        )


@dataclass(eq=False)
class Stream:
    d: int  # features
    half_life: float | None  # rows after which a row counts half
    most_sampled: int  # rows
    classes: np.ndarray | None  # of a classifier: those of the head, and new ones behind them
    n_seen: int = 0
    moments: Moments | None = None
    gathered: list[Annotated[np.ndarray, "g d"]] = field(default_factory=list)
    sampled: list[Annotated[np.ndarray, "s d"]] = field(default_factory=list)
    labels: LabelledRows | None = None

    def fade(self, m: int) -> float:
        """Weight of a row after m more."""
        return 1.0 if self.half_life is None else float(2.0 ** (-m / self.half_life))

    def weights(self, m: int) -> np.ndarray:
        """Weights of the last m rows, the oldest first."""
        if self.half_life is None:
            return np.ones(m)
        return 2.0 ** (-np.arange(m - 1, -1, -1) / self.half_life)

    def add(self, X: Array, y: PartialLabels | None) -> None:
        """More rows, and the labels of some."""
        m = X.shape[0]
        if y is not None and y.known.any():
            self._add_labels(X, y)
        self._add_to_sample(X)  # counts the rows
        if isinstance(X, np.ndarray) and m < _GATHERED_ROWS:
            self.gathered.append(X.copy())
            if sum(map(len, self.gathered)) >= _GATHERED_ROWS:
                self.sum_up()
        else:
            self.sum_up()
            self._add_to_moments(X)

    def sum_up(self) -> Moments | None:
        """Moments of all rows so far."""
        if self.gathered:
            rows = np.concatenate(self.gathered)
            self.gathered = []
            self._add_to_moments(rows)
        return self.moments

    def _add_to_moments(self, X: Array) -> None:
        m = X.shape[0]
        if not sparse.issparse(X) and m < X.shape[1]:
            X = to_numpy(X).astype(np.float64)  # few rows are kept as such: at full precision
        weight = None if self.half_life is None else self.weights(m)
        parts = [Moments.of(X, None, weight).to_numpy()]
        if self.moments is not None:
            fade = self.fade(m)
            parts.insert(0, self.moments if fade == 1.0 else self.moments.faded(fade))
        self.moments = reduce(add, parts)

    @property
    def sample_numbers(self) -> np.ndarray:
        """The numbers in the stream of the rows in the sample.

        All rows while they are few, then every second, fourth and so on; rows that are all but
        forgotten are dropped.
        """
        remembered = self.n_seen
        if self.half_life is not None:
            remembered = min(remembered, max(2, int(np.ceil(_REMEMBERED * self.half_life))))
        most = max(2, min(self.most_sampled, _MOST_SAMPLED // self.d))
        step = 1
        while -(-remembered // step) > most:
            step *= 2
        first = self.n_seen - remembered
        return np.arange(first + -first % step, self.n_seen, step)

    def _add_to_sample(self, X: Array) -> None:
        start = self.n_seen
        before = self.sample_numbers
        self.n_seen += X.shape[0]
        if not self.most_sampled:
            return
        numbers = self.sample_numbers
        new = _on_host(X, numbers[numbers >= start] - start)
        kept = np.isin(before, numbers)
        if not kept.all() or len(self.sampled) > _GATHERED_ROWS:
            self.sampled = [np.concatenate(self.sampled)[kept]]
        self.sampled.append(new)

    def sample(self) -> Sample | None:
        """Some rows, with the numbers of their classes as far as they are labelled."""
        if not self.sampled:
            return None
        self.sampled = [np.concatenate(self.sampled)]
        rows = self.sampled[0]
        numbers = self.sample_numbers
        weight = np.ones(len(rows))
        if self.half_life is not None:
            weight = 2.0 ** (-(self.n_seen - 1 - numbers) / self.half_life)
        # With sums by class of only some rows, the scatter within classes could become negative.
        whole = len(rows) == self.n_seen
        moments = self.sum_up() if whole else Moments.of(rows, None, weight)
        assert moments is not None
        return Sample(rows, weight, moments)

    def codes_of_sample(self, k: int) -> np.ndarray:
        """Class numbers of the rows in the sample; -1 without a label, or of a new class."""
        assert self.labels is not None
        codes = np.full(len(self.sample_numbers), -1)
        _, in_sample, in_labels = np.intersect1d(
            self.sample_numbers, self.labels.numbers, assume_unique=True, return_indices=True
        )
        codes[in_sample] = self.labels.T[in_labels]
        return np.where(codes < k, codes, -1)

    def _add_labels(self, X: Array, y: PartialLabels) -> None:
        places = np.flatnonzero(y.known)
        rows = _on_host(X, places).astype(np.float64)
        new = LabelledRows(rows, self.n_seen + places.astype(float), y.codes.astype(float))
        self.labels = new if self.labels is None else self.labels + new
        if y.new_classes:
            assert self.classes is not None
            # Text may be longer than that of the others.
            kind = None if self.classes.dtype.kind == "U" else self.classes.dtype
            self.classes = np.array([*self.classes.tolist(), *y.new_classes], dtype=kind)

    def forget_labels(self) -> None:
        """Drop the labelled rows that all but count for nothing."""
        if self.half_life is not None and self.labels is not None:
            age = self.n_seen - 1 - self.labels.numbers
            self.labels = self.labels[age <= _REMEMBERED * self.half_life]

    def label_weights(self) -> np.ndarray:
        assert self.labels is not None
        if self.half_life is None:
            return np.ones(len(self.labels))
        return 2.0 ** (-(self.n_seen - 1 - self.labels.numbers) / self.half_life)

    def compact(self) -> Stream:
        """The same, with its rows in one piece: what a file holds."""
        return replace(
            self,
            gathered=[np.concatenate(self.gathered)] if self.gathered else [],
            sampled=[np.concatenate(self.sampled)] if self.sampled else [],
        )


def _on_host(X: Array, places: np.ndarray) -> np.ndarray:
    rows = take(X, places)
    return rows.toarray() if sparse.issparse(rows) else to_numpy(rows)
