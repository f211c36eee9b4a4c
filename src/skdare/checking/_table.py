"""What checks look at: labels of all rows, rows by domain, and statistics that several share.

Notation: X (n, d) rows, E domains, k classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

# Where the largest scale is this many times the median one, heads are fitted to standardised
# features. Beside the median and not the smallest: l2 makes little of a typical feature then, and a
# few small ones do no harm. A network has some that are dead, and on twin_gas standardising them
# costs 8 points; docs/decisions.md has the other sets.
LARGEST_RATIO = 100.0


@dataclass(frozen=True, eq=False)
class RowLabels:
    """Targets, domains and groups of all rows that have a label and a domain.

    Parameters
    ----------
    y : array of shape (n,)
        Classes or numbers.
    domains : array of shape (n,)
    groups : array of shape (n,), or None
    task : "classification" or "regression"
    """

    y: np.ndarray
    domains: np.ndarray
    groups: np.ndarray | None
    task: str

    @property
    def names(self) -> np.ndarray:
        """Names of the domains as text, in the order of their codes."""
        return self._domains[0].astype(str)

    @property
    def codes(self) -> np.ndarray:
        """The place of every row's domain among the names."""
        return self._domains[1]

    @property
    def counts(self) -> np.ndarray:
        """Rows of each domain."""
        return self._domains[2]

    @cached_property
    def _domains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.unique(self.domains, return_inverse=True, return_counts=True)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows whose features are looked at: all that have a label and a domain, or a sample.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, NaN where they are missing.
    y : array of shape (n,)
        Classes or numbers.
    domains : array of shape (n,)
    numbers : array of int of shape (n,)
        Where each row is in the whole table.
    feature_names : sequence of d str
    task : "classification" or "regression"
    """

    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    numbers: np.ndarray
    feature_names: Sequence[str]
    task: str

    @cached_property
    def domain_parts(self) -> RowParts:
        """The rows by domain."""
        return RowParts.of(self.X, self.domains)

    @cached_property
    def class_parts(self) -> RowParts:
        """The rows by class."""
        return RowParts.of(self.X, self.y)

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean of each feature; 0 where it has no value."""
        return np.asarray(self.domain_parts.sums.sum(axis=0) / np.maximum(self.present, 1))

    @cached_property
    def present(self) -> np.ndarray:
        """How many rows have a value, for each feature."""
        return np.asarray(self.domain_parts.present.sum(axis=0))

    @cached_property
    def scales(self) -> np.ndarray:
        """Standard deviation of each feature."""
        return column_scales(self.X)

    @cached_property
    def constant(self) -> np.ndarray:
        """Which features have one value in all rows, or none."""
        parts = self.domain_parts
        with np.errstate(invalid="ignore"):
            return np.asarray(~(np.fmin.reduce(parts.low) < np.fmax.reduce(parts.high)))

    @cached_property
    def whole(self) -> np.ndarray:
        """Which features are whole numbers in every row; missing ones are not."""
        whole = (self.X[:64] == np.floor(self.X[:64])).all(axis=0)
        for column in np.flatnonzero(whole):
            values = self.X[:, column]
            whole[column] = bool((values == np.floor(values)).all())
        return np.asarray(whole)

    def names(self, columns: Any) -> tuple[str, ...]:
        """Names of the features at these places."""
        return tuple(self.feature_names[int(column)] for column in columns)


@dataclass(frozen=True, eq=False)
class RowParts:
    """Rows that were sorted by a label, and what is known of the rows of each label.

    Parameters
    ----------
    labels : array of E labels, ascending
    counts : array of int of shape (E,)
    order : array of int of shape (n,)
        The row that stands at each place after sorting.
    X : array of shape (n, d)
        The rows after sorting.
    """

    labels: np.ndarray
    counts: np.ndarray
    order: np.ndarray
    X: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, by: np.ndarray) -> RowParts:
        """Sort rows by label; those of one label stay in order."""
        labels, codes, counts = np.unique(by, return_inverse=True, return_counts=True)
        codes = codes.astype(np.min_scalar_type(len(labels)))
        if np.all(codes[1:] >= codes[:-1]):
            return cls(labels, counts, np.arange(len(X)), X)
        order = np.argsort(codes, kind="stable")
        return cls(labels, counts, order, X[order])

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the rows of each label begin."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]])

    @cached_property
    def codes(self) -> np.ndarray:
        """The place of every row's label among the labels, in the order of the table."""
        codes = np.empty(len(self.order), dtype=np.intp)
        codes[self.order] = np.repeat(np.arange(len(self.labels)), self.counts)
        return codes

    def rows(self, place: int) -> slice:
        """The rows of one label, after sorting."""
        return slice(int(self.starts[place]), int(self.starts[place] + self.counts[place]))

    @cached_property
    def missing(self) -> np.ndarray | None:
        """A mask of missing values; None where no value is missing."""
        missing = np.isnan(self.X)
        return missing if missing.any() else None

    @cached_property
    def present(self) -> np.ndarray:
        """Numbers of values, (E, d)."""
        missing = self.missing
        if missing is None:
            return np.broadcast_to(self.counts[:, None], (len(self.counts), self.X.shape[1]))
        return self._each(lambda rows: (~missing[rows]).sum(axis=0))

    @cached_property
    def sums(self) -> np.ndarray:
        """Sums of values, (E, d)."""
        add: Any = np.sum if self.missing is None else np.nansum
        return self._each(lambda rows: add(self.X[rows], axis=0, dtype=np.float64))

    @cached_property
    def scales(self) -> np.ndarray:
        """Standard deviations within labels, (E, d)."""
        return self._each(lambda rows: column_scales(self.X[rows]))

    @cached_property
    def low(self) -> np.ndarray:
        """Smallest value of each feature by label, (E, d); NaN where all are missing."""
        smallest = np.minimum if self.missing is None else np.fmin
        return self._each(lambda rows: smallest.reduce(self.X[rows]))

    @cached_property
    def high(self) -> np.ndarray:
        """Largest value of each feature by label, (E, d); NaN where all are missing."""
        largest = np.maximum if self.missing is None else np.fmax
        return self._each(lambda rows: largest.reduce(self.X[rows]))

    def _each(self, statistic: Callable[[slice], np.ndarray]) -> np.ndarray:
        """A statistic of the rows of each label, one below the other."""
        return np.stack([statistic(self.rows(place)) for place in range(len(self.labels))])


def column_scales(X: np.ndarray) -> np.ndarray:
    """Standard deviation of each column, over the values that it has."""
    missing = np.isnan(X)
    if not missing.any():
        deviations = X - X.mean(axis=0, dtype=np.float64)
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", deviations, deviations) / len(X)))
    present = np.maximum((~missing).sum(axis=0), 1)
    values = np.where(missing, 0.0, X)
    deviations = np.where(missing, 0.0, values - values.sum(axis=0) / present)
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", deviations, deviations) / present))


@dataclass(frozen=True)
class ScaleRange:
    """How far the largest scale of a feature is from the usual one.

    Parameters
    ----------
    median, largest : int
        Columns of the median scale and of the largest.
    ratio : float
        Of their standard deviations.
    """

    median: int
    largest: int
    ratio: float

    @property
    def is_wide(self) -> bool:
        """Whether features should be standardised."""
        return self.ratio > LARGEST_RATIO


def scale_range(scales: np.ndarray) -> ScaleRange | None:
    """The largest scale beside the median one; None where fewer than two features vary."""
    varying = np.flatnonzero(scales > 0)
    if len(varying) < 2:
        return None
    order = varying[np.argsort(scales[varying], kind="stable")]
    median = order[(len(order) - 1) // 2]
    largest = order[-1]
    return ScaleRange(int(median), int(largest), float(scales[largest] / scales[median]))
