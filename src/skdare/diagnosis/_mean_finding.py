"""Does the new domain's mean move where training means moved, and would more domains help?"""

from __future__ import annotations

import numpy as np

from skdare.diagnosis._finding import Finding, cannot_say, number, percent
from skdare.diagnosis._geometry import effective_rank, eigengap
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._training import TrainingDomains
from skdare.whitening.moments import Moments

SHIFT = "mean shift"
SHIFT_QUESTION = "Does its mean move where training means already moved?"
MORE = "more domains"
MORE_QUESTION = "Would more training domains help?"
# Moves of the scores by less than this share of their deviation change few predictions.
_SMALL = 0.25
# As for adjustments: beyond twice the largest among training domains, and by a whole deviation.
_FAR = 2.0
# Share of a training domain's shift that the others cover, above which one more adds little.
_COVERED = 0.8
# In canonical units features are of order one: means that vary by less are the same.
_RTOL = 1e-12


def mean_finding(
    training: TrainingDomains, rehearsal: Rehearsal | None, moments: Moments
) -> Finding:
    """What of the shift lies where training means varied, and what both parts do to the scores.

    Held-out training domains are measured by the copies of the head that had not seen them.
    """
    if len(training.labels) < 2:
        return cannot_say(SHIFT, SHIFT_QUESTION, "needs at least 2 training domains")
    shift = training.shift(moments)
    moved = {} if rehearsal is None else {one.domain: one.moved for one in rehearsal.domains}
    most = max(moved.values(), default=0.0)
    level = "fine" if shift.at_least <= max(most, _SMALL) else "look"
    if shift.at_least > max(_FAR * most, 1.0):
        level = "alarm"
    rehearsed = ""
    if moved:
        rehearsed = f" (rehearsed: {number(min(moved.values()))} to {number(most)} in all)"
    answer = (
        f"{percent(shift.share)} of its squared length lies where training means varied, which "
        f"the penalty on means damps, and moves the scores by {number(shift.covered_moves)} of "
        f"their deviation; the rest is new, outside the paper's guarantee, and moves them by "
        f"{number(shift.new_moves)}{rehearsed}"
    )
    numbers = {
        "covered_share": shift.share,
        "covered_length": float(np.sqrt(shift.covered)),
        "new_length": float(np.sqrt(shift.new)),
        "covered_moves": shift.covered_moves,
        "new_moves": shift.new_moves,
        "moves_at_least": shift.at_least,
        "training_moves": moved,
    }
    return Finding(SHIFT, SHIFT_QUESTION, answer, level, numbers)


def more_domains_finding(training: TrainingDomains) -> Finding:
    """Effective rank and eigengap of the training means, and what each domain adds."""
    count = len(training.labels)
    if count < 3:
        return cannot_say(MORE, MORE_QUESTION, "needs at least 3 training domains")
    centred = training.means - training.means.mean(axis=1, keepdims=True)
    # The thin side has the non-zero eigenvalues, and one zero more, as the means are centred.
    values = np.linalg.eigvalsh(centred.T @ centred / count)[1:]
    if not values[-1] > _RTOL * len(centred):
        return cannot_say(MORE, MORE_QUESTION, "needs training domains whose means differ")
    S = np.diag(np.maximum(values, 0.0))
    rank = effective_rank(S)
    gap = eigengap(S)
    covered = float(np.mean([one.covered for one in training.held_out]))
    helps = covered < _COVERED
    tail = "each brings directions of its own, so more would help"
    if not helps:
        tail = "one more would add little"
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
