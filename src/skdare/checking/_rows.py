"""Checks of single rows: those without label, duplicates, outliers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skdare._safe_text import counted
from skdare.checking._finding import DataFinding, percentage, significant
from skdare.checking._table import LabelledRows, scale_range
from skdare.datasets._contents import numbered_row

# Two rows own a domain's moments if they hold this share of its variance.
_OWNED = 0.5
_WHOLLY_OWNED = 0.9
_MANY_ROWS = 20
# With fewer features, or few values each, rows may be alike by chance.
_FEATURES_FOR_DUPLICATES = 5
_COMPARED_FIRST = 16
# This share of rows may be alike across domains by chance, and within one be measured twice.
_ACROSS = 0.001
_WITHIN = 0.01


def unlabelled_finding(missing_labels: int, missing_domains: int, rows: int) -> DataFinding | None:
    """A finding about rows without label or domain, if there are any."""
    parts = [
        f"{counted(number, 'row')} without {what}"
        for number, what in ((missing_labels, "a label"), (missing_domains, "a domain"))
        if number
    ]
    if not parts:
        return None
    return DataFinding(
        "rows without label",
        "problem",
        f"{' and '.join(parts)}, of {rows:,}",
        "leave them out with missing='drop'",
    )


def row_findings(rows: LabelledRows) -> Iterator[DataFinding]:
    """All that is odd about single rows."""
    yield from _outliers(rows)
    yield from _duplicates(rows)


def _outliers(rows: LabelledRows) -> Iterator[DataFinding]:
    parts = rows.domain_parts
    apart = scale_range(rows.scales)
    usable = rows.scales > 0
    if not usable.any():
        return
    # As heads see the features, in units of their scales where these are very different; but of
    # the usual one within a domain, which an outlier does not swell.
    unit = np.ones(len(usable))
    if apart is not None and apart.is_wide:
        within = np.median(parts.scales, axis=0)
        unit = np.where(within > 0, within, np.where(usable, rows.scales, 1.0))
    worst: tuple[float, int, int, int] | None = None
    domains = []
    for place in np.flatnonzero(parts.counts >= _MANY_ROWS).tolist():
        Z = parts.X[parts.rows(place)] - parts.sums[place] / np.maximum(parts.present[place], 1)
        if parts.missing is not None:
            Z[np.isnan(Z)] = 0.0
        Z /= unit
        squares = np.einsum("ij,ij->i", Z, Z)
        total = squares.sum()
        top = np.argpartition(squares, -2)[-2:]
        share = float(squares[top].sum() / total) if total > 0 else 0.0
        if share <= _OWNED:
            continue
        domains.append(str(parts.labels[place]))
        row = int(squares.argmax())
        if worst is None or share > worst[0]:
            column = int(np.abs(Z[row]).argmax())
            worst = share, int(parts.starts[place]) + row, column, place
    if worst is None:
        return
    share, row, column, place = worst
    (name,) = rows.names([column])
    number = int(rows.numbers[parts.order[row]])
    more = f"; so in {counted(len(domains) - 1, 'other domain')}" if len(domains) > 1 else ""
    yield DataFinding(
        "outlier",
        "problem" if share > _WHOLLY_OWNED else "caution",
        f"two rows hold {percentage(share)} of the variance of domain "
        f"{str(parts.labels[place])!r}, first of all {numbered_row(number)} by "
        f"{significant(float(parts.X[row, column]))} in column {name!r}{more}",
        "correct or drop them, or limit standardised values with clip=10",
        (name,),
        tuple(domains),
        (number,),
    )


def _duplicates(rows: LabelledRows) -> Iterator[DataFinding]:
    n, d = rows.X.shape
    if d < _FEATURES_FOR_DUPLICATES:
        return
    # Rows that differ in some features need not be compared in all.
    candidates = np.flatnonzero(_recurring(_digests(rows.X[:, :: -(-d // _COMPARED_FIRST)])))
    candidates = candidates[_recurring(_digests(rows.X[candidates]))]
    if not len(candidates):
        return
    _, copies = np.unique(_digests(rows.X[candidates]), return_inverse=True)
    domains = rows.domain_parts.codes[candidates]
    low = np.full(copies.max() + 1, len(rows.domain_parts.labels))
    high = np.full(copies.max() + 1, -1)
    np.minimum.at(low, copies, domains)
    np.maximum.at(high, copies, domains)
    across = int((low < high)[copies].sum())
    within = len(candidates) - across
    if across > _ACROSS * n:
        yield DataFinding(
            "duplicates across domains",
            "caution",
            f"{counted(across, 'row')} of {n:,} have the same features as a row of another "
            "domain, and a head that has seen them there scores too well",
            "drop them from one of the domains",
        )
    if within > _WITHIN * n:
        yield DataFinding(
            "duplicates",
            "note",
            f"{counted(within, 'row')} of {n:,} have the same features as another row of their "
            "domain",
            "drop the copies if they are no measurements of their own",
        )


def _recurring(digests: np.ndarray) -> np.ndarray:
    """Which of these numbers occur more than once."""
    order = np.argsort(digests, kind="stable")
    same = digests[order][1:] == digests[order][:-1]
    recurring = np.zeros(len(digests), dtype=bool)
    recurring[order[1:]] = same
    recurring[order[:-1]] |= same
    return recurring


def _digests(X: np.ndarray) -> np.ndarray:
    """A number for each row that equal rows share, and others hardly ever."""
    words = (np.ascontiguousarray(X, dtype=np.float64) + 0.0).view(np.uint64)  # no -0.0
    # Sums of products modulo 2⁶⁴ with odd factors.
    factors = 2 * np.random.default_rng(0).integers(1 << 62, size=X.shape[1], dtype=np.uint64) + 1
    words ^= words >> np.uint64(29)
    words *= factors
    return np.asarray(words.sum(axis=1))
