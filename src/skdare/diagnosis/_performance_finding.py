"""How well will it predict, as it is and adapted?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skdare.diagnosis._finding import Finding, cannot_say, percent, points
from skdare.diagnosis._rehearsal import Rehearsal

LOSS, LOSS_QUESTION = "loss", "How much worse than usual will it predict?"
GAIN, GAIN_QUESTION = "adapting", "What would adapting gain?"
# Gains below this are not worth a change of head.
WORTH = 0.005
REHEARSE = "needs a rehearsal: call head.rehearse(X, y, domains=domains) with the training rows"


@dataclass(frozen=True)
class Outlook:
    """Scores to expect.

    Parameters
    ----------
    usual, loss, miss : float
        What one is used to, what is lost here, and how far such a forecast was off.
    gain : float, optional
        Of adapting.
    """

    usual: float
    loss: float
    miss: float
    gain: float | None

    @property
    def as_is(self) -> float:
        """Expected score."""
        return min(self.usual - self.loss, 1.0)


def outlook(
    rehearsal: Rehearsal, foreseen: float, disagreement: float | None, rows: int
) -> Outlook:
    """From the signs on the new rows and what the rehearsal made of such signs.

    Adapting cannot gain more than it changes, nor more than there is to gain.
    """
    expected = Outlook(rehearsal.usual, foreseen + rehearsal.offset, rehearsal.miss, None)
    gains = list(rehearsal.gains(rows).values())
    if not gains or disagreement is None:
        return expected
    most = min(disagreement, 1.0 - expected.as_is)
    return replace(expected, gain=float(np.clip(np.median(gains), -disagreement, most)))


def loss_finding(rehearsal: Rehearsal, expected: Outlook) -> Finding:
    """The expected score, beside what the rehearsal lost."""
    seen = {one.domain: one.loss for one in rehearsal.domains}
    unit = rehearsal.task.unit
    low, high = expected.as_is - expected.miss, min(expected.as_is + expected.miss, 1.0)
    said = f"expected {unit} {percent(expected.as_is)} (most likely {percent(low)} to "
    said += f"{percent(high)})"
    if rehearsal.saturated:
        low, said = rehearsal.task.floor, f"{unit} at most about {percent(high)}"
    answer = (
        f"{said}, usually {percent(expected.usual)}; held out, the training domains lost "
        f"{points(min(seen.values()))} to {points(max(seen.values()))}"
    )
    if rehearsal.saturated:
        answer += (
            ", nearly as good as seen ones: the features may have been fine-tuned on them, and "
            "then a new domain loses much more"
        )
    worst = max(max(seen.values()), 0.0)
    level = "fine" if expected.loss <= max(worst, 0.05) else "look"
    if expected.as_is <= rehearsal.task.floor:
        level = "alarm"
    elif rehearsal.saturated:
        level = "look"
    numbers = {
        "expected": expected.as_is,
        "interval": [low, high],
        "usual": expected.usual,
        "loss": expected.loss,
        "training_losses": seen,
        "saturated": rehearsal.saturated,
    }
    return Finding(LOSS, LOSS_QUESTION, answer, level, numbers)


def gain_finding(rehearsal: Rehearsal, expected: Outlook, rows: int) -> Finding:
    """What adapting gained for the training domains, at as many rows."""
    if expected.gain is None:
        return cannot_say(GAIN, GAIN_QUESTION, "this head was fitted with adaptation=None")
    gains = rehearsal.gains(rows)
    better = sum(gain > 0 for gain in gains.values())
    answer = (
        f"{points(expected.gain)}: the median over training domains held out, at {rows:,} rows "
        f"({points(min(gains.values()))} to {points(max(gains.values()))}; better in {better} of "
        f"{len(gains)}), and no more than the share of predictions that it changes here"
    )
    numbers = {"expected": expected.gain, "training_gains": gains}
    return Finding(GAIN, GAIN_QUESTION, answer, "fine", numbers)
