"""The least accuracy to count on in a new domain, without its labels.

A critic is trained to agree with the head on left-out rows and to disagree with it on the new ones.
If the new labels are no better at that than the critic, the head's error is at most

    ε ≤ ε_S + (disagreement on new rows - disagreement on left-out rows) + sample-size term,

the bound of Rosenfeld and Garg (2023). It is for rows S that the head was not fitted to, so each
training domain is seen through the head that `rehearse` fitted without it.

The critic is linear in the head's scores and not in the features: there two domains nearly always
lie apart, a critic disagrees with the head on most of the new rows whatever their labels, and
little is left to count on.

Notation: F (n, k) scores, Z (n, k) scores less a centre in a common unit, C (k, k) and c (k,) the
critic, R and Q residuals, A (m, k) what makes a margin of scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from skdare._safe_text import counted
from skdare._validation import InputError, check_number
from skdare.arrays import Array, evenly_spread
from skdare.diagnosis._adapted_predictions import adapted_predictions
from skdare.diagnosis._finding import MIN_ROWS, percent
from skdare.diagnosis._forecast import foresee
from skdare.diagnosis._left_out_scores import LeftOutScores, scores
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._rehearsing import steps_and_head
from skdare.diagnosis._score_scale import read
from skdare.fitting.domain_fit import domain_fit_of
from skdare.objective.coordinates import Coordinates
from skdare.objective.losses import LOGISTIC, SOFTMAX
from skdare.objective.scores import class_numbers, probabilities, scores_by_class
from skdare.solvers import lbfgs

# The critic's problem is small, and convex, so that one start does. Without a ridge its weights
# would grow for ever where rows are easily told apart; ten times more or less changes little.
_RIDGE = 1e-4
_TOL = 1e-4
_MAX_ITER = 60
# New rows that a critic is trained on: more would cost more than they tell.
_MOST_ROWS = 8000

# What a critic pays on new rows, by its scores: a loss for each row, and its derivative.
_NewRowLoss = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Bound:
    """The least accuracy to count on in a new domain.

    It holds with the given confidence over the draw of rows, provided that the true labels do not
    differ from the head's predictions in a way that no critic of its scores finds.

    Parameters
    ----------
    left_out_error : float
        Share of left-out rows that are predicted wrongly.
    disagreement, left_out_disagreement : float
        Shares of the new and of the left-out rows on which the critic disagrees with the head;
        rows that it was not trained on.
    sample_term : float
        What so few rows may hide.
    confidence : float
    rows, left_out_rows : int
        How many of each were looked at.
    by_confidence : float
        An estimate, not a bound: the share of the new rows on which the head is as sure as heads
        are on left-out rows that they get right.
    by_agreement : float, optional
        An estimate, not a bound: the accuracy forecast from how far the head as it is and the
        adapted one agree; needs a rehearsal.
    """

    left_out_error: float
    disagreement: float
    left_out_disagreement: float
    sample_term: float
    confidence: float
    rows: int
    left_out_rows: int
    by_confidence: float
    by_agreement: float | None = None

    @property
    def discrepancy(self) -> float:
        """How much more the critic disagrees on new rows; the head itself would have zero."""
        return max(self.disagreement - self.left_out_disagreement, 0.0)

    @property
    def least(self) -> float:
        """The accuracy to count on; zero where nothing can be counted on."""
        return max(1.0 - self.left_out_error - self.discrepancy - self.sample_term, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self) | {"least": self.least}

    def __str__(self) -> str:
        rows = counted(self.rows, "row")
        if self.least > 0:
            text = (
                f"The accuracy on the domain of these {rows} is {percent(self.least)} or more, "
                f"with {percent(self.confidence)} confidence, unless its labels differ from "
                "the predictions in a way that scores do not show."
            )
        else:
            text = (
                f"No accuracy can be counted on in the domain of these {rows}: a critic that "
                "agrees with it on left-out domains disagrees with it on "
                f"{percent(self.disagreement)} of them."
            )
        estimates = [f"{percent(self.by_confidence)} by its confidence"]
        if self.by_agreement is not None:
            estimates.append(f"{percent(self.by_agreement)} by agreement with the adapted head")
        return f"{text} What to expect is another matter: {', '.join(estimates)}."


def bound(model: Any, X: Array, *, confidence: float = 0.95) -> Bound:
    """The least accuracy to count on in the domain of X; see `DAREClassifier.bound`.

    Parameters
    ----------
    model : fitted and rehearsed classifier, as it is or adapted to X, or Pipeline that ends in one
    X : array of shape (m, d)
        Rows of the new domain.
    confidence : float, default=0.95

    Returns
    -------
    Bound
    """
    check_number("confidence", confidence, 0.5, 0.999)
    steps, head = steps_and_head(model)
    check_is_fitted(head)
    if head.labelled_rows_ is not None:
        raise InputError(
            f"this head was adapted with {counted(head.labelled_rows_, 'label')}, and a bound is "
            "for heads that took none",
            "see score_interval, by labels of other rows",
            argument="model",
        )
    _check_classifier(head)
    head = head._uncalibrated()
    if head.rehearsal_ is None or head.rehearsal_.scores is None:
        raise InputError(
            "this head keeps no scores of domains that were left out",
            "call rehearse on it",
            argument="model",
        )
    X = head._inner_rows(X if steps is None else steps.transform(X))
    if X.shape[0] < MIN_ROWS:
        raise InputError(
            f"X has {counted(X.shape[0], 'row')}, and a bound needs {MIN_ROWS}",
            "give more rows of the new domain",
            argument="X",
        )
    inner = head._inner()
    F = scores(X, (inner.coef_, inner.intercept_))
    is_adapted = head.adapted_rows_ is not None
    result = least_accuracy(head.rehearsal_.scores, F, adapted=is_adapted, confidence=confidence)
    return replace(result, by_agreement=_by_agreement(inner, X, head.rehearsal_))


def _check_classifier(head: Any) -> None:
    """The head is fitted, knows its training domains, and predicts classes."""
    domain_fit_of(head)
    if is_regressor(head):
        raise InputError(
            f"a bound is on the accuracy of a classifier, and a {type(head).__name__} predicts "
            "numbers",
            "see diagnose for what R² to expect",
        )


def least_accuracy(
    left_out: LeftOutScores, F: np.ndarray, *, adapted: bool, confidence: float = 0.95
) -> Bound:
    """The bound by scores of left-out rows and of new ones.

    Each half of the rows tells of a critic that was trained on the other half, and both are
    averaged. Half of the rows count in the sample-size term: the exponential that Hoeffding's
    inequality rests on is convex, so that of a mean is at most the mean of both.

    Parameters
    ----------
    left_out : LeftOutScores
    F : array of shape (m, k)
        Scores of the new rows.
    adapted : bool
        Whether they are of a head that was adapted to them.
    confidence : float
    """
    known = left_out.as_is
    if adapted and left_out.adapted is not None:
        known = left_out.adapted
    known = _centred(known)
    new = _centred(F)
    right = known.argmax(axis=1) == left_out.classes
    rng = np.random.default_rng(0)
    halves = [rng.permutation(len(known)) % 2 == 0, rng.permutation(len(new)) % 2 == 0]
    disagreements = []
    for half in (0, 1):
        of_known, of_new = (member if half else ~member for member in halves)
        critic = _Critic.trained(known[~of_known], evenly_spread(new[~of_new], _MOST_ROWS))
        disagreements.append(
            [critic.disagreement(new[of_new]), critic.disagreement(known[of_known])]
        )
    on_new, on_known = np.mean(disagreements, axis=0)
    return Bound(
        left_out_error=float(1.0 - right.mean()),
        disagreement=float(on_new),
        left_out_disagreement=float(on_known),
        sample_term=sample_term(len(known) // 2, len(new) // 2, confidence),
        confidence=confidence,
        rows=len(new),
        left_out_rows=len(known),
        by_confidence=_as_sure(known, new, float(right.mean())),
    )


def sample_term(left_out_rows: int, rows: int, confidence: float) -> float:
    """What rows held out of a critic's training may hide, by Hoeffding's inequality.

    A left-out row counts by whether the head is wrong on it less whether the critic disagrees, a
    range of two; a new row by the disagreement alone, a range of one.
    """
    squares = 4.0 / left_out_rows + 1.0 / rows
    return math.sqrt(0.5 * squares * math.log(1.0 / (1.0 - confidence)))


def _centred(F: np.ndarray) -> np.ndarray:
    """Scores of every class, less what all have in common, which changes no prediction."""
    F = scores_by_class(np.asarray(F, dtype=np.float64))
    return F - F.mean(axis=1, keepdims=True)


def _as_sure(known: np.ndarray, new: np.ndarray, accuracy: float) -> float:
    """Share of the new rows above the confidence that this share of the left-out rows exceeds."""
    threshold = np.quantile(probabilities(known).max(axis=1), 1.0 - accuracy)
    return float(np.mean(probabilities(new).max(axis=1) >= threshold))


def _by_agreement(head: Any, X: Array, rehearsal: Rehearsal | None) -> float | None:
    """The accuracy that is forecast where the head as it is and adapted agree as far as here."""
    if rehearsal is None or rehearsal.task.scoring != "accuracy":
        return None
    fit = domain_fit_of(head)
    values = read(head, X).values
    if fit.unadapted is not None:
        before = head.classes_[class_numbers(scores(X, fit.unadapted))]
        outlook = foresee(rehearsal, rehearsal.task.disagreement(before, values), X.shape[0])
        return (outlook.adapt or outlook.use).expected
    adapted = adapted_predictions(head, X).adapted
    disagreement = None
    if adapted is not None:
        disagreement = rehearsal.task.disagreement(values, adapted.values)
    return foresee(rehearsal, disagreement, X.shape[0]).use.expected


@dataclass(frozen=True, eq=False)
class _Critic:
    """A classifier of the head's scores.

    Parameters
    ----------
    centre : array of shape (k,)
    unit : float
        Scores less the centre are counted in it.
    C : array of shape (k, k)
    c : array of shape (k,)
    """

    centre: np.ndarray
    unit: float
    C: np.ndarray
    c: np.ndarray

    @classmethod
    def trained(cls, known: np.ndarray, new: np.ndarray) -> _Critic:
        """The one that agrees with the head on known scores, and disagrees most on new ones.

        Of three classes or more two losses are tried, for neither finds the worst critic always.
        """
        centre = known.mean(axis=0)
        unit = float(known.std()) or 1.0
        k = known.shape[1]
        # The head itself, which agrees everywhere.
        head = cls(centre, unit, unit * np.eye(k), centre)
        losses: list[_NewRowLoss] = [_second_best(new)]
        if k > 2:
            losses.append(_any_other(new))
        critics = [head._parted(known, new, loss) for loss in losses]
        return max(critics, key=lambda one: one.disagreement(new) - one.disagreement(known))

    def _parted(self, known: np.ndarray, new: np.ndarray, loss: _NewRowLoss) -> _Critic:
        """A critic that this one is turned into by a loss on the new rows."""
        rows = self._rows(known)
        function = _Discrepancy(rows, known.argmax(axis=1), self._rows(new), loss)
        start = function.coordinates.pack(self.C, self.c)
        solution = lbfgs(function, start, tol=_TOL, max_iter=_MAX_ITER)  # type: ignore[arg-type]
        C, c = function.coordinates.unpack(solution.theta)
        return replace(self, C=C, c=c)

    def _rows(self, F: np.ndarray) -> np.ndarray:
        return (F - self.centre) / self.unit

    def disagreement(self, F: np.ndarray) -> float:
        """Share of rows with these scores that it sees otherwise than the head."""
        seen = self._rows(F) @ self.C + self.c
        return float(np.mean(seen.argmax(axis=1) != F.argmax(axis=1)))


def _second_best(head: np.ndarray) -> _NewRowLoss:
    """The logistic loss to the class that the head finds second best."""
    wanted = np.argsort(head, axis=1)[:, -2]
    return lambda F: SOFTMAX.value_and_residual(F, wanted)


def _any_other(head: np.ndarray) -> _NewRowLoss:
    """log(1 + exp margin), of the score of the head's class less the mean of the others.

    The loss of the paper; of two classes both losses are the same.
    """
    k = head.shape[1]
    A = (k * np.eye(k)[head.argmax(axis=1)] - 1.0) / (k - 1)

    def loss(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        margin = np.sum(A * F, axis=1, keepdims=True)
        losses, r = LOGISTIC.value_and_residual(margin, np.zeros_like(margin))
        return losses, r * A

    return loss


@dataclass(frozen=True, eq=False)
class _Discrepancy:
    """What a critic pays for disagreeing on known rows and for agreeing on new ones.

    Parameters
    ----------
    known, new : arrays of shape (n, k) and (m, k)
    agreed : array of shape (n,)
        The head's classes of the known rows.
    loss : callable
        On the new rows.
    """

    known: np.ndarray
    agreed: np.ndarray
    new: np.ndarray
    loss: _NewRowLoss

    @property
    def coordinates(self) -> Coordinates:
        """Where a critic lies."""
        k = self.known.shape[1]
        return Coordinates(k, k)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean loss on known rows, mean loss on new ones, and a ridge."""
        C, c = self.coordinates.unpack(theta)
        on_known, R = SOFTMAX.value_and_residual(self.known @ C + c, self.agreed)
        on_new, Q = self.loss(self.new @ C + c)
        value = on_known.mean() + on_new.mean() + 0.5 * _RIDGE * np.sum(C * C)
        R /= len(R)
        Q /= len(Q)
        G = self.known.T @ R + self.new.T @ Q + _RIDGE * C
        return float(value), self.coordinates.chain(G, R.sum(axis=0) + Q.sum(axis=0))
