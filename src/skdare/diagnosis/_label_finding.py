"""Have the class shares changed?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2

from skdare.diagnosis._finding import Finding, cannot_say, percent

NAME = "label shift"
QUESTION = "Are the classes as common as in training?"
# Expected rows of a class below which it is counted together with the next rarer ones.
_EXPECTED = 5.0
_LEVEL = 0.01


def label_finding(
    counts: np.ndarray,
    shares: np.ndarray,
    trained_on: float,
    reach: float,
    classes: Sequence[Any],
) -> Finding:
    """Predicted classes of the new rows against those predicted in training.

    The test takes rows as independent, so with many rows it finds the smallest difference; hence
    the alarm also asks that the shares are further away than those of any training domain.

    Parameters
    ----------
    counts : array of shape (k,)
        Rows of the new domain by predicted class.
    shares : array of shape (k,)
        In training.
    trained_on : float
        Rows that these are from.
    reach : float
        Largest distance of a training domain's shares from these.
    classes : sequence of k labels
    """
    n = int(counts.sum())
    bins = _bins(shares, n)
    if len(bins) < 2:
        rarer = 1.0 - float(shares.max())
        if rarer <= 0:
            return cannot_say(NAME, QUESTION, "training has one predicted class only")
        needed = math.ceil(_EXPECTED / rarer)
        return cannot_say(NAME, QUESTION, f"needs at least {needed} rows")
    observed = np.array([counts[b].sum() for b in bins])
    expected = n * np.array([shares[b].sum() for b in bins])
    # Shares in training are estimates, too: the difference has 1/n + 1/N of the variance.
    statistic = float(np.sum((observed - expected) ** 2 / expected)) / (1.0 + n / trained_on)
    p = float(chi2.sf(statistic, len(bins) - 1))
    shares_here = counts / n
    distance = 0.5 * float(np.abs(shares_here - shares).sum())
    limit = reach + 0.5 * math.sqrt(len(shares) / n)
    worst = int(np.argmax(np.abs(shares_here - shares)))
    if p >= _LEVEL:
        level = "fine"
        word = "no sign of a change"
    elif distance <= limit:
        level = "fine"
        word = "changed, within what sets training domains apart"
    else:
        level = "look"
        word = "changed more than any training domain differs from the others"
    answer = (
        f"{word}: predicted shares differ by {percent(distance)} (training domains from their "
        f"average: up to {percent(reach)}; chi-squared test p = {p:.2g}); class {classes[worst]} "
        f"has {percent(shares_here[worst])}, in training {percent(shares[worst])}"
    )
    numbers = {
        "distance": distance,
        "training_distance": reach,
        "p": p,
        "shares": {str(c): float(s) for c, s in zip(classes, shares_here, strict=True)},
        "training_shares": {str(c): float(s) for c, s in zip(classes, shares, strict=True)},
    }
    return Finding(NAME, QUESTION, answer, level, numbers)


def _bins(shares: np.ndarray, n: int) -> list[np.ndarray]:
    """Classes, the rare ones together, so that each bin has rows enough to expect."""
    order = np.argsort(shares)
    bins: list[np.ndarray] = []
    numbers: list[int] = []
    for number in order:
        numbers.append(int(number))
        if n * shares[numbers].sum() >= _EXPECTED:
            bins.append(np.array(numbers))
            numbers = []
    if numbers and bins:
        bins[-1] = np.concatenate([bins[-1], numbers])
    return bins
