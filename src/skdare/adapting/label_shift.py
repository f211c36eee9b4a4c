"""Whether the classes predicted on new rows have other shares than in training."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdare._validation import warn
from skdare.adapting.stream_moments import Forgetting
from skdare.arrays import Array, compact
from skdare.fitting.domain_fit import domain_fit_of
from skdare.objective.scores import predicted_columns

# After this many rows of a stream one in eight is predicted: with 100 classes the product costs as
# much as a fifth of the moments of 768 features, and shares are known well enough by then.
_ALL_ROWS = 8192
_ONE_IN = 8


class LabelShiftWarning(UserWarning):
    """The new rows seem to have other class shares than the training rows."""


def n_classes(head: Any) -> int:
    """How many classes a head has; a regressor has none."""
    return len(head.classes_) if is_classifier(head) else 0


class PredictedClasses:
    """Counts of the classes that a head predicts in a stream; of a regressor, none.

    The unadapted head's predictions, and rows by their number in the stream: neither depends on
    the chunking.
    """

    def __init__(self, head: Any, forgetting: Forgetting) -> None:
        self._head = head
        self._forgetting = forgetting
        self.counts = np.zeros(n_classes(head))
        self.n_rows = 0
        self.squares = 0.0
        short = forgetting.half_life is not None and forgetting.half_life < _ALL_ROWS
        self._one_in = 1 if short else _ONE_IN

    def add(self, X: Array) -> None:
        """Count the rows of a chunk; one that stands for others counts for all of them."""
        k = len(self.counts)
        m = X.shape[0]
        if not k:
            return
        number = self.n_rows + np.arange(m)
        chosen = np.flatnonzero((number < _ALL_ROWS) | (number % self._one_in == 0))
        weight = np.where(number < _ALL_ROWS, 1.0, self._one_in)[chosen]
        row_weights = self._forgetting.weights(m)
        if row_weights is not None:
            weight = weight * row_weights[chosen]
        fade = self._forgetting.factor(m)
        self.counts = fade * self.counts
        self.squares = fade**2 * self.squares + float(weight @ weight)
        self.n_rows += m
        if len(chosen):
            V = np.atleast_2d(self._head.coef_).T
            b = self._head.intercept_
            numbers = predicted_columns(X, compact(chosen), V, b)
            self.counts = self.counts + np.bincount(numbers, weight, k)

    def restore(self, counts: np.ndarray, squares: float, n_rows: int) -> None:
        """Go on from the counts of a stream that was saved."""
        self.counts = counts
        self.squares = squares
        self.n_rows = n_rows

    def warn_of_shift(self) -> None:
        """Warn where the shares are further from those in training than any training domain's."""
        if not len(self.counts):
            return
        training = domain_fit_of(self._head).class_shares
        assert training is not None
        # This many rows of equal weight would know the shares as well.
        n = self.counts.sum() ** 2 / self.squares
        shares = self.counts / self.counts.sum()
        distance = 0.5 * float(np.abs(shares - training.shares).sum())
        limit = training.reach + 0.5 * np.sqrt(len(shares) / n)
        if distance > limit:
            worst = int(np.argmax(np.abs(shares - training.shares)))
            warn(
                f"predicted class shares are {distance:.0%} away from those in training "
                f"(class {self._head.classes_[worst]}: {shares[worst]:.0%}, was "
                f"{training.shares[worst]:.0%}), further than any training domain; if the classes "
                "themselves are rarer or more common there, aligning moments can hurt: "
                "compare with the head before adapt",
                LabelShiftWarning,
            )
