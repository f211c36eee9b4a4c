"""The adjustment of a domain nobody has seen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skdare._validation import check_domain_weights
from skdare.arrays import identity
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.moments import Moments, pooled_second_moment, weighted_second_moment
from skdare.whitening.roots.diagonal import diagonal_root
from skdare.whitening.roots.eigen import Spectrum
from skdare.whitening.whitening import Whitening

GuessRule = str | Mapping[Any, float]
"""``"mean"``, ``"covariance"``, or weights on named domains."""


def guess_adjustment(
    guess: GuessRule,
    adjustments: list[Adjustment],
    labels: Sequence[Hashable],
    moments: Sequence[Moments],
    whitening: Whitening,
) -> Adjustment:
    """The adjustment of a domain nobody has seen.

    ``"mean"`` averages the adjustments; ``"covariance"`` is the inverse root of the averaged
    shrunk second moments; a mapping weighs the domains it names.
    """
    if isinstance(guess, str) and guess == "covariance" and whitening.adjust:
        common = adjustments[0].common
        if common is not None:
            # Shrinkage towards the pool moves weight between domains and not their mean.
            return Adjustment(adjustments[0].d, 1.0, common=common)
        return _mean_root(moments, whitening)
    return average(adjustments, guess_shares(guess, labels))


def guess_shares(guess: GuessRule, labels: Sequence[Hashable]) -> list[float]:
    """The share of each training domain in the guess for an unseen one."""
    if isinstance(guess, str):
        return [1.0 / len(labels)] * len(labels)
    return check_domain_weights(guess, list(labels))


def _mean_root(moments: Sequence[Moments], whitening: Whitening) -> Adjustment:
    """The inverse root of the averaged shrunk second moments."""
    centered = whitening.centered
    if whitening.target == "diagonal":
        S = pooled_second_moment(moments, centered=centered)
        return diagonal_root(S, whitening.strength(moments[0]))
    rhos = np.array([whitening.strength(m) for m in moments])
    S = weighted_second_moment(moments, ((1.0 - rhos) / len(rhos)).tolist(), centered=centered)
    ridge = float(np.mean([whitening.ridge(m) for m in moments]))
    return Spectrum.of_matrix(S + ridge * identity(S)).inverse_root()
