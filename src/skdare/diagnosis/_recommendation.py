"""One of four things to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skdare.diagnosis._finding import percent
from skdare.diagnosis._performance_finding import REHEARSE, WORTH, Outlook
from skdare.diagnosis._rehearsal import Rehearsal

ACTIONS = ("use as is", "adapt", "collect labels", "do not use")
CANNOT_SAY = "cannot say"
# What a score must rise for labels to be worth collecting, unless one says otherwise.
LABEL_COST = 0.05
# Scores within which a smaller number of labelled rows is as good as a larger one.
_AS_GOOD = 0.01


@dataclass(frozen=True)
class Recommendation:
    """What to do, and what was weighed.

    Parameters
    ----------
    action : one of `ACTIONS`, or "cannot say"
    reason : str
    worth : mapping from action to expected score, less the price of labels
    labelled_rows : int, optional
        How many to collect.
    """

    action: str
    reason: str
    worth: Mapping[str, float] = field(default_factory=dict)
    labelled_rows: int | None = None


def without_rehearsal() -> Recommendation:
    """Distances say how unusual a domain is; what that costs, only a rehearsal can."""
    return Recommendation(CANNOT_SAY, REHEARSE)


def beyond_use(chosen: Recommendation) -> Recommendation:
    """Whatever scores were expected: they were expected of other features."""
    reason = (
        "the features lie so far outside anything seen that their units or preparation must "
        "differ; mend that, and ask again"
    )
    return Recommendation("do not use", reason, chosen.worth, chosen.labelled_rows)


def recommend(
    rehearsal: Rehearsal,
    expected: Outlook,
    at_hand: int,
    label_cost: float,
    acceptable: float | None,
) -> Recommendation:
    """The action with the highest expected score.

    Collecting labels must pay their price, and there must be rows to label; predictions that are
    not acceptable are worth what `acceptable` says, so that not using the head wins where nothing
    else reaches it.
    """
    if acceptable is None:
        acceptable = 0.5 * (rehearsal.task.floor + rehearsal.usual)
    worth = {"use as is": expected.as_is, "do not use": acceptable}
    if expected.gain is not None:
        worth["adapt"] = expected.as_is + expected.gain
    curve, rows = {n: s for n, s in rehearsal.retrained().items() if n <= at_hand}, None
    if curve:
        enough = max(curve.values()) - _AS_GOOD
        # Features fine-tuned on these domains make few labels look enough.
        rows = max(curve) if rehearsal.saturated else min(n for n in curve if curve[n] >= enough)
        worth["collect labels"] = curve[rows] - label_cost
    action = max(worth, key=lambda name: worth[name] - (WORTH if name == "adapt" else 0.0))
    return Recommendation(action, _reason(action, worth, rows, label_cost), worth, rows)


def _reason(action: str, worth: Mapping[str, float], rows: int | None, cost: float) -> str:
    labels = ""
    if "collect labels" in worth:
        labels = (
            f"; {rows:,} labelled rows and a retrained last layer gave "
            f"{percent(worth['collect labels'] + cost)} when rehearsed, and cost "
            f"{100 * cost:.3g}\u00a0points"
        )
    adapted = f", adapted {percent(worth['adapt'])}" if "adapt" in worth else ""
    expected = f"expected {percent(worth['use as is'])} as it is{adapted}{labels}"
    return {
        "use as is": f"{expected}: no other choice is worth its price",
        "adapt": f"{expected}: the best of these",
        "collect labels": f"{expected}: the best of these after their price",
        "do not use": f"{expected}: each is below the acceptable "
        f"{percent(worth['do not use'])}" + (" once its price is paid" if labels else ""),
    }[action]
