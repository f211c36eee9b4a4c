"""Grids and sweeps as tables and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from skdare._scale import Scale
from skdare.report._names import Naming
from skdare.report._numbers import number, scale_of_grid, spread
from skdare.report._plot import Dots, Level, Lines, Plot, Series
from skdare.report._table import BOTH, NETWORKS, SPLITS, Cell, Table, row
from skdare.report.summary.grid import Column, Estimate, Grid, Sweep, domains_of
from skdare.report.summary.statistics import Marks

SORTED = 6  # more domains than these are put in order of their scores
LONG_TABLE = 12


def estimate_cell(scale: Scale, estimate: Estimate, mark: str = "", *, both: bool = False) -> Cell:
    """A mean with its t interval; with ``both``, the paper's in brackets."""
    normal = spread(scale, estimate.normal.half_width, sign=False) if both else ""
    return Cell(
        scale.value(estimate.mean),
        spread(scale, estimate.t.half_width),
        f"({normal})" if normal else "",
        mark,
    )


def series_of(
    scale: Scale,
    line: str,
    label: str,
    estimates: Sequence[Estimate],
    *,
    saw_labels: bool = False,
) -> Series:
    """Means and ends of t intervals, in the units of an axis."""
    means = tuple(scale.scaled(e.mean) for e in estimates)
    low = tuple(scale.scaled(e.t.low) for e in estimates)
    high = tuple(scale.scaled(e.t.high) for e in estimates)
    return Series(line, label, means, low, high, saw_labels)


def has_spread(series: Sequence[Series]) -> bool:
    """Whether any value has an interval."""
    return any(math.isfinite(v) for s in series for v in s.low)


def kind_of_trials(columns: Sequence[Column]) -> str:
    """What the trials of these columns are."""
    fresh = {column.fresh for column in columns}
    return BOTH if len(fresh) > 1 else NETWORKS if fresh == {True} else SPLITS


# By held-out domain


def domain_rows(
    columns: Sequence[Column], scale: Scale, marks: Mapping[str, Marks] | None = None
) -> list[tuple[Cell, ...]]:
    """A row for each held-out domain, then their average and the worst domain.

    With marks, cells show both intervals.
    """
    domains = domains_of(columns)
    marks_of = marks or {}

    def cell(estimate: Estimate, mark: str = "") -> Cell:
        return estimate_cell(scale, estimate, mark, both=marks is not None)

    return [
        *(
            row(d, (cell(c.at(d), marks_of.get(d, {}).get(c.line, "")) for c in columns))
            for d in domains
        ),
        row("average", (cell(c.average_over(domains)) for c in columns)),
        row("worst domain", (cell(c.worst_over(domains)) for c in columns)),
    ]


def domain_table(
    name: str,
    caption: str,
    columns: Sequence[Column],
    names: Sequence[str],
    notes: Sequence[str],
    scale: Scale,
    *,
    worst: bool = False,
) -> Table:
    """Columns by held-out domain, with the average and, if asked for, the worst domain."""
    rows = domain_rows(columns, scale)
    return Table(
        name,
        caption,
        ("held out", *names),
        tuple(rows if worst else rows[:-1]),
        tuple(notes),
        foot=2 if worst else 1,
        grid=True,
        trials=max(len(column.grid.trials) for column in columns),
        kind=kind_of_trials(columns),
    )


def domain_tables(
    name: str, columns: Sequence[Column], label: Naming, where: str
) -> tuple[Table, ...]:
    """Lines by held-out domain; with many domains the average and the worst, the rest folded."""
    scale = scale_of_grid(*(column.grid for column in columns))
    names = [label(column.line) for column in columns]
    notes = ["Lower is better."] if scale.name == "RMSE" else []
    return shortened(
        domain_table(name, f"{scale.title} {where}", columns, names, notes, scale, worst=True)
    )


def shortened(table: Table) -> tuple[Table, ...]:
    """A table by held-out domain; of many domains the average and the worst, the rest folded."""
    domains = len(table.rows) - 2
    if domains <= LONG_TABLE:
        return (table,)
    caption = table.caption.replace("the held-out domain", f"{domains} held-out domains")
    short = replace(table, caption=caption, rows=table.rows[-2:], foot=0)
    return short, replace(table, name=f"{table.name}-by-domain", detail=True)


def domain_plot(
    name: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    label: Naming,
    ceilings: Grid | None = None,
) -> Plot:
    """Lines by held-out domain as dots with the average below; open where they are ceilings."""
    scale = scale_of_grid(*(column.grid for column in columns))
    domains = domains_of(columns)
    averages = [column.average_over(domains) for column in columns]
    if len(domains) > SORTED:
        means = {d: columns[0].at(d).mean for d in domains}
        domains.sort(key=lambda d: -means[d] if not math.isnan(means[d]) else math.inf)
        caption += f" Sorted by {label(columns[0].line)}."
    series = []
    for column, average in zip(columns, averages, strict=True):
        estimates = [*(column.at(d) for d in domains), average]
        line = column.line
        saw_labels = column.grid is ceilings
        series.append(series_of(scale, line, label(line), estimates, saw_labels=saw_labels))
    drawing = Dots((*domains, "average"), tuple(series), _floor(scale))
    if len(domains) <= LONG_TABLE and has_spread(series):
        caption += " Whiskers: t 90 % interval over trials."
    words = (f"{s.label} {scale.value(a.mean)}" for s, a in zip(series, averages, strict=True))
    alt = f"Averages in {scale.axis}: {', '.join(words)}."
    return Plot(name, title, scale.axis, drawing, caption + _off_axis(scale, series), alt)


def _floor(scale: Scale) -> float | None:
    """An R² below -1 is off the axis: how bad it is would flatten everything else."""
    return -1.0 if scale.name == "R²" else None


def _off_axis(scale: Scale, series: Sequence[Series]) -> str:
    floor = _floor(scale)
    below = floor is not None and any(v < floor for s in series for v in s.values)
    return " Arrows: below −1." if below else ""


# By the number that a sweep varies


def sweep_levels(sweep: Sweep, others: Sequence[Column], label: Naming) -> tuple[Level, ...]:
    """What does not depend on x: lines of the study itself, and others beside it."""
    scale = scale_of_grid(*sweep.grids)
    fixed = sweep.level.columns if sweep.level else []
    means = {column.line: column.average.mean for column in (*others, *fixed)}
    return tuple(Level(h, label(h), scale.scaled(v)) for h, v in means.items() if not math.isnan(v))


def sweep_plot(
    name: str, title: str, sweep: Sweep, levels: tuple[Level, ...], label: Naming, x_label: str
) -> Plot:
    """Averages over held-out domains against x."""
    scale = scale_of_grid(*sweep.grids)
    series = [series_of(scale, h, label(h), sweep.averages(h)) for h in sweep.lines]
    caption = f"Average over held-out domains by {x_label}."
    caption += " Bands: t 90 % interval over trials." if has_spread(series) else ""
    ends = [
        f"{s.label} {_unscaled(scale, s.values[0])} to {_unscaled(scale, s.values[-1])}"
        for s in series
    ]
    ends += [f"{level.label} {_unscaled(scale, level.value)} throughout" for level in levels]
    span = f"from {number(sweep.x[0])} to {number(sweep.x[-1])}"
    alt = f"{scale.title} over {x_label} {span}: {'; '.join(ends)}."
    drawing = Lines(sweep.x, x_label, tuple(series), levels, _floor(scale))
    return Plot(name, title, scale.axis, drawing, caption, alt)


def sweep_table(
    name: str, sweep: Sweep, levels: tuple[Level, ...], label: Naming, x_label: str
) -> Table:
    """Averages over held-out domains, a row for each x."""
    scale = scale_of_grid(*sweep.grids)
    averages = {line: sweep.averages(line) for line in sweep.lines}
    others = ", ".join(f"{level.label} {_unscaled(scale, level.value)}" for level in levels)
    return Table(
        name,
        f"{scale.title}, average over held-out domains",
        (x_label, *(label(line) for line in sweep.lines)),
        tuple(
            row(number(x), (estimate_cell(scale, averages[line][i]) for line in sweep.lines))
            for i, x in enumerate(sweep.x)
        ),
        (f"For comparison: {others}.",) if others else (),
        grid=True,
        trials=len(sweep.grids[0].trials),
        kind=kind_of_trials(sweep.grids[0].columns),
    )


def _unscaled(scale: Scale, drawn: float) -> str:
    """A value of an axis as a table would have it."""
    return scale.value(drawn / scale.factor)
