"""Is the averaged adjustment near the new domain's own?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator

from skdare.diagnosis._finding import Finding, cannot_say, number
from skdare.diagnosis._geometry import spectral_norm
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._training import TrainingDomains
from skdare.whitening.adjustment import Adjustment, adjustment_error

NAME = "adjustment"
QUESTION = "Is the averaged adjustment near this domain's own?"
# Half-samples: their deviation is the delete-half jackknife's standard error.
_HALVES = 8
_T90 = 1.895  # 95 % quantile of Student's t with 7 degrees of freedom
# A domain like the training ones has the largest error of E + 1 with probability 1/(E + 1), which
# is unusual at most; twice the largest of the others we have not seen without a cause.
_FAR = 2.0
# And beyond this many times, units or preparation must differ.
_ABSURD = 100.0


@dataclass(frozen=True)
class ErrorEstimate:
    """Normalised error of a guess, and an interval of nominally 90 %."""

    value: float
    low: float
    high: float


def estimated_error(
    adjustment_of: Callable[[np.ndarray], Adjustment], guess: Adjustment, n: int
) -> ErrorEstimate:
    """Normalised error of a guess, with an interval by resampling.

    Parameters
    ----------
    adjustment_of : callable
        The adjustment of some rows, by number.
    guess : Adjustment
    n : int
        Rows in all.
    """
    rng = np.random.default_rng(0)
    value = adjustment_error(guess, adjustment_of(np.arange(n)))
    halves = [
        adjustment_error(guess, adjustment_of(np.sort(rng.permutation(n)[: n // 2])))
        for _ in range(_HALVES)
    ]
    margin = _T90 * float(np.std(halves, ddof=1))
    return ErrorEstimate(value, max(value - margin, 0.0), value + margin)


def adjustment_finding(
    training: TrainingDomains,
    rehearsal: Rehearsal | None,
    adjustment_of: Callable[[np.ndarray], Adjustment],
    D: np.ndarray | LinearOperator | None,
    n: int,
) -> Finding:
    """Compare with each training domain and the others' guess for it, at the same number of rows.

    Few rows make a noisy adjustment and a large error, so errors are compared at one number of
    rows: by the rehearsal, or where the new domain has no fewer rows than some training domain.
    """
    if D is None:
        return Finding(NAME, QUESTION, "this head uses no averaged adjustment", "fine")
    if len(training.labels) < 2:
        return cannot_say(NAME, QUESTION, "needs at least 2 training domains to compare with")
    smallest = int(min(m.n for m in training.moments))
    if rehearsal is None and n < smallest:
        needed = (
            f"needs at least {smallest} rows, as the smallest training domain has, or a rehearsal"
        )
        return cannot_say(NAME, QUESTION, needed)
    training_errors = _training_errors(training, rehearsal, n)
    error = estimated_error(adjustment_of, training.guess, n)
    norm = spectral_norm(D)
    least = min(training_errors.values())
    most = max(training_errors.values())
    level, word = _verdict(error, most)
    norms = {one.name: one.norm for one in training.held_out}
    answer = (
        f"{word}: its normalised error is {number(error.value)} (resampled: "
        f"{number(error.low)} to {number(error.high)}); as many rows of each training domain and "
        f"the others' guess have {number(least)} to {number(most)}; "
        f"‖Δ‖ is {number(norm)}, with all their rows there {number(min(norms.values()))} to "
        f"{number(max(norms.values()))}"
    )
    numbers = {
        "verdict": word,
        "error": error.value,
        "interval": [error.low, error.high],
        "norm": norm,
        "training_errors": training_errors,
        "training_norms": norms,
        "absurd": error.low > _ABSURD * most,
    }
    return Finding(NAME, QUESTION, answer, level, numbers)


def _training_errors(
    training: TrainingDomains, rehearsal: Rehearsal | None, n: int
) -> Mapping[str, float]:
    """Errors for training domains, at this number of rows where a rehearsal tried it."""
    errors = {} if rehearsal is None else rehearsal.errors(n)
    return errors or {one.name: one.error for one in training.held_out}


def _verdict(error: ErrorEstimate, most: float) -> tuple[str, str]:
    if error.low <= most:
        return "fine", "typical"
    if error.low <= _FAR * most:
        return "look", "unusual"
    return "alarm", "outside anything seen"
