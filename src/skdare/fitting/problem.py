"""Validated training data: rows, targets and weights by domain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdare._validation import one_row_each
from skdare.arrays import Array, Index, float64, is_foreign, length, like, namespace
from skdare.fitting.class_weight import ClassWeight, class_factors
from skdare.fitting.targets import Classes, Targets
from skdare.objective.few_rows import FewRowsDomain
from skdare.objective.losses import Loss
from skdare.objective.rows import WeightedRows


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, targets and weights by domain, as every head sees them.

    Parameters
    ----------
    X : array of shape (n, d)
    T : array of shape (n,)
        Class numbers, or targets.
    weight : array of shape (n,)
    labels : list of domain labels
    index : list of the rows of each domain
    targets : Targets
        What T stands for.
    units : list of lists of domain numbers, optional
        Domains that a search can only leave out together. Default: each by itself.
    refitted : callable, optional
        X as it would be with its preparation fitted to the domains of these numbers alone. Default:
        X has none.
    class_weight : "balanced" or mapping, optional
        What the rows of a class count in the loss; see `class_factors`.
    """

    X: Array
    T: np.ndarray
    weight: np.ndarray
    labels: Sequence[Hashable]
    index: Sequence[Index]
    targets: Targets
    units: Sequence[Sequence[int]] | None = None
    refitted: Callable[[Sequence[int]], Array] | None = None
    class_weight: ClassWeight = None

    @property
    def d(self) -> int:
        """Number of features of a row."""
        return int(self.X.shape[1])

    @property
    def k(self) -> int:
        """Columns of the weights."""
        return self.targets.columns

    @property
    def loss(self) -> Loss:
        """The loss of scores."""
        return self.targets.loss

    def check_covariances(self, shrinkages: Sequence[float | str], remedy: str) -> None:
        """Refuse domains of one row, unless every shrinkage leaves nothing of a covariance."""
        if all(shrinkage == 1.0 for shrinkage in shrinkages):
            return
        pairs = zip(self.labels, self.index, strict=True)
        single = [label for label, index in pairs if length(index) < 2]
        if single:
            them = "them" if len(single) > 1 else "it"
            raise ValueError(f"{one_row_each(single)}; merge {them}, or set {remedy}")

    def domain_weight(self, e: int) -> np.ndarray:
        """Sample weights of the rows of a domain."""
        return self.weight[self.index[e]]

    @cached_property
    def loss_weight(self) -> np.ndarray:
        """Weights of the rows in the loss: as in moments, but for the weights of classes."""
        return self.loss_weight_among(range(len(self.index)))

    def loss_weight_among(self, chosen: Sequence[int]) -> np.ndarray:
        """Weights of all rows in the loss of a fit to these domains alone, (n,)."""
        if self.class_weight is None or not isinstance(self.targets, Classes):
            return self.weight
        numbers = np.arange(len(self.T))
        rows = np.concatenate([numbers[self.index[e]] for e in chosen])
        factors = class_factors(
            self.class_weight, self.targets.classes, self.T[rows], self.weight[rows]
        )
        return self.weight * factors[self.T]

    def few_rows_domain(self, e: int, total: float, A: np.ndarray | float) -> FewRowsDomain:
        """The rows of a domain, weighing ``total`` together, with the map of their scores."""
        index = self.index[e]
        weight = self.loss_weight[index]
        own = self.domain_weight(e)
        shares = own / own.sum()
        return FewRowsDomain(index, self.T[index], total * weight / weight.sum(), A, shares)

    def domain_rows(self, e: int, total: float, shift: Array | None = None) -> WeightedRows:
        """The rows of a domain, weighing ``total`` together."""
        weight = self.loss_weight[self.index[e]]
        return self._rows(self.index[e], total * weight / weight.sum(), shift)

    def all_rows(self, weight: np.ndarray) -> WeightedRows:
        """Every row of every domain, in the caller's order, so that none is gathered."""
        whole = slice(0, self.X.shape[0])
        if sum(length(i) for i in self.index) == whole.stop:
            return self._rows(whole, weight)
        numbers = np.concatenate([np.arange(self.X.shape[0])[i] for i in self.index])
        numbers.sort()
        return self._rows(numbers, weight[numbers])

    def _rows(self, index: Index, weight: np.ndarray, shift: Array | None = None) -> WeightedRows:
        whole = isinstance(index, slice) and index == slice(0, len(self.T))
        T = self.T if whole else self.T[index]
        if is_foreign(self.X):
            xp = namespace(self.X)
            T = like(T, self.X, xp.int64 if np.issubdtype(T.dtype, np.integer) else xp.float64)
            weight = like(weight, self.X, xp.float64)
        return WeightedRows(self.X, index, T, weight, shift)

    def mean_row(self, mean: Array, target: float, weight: float) -> WeightedRows:
        """A domain mean as one more row, the same target in every column, no intercept."""
        X = like(mean[None, :], self.X)
        T = like(np.full((1, self.k), target), X, float64(X))
        return WeightedRows(
            X, slice(0, 1), T, like(np.array([weight]), X, float64(X)), intercept=False
        )
