"""What targets are, classes or numbers: how they are encoded, fitted, given back and scored.

Notation: y (n,) as the caller gave them, T (n,) as they are fitted, V (d, k) weights on raw
features, b (k,) intercept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from skdare._validation import (
    check_finite_targets,
    check_numbers,
    distinct_integers,
)
from skdare.arrays import Array, Index, to_numpy
from skdare.arrays.passes import RowPart, route
from skdare.objective.losses import LOGISTIC, SOFTMAX, SQUARED, Loss
from skdare.objective.scores import linear_scores, predicted_columns

Weights = tuple[Array, Array]
"""V and b."""

# Left-out training domains score 0.97 to 0.99 on features fine-tuned on them, and at most 0.94 on
# the seven other real sets we know.
SATURATED = 0.95


def hardly_unseen(score: float, saturated: float) -> bool:
    """Whether domains that were left out score as on features that were trained on them."""
    return score > saturated


@dataclass(frozen=True)
class ClassShares:
    """Shares of the classes that a head predicts for its training rows.

    Parameters
    ----------
    shares : array of shape (k,)
    reach : float
        The largest distance of a training domain's shares from these, in total variation.
    """

    shares: np.ndarray
    reach: float


class Targets(ABC):
    """How targets are fitted, and how weights become the caller's.

    Attributes
    ----------
    rows_are_centered : bool
        Whether the paper's objective subtracts each domain's mean: equation (3) does, (1) not.
    saturated : float
        Score on held-out domains above which they were hardly unseen.
    """

    rows_are_centered: bool
    saturated: float

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The loss of scores."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """How many columns the weights have."""

    @abstractmethod
    def coef_and_intercept(self, V: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        """``coef_`` and ``intercept_`` in the units of the targets, shaped as scikit-learn's."""

    @abstractmethod
    def fitted_weights(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, np.ndarray]:
        """V and b of a ``coef_`` and ``intercept_``."""

    @abstractmethod
    def fitted_targets(self, codes: np.ndarray) -> np.ndarray:
        """Class numbers, or the caller's numbers, as they are fitted."""

    @abstractmethod
    def in_target_units(self, F: np.ndarray) -> np.ndarray:
        """Scores of the fitted targets in the units of the caller's."""

    @abstractmethod
    def score(self, part: RowPart, weights: Weights) -> float:
        """Accuracy, or R², of weights; the part's columns are targets T and sample weights.

        NaN where the rows have no score: R² of targets that are all the same.
        """

    @abstractmethod
    def class_shares(self, parts: Sequence[RowPart], weights: Weights) -> ClassShares | None:
        """Shares of the classes predicted for domains, where there are classes.

        A part is a domain, and its only column the weight of each row.
        """


@dataclass(frozen=True, eq=False)
class Classes(Targets):
    """Classes, in order; two classes share one column of weights, as in scikit-learn."""

    classes: np.ndarray
    rows_are_centered = False
    saturated = SATURATED

    @classmethod
    def encode(cls, y: np.ndarray, weight: np.ndarray) -> tuple[Classes, np.ndarray]:
        """The classes, and the number of each row's class."""
        if y.dtype.kind in "iu":
            classes, codes = distinct_integers(y)
        else:
            check_finite_targets(y)
            check_classification_targets(y)
            classes, codes = np.unique(y, return_inverse=True)
        present = np.flatnonzero(np.bincount(codes, weight > 0, len(classes)))
        if len(present) < 2:
            raise ValueError(
                f"y has one class, {classes[present[0]]}, among the rows of positive weight, "
                "and a classifier needs at least 2 classes"
            )
        return cls(classes), codes

    @property
    def loss(self) -> Loss:
        return LOGISTIC if len(self.classes) == 2 else SOFTMAX

    @property
    def columns(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    def coef_and_intercept(self, V: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(V.T), b.copy()

    def fitted_weights(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, np.ndarray]:
        return coef.T, np.asarray(intercept)

    def fitted_targets(self, codes: np.ndarray) -> np.ndarray:
        return codes

    def in_target_units(self, F: np.ndarray) -> np.ndarray:
        return F

    def score(self, part: RowPart, weights: Weights) -> float:
        hits = sum(route([part]).run(_weight_of_hits, [weights]))
        return float(hits / part.columns[1].sum())

    def class_shares(self, parts: Sequence[RowPart], weights: Weights) -> ClassShares:
        visit = partial(_weight_of_classes, len(self.classes))
        totals = np.stack(list(route(parts).run(visit, [weights] * len(parts))))
        shares = totals.sum(axis=0) / totals.sum()
        by_domain = totals / totals.sum(axis=1, keepdims=True)
        distances = 0.5 * np.abs(by_domain - shares).sum(axis=1)
        return ClassShares(shares, float(distances.max()))


@dataclass(frozen=True)
class Numbers(Targets):
    """Numbers, standardised inside the fit so that tol and l2 have no units.

    Parameters
    ----------
    centre : float
        Subtracted from the targets.
    spread : float
        What they are then divided by.
    """

    centre: float
    spread: float
    rows_are_centered = True
    saturated = float("inf")

    @classmethod
    def encode(
        cls, y: np.ndarray, weight: np.ndarray, index: Sequence[Index], *, centre: bool
    ) -> tuple[Numbers, np.ndarray]:
        """Centre and spread of the targets, and the standardised targets.

        Parameters
        ----------
        y, weight : arrays of shape (n,)
        index : sequence
            The rows of each domain.
        centre : bool
            Whether to subtract the mean; every domain counts the same in it, whatever its size.
        """
        y = np.asarray(y, dtype=np.float64)
        check_numbers(y)
        middle = 0.0
        if centre:
            middle = float(np.mean([np.average(y[i], weights=weight[i]) for i in index]))
        spread = float(np.sqrt(weight / weight.sum() @ (y - middle) ** 2)) or 1.0
        return cls(middle, spread), (y - middle) / spread

    @property
    def loss(self) -> Loss:
        return SQUARED

    @property
    def columns(self) -> int:
        return 1

    def coef_and_intercept(self, V: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
        return V[:, 0] * self.spread, float(b[0]) * self.spread + self.centre

    def fitted_weights(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, np.ndarray]:
        return coef[:, None] / self.spread, np.array([(intercept - self.centre) / self.spread])

    def fitted_targets(self, codes: np.ndarray) -> np.ndarray:
        return (codes - self.centre) / self.spread

    def in_target_units(self, F: np.ndarray) -> np.ndarray:
        return F * self.spread + self.centre

    def score(self, part: RowPart, weights: Weights) -> float:
        T, weight = part.columns
        total = weight @ (T - np.average(T, weights=weight)) ** 2
        # Targets are standardised, so a domain of one target has only rounding left.
        if not total > 1e-12 * weight.sum():
            return np.nan
        return float(1.0 - sum(route([part]).run(_squared_error, [weights])) / total)

    def class_shares(self, parts: Sequence[RowPart], weights: Weights) -> None:
        return None


# What a pass computes where the rows lie.


def _weight_of_hits(part: RowPart, weights: Weights) -> float:
    T, weight = (to_numpy(column) for column in part.columns)
    return float(weight @ (predicted_columns(part.X, part.index, *weights) == T))


def _squared_error(part: RowPart, weights: Weights) -> float:
    T, weight = (to_numpy(column) for column in part.columns)
    F = to_numpy(linear_scores(part.X, part.index, *weights))
    return float(weight @ (T - F[:, 0]) ** 2)


def _weight_of_classes(n_classes: int, part: RowPart, weights: Weights) -> np.ndarray:
    numbers = predicted_columns(part.X, part.index, *weights)
    return np.bincount(numbers, to_numpy(part.columns[0]), n_classes)
