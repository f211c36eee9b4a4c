"""Tests and intervals of differences over held-out domains, by scipy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

# Scores are counts over counts; what is smaller than this comes from subtracting them.
_ROUNDING = 1e-10
# Differences in whole parts of the largest add up exactly, so that equal means are equal.
_PARTS = 2.0**40


def sign_flip(differences: np.ndarray) -> float:
    """One-sided p-value of a mean above zero, if each difference is as likely as its negative.

    Exact up to 13 differences; of more, ten thousand draws.

    Examples
    --------
    >>> from skdare.report.statistics import sign_flip
    >>> sign_flip([2.8, 1.1, 3.4])
    0.125
    """
    d = np.asarray(differences, dtype=np.float64)
    d = np.where(np.abs(d) < _ROUNDING, 0.0, d)
    if len(d) < 2 or not d.any():
        return 1.0
    d = np.rint(d / np.abs(d).max() * _PARTS)
    test = stats.permutation_test(
        (d,), np.mean, permutation_type="samples", alternative="greater", vectorized=True,
        n_resamples=9_999, rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(test.pvalue)


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Holm's p-values: the i-th smallest of m times m - i + 1, made monotone, at most one.

    NaN is a test that was not made; it stays, and does not count in m.
    """
    names = sorted((name for name in p if not np.isnan(p[name])), key=lambda name: p[name])
    steps = [(len(names) - i) * p[name] for i, name in enumerate(names)]
    adjusted = np.minimum(np.maximum.accumulate(steps), 1.0).tolist() if names else []
    known = dict(zip(names, adjusted, strict=True))
    return {name: known.get(name, float("nan")) for name in p}


def interval(values: np.ndarray, level: float = 0.9) -> tuple[float, float]:
    """Student's interval of a mean; NaN for a single value."""
    if len(values) < 2:
        return (float("nan"), float("nan"))
    mean, error = float(np.mean(values)), float(stats.sem(values))
    factor = float(stats.t.ppf(0.5 + level / 2, len(values) - 1))
    return mean - factor * error, mean + factor * error


@dataclass(frozen=True, eq=False)
class Gain:
    """Scores of a head minus those of another, over the held-out domains that both have."""

    differences: pd.Series

    @property
    def mean(self) -> float:
        return float(self.differences.mean())

    @property
    def better(self) -> int:
        return int((self.differences > _ROUNDING).sum())

    @cached_property
    def p(self) -> float:
        return sign_flip(self.differences.to_numpy())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over domains; zero for one domain."""
        return float(stats.sem(self.differences)) if len(self) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.differences.to_numpy())

    def __len__(self) -> int:
        return len(self.differences)
