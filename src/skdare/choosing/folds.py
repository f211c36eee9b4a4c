"""Which training domains are left out together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from skdare._validation import InputError, check_count
from skdare.arrays import Index

# Variance beside the usual one, below which a fold is searched alone: at 1e-6 its scores were off
# by 0.1 to 0.2 when it was not.
_SMALL = 0.1

Folds = Sequence[Sequence[int]]
"""The numbers of the domains that are left out together."""


def folds_of(sizes: Sequence[int], at_most: int, units: Folds | None = None) -> list[list[int]]:
    """Whole units of domains in folds of about as many rows; each alone where there are few.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each domain.
    at_most : int
        How many folds there may be.
    units : folds, optional
        Domains that cannot be left out one without the other. Default: each by itself.
    """
    if units is None:
        units = [[e] for e in range(len(sizes))]
    rows_of = [sum(sizes[e] for e in unit) for unit in units]
    folds: list[list[int]] = [[] for _ in range(min(at_most, len(units)))]
    rows = np.zeros(len(folds))
    for u in sorted(range(len(units)), key=lambda u: -rows_of[u]):
        smallest = int(rows.argmin())
        folds[smallest].extend(units[u])
        rows[smallest] += rows_of[u]
    return [sorted(fold) for fold in folds]


def check_cv(cv: Any) -> None:
    """Refuse what is neither a number of folds nor something that gives splits."""
    if isinstance(cv, int):
        check_count("cv", cv, 2)
    elif isinstance(cv, str) or not (hasattr(cv, "split") or np.iterable(cv)):
        raise InputError(
            f"cv is {cv!r}",
            "pass a number, a splitter such as LeaveOneGroupOut(), or pairs of row numbers",
            argument="cv",
        )


def folds_by(
    cv: Any,
    T: np.ndarray,
    labels: Sequence[Hashable],
    index: Sequence[Index],
    units: Folds | None = None,
) -> list[list[int]]:
    """Folds of whole domains that a splitter gives, or pairs of training and held-out rows.

    Parameters
    ----------
    cv : splitter or iterable
    T : array of shape (n,)
    labels, index : sequences
        The name and the rows of each domain.
    units : folds, optional
        Domains that cannot be left out one without the other.
    """
    everyone = np.arange(len(T))
    domains = np.full(len(T), len(index))
    for e, rows in enumerate(index):
        domains[everyone[rows]] = e
    pairs = cv.split(np.zeros((len(T), 1)), T, groups=domains) if hasattr(cv, "split") else cv
    folds: list[list[int]] = []
    for _, test in pairs:
        counts = np.bincount(domains[test], minlength=len(index) + 1)[: len(index)]
        fold = np.flatnonzero(counts).tolist()
        for e in fold:
            if counts[e] < len(everyone[index[e]]):
                raise _refused(f"some rows of domain {labels[e]!r} and not others")
            if any(e in other for other in folds):
                raise _refused(f"domain {labels[e]!r} twice")
        for unit in units or ():
            if 0 < len(set(unit) & set(fold)) < len(unit):
                apart = labels[(set(unit) & set(fold)).pop()]
                raise _refused(f"domain {apart!r} without others that share a group with it")
        folds.append(fold)
    return folds


def _refused(what: str) -> InputError:
    return InputError(
        f"cv leaves out {what}",
        "use a splitter by groups, such as LeaveOneGroupOut(), or a number of folds",
        argument="cv",
    )


def others(fold: Sequence[int], n_domains: int) -> list[int]:
    """The domains that are not in a fold."""
    return [e for e in range(n_domains) if e not in fold]


def units_of(
    index: Sequence[Index], codes: np.ndarray, domains: Sequence[Hashable], groups: list[Hashable]
) -> list[list[int]]:
    """Domains that share a group, or a chain of groups, together.

    Parameters
    ----------
    index : sequence of slices or arrays
        The rows of each domain.
    codes : array of shape (n,)
        The number of each row's group.
    domains, groups : sequences of labels
        What the domains and the groups are called.
    """
    present = [np.unique(codes[rows]) for rows in index]
    owner = np.repeat(np.arange(len(index)), [len(numbers) for numbers in present])
    member = np.concatenate(present)
    ones = np.ones(len(owner), dtype=bool)
    holds = sparse.csr_array((ones, (owner, member)), shape=(len(index), len(groups)))
    count, unit = csgraph.connected_components((holds @ holds.T).astype(bool), directed=False)
    if count == 1 and len(index) > 1:
        raise _nothing_to_leave_out(np.bincount(member), domains, groups)
    return [np.flatnonzero(unit == u).tolist() for u in range(count)]


def alike(folds: Folds, units: Sequence[float]) -> list[list[Sequence[int]]]:
    """Folds that can be searched together: what is left without each is of about one scale.

    Without a domain of far larger features the others are small beside the unit that all folds
    share, and a solver that stops at one gradient for all would stop there at once.

    Parameters
    ----------
    folds : folds
    units : sequence of float
        Mean variance of a feature without each fold.
    """
    usual = np.median(units)
    together = [fold for fold, unit in zip(folds, units, strict=True) if unit >= _SMALL * usual]
    alone = [[fold] for fold, unit in zip(folds, units, strict=True) if unit < _SMALL * usual]
    return [together, *alone]


def _nothing_to_leave_out(
    counts: np.ndarray, domains: Sequence[Hashable], groups: list[Hashable]
) -> InputError:
    """What ties all domains together: one group, or several."""
    widest = int(counts.argmax())
    remedy = "leave its rows out, or fit without groups"
    if counts[widest] == len(domains):
        what = f"group {groups[widest]!r} is in every domain"
    else:
        what = (
            f"the groups tie all {len(domains)} domains together (group {groups[widest]!r} alone "
            f"is in {counts[widest]} of them)"
        )
        remedy = "leave the rows of groups in several domains out, or fit without groups"
    return InputError(
        f"{what}, and no domain can be left out without having its rows on both sides",
        remedy,
        argument="groups",
    )
