"""The constants of the paper's assumptions 2 and 3 for a new domain.

Notation: D (d, d) the adjustment's error Δ, Q (d, r) a basis of the training means, B, T (d, k)
canonical weights with and without the constraint.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator

from skdare.diagnosis._finding import Finding, cannot_say, number
from skdare.diagnosis._geometry import span
from skdare.diagnosis._training import TrainingDomains

NAME = "assumptions"
QUESTION = "Do the assumptions of the paper's guarantee hold here?"


def assumption_finding(training: TrainingDomains, D: np.ndarray | LinearOperator | None) -> Finding:
    """B of assumption 2, and the two sides of assumption 3 by its lemma.

    Of the adjustments that the head uses, shrunk as they are; the paper's without shrinkage.
    """
    if D is None:
        return cannot_say(NAME, QUESTION, "this head uses no averaged adjustment")
    Q = span(training.means)
    truth = training.truth - Q @ (Q.T @ training.truth)
    mine = training.B - Q @ (Q.T @ training.B)
    size = float(np.linalg.norm(truth))
    if size == 0:
        return cannot_say(NAME, QUESTION, "needs weights outside the span of the training means")
    mixing = float(np.linalg.norm(Q.T @ (D @ mine))) / size
    error = float(np.linalg.norm(D @ truth)) / size
    holds = error < 1.0
    second = "holds" if holds else "fails, and with it the guarantee; that is no forecast"
    answer = (
        f"assumption 2 with B = {number(mixing)}: so much of the weights' size is carried by the "
        "adjustment error into directions in which training means varied, where the worst case "
        f"grows with 2B; assumption 3 {second}: the error moves the remaining weights by "
        f"{number(error)} of their size, and it must be below 1"
    )
    numbers = {"B": mixing, "assumption_3": error, "assumption_3_holds": holds}
    return Finding(NAME, QUESTION, answer, "fine" if holds else "look", numbers)
