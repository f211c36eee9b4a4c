"""Roles of columns: target, domains, groups, features, and columns with none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from skdare.errors import InputError, listed, quoted, there_are, unknown

# A name is guessed only if a table has exactly one of these, whatever its capital letters. Groups
# are never guessed: what names rows may be anything.
USUAL_NAMES = {
    "target": ("y", "target", "label", "labels", "class"),
    "domains": ("domain", "domains", "group", "env", "site", "batch", "hospital", "source"),
    "groups": (),
}
# Names of columns that number rows: "id", "patient_id", "RowID", and what pandas writes.
_ROW_NAME = re.compile(
    r"(^|[\s_.-])(id|ids|uuid|index|rownum|row|ID|Id|Index)$|[a-z](ID|Id)$|^Unnamed: \d+$"
)
ENCODING = "for example with pandas.get_dummies"
# More columns than these are counted, not named.
NAMED = 4
_SAMPLE = 64
# Fewer rows rise, or differ, by chance.
_FEW_ROWS = 20
# Share of rows that may repeat a number in a column that counts them.
_ALIKE = 0.05


def choose(
    columns: Sequence[str], named: Mapping[str, str | None], needed: Iterable[str]
) -> dict[str, str]:
    """The column of each role: the one that was named, else the one with a usual name.

    An empty name stands for none.
    """
    chosen: dict[str, str] = {}
    absent: list[str] = []
    for role, name in named.items():
        if name:
            if name not in columns:
                raise unknown("column", name, columns)
            chosen[role] = name
        elif name is None:
            usual = [c for c in columns if c.lower() in USUAL_NAMES[role]]
            usual = [c for c in usual if c not in named.values()]
            if len(usual) == 1:
                chosen[role] = usual[0]
            elif len(usual) > 1:
                raise InputError(
                    f"{role} may be {listed(usual)}", f"name one of them: {role}={usual[0]}"
                )
            elif role in needed:
                absent.append(role)
    if absent:
        what = " and ".join(f"the {role}" for role in absent)
        how = " and ".join(f"{role}=" for role in absent)
        raise InputError(
            f"no column has a usual name for {what}", f"use {how}; {there_are(columns)}"
        )
    roles: dict[str, str] = {}
    for role, name in chosen.items():
        if name in roles:
            raise InputError(
                f"column {quoted(name)} is given as {roles[name]} and as {role}", "choose one"
            )
        roles[name] = role
    return chosen


def second_labels(names: Iterable[str]) -> dict[str, str]:
    """Columns with the usual name of a label that have another role, or none, with a reason."""
    usual = {name for each in USUAL_NAMES.values() for name in each}
    return {name: "is called like a label" for name in names if name.lower() in usual}


def matching(patterns: Iterable[str], columns: Sequence[str]) -> set[str]:
    """Columns that match one of these names, where `pca_*` stands for all that begin so."""
    matches: set[str] = set()
    for pattern in patterns:
        match = {pattern} & set(columns) or {c for c in columns if fnmatchcase(c, pattern)}
        if not match:
            raise unknown("column", pattern, columns)
        matches |= match
    return matches


def no_features(X: np.ndarray, names: Sequence[str], domains: np.ndarray | None) -> dict[str, str]:
    """Columns of numbers that are not measurements, each with a reason to follow its name.

    They count or name rows, or repeat the domain. A model fitted to one of them scores well on the
    training rows and on no others.
    """
    reasons: dict[str, str] = {}
    n = len(X)
    # A few rows rule out nearly all columns, which keeps a table of 100,000 columns quick.
    sample = X[np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int)]
    codes = np.zeros(n, int) if domains is None else np.unique(domains, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    for j in np.flatnonzero((np.isnan(sample) | (sample == np.floor(sample))).all(axis=0)).tolist():
        values = X[:, j]
        present = values[~np.isnan(values)]
        if not len(present) or not (present == np.floor(present)).all():
            continue
        if _ROW_NAME.search(names[j]):
            reasons[names[j]] = "is called like an id"
        elif n == len(present) >= _FEW_ROWS and counts_rows(values[order], codes[order]):
            reasons[names[j]] = "counts the rows"
    for j in repeats(X, codes).tolist():
        reasons.setdefault(names[j], "repeats the domain")
    return reasons


def with_reasons(reasons: Mapping[str, str]) -> str:
    """Columns that are not features, and why; of many, the first few and how many more."""
    first = [f"{quoted(name)} {why}" for name, why in list(reasons.items())[:NAMED]]
    more = f", and {len(reasons) - NAMED:,} more" if len(reasons) > NAMED else ""
    return ", ".join(first) + more


def is_classes(text: np.ndarray) -> bool:
    """Whether text repeats, and is not the same in all rows: then it could be a feature."""
    return 1 < len(set(text.tolist())) <= 0.5 * len(text)


def may_be_domains(others: Mapping[str, np.ndarray]) -> list[str]:
    """Columns that may hold domains: not features, and of few values, the fewest first."""
    distinct = {name: len(set(values.tolist())) for name, values in others.items()}
    few = [name for name, count in distinct.items() if 1 < count <= len(others[name]) / 9]
    return sorted(few, key=distinct.__getitem__)


def counts_rows(values: np.ndarray, codes: np.ndarray) -> bool:
    """Whether whole numbers rise with the rows of each domain, or number all rows in any order.

    Rows are sorted by the code of their domain.
    """
    n = len(values)
    steps = np.diff(values)[codes[1:] == codes[:-1]]
    if len(steps) and (steps >= 0).all() and (steps > 0).sum() >= (1 - _ALIKE) * len(steps):
        return True
    return bool(np.ptp(values) <= 2 * n) and len(np.unique(values)) >= (1 - _ALIKE) * n


def repeats(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Indices of the columns that have one value in each domain, but not one in all."""
    n_domains = int(codes.max()) + 1
    if n_domains < 2 or len(X) < 3 * n_domains:
        return np.array([], dtype=int)
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    constant = np.arange(X.shape[1])
    for rows in parts:
        for some in (rows[:3], rows):
            block = X[np.ix_(some, constant)]
            constant = constant[(block == block[0]).all(axis=0)]
    first = X[np.ix_([rows[0] for rows in parts], constant)]
    return constant[np.ptp(first, axis=0) > 0]
