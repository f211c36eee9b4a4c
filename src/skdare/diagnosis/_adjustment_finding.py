"""Is the averaged adjustment near the new domain's own?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdare.adjustment import Adjustment, adjustment_error
from skdare.diagnosis._finding import Finding, cannot_say, number
from skdare.diagnosis._geometry import adjustment_difference, spectral_norm
from skdare.diagnosis._training import TrainingDomains

NAME, QUESTION = "adjustment", "Is the averaged adjustment near this domain's own?"
# Half-samples: their deviation is the delete-half jackknife's standard error.
_HALVES = 8
_T90 = 1.895  # 95 % quantile of Student's t with 7 degrees of freedom
# Times the largest error seen among training domains.
_FAR = 2.0


@dataclass(frozen=True)
class ErrorEstimate:
    """Normalised error of a guess: an estimate free of sampling noise, and its 90 % interval."""

    value: float
    low: float
    high: float


def estimated_error(
    own: Callable[[np.ndarray], Adjustment], guess: Adjustment, n: int
) -> ErrorEstimate:
    """Few rows make a noisy adjustment, whose error is too large by about c / n.

    Half of the rows have twice the excess, so the whole minus the difference has none.

    Parameters
    ----------
    own : callable
        The adjustment of some rows, by number.
    guess : Adjustment
    n : int
        Rows in all.
    """
    rng = np.random.default_rng(0)
    whole = adjustment_error(guess, own(np.arange(n)))
    halves = [
        adjustment_error(guess, own(np.sort(rng.permutation(n)[: n // 2]))) for _ in range(_HALVES)
    ]
    value = max(2.0 * whole - float(np.mean(halves)), 0.0)
    margin = _T90 * float(np.std(halves, ddof=1))
    return ErrorEstimate(value, max(value - margin, 0.0), value + margin)


def adjustment_finding(
    training: TrainingDomains, own: Callable[[np.ndarray], Adjustment], n: int
) -> Finding:
    """Beside each training domain and the guess of the others for it."""
    if not training.whitening.adjust:
        return Finding(NAME, QUESTION, "this head does not adjust domains", "fine")
    if len(training.labels) < 2:
        return cannot_say(NAME, QUESTION, "needs at least 2 training domains to compare with")
    error = estimated_error(own, training.guess, n)
    norm = spectral_norm(adjustment_difference(own(np.arange(n)), training.guess))
    most, least = max(training.errors.values()), min(training.errors.values())
    if error.low <= most:
        level, word = "fine", "typical"
    elif error.low <= _FAR * most:
        level, word = "look", "unusual"
    else:
        level, word = "alarm", "outside anything seen"
    answer = (
        f"{word}: its normalised error is {number(error.value)} (90 % interval "
        f"{number(error.low)} to {number(error.high)}), that of the others' average for each "
        f"training domain {number(least)} to {number(most)}; ‖Δ‖ is {number(norm)}, there "
        f"{number(min(training.norms.values()))} to {number(max(training.norms.values()))}"
    )
    numbers = {
        "verdict": word,
        "error": error.value,
        "interval": [error.low, error.high],
        "norm": norm,
        "training_errors": training.errors,
        "training_norms": training.norms,
    }
    return Finding(NAME, QUESTION, answer, level, numbers)
