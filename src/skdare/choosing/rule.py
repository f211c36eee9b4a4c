"""Which candidate is taken, given its scores on domains that were left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skdare.choosing.strategies import Candidate

# Beside the scores themselves; less than this is the rounding of heads that are the same.
_LEAST_GAIN = 1e-4


def scored(scores: np.ndarray) -> np.ndarray:
    """Scores of the domains that have one."""
    return np.asarray(scores[:, ~np.isnan(scores).any(axis=0)])


def mean_scores(scores: np.ndarray) -> np.ndarray:
    """Mean score of each candidate over the domains that have one."""
    known = scored(scores)
    means: np.ndarray = known.mean(axis=1) if known.size else scores[:, 0]
    return means


def highest(scores: np.ndarray, numbers: Sequence[int]) -> int:
    """The candidate, among these, with the highest mean score; the first of several."""
    means = mean_scores(scores)
    return max(numbers, key=lambda c: means[c])


def gain_and_error(scores: np.ndarray, base: np.ndarray) -> tuple[float, float]:
    """Mean gain over a base on the same domains, and its standard error; of one domain, none."""
    gains = scores - base
    error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return float(gains.mean()), float(error)


def choose(candidates: Sequence[Candidate], scores: np.ndarray, standard_errors: float) -> int:
    """The number of the chosen candidate.

    Every candidate is compared with the simplest strategy at its best ridge. Those whose mean gain
    over left-out domains exceeds this many of its standard errors pass, and the one with the
    highest mean score is taken. Where none passes, the simplest strategy is.
    """
    scores = scored(scores)
    if not scores.shape[1]:
        return 0
    means = scores.mean(axis=1)
    simplest = candidates[0].strategy
    plain = [c for c, candidate in enumerate(candidates) if candidate.strategy == simplest]
    base = max(plain, key=lambda c: means[c])
    for c in sorted(range(len(candidates)), key=lambda c: -means[c]):
        gain, error = gain_and_error(scores[c], scores[base])
        if gain > max(standard_errors * error, _LEAST_GAIN * abs(means[base])):
            return c
    return base
