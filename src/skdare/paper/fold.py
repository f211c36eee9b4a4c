"""One domain held out in one trial: rows that train, rows set aside, rows of the new domain."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import linalg

from skdare.data import DomainData, Store
from skdare.features.split import ASIDE, SHARE, reserve

# Rows that are held in float64 at once.
_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of all domains by one network, and which rows that network has set aside.

    Parameters
    ----------
    data : DomainData
    aside : bool array, optional
        None if the network was trained on none of the rows.
    fingerprint : str
    """

    data: DomainData
    aside: np.ndarray | None
    fingerprint: str

    @classmethod
    def open(cls, folder: str | Path) -> FeatureTable:
        """The table in a feature store."""
        store = Store.open(folder)
        X = np.concatenate([store.block(number) for number in range(len(store.shards))])
        domains = store.column("domains").astype(str)
        data = DomainData.of(X, store.column("y"), domains=domains, name=store.folder.name)
        aside = store.column(ASIDE).astype(bool) if ASIDE in store.columns else None
        sums = [sorted(shard.sha256.items()) for shard in store.shards]
        return cls(data, aside, hashlib.sha256(repr(sums).encode()).hexdigest()[:16])

    @classmethod
    def of(cls, data: DomainData) -> FeatureTable:
        """A table whose features were not learnt on its rows."""
        return cls(replace(data, domains=data.domains.astype(str)), None, data.fingerprint())


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows of one trial.

    Parameters
    ----------
    held_out : str
    domains : sequence of str
        Those that train.
    train, valid : DomainData
        Rows of the training domains that train, domain after domain, and those set aside.
    test : DomainData
        All rows of the held-out domain.
    reserved : bool array
        Which of the test rows were set aside, and are scored.
    whiteners : dict
        Inverse roots that were computed, by domain and shrinkage.
    """

    held_out: str
    domains: Sequence[str]
    train: DomainData
    valid: DomainData
    test: DomainData
    reserved: np.ndarray
    whiteners: dict[tuple[str, float], np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: FeatureTable,
        held_out: str,
        trial: int,
        *,
        share: float = SHARE,
        training_domains: Sequence[str] | None = None,
        size: int | None = None,
    ) -> Fold:
        """Set rows aside, as the table says or else by seed; ``size`` projects to fewer features.

        The projection is random, with the trial as its seed.
        """
        data = table.data
        aside = reserve(data.domains, trial, share) if table.aside is None else table.aside
        domains = list(training_domains or ())
        domains = domains or [d for d in data.domain_names if d != held_out]
        if size is not None and size < data.X.shape[1]:
            rng = np.random.default_rng([trial, size])
            P = rng.normal(size=(data.X.shape[1], size)) / np.sqrt(size)
            X = np.asarray(data.X, np.float32) @ P.astype(np.float32)
            data = DomainData.of(X, data.y, domains=data.domains, name=data.name)
        training = np.isin(data.domains, domains)
        rows = [np.flatnonzero(~aside & (data.domains == domain)) for domain in domains]
        new = np.flatnonzero(data.domains == held_out)
        return cls(
            held_out,
            domains,
            data.rows(np.concatenate(rows)),
            data.rows(np.flatnonzero(training & aside)),
            data.rows(new),
            aside[new],
        )

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where the rows of each training domain are, in `train`."""
        ends = np.cumsum([np.count_nonzero(self.train.domains == d) for d in self.domains])
        starts = [0, *ends[:-1].tolist()]
        pairs = zip(starts, ends.tolist(), strict=True)
        return dict(zip(self.domains, (slice(a, b) for a, b in pairs), strict=True))

    def rows(self, domain: str) -> DomainData:
        """Rows of one domain that were not set aside, the held-out domain included."""
        if domain == self.held_out:
            return self.test.rows(np.flatnonzero(~self.reserved))
        return self.train.rows(np.arange(*self.parts[domain].indices(len(self.train.y))))

    def mean(self, domain: str) -> np.ndarray:
        """μ of a domain."""
        return self.rows(domain).X.mean(axis=0, dtype=np.float64)

    def second_moment(self, domain: str) -> np.ndarray:
        """Σ of a domain as the paper has it: not centred."""
        X = self.rows(domain).X
        S = np.zeros((X.shape[1], X.shape[1]))
        for start in range(0, len(X), _ROWS):
            part = X[start : start + _ROWS].astype(np.float64)
            S += part.T @ part
        return S / len(X)

    def whitener(self, domain: str, shrinkage: float) -> np.ndarray:
        """``((1 - ρ) Σ + ρ I)^{-1/2}``, symmetric; directions without variance map to zero."""
        key = domain, shrinkage
        if key not in self.whiteners:
            values, U = linalg.eigh((1.0 - shrinkage) * self.second_moment(domain))
            values = values + shrinkage
            present = values > len(values) * np.finfo(float).eps * values[-1]
            roots = np.where(present, np.maximum(values, 1e-300) ** -0.5, 0.0)
            self.whiteners[key] = (U * roots) @ U.T
        return self.whiteners[key]
