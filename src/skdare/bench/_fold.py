"""Folds: the rows that train, the rows set aside, and the rows of the domain held out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, RLock
from typing import Any

import numpy as np

from skdare.arrays import compact
from skdare.bench._preparation import project
from skdare.bench._source import Source, distinct
from skdare.bench._trial import Settings, Trial
from skdare.datasets import DomainData, reserve
from skdare.datasets._split import reserved_rows
from skdare.whitening.cache import DomainCache, SharedCaches


class Once:
    """Values computed once, whatever number of threads ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._slots: dict[Hashable, tuple[RLock, list[Any]]] = {}

    def __call__(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """The value of this key, computed where it is not known."""
        with self._lock:
            lock, found = self._slots.setdefault(key, (RLock(), []))
        with lock:
            if not found:
                found.append(compute())
            return found[0]

    def forget(self, key: Hashable) -> None:
        """Drop this value; whoever holds it keeps it."""
        with self._lock:
            self._slots.pop(key, None)


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
    shared : mutable mapping from domain to DomainCache
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
    shared: SharedCaches
    once: Once = field(default_factory=Once)

    def statistics(self, domain: str) -> DomainCache:
        """Moments and adjustments of one domain's training rows, the held-out one included."""
        return self.shared[domain]

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
    domain shares them, unless the preparation itself depends on which rows are trained on.
    """

    def __init__(self, sources: Mapping[str, Source], settings: Settings) -> None:
        self.sources, self.settings = sources, settings
        self._folds, self._shared = Once(), Once()

    def fold(self, trial: Trial) -> Fold:
        """The fold of a trial."""
        return self._folds(trial.fold_key, lambda: self._make(trial))

    def forget(self, done: Trial, waiting: Iterable[Trial]) -> None:
        """Drop the fold of a trial, and its statistics where no waiting trial needs them."""
        self._folds.forget(done.fold_key)
        mine = self._common(done)
        if all(self._common(trial) != mine for trial in waiting):
            self._shared.forget(mine)

    def _common(self, trial: Trial) -> tuple[Any, ...]:
        """Trials of equal key share statistics."""
        features, held_out, number, projection, seen = trial.fold_key
        table = id(self.sources[features].table(held_out, number))
        fitted = self.settings.preparation.is_fitted
        if fitted or (projection is not None and projection.kind == "pca"):
            return features, table, number, projection, held_out, seen
        return features, table, number, projection

    def _make(self, trial: Trial) -> Fold:
        source, held_out = self.sources[trial.features], trial.held_out
        table = source.table(held_out, trial.number)
        seen = trial.seen or [d for d in distinct(table.domains) if d != held_out]
        aside, split = self._set_aside(source, trial)
        train = np.isin(table.domains, seen) & ~aside
        X = self.settings.preparation(table.X, train)
        prepared = replace(table, X=project(X, trial.projection, train, trial.number))
        new = table.domains == held_out
        # Domain after domain: their rows are then slices, which no pass has to gather.
        order = np.concatenate([np.flatnonzero(train & (table.domains == d)) for d in seen])
        return Fold(
            source.task,
            held_out,
            seen,
            train=_rows(prepared, order),
            valid=_rows(prepared, np.isin(table.domains, seen) & self._untouched(table, aside)),
            new=_rows(prepared, new),
            reserved=aside[new],
            split=split,
            shared=self._shared(self._common(trial), lambda: _statistics(prepared, aside)),
        )

    def _untouched(self, table: DomainData, aside: np.ndarray) -> np.ndarray:
        """Rows set aside; where the file has a split, only those that it too sets aside.

        Features that were fine-tuned on the other rows of the file predict those too well: on
        PACS, ERM then validates at 0.992 in place of 0.973.
        """
        if table.split is None or not np.any(aside & table.split):
            return aside
        return aside & table.split

    def _set_aside(self, source: Source, trial: Trial) -> tuple[np.ndarray, str]:
        """Which rows are set aside: as the features' file says of this trial, else drawn."""
        number, share = trial.number, self.settings.aside
        own = source.split(trial.held_out, number)
        if own is None and trial.features != "given":
            own = self._split_of_given(source, trial)
        if own is not None:
            return np.asarray(own, dtype=bool), "of the file"
        drawn = reserve(source.table(trial.held_out, number).domains, number, share)
        return drawn, f"{share:.0%} of each domain by seed ({number}, domain)"

    def _split_of_given(self, source: Source, trial: Trial) -> np.ndarray | None:
        """The split of the features in question, for others of the same rows."""
        place, given = (trial.held_out, trial.number), self.sources["given"]
        split = given.split(*place)
        domains = source.table(*place).domains
        same = split is not None and np.array_equal(given.table(*place).domains, domains)
        return split if same else None


def rows_and_reserved(
    source: Source, held_out: str, number: int, domain: str, share: float
) -> tuple[int, int]:
    """How many rows a domain has, and how many of them a trial sets aside."""
    own = source.table(held_out, number).domains == domain
    n, split = int(np.sum(own)), source.split(held_out, number)
    return n, reserved_rows(n, share) if split is None else int(np.sum(split[own]))


def _statistics(table: DomainData, aside: np.ndarray) -> dict[Hashable, DomainCache]:
    """Of the training rows of every domain; nothing is computed before it is asked for."""
    found: dict[Hashable, DomainCache] = {}
    for domain in distinct(table.domains):
        rows = np.flatnonzero((table.domains == domain) & ~aside)
        found[domain] = DomainCache(table.X, compact(rows), np.ones(len(rows)))
    return found


def _rows(data: DomainData, chosen: np.ndarray) -> DomainData:
    """Chosen rows, a copy."""
    return DomainData(data.X[chosen], data.y[chosen], data.domains[chosen])
