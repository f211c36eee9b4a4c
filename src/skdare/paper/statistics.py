"""Means over trials as the paper prints them, and as they should be printed."""

from __future__ import annotations

import numpy as np
from scipy import stats

# What the paper prints: the quantile of the normal law, where that of Student's law is 2.92 for
# three trials. Its intervals cover 76 times in 100, and not 90.
NORMAL_90 = 1.645
# Scores are counts over counts; what is smaller than this comes from subtracting them.
_ROUNDING = 1e-10


def half_width(values: np.ndarray, *, normal: bool = False) -> float:
    """Half of the 90 % interval of a mean, by Student's law or as in the paper; NaN for one value.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.statistics import half_width
    >>> round(half_width(np.array([1.0, 2.0, 3.0]), normal=True), 2)
    0.95
    """
    x = values[np.isfinite(values)]
    if len(x) < 2:
        return float("nan")
    factor = NORMAL_90 if normal else float(stats.t.ppf(0.95, len(x) - 1))
    return factor * float(stats.sem(x))


def paired_t(a: np.ndarray, b: np.ndarray) -> float:
    """One-sided p-value that the mean of a is above that of b, by Student's t on a - b.

    The paper marks what is below 0.1. One pair gives NaN. Differences that are all equal have no
    variance to weigh them by: if each were as likely as its negative, all n would be positive
    once in 2ⁿ.
    """
    d = a - b
    d = d[np.isfinite(d)]
    if len(d) < 2:
        return float("nan")
    if np.ptp(d) <= _ROUNDING:
        return 0.5 ** len(d) if d[0] > _ROUNDING else 1.0
    return float(stats.ttest_1samp(d, 0.0, alternative="greater").pvalue)
