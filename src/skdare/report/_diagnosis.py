"""A diagnosis as a page: the advice, the rehearsed domains beside the new one, and the findings."""

from __future__ import annotations

import math
from dataclasses import replace

from skdare._safe_text import counted
from skdare._scale import SCALES, Scale
from skdare.diagnosis import Diagnosis, Forecast, Rehearsal
from skdare.diagnosis._rehearsal import Rehearsed
from skdare.report._document import Document, Section, SectionPart
from skdare.report._page import page
from skdare.report._plot import Dots, Plot, Series
from skdare.report._table import Cell, Table, row

_NEW = "the new domain"


def diagnosis_page(diagnosis: Diagnosis, title: str) -> str:
    """The diagnosis of a new domain as one HTML file that opens anywhere.

    Needs ``pip install 'skdare[report]'``.
    """
    rehearsal = diagnosis.rehearsal
    picture = None
    parts: list[SectionPart] = []
    if rehearsal is not None and diagnosis.forecasts:
        picture = _picture(diagnosis, rehearsal)
        table = _table(diagnosis, rehearsal)
        parts.append(SectionPart("Rehearsed domains, and the new one", tables=(table,)))
    findings = tuple(
        (finding.question, _sentence(finding.answer)) for finding in diagnosis.findings
    )
    if findings:
        parts.append(SectionPart("What else was looked at", facts=findings, folded=True))
    section = Section(
        f"{counted(diagnosis.rows, 'row')}, no labels",
        verdict=(_sentence(diagnosis.recommendation.reason),),
        parts=tuple(parts),
        remarks=tuple(map(_sentence, diagnosis.remarks)),
        picture=picture,
    )
    return page(Document(title, None, (section,)))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _scale(rehearsal: Rehearsal) -> Scale:
    return SCALES[rehearsal.task.scoring]


def _picture(diagnosis: Diagnosis, rehearsal: Rehearsal) -> Plot:
    """Scores of the rehearsed domains, and the ranges expected of the new one."""
    scale = _scale(rehearsal)
    domains = rehearsal.domains
    as_is = [one.as_is for one in domains]
    series = [_series("as-is", "as it is", as_is, diagnosis.forecasts["use"], scale)]
    if "adapt" in diagnosis.forecasts:
        adapted = [math.nan if (score := one.adapted_by_all) is None else score for one in domains]
        series.append(_series("adapted", "adapted", adapted, diagnosis.forecasts["adapt"], scale))
    if "label" in diagnosis.forecasts:
        labelled = [_with_labels(one, diagnosis) for one in domains]
        of_labels = _series(
            "labels", _labels(diagnosis), labelled, diagnosis.forecasts["label"], scale
        )
        series.append(replace(of_labels, saw_labels=True))
    categories = (*(one.domain for one in domains), _NEW)
    alt = "; ".join(
        f"{name}: {', '.join(f'{one.label} {one.values[i]:.3g}' for one in series)}"
        for i, name in enumerate(categories)
    )
    return Plot(
        "rehearsed",
        "Rehearsed domains, and what to expect of the new one",
        scale.axis,
        Dots(categories, tuple(series), floor=None),
        "Each training domain was held out in turn. The bars of the new domain hold four out of "
        "five domains.",
        alt,
    )


def _labels(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.recommendation.labelled_rows:,} labels"


def _with_labels(one: Rehearsed, diagnosis: Diagnosis) -> float:
    """The score after adapting with as many labels as are weighed; NaN in a smaller domain."""
    labels = diagnosis.recommendation.labelled_rows
    return math.nan if labels is None else one.retrained.get(labels, math.nan)


def _series(line: str, label: str, scores: list[float], new: Forecast, scale: Scale) -> Series:
    none = (math.nan,) * len(scores)
    return Series(
        line,
        label,
        tuple(map(scale.scaled, (*scores, new.expected))),
        (*none, scale.scaled(new.low)),
        (*none, scale.scaled(new.high)),
    )


def _table(diagnosis: Diagnosis, rehearsal: Rehearsal) -> Table:
    scale = _scale(rehearsal)
    actions = {"use": "as it is", "adapt": "adapted"}
    if "label" in diagnosis.forecasts:
        actions["label"] = _labels(diagnosis)
    rows = []
    for one in rehearsal.domains:
        scores = {
            "use": one.as_is,
            "adapt": _or_nan(one.adapted_by_all),
            "label": _with_labels(one, diagnosis),
        }
        values = [scale.value(scores[name]) for name in actions]
        rows.append(row(one.domain, (f"{one.rows:,}", *values)))
    cells = [Cell(_ranged(diagnosis.forecasts.get(name), scale)) for name in actions]
    rows.append(row(_NEW, (f"{diagnosis.rows:,}", *cells)))
    return Table(
        "rehearsed",
        f"{scale.title}: held out, and expected.",
        ("domain", "rows", *actions.values()),
        tuple(rows),
        foot=1,
    )


def _or_nan(score: float | None) -> float:
    return math.nan if score is None else score


def _ranged(forecast: Forecast | None, scale: Scale) -> str:
    if forecast is None:
        return scale.value(math.nan)
    ends = f"{scale.value(forecast.low)} to {scale.value(forecast.high)}"
    return f"{scale.value(forecast.expected)} ({ends})"
