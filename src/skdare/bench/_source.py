"""What the bench reads: features with a name, and what is done to them before any head."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdare._validation import check_choice, check_count, check_finite_targets, check_number
from skdare.datasets import DomainData, fingerprint, guess_task

TASKS = ("classification", "regression")
PROJECTIONS = ("random", "pca")


@dataclass(frozen=True)
class Projection:
    """Features replaced by fewer: a random projection, or the leading principal components."""

    kind: str
    size: int


@dataclass(frozen=True)
class Preparation:
    """What is fitted on training rows and applied to all: nothing of it sees a held-out row.

    Parameters
    ----------
    impute : "median" or None
        Fill missing values by the training rows' median.
    standardize : bool
        Subtract the training rows' mean and divide by their standard deviation.
    clip : float, optional
        Then limit every value to this many standard deviations.
    """

    impute: str | None = None
    standardize: bool = False
    clip: float | None = None

    def __post_init__(self) -> None:
        check_choice("impute", self.impute, ("median", None))
        check_choice("standardize", self.standardize, (True, False))
        check_number("clip", self.clip, also=(None,))
        if self.clip is not None and not self.standardize:
            raise ValueError("clip counts standard deviations; it needs standardize")

    @property
    def is_fitted(self) -> bool:
        """Whether it depends on which rows are trained on."""
        return self.impute is not None or self.standardize

    def __call__(self, X: np.ndarray, train: np.ndarray) -> np.ndarray:
        """All rows, prepared by the training ones."""
        if not self.is_fitted:
            return X
        X = np.array(X, dtype=X.dtype if X.dtype == np.float64 else np.float32)
        if self.impute is not None:
            X = np.where(np.isnan(X), _medians(X[train]), X)
        if self.standardize:
            spread = X[train].std(axis=0, dtype=np.float64)
            spread[spread == 0] = 1.0
            X = ((X - X[train].mean(axis=0, dtype=np.float64)) / spread).astype(X.dtype)
        return X if self.clip is None else np.clip(X, -self.clip, self.clip)


def _medians(X: np.ndarray) -> np.ndarray:
    """Median of each feature; zero for one that the training rows never have."""
    known = ~np.isnan(X).all(axis=0)
    medians = np.zeros(X.shape[1], dtype=X.dtype)
    medians[known] = np.nanmedian(X[:, known], axis=0)
    return medians


def project(
    X: np.ndarray, projection: Projection | None, train: np.ndarray, seed: int
) -> np.ndarray:
    """Rows in fewer features; principal components are those of the training rows."""
    if projection is None or projection.size >= X.shape[1]:
        return X
    dtype = X.dtype if X.dtype == np.float64 else np.float32
    if projection.kind == "random":
        rng = np.random.default_rng([seed, projection.size])
        P = rng.normal(size=(X.shape[1], projection.size)) / np.sqrt(projection.size)
        return X.astype(dtype) @ P.astype(dtype)
    mean = X[train].mean(axis=0, dtype=np.float64).astype(dtype)
    Z = X.astype(dtype) - mean
    _, V = np.linalg.eigh((Z[train].T @ Z[train]).astype(np.float64))
    return Z @ V[:, ::-1][:, : projection.size].astype(dtype)


@dataclass(frozen=True, eq=False)
class Source:
    """Features under a name: one table for every held-out domain, or one for each.

    Features fine-tuned on the training domains are another table for each held-out domain.

    Parameters
    ----------
    name : str
    task : "classification" or "regression"
    tables : dict of DomainData by held-out domain
    fingerprints : dict of str by held-out domain
    """

    name: str
    task: str
    tables: Mapping[str, DomainData]
    fingerprints: Mapping[str, str]

    @classmethod
    def of(
        cls,
        data: DomainData | Mapping[str, DomainData],
        *,
        name: str | None = None,
        task: str | None = None,
        held_out: Sequence[str] | None = None,
        min_rows: int = 1,
    ) -> Source:
        """Check the tables, and which domains are to be held out, before any work.

        Domains of fewer than ``min_rows`` rows are left out altogether.
        """
        if held_out is not None and not held_out:
            raise ValueError("no domain is named to hold out; leave held_out out to hold out all")
        check_count("min_rows", min_rows, 1)
        tables = _by_held_out(data, held_out, min_rows)
        first = next(iter(tables.values()))
        if task is None:
            task = guess_task(first.y)
        check_choice("task", task, TASKS)
        checked: dict[int, str] = {}
        for held, table in tables.items():
            if id(table) not in checked:
                _check_table(table, task)
                checked[id(table)] = fingerprint(table)
            _check_held_out(table, held)
        prints = {domain: checked[id(table)] for domain, table in tables.items()}
        return cls(name or first.name or "features", task, tables, prints)

    @property
    def held_out(self) -> list[str]:
        """Domains to hold out, in order."""
        return list(self.tables)

    @property
    def distinct_tables(self) -> list[DomainData]:
        """Each table once."""
        return list({id(table): table for table in self.tables.values()}.values())

    def refuse_missing(self) -> None:
        """Refuse features that have to be imputed first."""
        for table in self.distinct_tables:
            missing = np.isnan(table.X).any(axis=0)
            if missing.any():
                first = int(missing.argmax())
                name = table.feature_names[first] if table.feature_names else f"number {first}"
                raise ValueError(
                    f"{int(missing.sum())} of {len(missing)} features have missing values (the "
                    f"first is {name}); fill them by the training domains' medians with "
                    "impute='median' (--impute median), or drop them"
                )


def distinct(domains: np.ndarray) -> list[str]:
    """Domain labels in natural order."""
    return sorted(np.unique(domains).tolist(), key=natural)


def natural(name: str) -> list[tuple[int, str]]:
    """A key by which "batch 2" comes before "batch 10"."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts)]


def _by_held_out(
    data: DomainData | Mapping[str, DomainData], held_out: Sequence[str] | None, min_rows: int
) -> dict[str, DomainData]:
    """A table for each domain to hold out, in the order asked for."""
    if isinstance(data, DomainData):
        table = _large(_with_text_labels(data), min_rows)
        return dict.fromkeys(held_out or distinct(table.domains), table)
    named = {str(d): _large(_with_text_labels(table), min_rows) for d, table in data.items()}
    absent = [domain for domain in held_out or () if domain not in named]
    if absent or not named:
        raise ValueError(
            f"no features are given for held-out domain `{absent[0] if absent else '?'}`; "
            f"there are some for {', '.join(named) or 'none'}"
        )
    return {domain: named[domain] for domain in held_out or named}


def _with_text_labels(table: DomainData) -> DomainData:
    return replace(table, domains=np.asarray(table.domains).astype(str))


def _large(table: DomainData, min_rows: int) -> DomainData:
    """The rows of domains that have so many."""
    _, place, counts = np.unique(table.domains, return_inverse=True, return_counts=True)
    if counts.min(initial=min_rows) >= min_rows:
        return table
    kept = (counts >= min_rows)[place]
    if not kept.any():
        raise ValueError(f"no domain has {min_rows} rows; the largest has {counts.max()}")
    split = None if table.split is None else table.split[kept]
    X, y, domains = (array[kept] for array in (table.X, table.y, table.domains))
    return replace(table, X=X, y=y, domains=domains, split=split)


def _check_held_out(table: DomainData, held_out: str) -> None:
    domains = distinct(table.domains)
    if held_out not in domains:
        names = ", ".join(f"`{d}`" for d in domains[:12]) + ", …" * (len(domains) > 12)
        raise ValueError(f"held-out domain `{held_out}` is not in the features; they have {names}")


def _check_table(table: DomainData, task: str) -> None:
    """Refuse, before any work, what no head could be fitted to."""
    n = len(table.X)
    if not len(table.y) == len(table.domains) == n:
        raise ValueError(
            f"X has {n} rows, y {len(table.y)} and domains {len(table.domains)}; "
            "every row needs all of them"
        )
    check_finite_targets(np.asarray(table.y))
    if np.all(table.y == table.y[0]):
        what = "class" if task == "classification" else "value"
        raise ValueError(f"y has one {what}, {table.y[0]}; there is nothing to tell apart")
    if np.isinf(table.X).any():
        raise ValueError("the features have infinite values; mend or drop those rows")
    domains = distinct(table.domains)
    if len(domains) < 2:
        raise ValueError(f"the features have one domain, `{domains[0]}`; at least 2 are needed")
    if table.split is not None:
        for domain in domains:
            if np.all(table.split[table.domains == domain]):
                raise ValueError(
                    f"the split sets every row of domain `{domain}` aside and leaves none to "
                    "train on; name another split, or none (--split '')"
                )
