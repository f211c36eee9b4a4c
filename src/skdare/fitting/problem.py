"""Training data: rows, targets and weights by domain, and what targets mean.

Notation: y (n,) as the caller gave them, T (n,) as they are fitted, V (d, k) weights on raw
features, b (k,) intercept, F (n, k) scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from skdare.arrays import Array, Index, length, namespace, to_numpy
from skdare.checks import ClassWeight, Label
from skdare.errors import InputError
from skdare.fitting.preparation import Preparation
from skdare.objective.losses import Logistic, Loss, Softmax, Squared

# Squares of targets beyond these overflow or underflow.
_TARGETS = (1e-100, 1e100)


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes, in order; two share one column of weights, as in scikit-learn."""

    classes: np.ndarray

    rows_are_centered = False  # equation (1) keeps the means in the rows

    @classmethod
    def encode(cls, y: np.ndarray, weight: np.ndarray) -> tuple[Classes, np.ndarray]:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        present = np.flatnonzero(np.bincount(codes, weight > 0, len(classes)))
        if len(present) < 2:
            raise InputError(
                f"y has one class, {classes.tolist()[present[0]]!r}, in rows of positive weight",
                "a classifier needs at least 2 classes",
            )
        return cls(classes), codes

    @property
    def loss(self) -> Loss:
        return Logistic() if len(self.classes) == 2 else Softmax()

    @property
    def columns(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    def decode(self, T: np.ndarray) -> np.ndarray:
        """Targets as the caller gave them."""
        return self.classes[T]

    def coef_and_intercept(self, V: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(V.T), b.copy()

    def predictions(self, F: Array) -> np.ndarray:
        return self.classes[predicted_numbers(F)]


def predicted_numbers(F: Array) -> np.ndarray:
    """The number of the class that each row of scores is highest for."""
    numbers = F[:, 0] > 0 if F.shape[1] == 1 else namespace(F).argmax(F, axis=1)
    return to_numpy(numbers).astype(np.intp)


@dataclass(frozen=True)
class Numbers:
    """Numbers, standardised inside the fit so that tol and l2 have no unit."""

    centre: float
    spread: float

    rows_are_centered = True  # equation (3) subtracts each domain's mean
    columns = 1

    @classmethod
    def encode(
        cls, y: np.ndarray, weight: np.ndarray, index: Sequence[Index], *, centre: bool
    ) -> tuple[Numbers, np.ndarray]:
        """Centre and spread of the indexed rows; every domain counts the same in the centre."""
        y = np.asarray(y, dtype=np.float64)
        largest = float(np.abs(y).max())
        if largest > 0 and not _TARGETS[0] <= largest <= _TARGETS[1]:
            raise InputError(
                f"y reaches {largest:.1e}, and its squares overflow or underflow",
                "multiply or divide y by a constant",
            )
        by_domain = [np.average(y[i], weights=weight[i]) for i in index]
        middle = float(np.mean(by_domain)) if centre else 0.0
        rows = np.concatenate([np.arange(len(y))[i] for i in index])
        variance = np.average((y[rows] - middle) ** 2, weights=weight[rows])
        spread = float(np.sqrt(variance)) or 1.0
        return cls(middle, spread), (y - middle) / spread

    @property
    def loss(self) -> Loss:
        return Squared()

    def decode(self, T: np.ndarray) -> np.ndarray:
        """Targets as the caller gave them."""
        return T * self.spread + self.centre

    def coef_and_intercept(self, V: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
        return V[:, 0] * self.spread, float(b[0]) * self.spread + self.centre

    def predictions(self, F: Array) -> Array:
        return F[:, 0] * self.spread + self.centre


Targets = Classes | Numbers


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, targets and weights by domain."""

    X: Array  # prepared
    T: np.ndarray  # class numbers, or standardised numbers
    weight: np.ndarray
    labels: Sequence[Label]
    index: Sequence[Index]
    targets: Targets
    groups: np.ndarray | None = None  # the number of each row's group, such as a patient
    preparation: Preparation | None = None  # and the rows before it
    class_weight: ClassWeight = None
    feature_names: Sequence[str] | None = None  # after the preparation

    def feature(self, j: int) -> str:
        """A feature as messages name it."""
        return f"feature {j if self.feature_names is None else repr(str(self.feature_names[j]))}"

    def only(self, domains: Sequence[int]) -> Self:
        """The same rows, some of the domains."""
        labels = [self.labels[e] for e in domains]
        return replace(self, labels=labels, index=[self.index[e] for e in domains])

    def thinned(self, most: int) -> Self:
        """The problem with about ``most`` numbers: each domain keeps the same share of its rows."""
        rows = sum(length(index) for index in self.index)
        step = -(-rows * self.X.shape[1] // most)
        if step <= 1:
            return self
        everyone = np.arange(self.X.shape[0])
        return replace(self, index=[everyone[index][::step] for index in self.index])

    def pooled(self) -> Self:
        """The same rows as one domain, in the caller's order."""
        n = len(self.T)
        rows = np.sort(np.concatenate([np.arange(n)[index] for index in self.index]))
        return replace(self, labels=["all"], index=[slice(0, n) if len(rows) == n else rows])

    @cached_property
    def loss_weight(self) -> np.ndarray:
        """Weights of all rows in the loss of a fit to these domains.

        A class weight is about the cost of errors. Means and covariances ignore it: rows of a new
        domain come without classes, and cannot be weighted by them.
        """
        if self.class_weight is None:
            return self.weight
        assert isinstance(self.targets, Classes)
        rows = np.concatenate([np.arange(len(self.T))[index] for index in self.index])
        classes = self.targets.classes
        factors = class_factors(self.class_weight, classes, self.T[rows], self.weight[rows])
        return self.weight * factors[self.T]

    def check_covariances(self, remedy: str) -> None:
        """Refuse domains of one row."""
        pairs = zip(self.labels, self.index, strict=True)
        single = [label for label, index in pairs if length(index) < 2]
        if single:
            more = f", as {len(single) - 1} others have" if len(single) > 1 else ""
            raise InputError(
                f"domain {single[0]!r} has 1 row{more}, and a covariance needs 2",
                f"merge it, or set {remedy}",
            )


def class_factors(
    class_weight: ClassWeight, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The weight of each class, as in scikit-learn; a class that is not named weighs 1."""
    if isinstance(class_weight, Mapping):
        return np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    counts = np.bincount(codes, weight, len(classes))
    present = counts > 0
    even = weight.sum() / (present.sum() * np.where(present, counts, 1.0))
    return np.where(present, even, 1.0)
