"""Whether the classes predicted on new rows have other shares than in training."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdare._validation import warn
from skdare.adapting.stream_moments import Forgetting
from skdare.arrays import Array, compact
from skdare.objective.scores import predicted_columns

# Of a long stream one row in so many is predicted: with 100 classes the product costs as much as a
# fifth of the moments of 768 features, and shares are known well enough by then.
_ALL_ROWS, _ONE_IN = 8192, 8


class LabelShiftWarning(UserWarning):
    """The new rows seem to have other class shares than the training rows."""


class PredictedClasses:
    """Counts of the classes that a head predicts in a stream; of a regressor, none.

    The unadapted head's predictions, and rows by their number in the stream: neither depends on
    the chunking.
    """

    def __init__(self, head: Any, forgetting: Forgetting) -> None:
        self._head, self._forgetting = head, forgetting
        self.counts = np.zeros(len(getattr(head, "classes_", ())))
        self.n_rows, self.squares = 0, 0.0
        short = forgetting.half_life is not None and forgetting.half_life < _ALL_ROWS
        self._one_in = 1 if short else _ONE_IN

    def add(self, X: Array) -> None:
        """Count the rows of a chunk; one that stands for others counts for all of them."""
        k, m = len(self.counts), X.shape[0]
        if not k:
            return
        number = self.n_rows + np.arange(m)
        chosen = np.flatnonzero((number < _ALL_ROWS) | (number % self._one_in == 0))
        weight = np.where(number < _ALL_ROWS, 1.0, self._one_in)[chosen]
        fading, fade = self._forgetting.weights(m), self._forgetting.factor(m)
        weight = weight if fading is None else weight * fading[chosen]
        self.counts, self.squares = (
            fade * self.counts,
            fade**2 * self.squares + float(weight @ weight),
        )
        self.n_rows += m
        if len(chosen):
            V, b = np.atleast_2d(self._head.coef_).T, self._head.intercept_
            numbers = predicted_columns(X, compact(chosen), V, b)
            self.counts = self.counts + np.bincount(numbers, weight, k)

    def warn_of_shift(self) -> None:
        """Say where the shares are further from those in training than any training domain's."""
        if not len(self.counts):
            return
        known = self._head.predicted_shares_
        # So many rows of equal weight would know the shares as well.
        n = self.counts.sum() ** 2 / self.squares
        shares = self.counts / self.counts.sum()
        distance = 0.5 * float(np.abs(shares - known).sum())
        limit = self._head.predicted_share_range_ + 0.5 * np.sqrt(len(known) / n)
        if distance > limit:
            worst = int(np.argmax(np.abs(shares - known)))
            warn(
                f"predicted class shares are {distance:.0%} away from those in training "
                f"(class {self._head.classes_[worst]}: {shares[worst]:.0%}, was "
                f"{known[worst]:.0%}), further than any training domain; if the classes "
                "themselves are rarer or more common there, aligning moments can hurt: "
                "compare with the head before adapt",
                LabelShiftWarning,
            )
