"""The diagnosis of a fitted head on unlabelled rows."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np

from skdare._validation import check_number
from skdare.arrays import Array, to_numpy
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
    beyond_use,
    recommend,
    without_rehearsal,
)
from skdare.diagnosis._rehearsal import Rehearsal, foreseen_loss
from skdare.diagnosis._rehearsing import check_diagnosable, own_adjustment, steps_and_head
from skdare.diagnosis._score_scale import Reading, read
from skdare.diagnosis._training import TrainingDomains
from skdare.fitting.domain_fit import domain_fit_of
from skdare.objective.scores import linear_scores
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments

# Rows below which nothing is said: halves of them still have moments.
MIN_ROWS = 20
EVERYTHING = "this domain", "What can be said of these rows?"


def diagnose(
    model: Any, X: Array, *, label_cost: float = 0.05, acceptable: float | None = None
) -> Diagnosis:
    """Whether a head can be trusted on the domain of X; see `DAREClassifier.diagnose`.

    Parameters
    ----------
    model : fitted head, or Pipeline that ends in one
    X : array of shape (m, d)
        Rows of the new domain.
    label_cost, acceptable
        As of the head's method.

    Returns
    -------
    Diagnosis
    """
    steps, head = steps_and_head(model)
    check_diagnosable(head)
    X = head._inner_rows(X if steps is None else steps.transform(X))
    training = TrainingDomains.of(head)
    return Diagnosing(head._inner(), X, training, head.rehearsal_)(label_cost, acceptable)


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
        self, head: Any, X: Array, training: TrainingDomains, rehearsal: Rehearsal | None
    ) -> None:
        self.head = head
        self.X = X
        self.training = training
        self.rehearsal = rehearsal
        self.rows = int(X.shape[0])

    def __call__(self, label_cost: float, acceptable: float | None) -> Diagnosis:
        """Answer every question."""
        check_number("label_cost", label_cost, 0.0, 1.0)
        check_number("acceptable", acceptable, also=(None,))
        needed = self._needed()
        if needed is not None:
            finding = cannot_say(*EVERYTHING, needed)
            return Diagnosis(self.rows, (finding,), Recommendation(CANNOT_SAY, needed))
        findings = [*self._distances(), *self._labels()]
        if self.rehearsal is None:
            findings.append(cannot_say(LOSS, LOSS_QUESTION, REHEARSE))
            findings.append(cannot_say(GAIN, GAIN_QUESTION, REHEARSE))
            return Diagnosis(self.rows, tuple(findings), without_rehearsal())
        expected = self._outlook(self.rehearsal)
        findings.append(loss_finding(self.rehearsal, expected))
        findings.append(gain_finding(self.rehearsal, expected, self.rows))
        chosen = recommend(self.rehearsal, expected, self.rows, label_cost, acceptable)
        if findings[0].numbers.get("absurd"):
            chosen = beyond_use(chosen)
        return Diagnosis(self.rows, tuple(findings), chosen)

    @cached_property
    def _moments(self) -> Moments:
        return Moments.of(self.X).to_numpy()

    def _needed(self) -> str | None:
        """What is missing for any statement."""
        if self.rows < MIN_ROWS:
            return f"needs at least {MIN_ROWS} rows, and {self.rows} were given"
        distinct = self._distinct()
        if distinct < MIN_ROWS:
            return f"needs at least {MIN_ROWS} rows that differ, and {distinct} do"
        if self._moments.dominated:
            return "needs rows without outliers: one or two hold most of the variance; clip them"
        return None

    def _distinct(self) -> int:
        """How many rows differ, by one random score of each."""
        v = np.random.default_rng(0).standard_normal((self.X.shape[1], 1))
        return len(np.unique(to_numpy(linear_scores(self.X, slice(0, self.rows), v, 0.0))))

    @cached_property
    def _read(self) -> Reading:
        return read(self.head, self.X)

    @cached_property
    def _whole(self) -> Adjustment:
        return own_adjustment(self.training, self.X, np.arange(self.rows))

    def _own(self, numbers: np.ndarray) -> Adjustment:
        """The adjustment of some of the rows."""
        if len(numbers) == self.rows:
            return self._whole
        return own_adjustment(self.training, self.X, numbers)

    def _distances(self) -> list[Finding]:
        training = self.training
        D = None
        if training.whitening.adjust:
            D = adjustment_difference(self._whole, training.guess)
        return [
            adjustment_finding(training, self.rehearsal, self._own, D, self.rows),
            mean_finding(training, self.rehearsal, self._moments),
            more_domains_finding(training),
            assumption_finding(training, D),
        ]

    def _labels(self) -> list[Finding]:
        training = domain_fit_of(self.head).class_shares
        if training is None:
            return []
        classes = self.head.classes_
        numbers = np.searchsorted(classes, self._read.values)
        counts = np.bincount(numbers, minlength=len(classes))
        trained_on = sum(m.n for m in self.training.moments)
        return [label_finding(counts, training.shares, trained_on, training.reach, classes)]

    def _outlook(self, rehearsal: Rehearsal) -> Outlook:
        disagreement = None
        if domain_fit_of(self.head).adaptation is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the findings say it
                adapted = self.head.adapt(self.X)
            values = read(adapted, self.X).values
            disagreement = rehearsal.task.disagreement(self._read.values, values)
        foreseen = foreseen_loss(rehearsal.usual_confidence, self._read.confidence, disagreement)
        loss = rehearsal.expected_loss(foreseen)
        return outlook(rehearsal, loss, disagreement, self.rows)
