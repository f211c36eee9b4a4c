"""Whether the classes predicted on new rows have other shares than in training."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdare._array import Array
from skdare._validation import warn
from skdare.heads._base import class_numbers
from skdare.heads._stream_moments import Forgetting
from skdare.objective import linear_scores


class LabelShiftWarning(UserWarning):
    """The new rows seem to have other class shares than the training rows."""


class PredictedClasses:
    """Counts of the classes that a head predicts in a stream; of a regressor, none.

    The unadapted head's predictions: the only ones that do not depend on the chunking.
    """

    def __init__(self, head: Any, forgetting: Forgetting) -> None:
        self._head, self._forgetting = head, forgetting
        self.counts = np.zeros(len(getattr(head, "classes_", ())))

    def add(self, X: Array) -> None:
        """Count the rows of a chunk."""
        k, m = len(self.counts), X.shape[0]
        if k:
            V, b = np.atleast_2d(self._head.coef_).T, self._head.intercept_
            numbers = class_numbers(linear_scores(X, slice(0, m), V, b))
            counts = np.bincount(numbers, self._forgetting.weights(m), k)
            self.counts = self._forgetting.factor(m) * self.counts + counts

    def warn_of_shift(self) -> None:
        """Say where the shares are further from those in training than any training domain's."""
        if not len(self.counts):
            return
        n, known = self.counts.sum(), self._head.predicted_shares_
        shares = self.counts / n
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
