"""The 80/20 split: which rows of every domain a trial sets aside."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

SHARE = 0.2  # the paper's


def reserve(domains: ArrayLike, trial: int, share: float = SHARE) -> np.ndarray:
    """Which rows a trial sets aside: a share of each domain, at random, by trial and name.

    Whatever draws its split here draws the same one for the rows of a domain in the same order:
    the network that learns features, the heads on them, and ceilings on other features.

    Parameters
    ----------
    domains : array of shape (n,)
        A label a row; what counts of it is its text.
    trial : int
    share : float
        At least one row of each domain is set aside, where it has two.

    Returns
    -------
    bool array of shape (n,)

    Examples
    --------
    >>> from skdare.datasets import reserve
    >>> reserve(["art"] * 10 + ["photo"] * 5, trial=0).sum()
    np.int64(3)
    """
    labels = np.asarray(domains).astype(str)
    aside = np.zeros(len(labels), dtype=bool)
    for domain in np.unique(labels):
        rows = np.flatnonzero(labels == domain)
        # By name, so that a domain's split does not depend on which others there are.
        rng = np.random.default_rng([trial, crc32(str(domain).encode())])
        aside[rng.permutation(rows)[: reserved_rows(len(rows), share)]] = True
    return aside


def reserved_rows(n: int, share: float) -> int:
    """How many of n rows are set aside: at least one, where any are and one is left."""
    return max(int(share * n), int(share > 0 and n > 1))
