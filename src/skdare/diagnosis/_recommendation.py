"""The recommendation: one of four things to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skdare.diagnosis._forecast import Forecast, Outlook
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._score_scale import ScoreScale

USE = "use"
ADAPT = "adapt"
LABEL = "label"
DO_NOT_USE = "do not use"
CANNOT_SAY = "cannot say"
ACTIONS = (USE, ADAPT, LABEL, DO_NOT_USE)
REHEARSE = "no training domain was held out yet (rehearse does), so no score can be foretold"
# What an action must promise beyond using the head as it is; labels beyond their cost, too. On the
# sets that rules were chosen on, two points for labels were right in 89 % and one in 80 %.
WORTH = {ADAPT: 0.01, LABEL: 0.02}


@dataclass(frozen=True)
class Recommendation:
    """What to do, and what was weighed.

    Parameters
    ----------
    action : "use", "adapt", "label", "do not use" or "cannot say"
    reason : str
        The headline: what to expect of it, and of what else one could do.
    worth : mapping from action to expected score, less the price of labels
    labelled_rows : int, optional
        How many rows to label. The worth of "label" was found with this number.
    """

    action: str
    reason: str
    worth: Mapping[str, float] = field(default_factory=dict)
    labelled_rows: int | None = None

    def __str__(self) -> str:
        return self.reason


def cannot_recommend(needed: str) -> Recommendation:
    """No recommendation, and what one would take."""
    return Recommendation(CANNOT_SAY, f"cannot say: {needed}")


def beyond_use(chosen: Recommendation, *, by_outliers: bool) -> Recommendation:
    """Advice against a head for features that are not the ones it was fitted to."""
    if by_outliers:
        reason = "one or two rows lie far outside anything seen; clip them or leave them out"
    else:
        reason = (
            "the features lie so far outside anything seen that their units or preparation must "
            "differ; mend that"
        )
    reason = f"do not use it: {reason}, and ask again"
    return Recommendation(DO_NOT_USE, reason, chosen.worth, chosen.labelled_rows)


def recommend(
    rehearsal: Rehearsal, outlook: Outlook, label_cost: float, acceptable: float | None
) -> Recommendation:
    """The action with the highest expected score.

    Labels must pay their price, and adapting must gain a point over using the head as it is,
    labels two. Not using the head is worth what is just acceptable, so that it wins where nothing
    else reaches that. A forecast that may be off by more than the score itself is no reason to use
    the head as it is.
    """
    task = rehearsal.task
    if acceptable is None:
        acceptable = 0.5 * (task.floor + max(rehearsal.typical, task.floor))
    worth = {USE: outlook.use.expected, DO_NOT_USE: acceptable}
    if outlook.adapt is not None:
        worth[ADAPT] = outlook.adapt.expected
    if outlook.label is not None:
        worth[LABEL] = outlook.label.expected - label_cost
    choices = [action for action in worth if action != USE or _can_be_relied_on(outlook.use)]
    action = max(choices, key=lambda name: worth[name] - WORTH.get(name, 0.0))
    reason = _headline(action, outlook, rehearsal, acceptable)
    return Recommendation(action, reason, worth, outlook.labelled_rows)


def _can_be_relied_on(forecast: Forecast) -> bool:
    return forecast.miss <= max(forecast.expected, 0.0)


def _headline(action: str, outlook: Outlook, rehearsal: Rehearsal, acceptable: float) -> str:
    """What to do, what to expect of it, and what of the rest."""
    task = rehearsal.task
    most = "at most " if rehearsal.saturated else ""
    use = f"as it is {scored(outlook.use, task)}"
    adapted = "" if outlook.adapt is None else f"adapted {scored(outlook.adapt, task)}"
    labels = ""
    if outlook.label is not None:
        labels = f"label {outlook.labelled_rows:,} rows (suggest says which) and adapt with them"
    if action == USE:
        start = f"use it as it is: {most}{expected(outlook.use, task)}"
        rest = [adapted]
    elif action == ADAPT:
        assert outlook.adapt is not None
        start = f"adapt, then use: {most}{expected(outlook.adapt, task)}"
        rest = [use]
    elif action == LABEL:
        assert outlook.label is not None
        start = f"{labels}: {most}{expected(outlook.label, task)}"
        rest = [adapted, use]
    else:
        start = f"do not use it: {expected(outlook.use, task)}"
        limit = f"less than the {task.text(acceptable)} that would be worth having"
        best = max(one.expected for one in (outlook.use, outlook.adapt) if one is not None)
        rest = [adapted, limit if best < acceptable else "too unsure to rely on"]
    return "; ".join([start, *filter(None, rest)])


def expected(forecast: Forecast, task: ScoreScale) -> str:
    """``66 % expected (58 to 73)``, or ``R² 0.42 expected (0.21 to 0.60)``."""
    unit = "" if task.unit == "accuracy" else f"{task.unit}\u00a0"
    ends = task.ends(forecast.low, forecast.high)
    return f"{unit}{task.text(forecast.expected)} expected ({ends})"


def expectation(outlook: Outlook, rehearsal: Rehearsal) -> str:
    """``on a new domain: accuracy 52 % (44 to 60) as it is, 66 % (58 to 73) adapted``."""
    task = rehearsal.task
    most = "at most " if rehearsal.saturated else ""
    text = f"on a new domain: {most}{task.unit} {scored(outlook.use, task)} as it is"
    if outlook.adapt is not None:
        text += f", {scored(outlook.adapt, task)} adapted"
    return text


def scored(forecast: Forecast, task: ScoreScale) -> str:
    """``52 % (44 to 60)``."""
    return f"{task.text(forecast.expected)} ({task.ends(forecast.low, forecast.high)})"
