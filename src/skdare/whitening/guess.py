"""The adjustment of an unseen domain.

Notation: W (d, d) adjustment, S (d, d) second moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Literal

import numpy as np

from skdare.checks import Label
from skdare.whitening.adjustment import Adjustment, average, mean_shift
from skdare.whitening.moments import Moments
from skdare.whitening.whitening import Whitening

Guess = Literal["mean", "covariance"] | dict[Label, float]
"""How the adjustment of an unseen domain is made from those of the training domains."""


def guess_adjustment(
    guess: Guess,
    labels: Sequence[Label],
    moments: Sequence[Moments],
    adjustments: Sequence[Adjustment],
    whitening: Whitening,
) -> Adjustment:
    """The mean of the W_e, the inverse root of the mean shrunk S_e, or the W_e as weighted."""
    shares = guess_shares(guess, labels).tolist()
    if guess == "covariance" and whitening.adjusts:
        share = 1.0 / len(moments)
        S = reduce(add, (share * m.second_moment(whitening.centered) for m in moments))
        typical = Moments(1.0, 0.0 * moments[0].mean, S, None)
        W = whitening.root(typical, whitening.usual([typical]), np.float64)
        return replace(W, shift=mean_shift(adjustments, shares))
    return average(adjustments, shares)


def guess_shares(guess: Guess, labels: Sequence[Label]) -> np.ndarray:
    """The share of each training domain in the guess."""
    if not isinstance(guess, Mapping):
        return np.full(len(labels), 1.0 / len(labels))
    weights = np.array([guess.get(label, 0.0) for label in labels])
    return weights / weights.sum()
