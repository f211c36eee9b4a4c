"""Does the new domain's mean move where training means moved, and would more domains help?"""

from __future__ import annotations

import numpy as np

from skdare.diagnosis._finding import Finding, cannot_say, number, percent
from skdare.diagnosis._geometry import effective_rank, eigengap, gram_of_means
from skdare.diagnosis._training import TrainingDomains
from skdare.moments import Moments

SHIFT, SHIFT_QUESTION = "mean shift", "Does its mean move where training means already moved?"
MORE, MORE_QUESTION = "more domains", "Would more training domains help?"
# Share of a training domain's shift that the others cover, above which one more adds little.
_COVERED = 0.8


def mean_finding(training: TrainingDomains, moments: Moments, spread: float) -> Finding:
    """What of the shift is covered by the constraint, and what the uncovered part does.

    Parameters
    ----------
    training : TrainingDomains
    moments : Moments
        Of the new domain.
    spread : float
        Standard deviation of the head's scores within the new domain, their unit here.
    """
    if len(training.labels) < 2:
        return cannot_say(SHIFT, SHIFT_QUESTION, "needs at least 2 training domains")
    shift, seen = training.shift(moments), training.shifts
    new, most = shift.new_scores / spread, max(s.new_scores for s in seen.values()) / spread
    level = "fine" if new <= max(most, 0.1) else "look" if new <= 2 * most else "alarm"
    answer = (
        f"{percent(shift.share)} of its squared length lies in the span of the training means, "
        f"where the constraint makes it harmless; the other {percent(1 - shift.share)} is new, "
        f"outside the guarantee, and moves the scores by {number(new)} of their deviation (for "
        f"training domains held out: covered {percent(min(s.share for s in seen.values()))} to "
        f"{percent(max(s.share for s in seen.values()))}, moved by at most {number(most)})"
    )
    numbers = {
        "covered_share": shift.share,
        "covered_length": float(np.sqrt(shift.covered)),
        "new_length": float(np.sqrt(shift.new)),
        "covered_scores": shift.covered_scores / spread,
        "new_scores": new,
        "training_covered_shares": {label: s.share for label, s in seen.items()},
        "training_new_scores": {label: s.new_scores / spread for label, s in seen.items()},
    }
    return Finding(SHIFT, SHIFT_QUESTION, answer, level, numbers)


def more_domains_finding(training: TrainingDomains) -> Finding:
    """Effective rank and eigengap of the training means, and what each domain adds."""
    count = len(training.labels)
    if count < 3:
        return cannot_say(MORE, MORE_QUESTION, "needs at least 3 training domains")
    G = gram_of_means(list(training.means.T))
    rank = effective_rank(G)
    # One eigenvalue of the thin side is zero, as the means are centred; it is not a direction.
    values = np.linalg.eigvalsh(G)[1:]
    gap = eigengap(np.diag(values)) if len(values) > 1 else float(values[0])
    covered = float(np.mean([s.share for s in training.shifts.values()]))
    helps = covered < _COVERED
    tail = (
        "each brings directions of its own, so more domains would help"
        if helps
        else "one more would add little"
    )
    answer = (
        f"the means of {count} domains vary in about {number(rank)} directions (effective rank; "
        f"smallest eigengap {number(gap / values[-1])} of the largest eigenvalue), and on average "
        f"the others cover {percent(covered)} of a domain's shift: {tail}"
    )
    numbers = {
        "effective_rank": rank,
        "eigengap": gap,
        "eigenvalues": values[::-1].tolist(),
        "covered_by_others": covered,
        "helps": helps,
    }
    return Finding(MORE, MORE_QUESTION, answer, "look" if helps else "fine", numbers)
