"""The diagnosis of a fitted head on unlabelled rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from skdare._validation import check_number
from skdare.arrays import Array, to_numpy
from skdare.diagnosis._adapted_predictions import AdaptedPredictions, adapted_predictions
from skdare.diagnosis._adjustment_finding import adjustment_finding
from skdare.diagnosis._assumption_finding import assumption_finding
from skdare.diagnosis._bound import Bound, least_accuracy
from skdare.diagnosis._diagnosis import Diagnosis
from skdare.diagnosis._finding import MIN_ROWS, Finding
from skdare.diagnosis._forecast import foresee
from skdare.diagnosis._geometry import adjustment_difference
from skdare.diagnosis._label_finding import NAME as LABELS
from skdare.diagnosis._label_finding import label_finding
from skdare.diagnosis._mean_finding import mean_finding, more_domains_finding
from skdare.diagnosis._recommendation import (
    REHEARSE,
    beyond_use,
    cannot_recommend,
    recommend,
)
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._rehearsing import check_diagnosable, own_adjustment, steps_and_head
from skdare.diagnosis._remarks import remarks
from skdare.diagnosis._score_scale import Reading, read
from skdare.diagnosis._training import TrainingDomains
from skdare.fitting.domain_fit import domain_fit_of
from skdare.objective.scores import linear_scores
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments

# Features that are this many times larger than in any training domain are in other units.
_OTHER_UNITS = 100.0


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
    head = head._uncalibrated()
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
            return Diagnosis(self.rows, cannot_recommend(needed))
        if self.rehearsal is None:
            findings = [*self._distances(), *self._labels(self._read.values)]
            return Diagnosis(self.rows, cannot_recommend(REHEARSE), findings=findings)
        task = self.rehearsal.task
        predictions = adapted_predictions(self.head, self.X)
        disagreement = None
        if predictions.adapted is not None:
            disagreement = task.disagreement(self._read.values, predictions.adapted.values)
        outlook = foresee(self.rehearsal, disagreement, self.rows)
        # A domain that the head as it is gets wrong has other classes only by its mistakes.
        values = self._read.values
        if predictions.adapted is not None and outlook.prefers_adapting:
            values = predictions.adapted.values
        findings = [*self._distances(), *self._labels(values)]
        chosen = recommend(self.rehearsal, outlook, label_cost, acceptable)
        is_foreign = bool(findings[0].numbers.get("absurd")) or self._has_other_units()
        if is_foreign:
            chosen = beyond_use(chosen, by_outliers=self._moments.dominated)
        shares = next((one for one in findings if one.name == LABELS), None)
        fit = domain_fit_of(self.head)
        tried = fit.adaptation is not None or fit.declined is not None
        # Of features that are not those it was fitted to, a head can count on nothing.
        bounds = {} if is_foreign else self._bounds(predictions)
        sentences = [
            *remarks(self.rehearsal, self.rows, predictions.declined, shares, bounds, tried=tried)
        ]
        scoring = getattr(self.head, "scoring", None)
        if scoring not in (None, task.scoring):
            name = getattr(scoring, "__name__", scoring)
            sentences.append(f"the head was chosen by {name}; scores here are {task.unit}")
        if self._moments.dominated:
            sentences.append("one or two rows hold most of the variance here: look at them")
        forecasts = {"use": outlook.use, "adapt": outlook.adapt, "label": outlook.label}
        return Diagnosis(
            self.rows,
            chosen,
            tuple(sentences),
            {name: one for name, one in forecasts.items() if one is not None},
            tuple(findings),
            self.rehearsal,
            bounds,
        )

    @cached_property
    def _moments(self) -> Moments:
        return Moments.of(self.X).to_numpy()

    def _needed(self) -> str | None:
        """What is missing for any statement."""
        if self.rows < MIN_ROWS:
            given = "1 was" if self.rows == 1 else f"{self.rows} were"
            return f"at least {MIN_ROWS} rows are needed, and {given} given"
        distinct = self._distinct()
        if distinct < MIN_ROWS:
            there = "is 1" if distinct == 1 else f"are {distinct}"
            return f"at least {MIN_ROWS} different rows are needed, and there {there}"
        return None

    def _distinct(self) -> int:
        """How many rows differ, by one random score of each."""
        v = np.random.default_rng(0).standard_normal((self.X.shape[1], 1))
        return len(np.unique(to_numpy(linear_scores(self.X, slice(0, self.rows), v, 0.0))))

    def _has_other_units(self) -> bool:
        """Whether the features are so much larger or smaller that they cannot be the same."""
        scales = [m.scale(centered=False) for m in self.training.moments]
        scale = self._moments.scale(centered=False)
        return scale > _OTHER_UNITS**2 * max(scales) or scale * _OTHER_UNITS**2 < min(scales)

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

    def _labels(self, values: np.ndarray) -> list[Finding]:
        """Whether these predictions are of other classes than in training."""
        training = domain_fit_of(self.head).class_shares
        if training is None:
            return []
        classes = self.head.classes_
        numbers = np.searchsorted(classes, values)
        counts = np.bincount(numbers, minlength=len(classes))
        trained_on = sum(m.n for m in self.training.moments)
        return [label_finding(counts, training.shares, trained_on, training.reach, classes)]

    def _bounds(self, predictions: AdaptedPredictions) -> dict[str, Bound]:
        """The least accuracy of the head as it is, and of the adapted one."""
        if self.rehearsal is None or self.rehearsal.scores is None:
            return {}
        left_out = self.rehearsal.scores
        bounds = {"use": least_accuracy(left_out, self._read.scores, adapted=False)}
        if predictions.adapted is not None:
            bounds["adapt"] = least_accuracy(left_out, predictions.adapted.scores, adapted=True)
        return bounds
