"""The 80/20 split: which rows of every domain a trial sets aside, here and in DomainBed."""

from __future__ import annotations

from hashlib import md5
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

SHARE = 0.2  # the paper's


def reserve(
    domains: ArrayLike, trial: int, share: float = SHARE, *, groups: ArrayLike | None = None
) -> np.ndarray:
    """Choose the rows that a trial sets aside: a share of each domain, drawn by trial and name.

    Whatever draws its split here draws the same one for the rows of a domain in the same order:
    the network that learns features, the heads on them, and ceilings on other features.

    Parameters
    ----------
    domains : array of shape (n,)
        A label per row; its text is what counts.
    trial : int
    share : float
        At least one row of each domain is set aside, where it has two.
    groups : array of shape (n,), optional
        A label per row: this share of the groups is set aside, each whole and in every domain.

    Returns
    -------
    bool array of shape (n,)

    Examples
    --------
    >>> from skdare.datasets import reserve
    >>> reserve(["art"] * 10 + ["photo"] * 5, trial=0).sum()
    np.int64(3)
    """
    if groups is not None:
        return _reserved_groups(np.asarray(groups).astype(str), trial, share)
    labels = np.asarray(domains).astype(str)
    aside = np.zeros(len(labels), dtype=bool)
    for domain in np.unique(labels):
        rows = np.flatnonzero(labels == domain)
        # By name, so that a domain's split does not depend on which others there are.
        rng = np.random.default_rng([trial, crc32(str(domain).encode())])
        aside[rng.permutation(rows)[: reserved_rows(len(rows), share)]] = True
    return aside


def _reserved_groups(groups: np.ndarray, trial: int, share: float) -> np.ndarray:
    """Rows of some groups, drawn such that a group's lot does not depend on the other groups."""
    names, codes = np.unique(groups, return_inverse=True)
    lots = [np.random.default_rng([trial, crc32(name.encode())]).random() for name in names]
    first = np.argsort(lots, kind="stable")[: reserved_rows(len(names), share)]
    return np.isin(codes, first)


def reserved_rows(n: int, share: float) -> int:
    """How many of n rows are set aside: at least one, where a share is and another is left."""
    return max(int(share * n), int(share > 0 and n > 1))


def domainbed_split(domains: ArrayLike, trial: int, share: float = SHARE) -> np.ndarray:
    """Which rows DomainBed sets aside in a trial, for features that its networks made.

    The rows of a domain are in the order of its folder (classes sorted by name, then files), and
    the domains are numbered by their sorted names, as there. Give the result as the ``split`` of
    the features, so that heads are fitted and scored on the rows their network was.

    Parameters
    ----------
    domains : array of shape (n,)
        A label per row.
    trial : int
        DomainBed's ``--trial_seed``.
    share : float, default=0.2
        DomainBed's ``--holdout_fraction``.

    Returns
    -------
    bool array of shape (n,)

    Examples
    --------
    >>> from skdare.datasets import domainbed_split
    >>> domainbed_split(["art"] * 10 + ["photo"] * 5, trial=0).sum()
    np.int64(3)
    """
    labels = np.asarray(domains).astype(str)
    aside = np.zeros(len(labels), dtype=bool)
    for number, domain in enumerate(np.unique(labels)):
        rows = np.flatnonzero(labels == domain)
        # The seed is that hash of these two numbers, printed as a tuple; it is part of the format.
        seed = int(md5(str((trial, number)).encode(), usedforsecurity=False).hexdigest(), 16)
        order = list(range(len(rows)))
        np.random.RandomState(seed % 2**31).shuffle(order)
        aside[rows[order[: int(len(rows) * share)]]] = True
    return aside
