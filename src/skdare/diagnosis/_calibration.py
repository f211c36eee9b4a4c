"""Probabilities for a new domain that are neither too sure nor too unsure.

Scores are multiplied by one number, as in the temperature scaling of Guo et al. (2017), so that no
prediction changes. Rows of domains that were left out say what it usually is, and a few labels of
the new domain what it is there.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from skdare._safe_text import counted
from skdare._validation import InputError, warn
from skdare.arrays import Array, dense_rows
from skdare.diagnosis._left_out_scores import scores
from skdare.diagnosis._rehearsing import steps_and_head
from skdare.diagnosis._score_interval import warn_of_labels_taken
from skdare.fitting.partial_labels import PartialLabels
from skdare.objective.scores import scores_by_class

# How well the factor of a new domain is known before its labels are seen: the log of the factor is
# normal about that of the rehearsal, of variance 1/3. On the sets that `benchmarks/calibration.py`
# decides on, 1 was worse with ten labels of support2, 1/10 with any of vowel.
_PRECISION = 3.0
# Far beyond any factor that was seen, in logs.
_FURTHEST = 5.0


def calibrate(model: Any, X: Array | None = None, y: Any = None) -> Any:
    """A copy of a head with calibrated probabilities; see `DAREClassifier.calibrate`.

    Parameters
    ----------
    model : fitted classifier, or Pipeline that ends in one
    X : array of shape (m, d), optional
        Rows of the new domain.
    y : sequence of m labels, optional
        None, NaN or -1 where a row has none.

    Returns
    -------
    model of the same class
    """
    steps, head = steps_and_head(model)
    if is_regressor(head):
        raise InputError(
            f"{type(head).__name__} predicts numbers, and probabilities are of classes",
            "use a classifier",
            argument="model",
        )
    check_is_fitted(head)
    head = head._uncalibrated()
    if (X is None) != (y is None):
        absent = "X" if X is None else "y"
        raise InputError(f"{absent} is None", "pass rows and labels, or neither", argument=absent)
    log_factor = _rehearsed(head, needed=X is None)
    if X is not None:
        labels = PartialLabels.of(head.classes_, y, X.shape[0] if hasattr(X, "shape") else len(X))
        if not len(labels.codes):
            raise InputError(
                "y has no label", "label some rows that are drawn at random", argument="y"
            )
        rows = X if steps is None else steps.transform(X)
        warn_of_labels_taken(head, rows, labels)
        inner = head._inner()
        labelled = dense_rows(head._inner_rows(rows), np.flatnonzero(labels.known))
        F = scores_by_class(scores(labelled, (inner.coef_, inner.intercept_)))
        log_factor = _log_factor(F, labels.codes, log_factor)
    calibrated = copy.copy(head)
    calibrated.coef_ = np.exp(log_factor) * head.coef_
    calibrated.intercept_ = np.exp(log_factor) * head.intercept_
    calibrated.temperature_ = float(np.exp(-log_factor))
    if steps is None:
        return calibrated
    whole = copy.copy(model)
    whole.steps = [*model.steps[:-1], (model.steps[-1][0], calibrated)]
    return whole


def _rehearsed(head: Any, *, needed: bool) -> float:
    """The log of the factor, by domains that were left out; zero where these say nothing."""
    if head.labelled_rows_ is not None:
        if needed:
            raise InputError(
                f"this head was adapted with {counted(head.labelled_rows_, 'label')}, and no such "
                "head was rehearsed",
                "pass rows and labels that it has not learnt from",
                argument="X",
            )
        return 0.0
    rehearsal = head.rehearsal_
    if rehearsal is None or rehearsal.scores is None:
        if needed:
            raise InputError(
                "this head keeps no scores of domains that were left out",
                "call rehearse on it, or pass rows and labels of the new domain",
                argument="X",
            )
        return 0.0
    if rehearsal.saturated:
        if needed:
            warn(
                "left-out domains score as on features that were trained on them, and say nothing "
                "of confidence in a new one, so nothing is changed; some labels would tell"
            )
        return 0.0
    left_out = rehearsal.scores
    adapted = None if head.adapted_rows_ is None else left_out.adapted
    F = scores_by_class(left_out.as_is if adapted is None else adapted).astype(np.float64)
    # Of a class that a head has not seen, its scores say nothing.
    seen = slice(None) if left_out.seen is None else left_out.seen
    return _log_factor(F[seen], left_out.classes[seen], 0.0)


def _log_factor(F: np.ndarray, classes: np.ndarray, prior: float) -> float:
    """The log of the factor under which these classes are most likely, near the prior.

    Parameters
    ----------
    F : array of shape (n, k)
    classes : array of shape (n,)
        The number of each row's class.
    prior : float
        What the log is thought to be before.
    """
    of_true = F[np.arange(len(F)), classes]

    def surprise(log_factor: float) -> float:
        factor = np.exp(log_factor)
        loss = np.logaddexp.reduce(factor * F, axis=1) - factor * of_true
        return float(loss.sum() + 0.5 * _PRECISION * (log_factor - prior) ** 2)

    found = minimize_scalar(surprise, bounds=(-_FURTHEST, _FURTHEST), method="bounded")
    return float(found.x)
