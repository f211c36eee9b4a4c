"""What a recommendation rests on, and what to be wary of, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from skdare.diagnosis._bound import Bound
from skdare.diagnosis._finding import Finding, percent
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._score_scale import ScoreScale

# As many domains are named one by one.
_FEW = 6
# Quantiles of the normal distribution, for a test at 5 % that finds the change 4 times out of 5.
_AT_LEVEL = 1.645
_OF_POWER = 0.842
# The fewest labels that are worth asking for.
_FEWEST = 20


def remarks(
    rehearsal: Rehearsal,
    rows: int,
    declined: str | None,
    labels: Finding | None,
    bounds: Mapping[str, Bound],
    *,
    tried: bool,
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
    bounds : mapping from "use" and "adapt" to a Bound
    tried : bool
        Whether the head adapts, or ways of adapting were tried when it was fitted.
    """
    yield _on_rehearsed_domains(rehearsal, rows, declined, tried=tried)
    if bounds:
        yield _to_count_on(bounds)
    if labels is not None and labels.level == "look":
        yield _other_shares(labels, rows)
    if rehearsal.saturated:
        yield (
            "held-out training domains score nearly as well as if they had been seen: where the "
            "features were fine-tuned on them, expect less than this on a new one"
        )


def _on_rehearsed_domains(
    rehearsal: Rehearsal, rows: int, declined: str | None, *, tried: bool
) -> str:
    task = rehearsal.task
    gains = list(rehearsal.gains(rows).values())
    scores = [one.as_is for one in rehearsal.domains]
    held_out = f"when rehearsed, the {len(scores)} training domains scored"
    if not gains or not any(gains):
        ends = task.ends(min(scores), max(scores))
        percent = "\u00a0%" if task.in_percent else ""
        text = f"{held_out} {ends}{percent} as it is"
        if tried:
            text += "; no way of adapting paid there"
    else:
        text = f"when rehearsed, adapting helped on {_listed(gains, task)}"
    return text if declined is None else f"{text}; here {declined}"


def _to_count_on(bounds: Mapping[str, Bound]) -> str:
    """The least accuracy, of the head as it is and adapted."""
    words = {"use": "as it is", "adapt": "adapted"}
    confidence = percent(bounds["use"].confidence)
    if not any(one.least > 0 for one in bounds.values()):
        return f"no accuracy can be counted on here ({confidence} confidence)"
    ways = [
        f"{f'at least {percent(one.least)}' if one.least > 0 else 'none'} {words[name]}"
        for name, one in bounds.items()
    ]
    return f"accuracy to count on: {', '.join(ways)} ({confidence} confidence)"


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


def _other_shares(labels: Finding, at_hand: int) -> str:
    here = labels.numbers["shares"]
    before = labels.numbers["training_shares"]
    worst = max(here, key=lambda name: abs(here[name] - before[name]))
    rows = min(_to_be_sure(here[worst], before[worst]), at_hand)
    return (
        f"classes look different here (class {worst}: {100 * here[worst]:.0f}\u00a0%, in training "
        f"{100 * before[worst]:.0f}\u00a0%): label {rows} rows to be sure"
    )


def _to_be_sure(here: float, before: float) -> int:
    """How many labels show that a class has this share and not the former one, in tens."""
    spread = _AT_LEVEL * math.sqrt(before * (1 - before)) + _OF_POWER * math.sqrt(here * (1 - here))
    return max(10 * math.ceil((spread / (here - before)) ** 2 / 10), _FEWEST)
