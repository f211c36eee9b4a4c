"""DomainBed's own split: which rows of every domain its networks were not trained on."""

from __future__ import annotations

from hashlib import md5

import numpy as np
from numpy.typing import ArrayLike

from skdare.datasets._split import SHARE


def domainbed_split(domains: ArrayLike, trial: int, share: float = SHARE) -> np.ndarray:
    """Which rows DomainBed sets aside in a trial: for features that its networks made.

    The rows of a domain are in the order of its folder (classes sorted by name, then files), and
    the domains are numbered by their sorted names, as there. Give the result as the ``split`` of
    the features, so that heads are fitted and scored on the rows their network was.

    Parameters
    ----------
    domains : array of shape (n,)
        A label a row.
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
