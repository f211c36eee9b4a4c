"""Checks of domains: how many rows they have, of which classes and groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skdare._safe_text import counted
from skdare._validation import too_many_classes
from skdare.checking._finding import (
    DataFinding,
    domains_of,
    other_target,
    percentage,
)
from skdare.checking._table import RowLabels
from skdare.datasets._roles import missing_labels

# Fewer rows of a domain say little of its mean, and nothing of its covariance.
_FEW_ROWS = 10
# Rows of a class that a domain should have, by the share of the class elsewhere, to be missed.
_EXPECTED = 3.0
# Class shares of domains of this many rows are compared.
_ROWS_FOR_SHARES = 20
# Distance of class shares from the average ones, in total variation, beyond what chance gives.
_DIFFERENT_SHARES = 0.2


def domain_findings(rows: RowLabels, features: int) -> Iterator[DataFinding]:
    """All that is odd about the domains, given how many features their rows have."""
    labels = rows.names
    if len(labels) == 1:
        yield DataFinding(
            "one domain",
            "problem",
            f"all rows are of domain {str(labels[0])!r}, so nothing tells what a new one is like",
            "name another column with domains=, or fit ERM, which needs none",
            domains=(str(labels[0]),),
        )
    if rows.task == "classification":
        yield from _classes(rows, labels)
    yield from _groups(rows)
    small = rows.counts < _FEW_ROWS
    if small.any() and not small.all():
        names = tuple(labels[small].tolist())
        yield DataFinding(
            "few rows",
            "caution",
            f"{domains_of(names)} {'has' if len(names) == 1 else 'have'} fewer than {_FEW_ROWS} "
            f"rows (the smallest has {rows.counts.min()})",
            f"leave such domains out with min_rows={_FEW_ROWS}, or merge them",
            domains=names,
        )
    elif small.all():
        yield DataFinding(
            "few rows",
            "caution",
            f"all {len(labels)} domains have fewer than {_FEW_ROWS} rows"
            if len(labels) > 1
            else f"there are fewer than {_FEW_ROWS} rows",
            "merge domains into larger ones, or name another column with domains=",
            domains=tuple(labels.tolist()),
        )
    wide = (rows.counts < features) & ~small
    if wide.any():
        names = tuple(labels[wide].tolist())
        yield DataFinding(
            "wide",
            "note",
            f"{domains_of(names)} {'has' if len(names) == 1 else 'have'} fewer rows than the "
            f"{features:,} features",
            "shrinkage takes care of it",
            domains=names,
        )


def _classes(rows: RowLabels, labels: np.ndarray) -> Iterator[DataFinding]:
    """Classes that domains lack, and class shares that differ."""
    classes, codes = np.unique(rows.y, return_inverse=True)
    k = len(classes)
    if k == 1:
        yield DataFinding(
            "one class",
            "problem",
            f"all rows are of class {str(classes[0])!r}",
            "a classifier needs two; name another column with target=",
        )
    wrong = too_many_classes(k, len(codes))
    if wrong is not None:
        text = f"the target has {wrong}"
        yield DataFinding("class a row", "problem", text, other_target(rows.y))
        return
    if k == 1 or len(labels) == 1:
        return
    counts = np.zeros((len(labels), k), dtype=np.intp)
    np.add.at(counts, (rows.codes, codes), 1)
    present = (counts > 0).sum(axis=1)
    if (present == 1).all():
        yield DataFinding(
            "own class",
            "problem",
            "every domain has one class only, so that classes cannot be told from domains",
            "name another column with domains=, or add rows of other classes to the domains",
            domains=tuple(labels.tolist()),
        )
        return
    yield from _lacking(counts, classes.astype(str), labels)
    yield from _shares(counts, classes.astype(str), labels)


def _lacking(counts: np.ndarray, classes: np.ndarray, labels: np.ndarray) -> Iterator[DataFinding]:
    """Domains that have no row of a class that others have."""
    shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    lacking = (counts == 0) & (shares * counts.sum(axis=1, keepdims=True) >= _EXPECTED)
    some_lack = lacking.any(axis=1)
    if not some_lack.any():
        return
    domains = tuple(labels[some_lack].tolist())
    first = int(np.flatnonzero(some_lack)[0])
    example = (
        f"domain {str(labels[first])!r} has no row of class {str(classes[lacking[first]][0])!r}"
    )
    if len(domains) > 1:
        example = f"{len(domains)} of {len(labels)} domains lack a class: {example}"
    yield DataFinding(
        "missing class",
        "caution",
        example,
        "adapting takes a domain to have the usual classes, and may lose here: see with "
        "skdare.compare",
        domains=domains,
    )


def _shares(counts: np.ndarray, classes: np.ndarray, labels: np.ndarray) -> Iterator[DataFinding]:
    """Class shares of some domains that differ from the average by more than chance."""
    rows = counts.sum(axis=1)
    large = rows >= _ROWS_FOR_SHARES
    if large.sum() < 2:
        return
    shares = counts[large] / rows[large, None]
    distance = 0.5 * np.abs(shares - shares.mean(axis=0)).sum(axis=1)
    far = distance > _DIFFERENT_SHARES + 0.5 * np.sqrt(counts.shape[1] / rows[large])
    if not far.any():
        return
    spread = np.ptp(shares, axis=0)
    widest = int(spread.argmax())
    names = labels[large]
    low = int(shares[:, widest].argmin())
    high = int(shares[:, widest].argmax())
    yield DataFinding(
        "class shares",
        "caution",
        f"class shares differ between domains: class {str(classes[widest])!r} is "
        f"{percentage(shares[low, widest])} of {str(names[low])!r} and "
        f"{percentage(shares[high, widest])} of {str(names[high])!r}",
        "adapting may lose there; compare heads that adapt and others with skdare.compare",
        domains=tuple(names[far].tolist()),
    )


def _groups(rows: RowLabels) -> Iterator[DataFinding]:
    """Groups whose rows are in several domains."""
    if rows.groups is None:
        return
    known = ~missing_labels(rows.groups)
    groups, codes = np.unique(rows.groups[known], return_inverse=True)
    pairs = np.unique(codes * len(rows.names) + rows.codes[known])
    domains_of_group = np.bincount(pairs // len(rows.names))
    shared = int((domains_of_group > 1).sum())
    if shared:
        have = "has" if shared == 1 else "have"
        yield DataFinding(
            "groups",
            "caution",
            f"{shared:,} of {counted(len(groups), 'group')} {have} rows in several domains, and a "
            "head that has seen a group elsewhere scores too well on it",
            "they tie all domains together, so fit without groups; to score groups that were not "
            "trained on, give --groups and --test-on reserved to skdare bench"
            if _tie_all(*np.divmod(pairs, len(rows.names)))
            else "name their column with groups=, and no group is on both sides",
        )


def _tie_all(groups: np.ndarray, domains: np.ndarray) -> bool:
    """Whether groups in several domains chain all domains together, so that none can be left out.

    A group and a domain in the same place of the two arrays have rows in common.
    """
    tied = np.arange(domains.max() + 1)
    while True:
        # The first domain that a domain is tied to, by way of the groups that it shares.
        first = np.full(groups.max() + 1, len(tied))
        np.minimum.at(first, groups, tied[domains])
        nearer = tied.copy()
        np.minimum.at(nearer, domains, first[groups])
        if (nearer == tied).all():
            return bool((tied == 0).all())
        tied = nearer
