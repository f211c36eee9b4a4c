"""Feature sets: features under a name, in one table for all trials or in several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdare._input_error import InputError
from skdare._validation import check_choice, check_count, check_finite_targets
from skdare.arrays import RowReader
from skdare.bench._record import TASKS
from skdare.datasets import DomainData, guess_task
from skdare.datasets._domain_data import fingerprint
from skdare.datasets._lazy_rows import PreparedRows
from skdare.datasets._natural import natural

Data = DomainData | Mapping[str, DomainData] | Mapping[tuple[str, int], DomainData]
Place = tuple[str, int | None]  # held-out domain, and the trial where each has its own table


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """Features under a name: one table, one for each held-out domain, or one for each trial too.

    Features fine-tuned on the training domains are another table for each held-out domain, and
    where the network was trained anew on the split of every trial, for each trial.

    Parameters
    ----------
    name : str
    task : "classification" or "regression"
    tables : dict of DomainData by (held-out domain, trial)
        The trial is None where a table serves all trials.
    fingerprints : dict of str by the same
    """

    name: str
    task: str
    tables: Mapping[Place, DomainData]
    fingerprints: Mapping[Place, str]

    @classmethod
    def of(
        cls,
        data: Data,
        *,
        name: str | None = None,
        task: str | None = None,
        held_out: Sequence[str] | None = None,
        min_rows: int = 1,
    ) -> FeatureSet:
        """Check the tables and the domains to hold out, before any work.

        Domains with fewer than ``min_rows`` rows are left out altogether.
        """
        if held_out is not None and not held_out:
            raise ValueError("no domain is named to hold out; leave held_out out to hold out all")
        check_count("min_rows", min_rows, 1)
        tables = _tables(data, held_out, min_rows)
        first = next(iter(tables.values()))
        if task is None:
            task = guess_task(first.y)
        check_choice("task", task, TASKS)
        hashes: dict[int, str] = {}
        for place, table in tables.items():
            if id(table) not in hashes:
                _check_table(table, task)
                hashes[id(table)] = fingerprint(table)
            _check_held_out(table, place[0])
            _check_origin(table, *place)
        fingerprints = {place: hashes[id(table)] for place, table in tables.items()}
        return cls(name or first.name or "features", task, tables, fingerprints)

    @property
    def held_out(self) -> list[str]:
        """Domains to hold out, in order."""
        return list(dict.fromkeys(domain for domain, _ in self.tables))

    @property
    def trials(self) -> list[int]:
        """Trials that have tables of their own; empty where tables serve all trials."""
        return sorted({number for _, number in self.tables if number is not None})

    @property
    def features_of(self) -> str:
        """What has features of its own: the "data", each "held-out domain", or each "trial"."""
        if self.trials:
            return "trial"
        return "data" if len(self._distinct_tables) == 1 else "held-out domain"

    def table(self, held_out: str, number: int) -> DomainData:
        """The features of a held-out domain in a trial."""
        return self.tables[self._place(held_out, number)]

    def split(self, held_out: str, number: int) -> np.ndarray | None:
        """The rows that the table itself sets aside in a trial, where it says so.

        One table for all trials has the split of one of them: that in which it was made, or the
        first. Another trial has to draw its own.
        """
        table = self.table(held_out, number)
        split_of = number if self.trials else int((table.made or {}).get("trial") or 0)
        return table.split if number == split_of else None

    def fingerprint(self, held_out: str, number: int) -> str | None:
        """Hash of the table of a held-out domain in a trial; None without a table."""
        distinct = set(self.fingerprints.values())
        # One table for all: then no held-out domain may have another.
        if len(distinct) == 1 and not self.trials:
            return distinct.pop()
        return self.fingerprints.get(self._place(held_out, number))

    def _place(self, held_out: str, number: int) -> Place:
        return held_out, number if self.trials else None

    @property
    def _distinct_tables(self) -> list[DomainData]:
        return list({id(table): table for table in self.tables.values()}.values())

    def check_tables(self, held_out: Iterable[str], numbers: Sequence[int]) -> None:
        """Refuse trials that have no table."""
        places = [(domain, number) for domain in held_out for number in numbers]
        absent = [place for place in places if self._place(*place) not in self.tables]
        if absent:
            names = ", ".join(f"`{domain}` in trial {number}" for domain, number in absent[:6])
            raise ValueError(
                f"there are no features for held-out domain {names}{', …' * (len(absent) > 6)}; "
                "make them, or ask for fewer trials or held-out domains"
            )

    def check_missing_values(self) -> None:
        """Refuse features that have to be imputed first."""
        for table in self._distinct_tables:
            missing = np.isnan(table.X).any(axis=0)
            if missing.any():
                first = int(missing.argmax())
                name = repr(table.feature_names[first]) if table.feature_names else first
                have = "has" if missing.sum() == 1 else "have"
                raise ValueError(
                    f"{int(missing.sum())} of {len(missing)} features {have} missing values, the "
                    f"first is feature {name}; fill them by the training domains' medians with "
                    "impute='median', or drop them"
                )


def sorted_domains(domains: np.ndarray) -> list[str]:
    """Each domain label once, in natural order."""
    return sorted(np.unique(domains).tolist(), key=natural)


def _tables(data: Data, held_out: Sequence[str] | None, min_rows: int) -> dict[Place, DomainData]:
    """A table for each domain to hold out, or for each of its trials, in the order asked for."""
    if isinstance(data, DomainData):
        table = without_small_domains(_with_text_labels(data), min_rows)
        return {(domain, None): table for domain in held_out or sorted_domains(table.domains)}
    tables = {_checked_place(key): table for key, table in data.items()}
    if len({number is None for _, number in tables}) > 1:
        raise ValueError(
            "some features are given by held-out domain and others by held-out domain and trial; "
            "give all of them by both"
        )
    domains = dict.fromkeys(domain for domain, _ in tables)
    absent = [domain for domain in held_out or () if domain not in domains]
    if absent or not domains:
        raise ValueError(
            f"there are no features for held-out domain `{absent[0] if absent else '?'}`; "
            f"there are some for {', '.join(domains) or 'none'}"
        )
    chosen = [place for domain in held_out or domains for place in tables if place[0] == domain]
    return {
        place: without_small_domains(_with_text_labels(tables[place]), min_rows) for place in chosen
    }


def _checked_place(key: Any) -> Place:
    """A held-out domain, with or without a trial."""
    if not isinstance(key, tuple):
        return str(key), None
    if len(key) != 2:
        raise ValueError(f"features are given for {key!r}; name them (held-out domain, trial)")
    check_count(f"the trial of the features for {key[0]!r}", key[1], 0)
    return str(key[0]), int(key[1])


def _with_text_labels(table: DomainData) -> DomainData:
    return replace(table, domains=np.asarray(table.domains).astype(str))


def without_small_domains(table: DomainData, min_rows: int) -> DomainData:
    """The table without domains of fewer rows; features on disk stay there."""
    labels, counts = np.unique(table.domains, return_counts=True)
    rows = np.flatnonzero(np.isin(table.domains, labels[counts >= min_rows]))
    if len(rows) == len(table.domains):
        return table
    if not len(rows):
        raise InputError(
            f"no domain has {min_rows} rows, and the largest has {counts.max()}",
            "lower min_rows",
            argument="min_rows",
        )
    return some_rows(table, rows)


def some_rows(table: DomainData, rows: np.ndarray) -> DomainData:
    """The rows of these ascending numbers; features on disk stay there."""
    X: Any = table.X
    on_disk = isinstance(X, RowReader)
    X = PreparedRows(X, np.asarray, X.dtype, rows) if on_disk else X[rows]
    split, groups = (
        None if labels is None else labels[rows] for labels in (table.split, table.groups)
    )
    return replace(
        table, X=X, y=table.y[rows], domains=table.domains[rows], split=split, groups=groups
    )


def _check_held_out(table: DomainData, held_out: str) -> None:
    domains = sorted_domains(table.domains)
    if held_out not in domains:
        names = ", ".join(f"`{d}`" for d in domains[:12]) + ", …" * (len(domains) > 12)
        raise ValueError(f"held-out domain `{held_out}` is not in the features; they have {names}")


def _check_origin(table: DomainData, held_out: str, number: int | None) -> None:
    """Refuse features of a network that saw the held-out domain, or of another trial."""
    made = table.made or {}
    without = made.get("held_out")
    trial = made.get("trial")
    if without is not None and str(without) != held_out:
        raise ValueError(
            f"the features for held-out domain `{held_out}` were fine-tuned without `{without}`, "
            f"and so with `{held_out}`; hold out `{without}` alone, or give other features"
        )
    if None not in (number, trial) and trial != number:
        raise ValueError(
            f"the features for trial {number} of held-out domain `{held_out}` were made in trial "
            f"{trial}; give those of the same trial"
        )


def _check_table(table: DomainData, task: str) -> None:
    """Refuse, before any work, what no head could be fitted to."""
    n = len(table.X)
    if not len(table.y) == len(table.domains) == n:
        raise ValueError(
            f"X has {n} rows, y {len(table.y)} and domains {len(table.domains)}; "
            "every row needs all of them"
        )
    if table.groups is not None and len(table.groups) != n:
        raise ValueError(f"X has {n} rows and groups {len(table.groups)}; pass one group per row")
    check_finite_targets(np.asarray(table.y))
    if np.all(table.y == table.y[0]):
        what = "class" if task == "classification" else "value"
        raise ValueError(f"y has one {what}, {table.y[0]}; there is nothing to tell apart")
    if np.isinf(table.X).any():
        raise ValueError("the features have infinite values; mend or drop those rows")
    domains = sorted_domains(table.domains)
    if len(domains) < 2:
        raise ValueError(f"the features have one domain, `{domains[0]}`; at least 2 are needed")
    if table.split is not None:
        for domain in domains:
            if np.all(table.split[table.domains == domain]):
                raise ValueError(
                    f"the split sets every row of domain `{domain}` aside and leaves none to "
                    "train on; name another split, or pass split='' for none"
                )
