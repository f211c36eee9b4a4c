"""What a recommendation rests on, and what to be wary of, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skdare.diagnosis._finding import Finding
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._score_scale import ScoreScale

# So many domains are named one by one.
_FEW = 6
# Labels that show which way the classes have gone.
_TO_BE_SURE = 20


def remarks(
    rehearsal: Rehearsal, rows: int, declined: str | None, labels: Finding | None
) -> Iterator[str]:
    """Sentences below the headline.

    Parameters
    ----------
    rehearsal : Rehearsal
    rows : int
        Of the new domain.
    declined : str, optional
        Why adapting changes nothing here.
    labels : Finding, optional
        Of the class shares.
    """
    yield _on_rehearsed_domains(rehearsal, rows, declined)
    if labels is not None and labels.level == "look":
        yield _other_shares(labels)
    if rehearsal.saturated:
        yield (
            "held-out training domains score nearly as well as if they had been seen: where the "
            "features were fine-tuned on them, expect less than this on a new one"
        )


def _on_rehearsed_domains(rehearsal: Rehearsal, rows: int, declined: str | None) -> str:
    task = rehearsal.task
    gains = list(rehearsal.gains(rows).values())
    scores = [one.as_is for one in rehearsal.domains]
    held_out = f"when rehearsed, the {len(scores)} training domains scored"
    if not gains or not any(gains):
        ends = task.ends(min(scores), max(scores))
        percent = "\u00a0%" if task.unit == "accuracy" else ""
        text = f"{held_out} {ends}{percent} as it is; no way of adapting paid there"
    else:
        text = f"when rehearsed, adapting helped on {_listed(gains, task)}"
    return text if declined is None else f"{text}; here {declined}"


def _listed(gains: list[float], task: ScoreScale) -> str:
    """How often adapting helped, and by how much."""
    helped = sum(gain > 0 for gain in gains)
    start = f"{helped} of {len(gains)} domains"
    if len(gains) <= _FEW:
        return f"{start}: {', '.join(map(task.gain, gains))}{task.points}"
    return (
        f"{start}: {task.gain(float(np.mean(gains)))}{task.points} on average "
        f"({task.gain(min(gains))} to {task.gain(max(gains))})"
    )


def _other_shares(labels: Finding) -> str:
    here = labels.numbers["shares"]
    before = labels.numbers["training_shares"]
    worst = max(here, key=lambda name: abs(here[name] - before[name]))
    return (
        f"classes look different here (class {worst}: {100 * here[worst]:.0f}\u00a0%, in training "
        f"{100 * before[worst]:.0f}\u00a0%): label {_TO_BE_SURE} rows to be sure"
    )
