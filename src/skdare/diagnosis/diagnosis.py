"""Whether to use a model on a new domain unadapted or adapted, and its expected score.

Distances between domains measure how unusual a domain is, and hardly what that costs: over 36
held-out domains of six sets, the error of the adjustment, the distance of means, the Fréchet
distance and a domain classifier's accuracy correlated with the loss of accuracy by 0.1 to 0.4. So
none of them is a warning, and the cost of a shift is rehearsed.
"""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from skdare.adapting.new_domain import NewWeights
from skdare.arrays import Array
from skdare.diagnosis.forecast import Forecast, outlook
from skdare.diagnosis.rehearsal import Rehearsal
from skdare.errors import counted
from skdare.fitting.domain_fit import DomainFit
from skdare.fitting.problem import Targets
from skdare.fitting.safety_check import has_outliers
from skdare.fitting.score import predictions
from skdare.whitening.moments import Moments

# Gains are listed for as many domains.
_FEW = 6
# A gain of less is shown as none.
_LEAST_GAIN = 0.005
# Features that are this many times larger than in any training domain are in other units.
_OTHER_UNITS = 100.0
_MANY_ROWS = 20


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What to expect of a model on a new domain.

    Attributes
    ----------
    rows : int
        Unlabelled rows that were looked at.
    use : "unadapted" or "adapted"
        Whichever is expected to score higher.
    unadapted, adapted : Forecast
        Expected score, and a range that holds four out of five domains; None if adapting changes
        nothing.
    labels : dict of int to Forecast
        After adapting with this many labels of the new domain.
    warnings : list of str
    rehearsal : Rehearsal
        What it rests on.
    """

    rows: int
    use: Literal["unadapted", "adapted"]
    unadapted: Forecast
    adapted: Forecast | None
    labels: dict[int, Forecast]
    warnings: list[str]
    rehearsal: Rehearsal

    @property
    def forecast(self) -> Forecast:
        """The forecast of the model to use."""
        if self.use == "adapted":
            assert self.adapted is not None
            return self.adapted
        return self.unadapted

    def __str__(self) -> str:
        metric = self.rehearsal.metric
        at_most = "at most " if self.rehearsal.saturated else ""

        def written(forecast: Forecast) -> str:
            low = metric.written(forecast.low).removesuffix("\u00a0%")
            return f"{metric.written(forecast.expected)} ({low} to {metric.written(forecast.high)})"

        start = "Adapt to these rows" if self.use == "adapted" else "Use it unadapted"
        if self.forecast.expected <= metric.guessing:
            start = "Do not use it before you have labelled some rows"
        advice = f"{start}: {metric.words} {at_most}{written(self.forecast)} expected {self.use}"
        other = self.unadapted if self.use == "adapted" else self.adapted
        if other is not None:
            name = "unadapted" if self.use == "adapted" else "adapted"
            advice += f", {written(other)} {name}"
        lines = [f"A new domain: {counted(self.rows, 'row')}, no labels.", f"{advice}."]
        if self.labels:
            curve = ", ".join(f"{written(score)} for {n}" for n, score in self.labels.items())
            lines.append(f"With labels of some of its rows: {curve}.")
        pairs = [(d.unadapted, d.adapted_by_all) for d in self.rehearsal.domains if d.adapted]
        gains = [adapted - unadapted for unadapted, adapted in pairs]
        if gains:
            helped = f"{sum(gain > _LEAST_GAIN for gain in gains)} of {len(gains)}"
            each = metric.differences(gains)
            if len(gains) > _FEW:
                spread = [min(gains), float(np.median(gains)), max(gains)]
                each = f"lowest, median and highest {metric.differences(spread)}"
            lines.append(f"Adapting helped on {helped} held-out training domains: {each}.")
        lines += [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join(
            part for line in lines for part in textwrap.wrap(line, 80, subsequent_indent="  ")
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "rows": self.rows,
            "use": self.use,
            "metric": self.rehearsal.metric.name,
            "guessing": self.rehearsal.metric.guessing,
            "unadapted": asdict(self.unadapted),
            "adapted": None if self.adapted is None else asdict(self.adapted),
            "labels": {str(n): asdict(forecast) for n, forecast in self.labels.items()},
            "warnings": self.warnings,
            "rehearsed": {
                str(scores.domain): {
                    "unadapted": scores.unadapted,
                    "adapted": scores.adapted_by_all,
                }
                for scores in self.rehearsal.domains
            },
        }


def diagnose(
    X: Array,
    targets: Targets,
    fit: DomainFit,
    rehearsal: Rehearsal,
    adapted: NewWeights | None,
    chosen_by: str | None = None,
) -> Diagnosis:
    """From prepared rows of the new domain, and the weights of adapting to them, if it adapts."""
    rows = X.shape[0]
    unadapted = predictions(targets, X, fit.unseen.raw_weights())
    disagreement = None
    declined = None if adapted is None else adapted.adapted.declined
    if adapted is not None and declined is None:
        after = predictions(targets, X, (adapted.V, adapted.b))
        disagreement = rehearsal.metric.disagreement(unadapted, after)
    scores = outlook(rehearsal, disagreement, rows)
    forecast = scores.unadapted
    use: Literal["unadapted", "adapted"] = "unadapted"
    if scores.adapted is not None and scores.adapted.expected > scores.unadapted.expected:
        forecast = scores.adapted
        use = "adapted"
    warnings = []
    moments = Moments.of(X).to_numpy()
    scales = [m.scale(centered=False) ** 0.5 for m in fit.moments]
    scale = moments.scale(centered=False) ** 0.5
    if not min(scales) / _OTHER_UNITS <= scale <= max(scales) * _OTHER_UNITS:
        warnings.append(
            f"The features are {scale / np.median(scales):,.2g} times as large as in training: "
            "their units or their preparation must differ. Correct that first; the scores "
            "above do not hold."
        )
    if rows < _MANY_ROWS:
        warnings.append(f"{rows} rows are few to judge a domain by; give {_MANY_ROWS} or more.")
    elif has_outliers(moments):
        warnings.append(
            "One or two rows hold most of the variance: look at them, and drop or clip them."
        )
    if declined is not None:
        warnings.append(f"Adapting is declined here: {declined}.")
    if chosen_by not in (None, rehearsal.metric.name):
        warnings.append(
            f"These scores are of {rehearsal.metric.words}; the strategy was chosen by {chosen_by}."
        )
    guessing = rehearsal.metric.guessing
    # Half way to the end of the range: one domain in four or five scores less than that.
    if not 0.5 * (forecast.low + forecast.expected) > guessing:
        warnings.append(
            f"This is not clearly more than guessing, {rehearsal.metric.written(guessing)}; label "
            "some rows before you rely on it."
        )
    if rehearsal.saturated:
        warnings.append(
            "Held-out training domains score nearly as well as if they had been seen: if the "
            "features were trained on them, expect less on a new one."
        )
    return Diagnosis(
        rows, use, scores.unadapted, scores.adapted, scores.labels, warnings, rehearsal
    )
