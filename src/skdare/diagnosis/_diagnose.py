"""From a fitted head and unlabelled rows to a diagnosis."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from skdare._array import compact, to_numpy
from skdare._validation import check_number
from skdare.adjustment import Adjustment
from skdare.diagnosis._adjustment_finding import adjustment_finding
from skdare.diagnosis._assumption_finding import assumption_finding
from skdare.diagnosis._diagnosis import Diagnosis
from skdare.diagnosis._finding import Finding, cannot_say
from skdare.diagnosis._geometry import adjustment_difference
from skdare.diagnosis._label_finding import label_finding
from skdare.diagnosis._mean_finding import mean_finding, more_domains_finding
from skdare.diagnosis._performance_finding import (
    GAIN,
    GAIN_QUESTION,
    LOSS,
    LOSS_QUESTION,
    REHEARSE,
    Outlook,
    gain_finding,
    loss_finding,
    outlook,
)
from skdare.diagnosis._recommendation import (
    CANNOT_SAY,
    Recommendation,
    recommend,
    without_rehearsal,
)
from skdare.diagnosis._rehearsal import Rehearsal, foreseen_loss
from skdare.diagnosis._training import TrainingDomains
from skdare.domain_statistics import DomainStatistics
from skdare.moments import pooled_second_moment

# Rows below which nothing is said: halves of them still have moments.
MIN_ROWS = 20
EVERYTHING = "this domain", "What can be said of these rows?"


class Diagnosing:
    """Looks at unlabelled rows with the eyes of one head.

    Parameters
    ----------
    head : fitted head
        Never modified.
    X : array of shape (n, d)
        Checked rows of the new domain.
    training : TrainingDomains
    rehearsal : Rehearsal, optional
    """

    def __init__(
        self, head: Any, X: Any, training: TrainingDomains, rehearsal: Rehearsal | None
    ) -> None:
        self.head, self.X, self.training, self.rehearsal = head, X, training, rehearsal
        self.rows = int(X.shape[0])
        self._statistics = self._of(np.arange(self.rows))
        self._pool = None
        whitening = training.whitening
        if whitening.target == "pooled":
            self._pool = pooled_second_moment(training.moments, centered=whitening.centered)

    def __call__(self, label_cost: float, acceptable: float | None) -> Diagnosis:
        """Answer every question."""
        check_number("label_cost", label_cost, 0.0, 1.0)
        check_number("acceptable", acceptable, 0.0, 1.0, also=(None,))
        needed = self._needed()
        if needed is not None:
            finding = cannot_say(*EVERYTHING, needed)
            return Diagnosis(self.rows, (finding,), Recommendation(CANNOT_SAY, needed))
        found = [*self._distances(), *self._labels()]
        if self.rehearsal is None:
            found.append(cannot_say(LOSS, LOSS_QUESTION, REHEARSE))
            found.append(cannot_say(GAIN, GAIN_QUESTION, REHEARSE))
            return Diagnosis(self.rows, tuple(found), without_rehearsal())
        expected = self._outlook(self.rehearsal)
        found.append(loss_finding(self.rehearsal, expected))
        found.append(gain_finding(self.rehearsal, expected, self.rows))
        chosen = recommend(self.rehearsal, expected, self.rows, label_cost, acceptable)
        return Diagnosis(self.rows, tuple(found), chosen)

    def _needed(self) -> str | None:
        """What is missing for any statement."""
        if self.rows < MIN_ROWS:
            return f"needs at least {MIN_ROWS} rows, and {self.rows} were given"
        return None if self._statistics.moments.scale() > 0 else "needs rows that differ"

    def _of(self, numbers: np.ndarray) -> DomainStatistics:
        return DomainStatistics(self.X, compact(numbers), np.ones(len(numbers)))

    def _own(self, numbers: np.ndarray) -> Adjustment:
        """The adjustment of some of the rows."""
        statistics = self._statistics if len(numbers) == self.rows else self._of(numbers)
        return statistics.adjustment(self.training.whitening, self._pool).to_numpy()

    def _distances(self) -> list[Finding]:
        moments, training = self._statistics.moments.to_numpy(), self.training
        D = None
        if training.whitening.adjust:
            D = adjustment_difference(self._own(np.arange(self.rows)), training.guess)
        return [
            adjustment_finding(training, self._own, self.rows),
            mean_finding(training, moments, self._spread()),
            more_domains_finding(training),
            assumption_finding(training, D),
        ]

    def _spread(self) -> float:
        """Deviation of scores within the new domain, over classes measured from their mean."""
        C = self._statistics.moments.to_numpy().second_moment()
        V = np.atleast_2d(self.head.coef_).T.astype(np.float64)
        if V.shape[1] > 1:
            V = V - V.mean(axis=1, keepdims=True)
        return float(np.sqrt(np.mean(np.sum(V * (C @ V), axis=0)))) or 1.0

    def _labels(self) -> list[Finding]:
        if not hasattr(self.head, "classes_"):
            return []
        numbers = np.searchsorted(self.head.classes_, to_numpy(self.head.predict(self.X)))
        counts = np.bincount(numbers, minlength=len(self.head.classes_))
        shares, reach = self.head.predicted_shares_, self.head.predicted_share_range_
        return [label_finding(counts, shares, reach, self.head.classes_)]

    def _outlook(self, rehearsal: Rehearsal) -> Outlook:
        task = rehearsal.task
        read, disagreement = task.read(self.head, self.X), None
        if self.head.adaptation_ is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the findings say it
                adapted = self.head.adapt(self.X)
            disagreement = task.disagreement(read.values, task.read(adapted, self.X).values)
        foreseen = foreseen_loss(rehearsal.usual_confidence, read, disagreement)
        if foreseen is None:
            # A regression that cannot adapt shows no sign: what the rehearsal lost must do.
            foreseen = float(np.median([one.loss for one in rehearsal.domains]))
        return outlook(rehearsal, foreseen, disagreement, self.rows)
