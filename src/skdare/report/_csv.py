"""CSV: every statistic in tidy form, and every record in wide form."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from skdare._safe_text import csv_writer, spreadsheet_safe
from skdare.bench import Record
from skdare.bench._record import ABLATION, NETWORK
from skdare.report.summary.advice import advise
from skdare.report.summary.grid import Estimate, Grid, Sweep, estimate
from skdare.report.summary.main_study import MainStudy, PairedTest, RowTest
from skdare.report.summary.summary import Summary, SummaryGroup

COLUMNS = ("data", "protocol", "study", "metric", "x", "head", "held_out", "statistic", "value")
AVERAGE = "(average)"
WORST = "(worst)"
ACROSS_DOMAINS = "(across domains)"
ALL_ROWS = "(all rows)"
NEW_DOMAIN = "(new domain)"
Field = str | float | None
Statistic = tuple[str, float]


def statistics(summary: Summary, *, safe: bool = False) -> str:
    """One row for each statistic of each head on each held-out domain.

    With ``safe``, a spreadsheet takes no text in it for a formula.
    """
    rows = ([_text(value, safe) for value in row] for row in _tidy(summary))
    return _written([COLUMNS, *rows])


def tidy(summary: Summary) -> list[dict[str, str | float | None]]:
    """One row for each statistic of each head on each held-out domain, as JSON can hold it.

    Each row has data, protocol, study, metric, x, head, held_out, statistic and value.
    """
    return [
        {name: _plain(value) for name, value in zip(COLUMNS, row, strict=True)}
        for row in _tidy(summary)
    ]


def wide(records: Sequence[Record], *, safe: bool = False) -> str:
    """One row for each record, a column for each of its values but the packed test rows.

    With ``safe``, a spreadsheet takes no text in it for a formula.
    """
    attributes = [f.name for f in fields(Record) if f.name != "values"]
    names = dict.fromkeys(n for r in records for n in r.values if n != "correct")
    rows: list[Iterable[str]] = [(*attributes, *names)]
    for r in records:
        values = [*(getattr(r, name) for name in attributes), *(r.values.get(n) for n in names)]
        values = [spreadsheet_safe(v) if safe else v for v in values]
        rows.append(["" if v is None else str(v) for v in values])
    return _written(rows)


def _written(rows: Iterable[Iterable[str]]) -> str:
    out = io.StringIO()
    csv_writer(out).writerows(rows)
    return out.getvalue()


def _text(value: Field, safe: bool) -> Any:
    """Text of a cell: numbers in full, missing ones empty."""
    if isinstance(value, str):
        return spreadsheet_safe(value) if safe else value
    return "" if value is None or math.isnan(value) else repr(value)


def _plain(value: Field) -> Field:
    if isinstance(value, str):
        return value
    return None if value is None or math.isnan(value) else float(value)


def _tidy(summary: Summary) -> Iterator[tuple[Field, ...]]:
    for group in summary.groups:
        for study, metric, x, head, place, statistic, value in _group(group):
            yield group.data, group.protocol, study, metric, x, head, place, statistic, value


GroupRow = tuple[str, str, float | None, str, str, str, float | str]


def _group(group: SummaryGroup) -> Iterator[GroupRow]:
    if group.main:
        yield from _grid("main", group.main.grid)
        yield from _comparison(group.main)
        yield from _outlooks(group.main)
        if group.main.reserved:
            yield from _grid("main on reserved rows", group.main.reserved)
        if group.main.rmse:
            yield from _grid("main", group.main.rmse)
        for grid in group.main.further.values():
            yield from _grid("main", grid)
        for head, by_domain in group.main.chosen.items():
            for domain, strategies in by_domain.items():
                for strategy, trials in strategies.items():
                    metric = group.main.grid.metric
                    yield (
                        "main",
                        metric,
                        None,
                        head,
                        domain,
                        f"trials that chose {strategy}",
                        trials,
                    )
    studies: dict[str, Grid | Sweep | None] = {
        "ceiling": group.ceilings,
        NETWORK: group.networks,
        "curve": group.curve,
        "adjustment": group.adjustment,
        "alignment": group.alignment,
        **{ABLATION + name: study for name, study in group.ablations.items()},
    }
    for name, study in studies.items():
        if isinstance(study, Sweep):
            for x, grid in zip(study.x, study.grids, strict=True):
                yield from _grid(name, grid, x)
            study = study.level
        if study:
            yield from _grid(name, study)


def _grid(study: str, grid: Grid, x: float | None = None) -> Iterator[GroupRow]:
    for line in grid.lines:
        places = {domain: grid.at(line, domain) for domain in grid.domains}
        extremes = ((AVERAGE, grid.average(line)), (WORST, grid.worst(line)))
        for place, scores in (*places.items(), *extremes):
            for statistic, value in _estimate(estimate(scores)):
                yield study, grid.metric, x, line, place, statistic, value


def _estimate(estimate: Estimate) -> Iterator[Statistic]:
    yield "mean", estimate.mean
    yield "normal 90 % half width", estimate.normal.half_width
    yield "t 90 % half width", estimate.t.half_width
    yield "trials", estimate.n


def _comparison(main: MainStudy) -> Iterator[GroupRow]:
    metric = main.grid.metric
    comparison = main.comparison
    across = (ACROSS_DOMAINS, comparison.across_domains)
    for place, tests in (*comparison.by_domain.items(), across):
        for head, test in tests.items():
            for statistic, value in _paired_test(test):
                yield "main", metric, None, head, place, statistic, value
    all_rows = (ALL_ROWS, comparison.all_rows)
    for place, row_tests in (*comparison.rows_by_domain.items(), all_rows):
        for head, row_test in row_tests.items():
            for statistic, value in _row_test(row_test):
                yield "main", metric, None, head, place, statistic, value
    for place, marks in main.marks.items():
        for head, mark in marks.items():
            if mark:
                yield "main", metric, None, head, place, "mark", mark


def _outlooks(main: MainStudy) -> Iterator[GroupRow]:
    """What each head can be expected to score on one more domain."""
    for outlook in advise(main).outlooks:
        expected = outlook.expected
        statistics = (
            ("mean", expected.mean),
            ("80 % prediction low", expected.low),
            ("80 % prediction high", expected.high),
            ("domains above the baseline", outlook.better),
        )
        for statistic, value in statistics:
            yield "main", main.grid.metric, None, outlook.head, NEW_DOMAIN, statistic, value


def _paired_test(test: PairedTest) -> Iterator[Statistic]:
    d = test.difference
    yield "gain", d.mean
    yield "gain t 90 % low", d.low
    yield "gain t 90 % high", d.high
    yield "paired t p", d.p
    yield "paired t p Holm", test.holm
    yield "sign-flip p", d.sign_flip.p
    yield "sign-flip p corrected", test.higher
    yield "sign-flip smallest p", d.sign_flip.smallest
    yield "pairs", d.n


def _row_test(row_test: RowTest) -> Iterator[Statistic]:
    test = row_test.test
    yield "rows it alone has right", test.only_a
    yield "rows the baseline alone has right", test.only_b
    yield "McNemar p", test.p
    yield "McNemar p Holm", row_test.holm
    yield "rows", test.n
