"""Sets of classes that hold the true one as often as asked, in new domains of the kind seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from skdare._safe_text import counted
from skdare._validation import InputError, check_number
from skdare.arrays import Array, to_numpy
from skdare.diagnosis._nonconformity import (
    fewest_rows,
    nonconformity,
    threshold_of_domains,
    threshold_of_rows,
)
from skdare.diagnosis._rehearsing import steps_and_head
from skdare.diagnosis._score_interval import warn_of_labels_taken
from skdare.fitting.partial_labels import PartialLabels


def predict_set(model: Any, X: Array, y: Any = None, *, coverage: float = 0.9) -> np.ndarray:
    """Sets of classes for rows of a new domain; see `DAREClassifier.predict_set`.

    Parameters
    ----------
    model : fitted and rehearsed classifier, or Pipeline that ends in one
    X : array of shape (n, d)
    y : sequence of n labels, optional
        None, NaN or -1 where a row has none.
    coverage : float, default=0.9

    Returns
    -------
    boolean array of shape (n, k)
    """
    check_number("coverage", coverage, 0.5, 0.99)
    steps, head = steps_and_head(model)
    if is_regressor(head):
        raise InputError(
            f"{type(head).__name__} predicts numbers, and sets are of classes",
            "use a classifier",
            argument="model",
        )
    check_is_fitted(head)
    labels = None if y is None else _enough_labels(head, X, y, coverage)
    domains = []
    if labels is None:
        domains = _rehearsed_nonconformity(head)
        head = head._uncalibrated()
    X = X if steps is None else steps.transform(X)
    P = to_numpy(head.predict_proba(X))
    if labels is None:
        limit = threshold_of_domains(domains, coverage)
    else:
        warn_of_labels_taken(head, X, labels)
        limit = threshold_of_rows(nonconformity(P[labels.known], labels.codes), coverage)
    included = limit >= 1.0 - P
    # A set without any class would say that the row is of none, which nobody asked.
    included[np.arange(len(P)), P.argmax(axis=1)] = True
    return included


def _enough_labels(head: Any, X: Array, y: Any, coverage: float) -> PartialLabels:
    """Labels of the new domain, refused where they are too few for this coverage."""
    labels = PartialLabels.of(head.classes_, y, X.shape[0] if hasattr(X, "shape") else len(X))
    needed = fewest_rows(coverage)
    if len(labels.codes) < needed:
        raise InputError(
            f"y has {counted(len(labels.codes), 'label')}, and a coverage of {coverage:g} needs "
            f"{needed}",
            "label more rows, or leave y out to go by the rehearsal",
            argument="y",
        )
    return labels


def _rehearsed_nonconformity(head: Any) -> list[np.ndarray]:
    """Quantiles by domain, of heads that were adapted where this one was."""
    if head.rehearsal_ is None and head.labelled_rows_ is not None:
        raise InputError(
            "this head took labels, and no head with such classes was rehearsed",
            "give labels of other rows to predict_set",
            argument="model",
        )
    if head.rehearsal_ is None:
        raise InputError(
            "this head has not been rehearsed, and sets rest on domains that were new to it",
            "call rehearse with the training rows, and adapt after that",
            argument="model",
        )
    quantiles = []
    for one in head.rehearsal_.domains:
        of_adapted = None if head.adapted_rows_ is None else one.adapted_nonconformity
        own = one.nonconformity if of_adapted is None else of_adapted
        if own is None:
            raise InputError(
                "this head was rehearsed by an earlier version, which kept nothing for sets",
                "call rehearse with the training rows again",
                argument="model",
            )
        quantiles.append(own)
    return quantiles
