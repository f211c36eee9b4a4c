"""Folds: the rows that train, the rows set aside, and the rows of the domain held out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, RLock
from typing import Any
from zlib import crc32

import numpy as np

from skdare._array import compact
from skdare.bench._source import Preparation, Projection, Source, distinct, project
from skdare.datasets import DomainData
from skdare.domain_statistics import DomainStatistics, Shared


class Once:
    """Values computed once, whatever number of threads ask; only the last few are kept."""

    def __init__(self, limit: int | None = None) -> None:
        self._lock, self._limit = Lock(), limit
        self._slots: OrderedDict[Hashable, tuple[RLock, list]] = OrderedDict()

    def __call__(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """The value of this key, computed where it is not known."""
        with self._lock:
            lock, found = self._slots.setdefault(key, (RLock(), []))
            self._slots.move_to_end(key)
            while self._limit is not None and len(self._slots) > self._limit:
                self._slots.popitem(last=False)
        with lock:
            if not found:
                found.append(compute())
            return found[0]


@dataclass(frozen=True, eq=False)
class Fold:
    """One domain held out, in one trial.

    Parameters
    ----------
    task : str
    held_out : str
    seen : list of str
        The training domains.
    train : DomainData
        The rows that train, domain after domain.
    valid : DomainData
        The rows of the training domains that were set aside.
    new : DomainData
        Every row of the held-out domain.
    reserved : bool array
        Which of them were set aside.
    split : str
        How rows were set aside, in words.
    shared : mutable mapping from domain to DomainStatistics
    once : Once
        Choices made for this fold.
    """

    task: str
    held_out: str
    seen: Sequence[str]
    train: DomainData
    valid: DomainData
    new: DomainData
    reserved: np.ndarray
    split: str
    shared: Shared
    once: Once = field(default_factory=Once)

    def restricted(self, seen: Sequence[str]) -> Fold:
        """The same fold with fewer training domains."""
        train, valid = (_rows(d, np.isin(d.domains, seen)) for d in (self.train, self.valid))
        return replace(self, seen=list(seen), train=train, valid=valid, once=Once())

    def statistics(self, domain: str) -> DomainStatistics:
        """Moments and adjustments of one domain's training rows, the held-out one included."""
        if domain == self.held_out:
            X, index = self.new.X, np.flatnonzero(~self.reserved)
        else:
            X, index = self.train.X, np.flatnonzero(self.train.domains == domain)
        return self.shared.setdefault(
            domain, DomainStatistics(X, compact(index), np.ones(len(index)))
        )

    def without(self, domain: str) -> DomainData:
        """The training rows of every other training domain."""
        return _rows(self.train, self.train.domains != domain)

    def training_rows(self, domain: str) -> DomainData:
        """The training rows of one domain; of the held-out one, those not set aside."""
        if domain == self.held_out:
            return _rows(self.new, ~self.reserved)
        return _rows(self.train, self.train.domains == domain)

    def everything(self) -> DomainData:
        """Training rows of all domains, the held-out one included: for ceilings only."""
        new = self.training_rows(self.held_out)
        X, y, domains = (
            np.concatenate([getattr(part, name) for part in (self.train, new)])
            for name in ("X", "y", "domains")
        )
        return DomainData(X, y, domains)


class Workspace:
    """Makes folds, and keeps what folds have in common.

    The statistics of a domain belong to (features, split, domain): every head and every held-out
    domain shares them, unless the preparation itself depends on which domain is held out.
    """

    def __init__(
        self, sources: dict[str, Source], preparation: Preparation, aside: float, jobs: int = 1
    ) -> None:
        self.sources, self.preparation, self.aside = sources, preparation, aside
        self._folds, self._shared = Once(2 * jobs), Once(2 * jobs)

    def fold(
        self, features: str, held_out: str, trial: int, projection: Projection | None = None
    ) -> Fold:
        """The fold of a trial."""
        key = (features, held_out, trial, projection)
        return self._folds(key, lambda: self._make(*key))

    def _make(
        self, features: str, held_out: str, trial: int, projection: Projection | None
    ) -> Fold:
        source = self.sources[features]
        table = source.tables[held_out]
        new = table.domains == held_out
        aside, split = self._set_aside(table, trial)
        train = ~new & ~aside
        X = self.preparation(table.X, train)
        X = project(X, projection, train, trial)
        fitted = self.preparation.is_fitted or (projection is not None and projection.kind == "pca")
        common = (features, id(table), trial, projection, held_out if fitted else None)
        prepared = replace(table, X=X)
        seen = [domain for domain in distinct(table.domains) if domain != held_out]
        order = np.concatenate([np.flatnonzero(train & (table.domains == d)) for d in seen])
        return Fold(
            source.task,
            held_out,
            seen,
            _rows(prepared, order),
            _rows(prepared, ~new & aside),
            _rows(prepared, new),
            aside[new],
            split,
            self._shared(common, dict),
        )

    def _set_aside(self, table: DomainData, trial: int) -> tuple[np.ndarray, str]:
        """Which rows are set aside: as the features' file says in trial 0, else drawn by domain."""
        if table.split is not None and trial == 0:
            return np.asarray(table.split, dtype=bool), "of the file"
        aside = np.zeros(len(table.y), dtype=bool)
        for domain in np.unique(table.domains):
            rows = np.flatnonzero(table.domains == domain)
            # By name, so that a domain's split does not depend on which others there are.
            rng = np.random.default_rng([trial, crc32(str(domain).encode())])
            aside[rng.permutation(rows)[: int(self.aside * len(rows))]] = True
        return aside, f"{self.aside:.0%} of each domain by seed ({trial}, domain)"


def _rows(data: DomainData, chosen: np.ndarray) -> DomainData:
    """Chosen rows, a copy."""
    return DomainData(data.X[chosen], data.y[chosen], data.domains[chosen])
