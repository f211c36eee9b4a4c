"""Rows sorted by domain, and the statistics of them that findings need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from skdare.data import DomainData, roles

# Of a table with more numbers than these a sample of the rows is examined.
_MOST_NUMBERS = 1 << 25
# No measurement is as large.
_HUGE = 1e15


@dataclass(frozen=True, eq=False)
class SortedTable:
    """Rows sorted by domain; statistics are computed when a finding first needs them.

    Notation: n rows, d features, E domains, k classes.
    """

    data: DomainData  # all rows
    task: str
    X: np.ndarray  # (n, d) examined rows, by domain; NaN where a value is missing
    y: np.ndarray  # (n,) their targets: codes of classes, or numbers
    places: np.ndarray  # (n,) their row numbers in the table
    domains: np.ndarray  # (E,) names
    counts: np.ndarray  # (E, k) rows of a class in a domain, of all rows; (E, 1) for regression
    starts: np.ndarray  # (E,) first row of each domain

    @classmethod
    def of(cls, data: DomainData, task: str = "") -> Self:
        task = task or data.task
        n, d = data.X.shape
        labels = np.zeros(n, int) if data.domains is None else data.domains
        domains, codes = np.unique(labels, return_inverse=True)
        y = np.asarray(data.y)
        classes, targets = np.unique(y, return_inverse=True)
        if task == "regression":
            targets = y.astype(np.float64)
        # As many classes as rows would be a table of counts that fills the memory.
        few = task == "classification" and len(classes) * len(domains) <= 1 << 24
        counts = np.zeros((len(domains), len(classes) if few else 1), dtype=np.intp)
        np.add.at(counts, (codes, targets if few else np.zeros(n, int)), 1)
        chosen = np.arange(n)
        if n * d > _MOST_NUMBERS:  # by chance: every third row may be of one domain
            chosen = np.random.default_rng(0).permutation(n)[: max(1, _MOST_NUMBERS // d)]
        chosen = chosen[np.argsort(codes[chosen], kind="stable")]
        X: Any = data.X[chosen]
        X = X.toarray() if hasattr(X, "toarray") else X
        X = X.astype(np.float64, copy=False)
        starts = np.searchsorted(codes[chosen], np.arange(len(domains)))
        return cls(data, task, X, targets[chosen], chosen, domains.astype(str), counts, starts)

    @property
    def is_classification(self) -> bool:
        return self.task == "classification"

    @cached_property
    def classes(self) -> np.ndarray:
        return np.unique(self.data.y).astype(str)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(E,) rows of each domain."""
        return self.counts.sum(axis=1)

    @cached_property
    def missing(self) -> np.ndarray:
        """(E, d) rows of each domain without a value."""
        return np.add.reduceat(np.isnan(self.X).astype(np.intp), self.starts, axis=0)

    @cached_property
    def seen(self) -> np.ndarray:
        """(E,) examined rows of each domain."""
        return np.diff([*self.starts, len(self.X)])

    @cached_property
    def low(self) -> np.ndarray:
        """(E, d) smallest value of each feature; NaN if a domain has no value."""
        return np.fmin.reduceat(self.X, self.starts, axis=0)

    @cached_property
    def high(self) -> np.ndarray:
        return np.fmax.reduceat(self.X, self.starts, axis=0)

    @cached_property
    def mean(self) -> np.ndarray:
        """(d,) 0 for a feature without values, and for one with huge values."""
        add = np.nansum if self.has_missing else np.sum
        with np.errstate(over="ignore"):
            means = add(self.X, axis=0) / np.maximum(self.present, 1)
        return np.where(self.huge, 0.0, means)

    @cached_property
    def present(self) -> np.ndarray:
        """(d,) rows with a value."""
        return len(self.X) - self.missing.sum(axis=0)

    @cached_property
    def has_missing(self) -> bool:
        return bool(self.missing.any())

    @cached_property
    def centred(self) -> np.ndarray:
        """(n, d) rows less the mean; 0 for missing values and for features with huge ones."""
        Z = self.X - self.mean
        if self.has_missing:
            Z[np.isnan(Z)] = 0.0
        Z[:, self.huge] = 0.0
        return Z

    @cached_property
    def spread(self) -> np.ndarray:
        """(d,) standard deviations."""
        squares = np.einsum("ij,ij->j", self.centred, self.centred)
        return np.sqrt(squares / np.maximum(self.present, 1))

    @cached_property
    def mean_within(self) -> np.ndarray:
        """(E, d) means of the domains; that of all rows for a feature without values there."""
        add = np.add.reduceat(self.centred, self.starts, axis=0)
        return add / np.maximum(self.seen[:, None] - self.missing, 1) + self.mean

    @cached_property
    def spread_within(self) -> np.ndarray:
        """(E, d) standard deviations in the domains."""
        squares = np.add.reduceat(self.centred**2, self.starts, axis=0)
        present = np.maximum(self.seen[:, None] - self.missing, 1)
        return np.sqrt(np.maximum(squares / present - (self.mean_within - self.mean) ** 2, 0.0))

    @cached_property
    def constant(self) -> np.ndarray:
        """(d,) whether a feature has one value, or none."""
        low, high = np.fmin.reduce(self.low), np.fmax.reduce(self.high)
        return ~(low < high)

    @cached_property
    def codes(self) -> np.ndarray:
        """(n,) domain of each row."""
        return np.repeat(np.arange(len(self.domains)), self.seen)

    @cached_property
    def no_features(self) -> dict[str, str]:
        """Features that count or name rows, or repeat the domain, with the reason."""
        return roles.no_features(self.X, self.names(slice(None)), self.codes)

    @cached_property
    def usual(self) -> np.ndarray:
        """(d,) whether a feature varies, and may be a measurement."""
        named = [name not in self.no_features for name in self.names(slice(None))]
        return ~self.constant & ~self.huge & np.array(named, dtype=bool)

    @cached_property
    def huge(self) -> np.ndarray:
        """(d,) whether a feature has values that no measurement has, in whatever unit."""
        with np.errstate(invalid="ignore"):
            size = np.maximum(np.abs(self.low), np.abs(self.high))
            return np.fmax.reduce(size) > _HUGE

    def part(self, e: int) -> slice:
        """The rows of a domain."""
        return slice(int(self.starts[e]), int(self.starts[e] + self.seen[e]))

    def names(self, features: Any) -> list[str]:
        return [str(name) for name in self.data.feature_names[features]]
