"""Which rows of a new domain to label: those that lie near many rows the head is unsure of.

Notation: Z (m, p) places of rows, P (m, k) class probabilities, D (m, q) distances.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdare._safe_text import counted
from skdare._validation import InputError, check_count
from skdare.arrays import Array, dense_rows, evenly_spread, threads_for
from skdare.fitting.partial_labels import PartialLabels
from skdare.objective.scores import linear_scores, probabilities

# Of more rows some are looked at, evenly spread: the distances between these are 72 MB.
_MOST_ROWS = 3000
_LEAST_ROWS = 500
_MOST_NUMBERS = 1 << 25
# Twice as many candidates as are asked for leave a choice.
_CHOICE = 2
# How far apart predictions lie beside the features, both measured by their spread. On the sets
# that benchmarks/suggest.py decides on, features alone did slightly worse; 1 and 2 did no better.
_PREDICTIONS = 1.5
# The least that a row counts, beside one for a row that could be anything.
_LEAST_DOUBT = 0.01
# What being near to all rows counts beside what is gained.
_TIE = 1e-9


def suggest(head: Any, X: Array, n: int, y: Any = None) -> np.ndarray:
    """Numbers of the n rows to label, the one that helps most first; see `AdjustedHead.suggest`.

    Greedy facility location: a row is covered as far as the nearest row with a label is near, and
    each choice covers most, counted by how unsure the head is of what it covers.
    """
    check_is_fitted(head)
    check_count("n", n, 1)
    head = head._uncalibrated()
    X = head._inner_rows(X)
    labels = _Labels.of(head, y, X.shape[0])
    if n > len(labels.open_rows):
        raise InputError(
            f"n is {n}, and {_how_many_open(labels)}",
            "ask for fewer rows, or give more of them",
            argument="n",
        )
    with threads_for(X):
        return _suggested(head._inner(), X, int(n), labels)


@dataclass(frozen=True, eq=False)
class _Labels:
    """Which rows have no label yet, which have one, and the classes of these."""

    open_rows: np.ndarray
    known_rows: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, head: Any, y: Any, m: int) -> Self:
        """Labels as a caller passes them; None: no row has one."""
        none = np.zeros(0, dtype=np.intp)
        if y is None:
            return cls(np.arange(m), none, none)
        labels = PartialLabels.of(head.classes_ if is_classifier(head) else None, y, m)
        classes = np.unique(labels.codes) if is_classifier(head) else none
        return cls(np.flatnonzero(~labels.known), np.flatnonzero(labels.known), classes)


def _how_many_open(labels: _Labels) -> str:
    rows = len(labels.open_rows)
    if not len(labels.known_rows):
        return f"there {'is' if rows == 1 else 'are'} {counted(rows, 'row')}"
    return f"{counted(rows, 'row')} {'has' if rows == 1 else 'have'} no label yet"


def _suggested(head: Any, X: Array, n: int, labels: _Labels) -> np.ndarray:
    """Numbers of the rows to label, by a head that takes rows as they are."""
    most = min(_MOST_ROWS, max(_LEAST_ROWS, _MOST_NUMBERS // X.shape[1]))
    numbers = evenly_spread(labels.open_rows, max(most, _CHOICE * n))
    known = evenly_spread(labels.known_rows, most)
    rows = _on_host(X, np.concatenate([numbers, known]))
    if np.all(rows == rows[0]):
        raise InputError(
            "X has rows that are all the same, as from a stuck sensor",
            "give rows that differ",
            argument="X",
        )
    head = _adapted(head, rows)
    F = linear_scores(rows, slice(0, len(rows)), np.atleast_2d(head.coef_).T, head.intercept_)
    P = probabilities(F) if is_classifier(head) else None
    Z = np.concatenate([_centred(rows), _PREDICTIONS * _centred(F if P is None else P)], axis=1)
    candidates = len(numbers)
    covered = evenly_spread(np.arange(candidates), most)
    D = _distances(Z[:candidates], Z[covered])
    reach = np.full(len(covered), D.max())
    if len(known):
        reach = np.minimum(reach, _distances(Z[candidates:], Z[covered]).min(axis=0))
    if P is None:
        weight = np.ones(len(covered))
        classes = np.zeros(candidates, dtype=np.intp)
    else:
        weight = _doubt(P[covered])
        classes = P[:candidates].argmax(axis=1)
    return numbers[_greedy(D, weight, reach, classes, labels.classes, n)]


def _on_host(X: Array, numbers: np.ndarray) -> np.ndarray:
    """Some rows, in the order of these numbers, as a dense array of float64."""
    order = np.argsort(numbers)  # readers of files go forward
    rows = dense_rows(X, numbers[order])
    found = np.empty(rows.shape)
    found[order] = rows
    return found


def _adapted(head: Any, rows: np.ndarray) -> Any:
    """The head adapted to these rows; as it is where it was adapted before, or cannot be."""
    fit = head._domain_fit
    if head.adapted_rows_ is not None or fit is None or fit.adaptation is None:
        return head
    with warnings.catch_warnings():
        # What there is to say of adapting is said to whoever asks for the adapted head.
        warnings.simplefilter("ignore")
        return head.adapt(rows)


def _centred(M: np.ndarray) -> np.ndarray:
    """Rows less their mean, in the unit in which their mean squared length is one."""
    M = M - M.mean(axis=0)
    length = np.sqrt(np.mean(np.sum(M * M, axis=1)))
    return M / length if length > 0 else M


def _distances(Z: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Euclidean distance of each row from each other one."""
    D = Z @ others.T
    D *= -2.0
    D += np.sum(Z * Z, axis=1)[:, None]
    D += np.sum(others * others, axis=1)
    return np.sqrt(np.maximum(D, 0.0, out=D), out=D)


def _doubt(P: np.ndarray) -> np.ndarray:
    """How unsure predictions are: the root of the chance that two draws from them differ."""
    # Far from its training rows a head is sure of all, and those rows are to be covered, too.
    return np.sqrt(np.maximum(1.0 - np.sum(P * P, axis=1), _LEAST_DOUBT**2))


def _greedy(
    D: np.ndarray,
    weight: np.ndarray,
    reach: np.ndarray,
    classes: np.ndarray,
    known_classes: np.ndarray,
    n: int,
) -> np.ndarray:
    """Candidates in the order in which each of them covers most beside those before.

    One of each class comes first: a class that has no label cannot be corrected.

    Parameters
    ----------
    D : array of shape (m, q)
        Distance of each candidate from each row to cover.
    weight : array of shape (q,)
        What these rows count.
    reach : array of shape (q,)
        Distance at which they are covered already.
    classes : array of shape (m,)
        What the candidates are predicted as.
    known_classes : array
        Classes that have a label already.
    n : int
    """
    # What a candidate gains only falls as others are chosen, so that an old gain is a bound, and
    # the candidate whose new gain is above all bounds is the best one.
    #
    # Of two rows that are each other's nearest, either covers as much as the other. The one nearer
    # to all rows is taken, so that rounding does not decide, nor the order of the rows.
    ties = -_TIE * (D @ weight)
    bounds = np.array([_gain(weight, reach, row) for row in D]) + ties
    wanted = ~np.isin(classes, known_classes)
    chosen: list[int] = []
    for _ in range(n):
        allowed = wanted if wanted.any() else np.isfinite(bounds)
        current = np.where(allowed, bounds, -np.inf)
        best = -1
        while (candidate := int(current.argmax())) != best:
            best = candidate
            current[best] = bounds[best] = _gain(weight, reach, D[best]) + ties[best]
        chosen.append(best)
        reach = np.minimum(reach, D[best])
        bounds[best] = -np.inf
        wanted &= classes != classes[best]
    return np.array(chosen)


def _gain(weight: np.ndarray, reach: np.ndarray, distances: np.ndarray) -> float:
    """How much nearer a label would be to the rows to cover."""
    return float(weight @ np.maximum(reach - distances, 0.0))
