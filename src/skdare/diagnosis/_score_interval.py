"""What a head scores in a new domain, as far as a few labels of its rows tell.

The share of the labelled rows that are right is known to within a binomial's error. The head's
confidences are known for all rows. Where confident rows are right more often than others, they say
whether the labelled rows happen to be easy ones, and the share is corrected by that: the
prediction-powered estimate with power tuning of Angelopoulos, Duchi and Zrnic (2023). It is worth
as many labels as would be known as well without it, and the interval is that of a binomial of that
many, as Korn and Graubard (1998) have it for surveys. The normal interval of the paper holds the
truth too rarely where labels are few or most rows are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import beta
from scipy.stats import t as student
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from skdare._safe_text import counted
from skdare._validation import InputError, check_number, warn
from skdare.adapting.stream_labels import row_digest
from skdare.arrays import Array, dense_rows, to_numpy
from skdare.diagnosis._rehearsing import steps_and_head
from skdare.fitting.partial_labels import PartialLabels

# Labels below which confidences are not looked at: nobody can tell what they are worth.
_FEWEST = 10
# The confidence of a labelled row is recalibrated by the other nine tenths.
_FOLDS = 10
# How far from the head's own confidences recalibration goes before labels are seen: deviations of
# the intercept and of the slope, on log odds. Chosen on the first half of
# `benchmarks/score_interval.py`; twice and four times as far cover less and are no narrower.
_PRIOR = np.array([1.0, 0.5])
# Labelled rows that speak for confidences which explain nothing, beside those that are there: a
# few rows may fit them by chance. Without, confidences that are far too sure leave a coverage of
# 0.90 of 0.95 at 10 and 20 labels of the benchmark's simulation; twice as many are only wider.
_DOUBT = 5.0
# Log odds beyond which a row is as good as sure.
_SURE = 10.0


@dataclass(frozen=True)
class ScoreRange:
    """The ends of an interval of scores.

    Parameters
    ----------
    low, high : float
    """

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far the ends are apart."""
        return self.high - self.low


@dataclass(frozen=True)
class ScoreInterval:
    """What a head scores in a new domain, as far as labels of some rows tell.

    Parameters
    ----------
    rows : int
        Rows of the domain that were given.
    labelled : int
        How many of them have a label.
    coverage : float
        How often such intervals hold the score.
    score : float
        Accuracy on the labelled rows.
    exact : ScoreRange
        By Clopper and Pearson, from the labels alone: it covers at least as often as asked, and
        with few labels more often.
    powered : ScoreRange
        With the help of the head's confidences on all rows: narrower on average. It covers as often
        as asked on average over domains; at some accuracies a few points less, at others more.
    """

    rows: int
    labelled: int
    coverage: float
    score: float
    exact: ScoreRange
    powered: ScoreRange

    def __str__(self) -> str:
        right = round(self.score * self.labelled)
        return (
            f"The head is right on {right:,} of {counted(self.labelled, 'labelled row')}, out of "
            f"{self.rows:,}. Its accuracy in this domain is {_percent(self.powered)}, and by the "
            f"labels alone {_percent(self.exact)}, with {100 * self.coverage:g}\u00a0% confidence."
        )


def _percent(ends: ScoreRange) -> str:
    return f"{100 * ends.low:.0f} to {100 * ends.high:.0f}\u00a0%"


def warn_of_labels_taken(head: Any, X: Array, labels: PartialLabels) -> None:
    """Say when labels are, or may be, among those that a head was adapted with."""
    if head.labelled_rows_ is None:
        return
    if not head._labelled_digests:
        warn(
            f"this head was adapted with {counted(head.labelled_rows_, 'label')} before it was "
            "saved; if they are among these, it looks better than it is"
        )
        return
    rows = dense_rows(head._inner_rows(X), np.flatnonzero(labels.known))
    learnt_from = set(head._labelled_digests)
    taken = sum(row_digest(row) in learnt_from for row in rows)
    if taken:
        warn(
            f"{taken} of {counted(len(rows), 'label')} are among those that this head was adapted "
            "with, and make it look better than it is; measure it by other labels"
        )


def score_interval(model: Any, X: Array, y: Any, *, coverage: float = 0.95) -> ScoreInterval:
    """An interval for the accuracy in a new domain; see `DAREClassifier.score_interval`.

    Parameters
    ----------
    model : fitted classifier, or Pipeline that ends in one
    X : array of shape (m, d)
        Rows of the new domain.
    y : sequence of m labels
        None, NaN or -1 where a row has none. A class that the head was not fitted to is wrong.
    coverage : float, default=0.95

    Returns
    -------
    ScoreInterval
    """
    check_number("coverage", coverage, 0.5, 0.999)
    steps, head = steps_and_head(model)
    if is_regressor(head):
        raise InputError(
            f"{type(head).__name__} predicts numbers, and an interval is for the accuracy of "
            "classes",
            "use a classifier",
            argument="model",
        )
    check_is_fitted(head)
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    labels = PartialLabels.of(head.classes_, y, rows, new_classes=True)
    if labels.added_classes:
        _warn_of_unknown_classes(labels, head.classes_)
    if not len(labels.codes):
        raise InputError("y has no label", "label some rows that are drawn at random", argument="y")
    X = X if steps is None else steps.transform(X)
    warn_of_labels_taken(head, X, labels)
    P = to_numpy(head.predict_proba(X))
    right = (P[labels.known].argmax(axis=1) == labels.codes).astype(np.float64)
    return ScoreInterval(
        rows,
        len(right),
        float(coverage),
        float(right.mean()),
        exact_interval(right, coverage),
        powered_interval(right, P.max(axis=1), labels.known, coverage),
    )


def _warn_of_unknown_classes(labels: PartialLabels, classes: np.ndarray) -> None:
    """Say that a class which the head was not fitted to is one that it gets wrong."""
    count = int((labels.codes >= len(classes)).sum())
    if count == len(labels.codes):
        raise InputError(
            f"y has the class {labels.added_classes[0]!r}, which the head was not fitted to, and "
            "none that it was fitted to",
            f"its classes are {', '.join(map(repr, classes[:10].tolist()))}",
            argument="y",
        )
    named = ", ".join(map(repr, labels.added_classes))
    warn(
        f"{counted(count, 'label')} of classes that the head was not fitted to ({named}) count as "
        "wrong"
    )


def exact_interval(right: np.ndarray, coverage: float) -> ScoreRange:
    """Clopper and Pearson's interval for the share of rows that are right.

    Parameters
    ----------
    right : array of shape (n,)
        1 for a labelled row that is predicted rightly, else 0.
    coverage : float
    """
    n = len(right)
    count = float(right.sum())
    tail = (1.0 - coverage) / 2.0
    low = beta.ppf(tail, count, n - count + 1.0) if count > 0 else 0.0
    high = beta.ppf(1.0 - tail, count + 1.0, n - count) if count < n else 1.0
    return ScoreRange(float(low), float(high))


def powered_interval(
    right: np.ndarray, confidence: np.ndarray, known: np.ndarray, coverage: float
) -> ScoreRange:
    """An interval for the share of rows that are right, by labels and confidences.

    Where labels are fewer than ten, or all right or all wrong, it is the exact one.

    Parameters
    ----------
    right : array of shape (n,)
        1 for a labelled row that is predicted rightly, else 0.
    confidence : array of shape (N,)
        Probability of the predicted class, of all rows.
    known : boolean array of shape (N,)
        Which rows are labelled.
    coverage : float
    """
    n = len(right)
    if n < _FEWEST or right.min() == right.max():
        return exact_interval(right, coverage)
    expected = _expected_right(right, confidence, known)
    estimate = float(right.mean())
    worth = float(n)
    centred = expected.labelled - expected.labelled.mean()
    spread = float(centred @ centred)
    # Power tuning: the slope that leaves the least variance, and none that turns confidences round.
    power = min(max(float(centred @ right) / spread, 0.0), 1.0) if spread > 0 else 0.0
    left = right - estimate - power * centred
    # The slope costs a degree of freedom.
    unexplained = (left @ left / (n - 2.0)) / right.var(ddof=1)
    unexplained = (n * unexplained + _DOUBT) / (n + _DOUBT)
    if power > 0 and unexplained < 1.0:
        estimate += power * (expected.mean - float(expected.labelled.mean()))
        # What confidences explain is known by all rows, and the rest by the labelled ones.
        worth = 1.0 / (unexplained / n + (1.0 - unexplained) / len(confidence))
        quantiles = student.ppf(0.5 + 0.5 * coverage, [n - 1.0, n - 2.0])
        worth *= float(quantiles[0] / quantiles[1]) ** 2
    return _jeffreys(min(max(estimate, 0.0), 1.0), worth, coverage)


def _jeffreys(share: float, worth: float, coverage: float) -> ScoreRange:
    """Jeffreys' interval for a share that is known as well as by this number of labels."""
    # Clopper and Pearson's covers 98 in 100 times where 95 are asked for and labels are few. This
    # one covers 95 to 96 on average over shares, and at single ones 90 to 99: counts are whole.
    count = worth * share
    tails = [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]
    low, high = beta.ppf(tails, count + 0.5, worth - count + 0.5)
    return ScoreRange(float(low) if share > 0 else 0.0, float(high) if share < 1 else 1.0)


@dataclass(frozen=True, eq=False)
class ExpectedRight:
    """How likely rows are to be right, by confidences that were recalibrated.

    Parameters
    ----------
    labelled : array of shape (n,)
        Each labelled row, by the labels of others.
    mean : float
        Of all rows.
    """

    labelled: np.ndarray
    mean: float


def _expected_right(right: np.ndarray, confidence: np.ndarray, known: np.ndarray) -> ExpectedRight:
    """Recalibrate by cross-fitting: no label is used for its own row."""
    tiny = np.finfo(np.float64).tiny
    odds = np.log(np.maximum(confidence, tiny)) - np.log(np.maximum(1.0 - confidence, tiny))
    odds = np.clip(odds, -_SURE, _SURE)
    ours = odds[known]
    # Every tenth row by confidence, so that the order of the rows does not matter.
    fold = np.empty(len(right), dtype=int)
    fold[np.lexsort((right, ours))] = np.arange(len(right)) % _FOLDS
    labelled = np.empty(len(right))
    mean = 0.0
    for one in range(_FOLDS):
        held_out = fold == one
        intercept, slope = _recalibration(ours[~held_out], right[~held_out])
        labelled[held_out] = expit(intercept + slope * ours[held_out])
        mean += float(held_out.mean() * expit(intercept + slope * odds).mean())
    return ExpectedRight(labelled, mean)


def _recalibration(odds: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Intercept and slope on log odds, near those that leave confidences as they are."""
    start = np.array([0.0, 1.0])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = weights[0] + weights[1] * odds
        off = (weights - start) / _PRIOR
        wrong = expit(scores) - right
        value = float(np.sum(np.logaddexp(0.0, scores) - right * scores) + 0.5 * off @ off)
        return value, np.array([wrong.sum(), wrong @ odds]) + off / _PRIOR

    return np.asarray(minimize(loss, start, jac=True, method="BFGS").x)
