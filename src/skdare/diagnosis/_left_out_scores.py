"""Scores of left-out rows beside their classes: what the scores of a new domain are held against.

Each training domain is scored by a head that was fitted without it: rows that a head was fitted to
say too much good of it. A head keeps no rows, and of a row's many features only its scores say what
the head makes of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.arrays import Array, compact, take, to_numpy
from skdare.fitting.domain_fit import domain_fit_of
from skdare.objective.scores import linear_scores
from skdare.whitening.whitening import RowsAlike

# Rows that are kept, those of all domains together; each domain gives as many, if it has them.
_MOST_ROWS = 4000


@dataclass(frozen=True, eq=False)
class LeftOutScores:
    """Scores and classes of some rows of every training domain, by heads fitted without it.

    Parameters
    ----------
    as_is : array of shape (n, k)
        Scores of such a head as it is; two classes share one column.
    classes : array of shape (n,)
        The number of each row's class.
    adapted : array of shape (n, k), optional
        Scores of each domain by such a head adapted to it; None where heads do not adapt.
    seen : boolean array of shape (n,), optional
        Whether the head was fitted to rows of the row's class, which only the domain left out may
        have; None: not known.
    """

    as_is: np.ndarray
    classes: np.ndarray
    adapted: np.ndarray | None = None
    seen: np.ndarray | None = None

    @classmethod
    def of_domain(
        cls, head: Any, X: Array, classes: np.ndarray, known_classes: np.ndarray, most: int
    ) -> LeftOutScores:
        """Scores of some rows of a domain, ``most`` at most.

        Parameters
        ----------
        head : head that was fitted without the domain
            On rows behind its preparation.
        X : array of shape (n, d)
            All rows of the domain.
        classes : array of shape (n,)
            The number of each row's class.
        known_classes : array
            The numbers of the classes that the head was fitted to.
        most : int
        """
        fit = domain_fit_of(head)
        numbers = np.sort(np.random.default_rng(0).permutation(len(classes))[:most])
        some = take(X, compact(numbers))
        as_is = scores(some, (head.coef_, head.intercept_)).astype(np.float32)
        adapted = None
        if fit.adaptation is not None:
            weights = _adapted_weights(head, X)
            adapted = as_is if weights is None else scores(some, weights).astype(np.float32)
        chosen = classes[numbers]
        return cls(as_is, chosen, adapted, np.isin(chosen, known_classes))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LeftOutScores):
            return NotImplemented
        fields = ("as_is", "classes", "adapted", "seen")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in fields)

    @classmethod
    def joined(cls, domains: Sequence[LeftOutScores]) -> LeftOutScores | None:
        """The rows of all domains; None without any, as for a regression."""
        if not domains:
            return None
        adapted = [one.adapted for one in domains if one.adapted is not None]
        seen = [one.seen for one in domains if one.seen is not None]
        return cls(
            np.concatenate([one.as_is for one in domains]),
            np.concatenate([one.classes for one in domains]),
            np.concatenate(adapted) if adapted else None,
            np.concatenate(seen) if seen else None,
        )


def _adapted_weights(head: Any, X: Array) -> tuple[np.ndarray, Any] | None:
    """``coef_`` and ``intercept_`` after adapting to these rows; None where they are all alike."""
    if X.shape[0] < 2:
        return None
    with suppress(RowsAlike), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were heard when the head was fitted
        # By force: what is asked is how an adapted head does, not whether it would be declined.
        adapted = head.adapt(X, force=True)
        return adapted.coef_, adapted.intercept_
    return None


def rows_of_each(domains: int) -> int:
    """How many rows each domain may give."""
    return max(_MOST_ROWS // domains, 1)


def scores(X: Array, weights: tuple[np.ndarray, Any]) -> np.ndarray:
    """Scores of all rows by ``coef_`` and ``intercept_``, on the host."""
    coef, intercept = weights
    rows = slice(0, X.shape[0])
    return to_numpy(linear_scores(X, rows, np.atleast_2d(coef).T, intercept))
