"""How well will it predict, as it is and adapted?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skdare.diagnosis._finding import Finding, cannot_say, percent, points
from skdare.diagnosis._rehearsal import Rehearsal

LOSS = "loss"
LOSS_QUESTION = "How much worse than usual will it predict?"
GAIN = "adapting"
GAIN_QUESTION = "What would adapting gain?"
# Losses of scores that are worth a look, and an alarm.
_NOTABLE = 0.05
_LARGE = 0.15
# Gains below this are not worth a change of head.
WORTH = 0.005
REHEARSE = "needs a rehearsal (head.rehearse) with the training rows"


@dataclass(frozen=True)
class Outlook:
    """Scores to expect.

    Parameters
    ----------
    usual, loss, miss : float
        What one is used to, what is lost here, and how far such a forecast was off.
    gain : float, optional
        Of adapting.
    least : float
        No score is below.
    """

    usual: float
    loss: float
    miss: float
    gain: float | None
    least: float = float("-inf")

    @property
    def as_is(self) -> float:
        """Expected score."""
        return self.within(self.usual - self.loss)

    def within(self, score: float) -> float:
        """The score, or the nearest that there is."""
        return min(max(score, self.least), 1.0)


def outlook(rehearsal: Rehearsal, loss: float, disagreement: float | None, rows: int) -> Outlook:
    """The scores to expect, from the expected loss and what adapting did in the rehearsal.

    Adapting cannot gain more than it changes, nor more than there is to gain.
    """
    expected = Outlook(rehearsal.usual, loss, rehearsal.miss, None, rehearsal.task.least)
    gains = list(rehearsal.gains(rows).values())
    if not gains or disagreement is None:
        return expected
    most = min(disagreement, 1.0 - expected.as_is)
    return replace(expected, gain=float(np.clip(np.median(gains), -disagreement, most)))


def loss_finding(rehearsal: Rehearsal, expected: Outlook) -> Finding:
    """The expected score, beside what the rehearsal lost."""
    losses = {one.domain: one.loss for one in rehearsal.domains}
    unit = rehearsal.task.unit
    low, high = (expected.within(expected.as_is + s * expected.miss) for s in (-1, 1))
    answer = (
        f"expected {unit} {percent(expected.as_is)}, usually {percent(expected.usual)} (rehearsed "
        f"forecasts were off by up to {abs(100 * expected.miss):.0f}\u00a0points); held out, "
        f"training domains scored {percent(expected.usual - max(losses.values()))} to "
        f"{percent(expected.usual - min(losses.values()))}"
    )
    if rehearsal.saturated:
        answer += (
            ", nearly as well as seen ones: the features may have been fine-tuned on them, for "
            "which the expected loss is tripled, and what adapting and labels gain is not known"
        )
    level = "fine" if expected.loss <= _NOTABLE else "look"
    if expected.loss > _LARGE or expected.as_is <= rehearsal.task.floor:
        level = "alarm"
    numbers = {
        "expected": expected.as_is,
        "interval": [low, high],
        "usual": expected.usual,
        "loss": expected.loss,
        "training_losses": losses,
        "saturated": rehearsal.saturated,
    }
    return Finding(LOSS, LOSS_QUESTION, answer, level, numbers)


def gain_finding(rehearsal: Rehearsal, expected: Outlook, rows: int) -> Finding:
    """What adapting gained for the training domains, at as many rows."""
    if expected.gain is None:
        return cannot_say(GAIN, GAIN_QUESTION, "needs a head that can adapt")
    gains = rehearsal.gains(rows)
    better = sum(gain > 0 for gain in gains.values())
    answer = (
        f"{points(expected.gain)}: the median over training domains held out, at {rows:,} rows "
        f"({points(min(gains.values()))} to {points(max(gains.values()))}; better in {better} of "
        f"{len(gains)}), and no more than the share of predictions that it changes here"
    )
    numbers = {"expected": expected.gain, "training_gains": gains}
    return Finding(GAIN, GAIN_QUESTION, answer, "fine", numbers)
