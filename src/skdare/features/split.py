"""The 80/20 split: which rows of every domain a trial sets aside."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

SHARE = 0.2  # the paper's
# Column of a store: whether a row was set aside while its network was trained.
ASIDE = "aside"


def reserve(domains: ArrayLike, trial: int, share: float = SHARE) -> np.ndarray:
    """Choose the rows that a trial sets aside: a share of each domain, drawn by trial and name.

    Whatever draws its split here draws the same one for the rows of a domain in the same order:
    the network that learns features, the heads on them, and ceilings on other features. At least
    one row of each domain is set aside if it has two.

    Examples
    --------
    >>> from skdare.features.split import reserve
    >>> int(reserve(["art"] * 10 + ["photo"] * 5, trial=0).sum())
    3
    """
    labels = np.asarray(domains).astype(str)
    aside = np.zeros(len(labels), dtype=bool)
    for domain in np.unique(labels):
        rows = np.flatnonzero(labels == domain)
        # By name, so that a domain's split does not depend on which others there are.
        rng = np.random.default_rng([trial, crc32(str(domain).encode())])
        n = max(int(share * len(rows)), int(share > 0 and len(rows) > 1))
        aside[rng.permutation(rows)[:n]] = True
    return aside
