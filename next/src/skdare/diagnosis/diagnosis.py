"""Whether to use a model on a new domain unadapted or adapted, and what to expect of it."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from skdare.adapting.adapter import NewWeights
from skdare.arrays import Array
from skdare.diagnosis.findings import about_classes, about_rows
from skdare.diagnosis.forecast import Forecast, outlook
from skdare.diagnosis.rehearsal import Rehearsal
from skdare.errors import counted
from skdare.fitting.domain_fit import DomainFit
from skdare.fitting.problem import Classes, Targets
from skdare.fitting.score import predictions
from skdare.whitening.moments import Moments

# As many domains are named one by one.
_FEW = 6


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
        """Of what is to be used."""
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
        advice = f"{start}: {metric.words} {at_most}{written(self.forecast)} expected"
        other = self.unadapted if self.use == "adapted" else self.adapted
        if other is not None:
            name = "unadapted" if self.use == "adapted" else "adapted"
            advice += f", {name} {written(other)}"
        lines = [f"A new domain: {counted(self.rows, 'row')}, no labels.", f"{advice}."]
        if self.labels:
            curve = ", ".join(f"{written(one)} for {n}" for n, one in self.labels.items())
            lines.append(f"With labels of some of its rows: {curve}.")
        domains = self.rehearsal.domains
        gains = [one.adapted_by_all - one.unadapted for one in domains if one.adapted is not None]
        if gains:
            helped = f"{sum(gain > 0 for gain in gains)} of {len(gains)}"
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
                str(one.domain): {"unadapted": one.unadapted, "adapted": one.adapted_by_all}
                for one in self.rehearsal.domains
            },
        }


def diagnose(
    X: Array,
    targets: Targets,
    fit: DomainFit,
    rehearsal: Rehearsal,
    adapted: NewWeights | None,
) -> Diagnosis:
    """By prepared rows of the new domain, and the weights that adapting to them gives, if any."""
    rows = X.shape[0]
    unadapted = predictions(targets, X, fit.unseen.raw_weights())
    disagreement = None
    declined = None if adapted is None else adapted.adapted.declined
    if adapted is not None and declined is None:
        after = predictions(targets, X, (adapted.V, adapted.b))
        disagreement = rehearsal.metric.disagreement(unadapted, after)
    scores = outlook(rehearsal, disagreement, rows)
    use: Literal["unadapted", "adapted"] = "unadapted"
    if scores.adapted is not None and scores.adapted.expected > scores.unadapted.expected:
        use = "adapted"
    warnings = list(about_rows(Moments.of(X).to_numpy(), fit.moments))
    if declined is not None:
        warnings.append(f"Adapting is declined here: {declined}.")
    if isinstance(targets, Classes) and fit.class_shares is not None:
        codes = after if use == "adapted" else unadapted
        warnings += about_classes(codes, targets.classes.tolist(), fit.class_shares)
    chosen = scores.adapted if use == "adapted" else scores.unadapted
    assert chosen is not None
    guessing = rehearsal.metric.guessing
    # Half way to the end of the range: one domain in four or five scores less than that.
    if not 0.5 * (chosen.low + chosen.expected) > guessing:
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
