"""CSV: every statistic in tidy form, and every record in wide form."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from skdare._safe_text import csv_writer, spreadsheet_safe
from skdare.bench import Record
from skdare.bench._record import ABLATION, NETWORK
from skdare.report.summary.grid import Estimate, Grid, Sweep, estimate
from skdare.report.summary.groups import Group, Summary
from skdare.report.summary.standing import Paired, RowTest, Standing

COLUMNS = ("data", "protocol", "study", "metric", "x", "head", "held_out", "statistic", "value")
AVERAGE, WORST, ACROSS, POOLED = "(average)", "(worst)", "(across domains)", "(all rows)"
NUMBERS = ("x", "value")
Row = tuple[str, ...]


def statistics(summary: Summary, *, safe: bool = False) -> str:
    """One row for each statistic of each head on each held-out domain.

    Where it is to be safe, no text in it is a formula to a spreadsheet.
    """
    rows: list[Row] = [COLUMNS]
    for row in _tidy(summary):
        named = zip(COLUMNS, row, strict=True)
        rows.append(tuple(_field(text, safe and name not in NUMBERS) for name, text in named))
    return _written(rows)


def tidy(summary: Summary) -> list[dict[str, str | float | None]]:
    """The same as objects that JSON can hold, by the names of `COLUMNS`; numbers as numbers."""

    def plain(name: str, text: str) -> str | float | None:
        if name not in NUMBERS:
            return text
        try:
            return float(text) if text else None
        except ValueError:  # a mark
            return text

    return [
        {name: plain(name, text) for name, text in zip(COLUMNS, row, strict=True)}
        for row in _tidy(summary)
    ]


def _tidy(summary: Summary) -> Iterator[Row]:
    for group in summary.groups:
        yield from ((group.data, group.protocol, *rest) for rest in _group(group))


def wide(records: Sequence[Record], *, safe: bool = False) -> str:
    """One row for each record, a column for each of its values but the packed test rows.

    Where it is to be safe, no text in it is a formula to a spreadsheet.
    """
    own = [f.name for f in fields(Record) if f.name != "values"]
    names = dict.fromkeys(n for r in records for n in r.values if n != "correct")
    rows: list[Row] = [(*own, *names)]
    for r in records:
        found = [*(getattr(r, name) for name in own), *(r.values.get(name) for name in names)]
        rows.append(tuple("" if v is None else str(_field(v, safe)) for v in found))
    return _written(rows)


def _field(value: Any, safe: bool) -> Any:
    return spreadsheet_safe(value) if safe else value


def _written(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    csv_writer(out).writerows(rows)
    return out.getvalue()


def _group(group: Group) -> Iterator[Row]:
    if group.main:
        yield from _grid("main", group.main.grid)
        yield from _standing(group.main)
        for name, extra in (
            ("main on reserved rows", group.main.reserved),
            ("main", group.main.rmse),
        ):
            if extra:
                yield from _grid(name, extra)
    studies: dict[str, Grid | Sweep | None] = {
        "ceiling": group.ceilings,
        NETWORK: group.networks,
        "curve": group.curve,
        "adjustment": group.adjustment,
        "alignment": group.alignment,
        **{ABLATION + name: found for name, found in group.ablations.items()},
    }
    for study, found in studies.items():
        yield from _study(study, found)


def _study(study: str, found: Grid | Sweep | None) -> Iterator[Row]:
    if isinstance(found, Grid):
        yield from _grid(study, found)
    elif found is not None:
        for x, grid in zip(found.x, found.grids, strict=True):
            yield from _grid(study, grid, repr(x))
        yield from _study(study, found.level)


def _grid(study: str, grid: Grid, x: str = "") -> Iterator[Row]:
    for line in grid.lines:
        parts = {domain: grid.at(line, domain) for domain in grid.domains}
        for place, values in (
            *parts.items(),
            (AVERAGE, grid.average(line)),
            (WORST, grid.worst(line)),
        ):
            for statistic, value in _estimate(estimate(values)):
                yield study, grid.metric, x, line, place, statistic, _number(value)


def _estimate(found: Estimate) -> Iterator[tuple[str, float]]:
    yield "mean", found.mean
    yield "normal 90 % half width", found.normal.half_width
    yield "t 90 % half width", found.t.half_width
    yield "trials", found.n


def _standing(standing: Standing) -> Iterator[Row]:
    metric, against = standing.grid.metric, standing.against
    for place, heads in (*against.domains.items(), (ACROSS, against.across)):
        for head, paired in heads.items():
            for statistic, value in _paired(paired):
                yield "main", metric, "", head, place, statistic, _number(value)
    for place, tests in (*against.rows.items(), (POOLED, against.pooled)):
        for head, found in tests.items():
            for statistic, value in _rows(found):
                yield "main", metric, "", head, place, statistic, _number(value)
    for place, marks in standing.marks.items():
        for head, mark in marks.items():
            if mark:
                yield "main", metric, "", head, place, "mark", mark


def _paired(found: Paired) -> Iterator[tuple[str, float]]:
    d = found.difference
    yield from (("gain", d.mean), ("gain t 90 % low", d.low), ("gain t 90 % high", d.high))
    yield from (("paired t p", d.p), ("paired t p Holm", found.holm))
    yield from (("sign-flip p", d.sign_flip.p), ("sign-flip p Holm", found.holm_sign_flip))
    yield from (("sign-flip smallest p", d.sign_flip.smallest), ("pairs", d.n))


def _rows(found: RowTest) -> Iterator[tuple[str, float]]:
    test = found.test
    yield from (
        ("rows it alone has right", test.only_a),
        ("rows the baseline alone has right", test.only_b),
    )
    yield from (("McNemar p", test.p), ("McNemar p Holm", found.holm), ("rows", test.n))


def _number(value: float) -> str:
    """In full; empty where there is none."""
    return "" if value != value else repr(value)
