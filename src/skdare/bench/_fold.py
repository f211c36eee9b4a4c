"""Folds: the rows that train, the rows set aside, and the rows of the domain held out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, RLock
from typing import Any

import numpy as np

from skdare.arrays import compact
from skdare.bench._feature_set import FeatureSet, sorted_domains
from skdare.bench._preparation import project
from skdare.bench._settings import Settings
from skdare.bench._trial import Trial
from skdare.datasets import DomainData, reserve
from skdare.datasets._split import reserved_rows
from skdare.whitening.cache import DomainCache, SharedCaches


class Once:
    """Values computed once, whatever number of threads ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._slots: dict[Hashable, tuple[RLock, list[Any]]] = {}

    def __call__(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """The value of this key, computed at the first call."""
        with self._lock:
            lock, slot = self._slots.setdefault(key, (RLock(), []))
        with lock:
            if not slot:
                slot.append(compute())
            return slot[0]

    def forget(self, key: Hashable) -> None:
        """Drop this value here; whoever has it keeps it."""
        with self._lock:
            self._slots.pop(key, None)


@dataclass(frozen=True, eq=False)
class Fold:
    """One domain held out, in one trial.

    Parameters
    ----------
    task : str
    held_out : str
    training_domains : sequence of str
    train : DomainData
        The rows that train, domain after domain.
    valid : DomainData
        The rows of the training domains that were set aside.
    test : DomainData
        Every row of the held-out domain.
    reserved : bool array
        Which of the test rows were set aside.
    split : str
        How rows were set aside, in words.
    left_out_rows : int
        Training rows that were left out because rows of their group are scored.
    unprepared : array of shape (n, d), optional
        The rows that train before they were prepared, where that was fitted to them.
    shared : mutable mapping from domain to DomainCache
    once : Once
        Choices made for this fold.
    """

    task: str
    held_out: str
    training_domains: Sequence[str]
    train: DomainData
    valid: DomainData
    test: DomainData
    reserved: np.ndarray
    split: str
    left_out_rows: int
    unprepared: np.ndarray | None
    shared: SharedCaches
    once: Once = field(default_factory=Once)

    def cache(self, domain: str) -> DomainCache:
        """Moments and adjustments of a domain's training rows; the held-out domain has them too."""
        return self.shared[domain]

    def without(self, domain: str) -> DomainData:
        """The training rows of every other training domain, and of other groups if there are any.

        Where all groups are in the domain, they are trained on all the same: a choice by rows of
        groups that were seen is better than none.
        """
        others = self.train.domains != domain
        groups = self.train.groups
        if groups is not None:
            apart = others & ~np.isin(groups, groups[~others])
            others = apart if apart.any() else others
        return rows_of(self.train, others)

    def training_rows(self, domain: str) -> DomainData:
        """The rows of one domain that were not set aside, the held-out domain included."""
        if domain == self.held_out:
            return rows_of(self.test, ~self.reserved)
        return rows_of(self.train, self.train.domains == domain)

    def train_with_held_out(self) -> DomainData:
        """Training rows of all domains, the held-out one included: for ceilings only."""
        more = self.training_rows(self.held_out)
        return DomainData(
            np.concatenate([self.train.X, more.X]),
            np.concatenate([self.train.y, more.y]),
            np.concatenate([self.train.domains, more.domains]),
        )


class Folds:
    """Makes folds, and keeps what they have in common.

    The statistics of a domain belong to (features, split, domain): every head and every held-out
    domain shares them, unless the preparation itself depends on which rows are trained on.
    """

    def __init__(self, feature_sets: Mapping[str, FeatureSet], settings: Settings) -> None:
        self.feature_sets = feature_sets
        self.settings = settings
        self._folds = Once()
        self._caches = Once()

    def fold(self, trial: Trial) -> Fold:
        """The fold of a trial."""
        return self._folds(trial.fold_key, lambda: self._make(trial))

    def forget(self, done: Trial, waiting: Iterable[Trial]) -> None:
        """Drop the fold of a trial, and its statistics where no waiting trial needs them."""
        self._folds.forget(done.fold_key)
        key = self._caches_key(done)
        if all(self._caches_key(trial) != key for trial in waiting):
            self._caches.forget(key)

    def _caches_key(self, trial: Trial) -> tuple[Any, ...]:
        """Trials with the same key share statistics."""
        features, held_out, number, projection, training_domains = trial.fold_key
        table = id(self.feature_sets[features].table(held_out, number))
        fitted = self.settings.preparation.is_fitted
        grouped = self.feature_sets[features].table(held_out, number).groups is not None
        if fitted or grouped or (projection is not None and projection.kind == "pca"):
            return features, table, number, projection, held_out, training_domains
        return features, table, number, projection

    def _make(self, trial: Trial) -> Fold:
        held_out = trial.held_out
        feature_set = self.feature_sets[trial.features]
        table = feature_set.table(held_out, trial.number)
        domains = table.domains
        training_domains = trial.training_domains or [
            domain for domain in sorted_domains(domains) if domain != held_out
        ]
        aside, split = self._set_aside(feature_set, trial)
        in_training_domain = np.isin(domains, training_domains)
        in_test = domains == held_out
        tied = _tied(table, held_out, aside, self.settings.tested_on)
        train = in_training_domain & ~aside & ~tied
        valid = in_training_domain & _unseen(table, aside) & ~tied
        if table.groups is not None:
            valid &= ~np.isin(table.groups, table.groups[train])
            training_domains = [d for d in training_domains if np.any(train & (domains == d))]
        preparation = self.settings.preparation
        X = preparation(table.X, train)
        prepared = replace(table, X=project(X, trial.projection, train, trial.number))
        # Domain after domain: their rows are then slices, which no pass has to gather.
        order = np.concatenate([np.flatnonzero(train & (domains == d)) for d in training_domains])
        return Fold(
            feature_set.task,
            held_out,
            training_domains,
            train=rows_of(prepared, order),
            valid=rows_of(prepared, valid),
            test=rows_of(prepared, in_test),
            reserved=aside[in_test],
            split=split,
            left_out_rows=int(np.sum(in_training_domain & ~aside & tied)),
            unprepared=np.asarray(table.X[order]) if preparation.is_fitted else None,
            shared=self._caches(
                self._caches_key(trial), lambda: _domain_caches(prepared, aside | tied)
            ),
        )

    def _set_aside(self, feature_set: FeatureSet, trial: Trial) -> tuple[np.ndarray, str]:
        """Which rows are set aside: as the features' file says of this trial, else drawn."""
        share = self.settings.aside
        number = trial.number
        split = feature_set.split(trial.held_out, number)
        if split is None and trial.features != "given":
            split = self._split_of_given(feature_set, trial)
        if split is not None:
            return np.asarray(split, dtype=bool), "of the file"
        table = feature_set.table(trial.held_out, number)
        drawn = reserve(table.domains, number, share, groups=table.groups)
        what = "each domain by seed ({}, domain)" if table.groups is None else "groups by seed {}"
        return drawn, f"{share:.0%} of {what.format(number)}"

    def _split_of_given(self, feature_set: FeatureSet, trial: Trial) -> np.ndarray | None:
        """The split of the features to compare heads on, for other features of the same rows."""
        features = self.feature_sets["given"]
        split = features.split(trial.held_out, trial.number)
        if split is None:
            return None
        domains = features.table(trial.held_out, trial.number).domains
        other = feature_set.table(trial.held_out, trial.number).domains
        return split if np.array_equal(domains, other) else None


def _tied(table: DomainData, held_out: str, aside: np.ndarray, tested_on: str) -> np.ndarray:
    """Rows of other domains whose group has rows that are scored in the held-out domain."""
    if table.groups is None:
        return np.zeros(len(table.domains), dtype=bool)
    inside = table.domains == held_out
    scored = inside & aside if tested_on == "reserved" else inside
    return ~inside & np.isin(table.groups, table.groups[scored])


def _unseen(table: DomainData, aside: np.ndarray) -> np.ndarray:
    """Rows set aside; where the file has a split, only those that it too sets aside.

    Features that were fine-tuned on the other rows of the file predict those too well: on
    PACS, ERM then validates at 0.992 in place of 0.973.
    """
    if table.split is None or not np.any(aside & table.split):
        return aside
    return aside & table.split


@dataclass(frozen=True)
class RowCounts:
    """How many rows a domain has in a trial: all, those set aside, and those that train."""

    rows: int
    reserved: int
    train: int


def count_rows(
    feature_set: FeatureSet, held_out: str, number: int, domain: str, settings: Settings
) -> RowCounts:
    """Rows of a domain in the trial of a held-out domain."""
    table = feature_set.table(held_out, number)
    in_domain = table.domains == domain
    split = feature_set.split(held_out, number)
    n = int(np.sum(in_domain))
    if table.groups is not None:
        if split is None:
            split = reserve(table.domains, number, settings.aside, groups=table.groups)
        tied = _tied(table, held_out, split, settings.tested_on)
        train = int(np.sum(in_domain & ~split & ~tied))
        return RowCounts(n, int(np.sum(split[in_domain])), train)
    reserved = reserved_rows(n, settings.aside) if split is None else int(np.sum(split[in_domain]))
    return RowCounts(n, reserved, n - reserved)


def _domain_caches(table: DomainData, unused: np.ndarray) -> dict[Hashable, DomainCache]:
    """Caches of every domain's training rows, whose statistics are computed when first used."""
    caches: dict[Hashable, DomainCache] = {}
    for domain in sorted_domains(table.domains):
        rows = np.flatnonzero((table.domains == domain) & ~unused)
        caches[domain] = DomainCache(table.X, compact(rows), np.ones(len(rows)))
    return caches


def rows_of(data: DomainData, chosen: np.ndarray) -> DomainData:
    """Chosen rows, a copy."""
    groups = None if data.groups is None else data.groups[chosen]
    return DomainData(data.X[chosen], data.y[chosen], data.domains[chosen], groups=groups)
