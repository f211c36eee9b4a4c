"""Grids and sweeps as tables and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from skdare.report._names import Naming
from skdare.report._numbers import NONE, Scale, number, scale_of, spread
from skdare.report._plot import Bars, Dots, Level, Lines, Plot, Series
from skdare.report._table import BOTH, NETWORKS, SPLITS, Cell, Table, row
from skdare.report.summary.comparison import Marks
from skdare.report.summary.grid import Estimate, Grid, Sweep, estimate

SORTED = 6  # more domains than these are put in order of their scores
LONG_TABLE = 12
Column = tuple[Grid, str]


def estimated(scale: Scale, found: Estimate, mark: str = "", *, both: bool = False) -> Cell:
    """A mean with its t interval; with ``both``, the paper's in brackets."""
    more = spread(scale, found.normal.half_width, sign=False) if both else ""
    return Cell(
        scale.value(found.mean),
        spread(scale, found.t.half_width),
        f"({more})" if more else "",
        mark,
    )


def domain_rows(
    columns: Sequence[Column],
    scale: Scale,
    marks: Mapping[str, Marks] | None = None,
) -> list[tuple[Cell, ...]]:
    """A row a held-out domain, then their average and the worst; both intervals with marks."""
    both, of_domain = marks is not None, marks or {}

    def cell(x: np.ndarray, mark: str = "") -> Cell:
        return estimated(scale, estimate(x), mark, both=both)

    domains = domains_of(columns)
    # Only a line with every domain has an average that can be held against the others'.
    whole = [(g if len(g.domains) == len(domains) else None, line) for g, line in columns]
    rows = [
        row(d, (cell(g.at(h, d), of_domain.get(d, {}).get(h, "")) for g, h in columns))
        for d in domains
    ]
    nothing = Cell(NONE)
    averages = (cell(g.average(h)) if g else nothing for g, h in whole)
    worst = (cell(g.worst(h)) if g else nothing for g, h in whole)
    return [*rows, row("average", averages), row("worst domain", worst)]


def domains_of(columns: Sequence[Column]) -> list[str]:
    """Every domain that occurs, in order of appearance."""
    return list(dict.fromkeys(d for grid, _ in columns for d in grid.domains))


def kind_of_trials(columns: Sequence[Column]) -> str:
    """What the trials of these lines are."""
    fresh = {line in grid.fresh for grid, line in columns}
    return BOTH if len(fresh) > 1 else NETWORKS if fresh == {True} else SPLITS


def domain_tables(
    name: str, columns: Sequence[Column], label: Naming, where: str
) -> tuple[Table, ...]:
    """Lines by held-out domain; of many domains the average and the worst, the rest folded."""
    scale = scale_of(columns[0][0].metric, (float(v) for g, _ in columns for v in g.S.ravel()))
    lower = ("Lower is better.",) if scale.name == "RMSE" else ()
    whole = Table(
        name,
        f"{scale.title} {where}",
        ("held out", *(label(line) for _, line in columns)),
        tuple(domain_rows(columns, scale)),
        lower,
        foot=2,
        grid=True,
        trials=max(len(grid.trials) for grid, _ in columns),
        kind=kind_of_trials(columns),
    )
    if len(whole.rows) <= LONG_TABLE + 2:
        return (whole,)
    folded = replace(whole, name=f"{name}-by-domain", detail=True)
    domains = f"{len(whole.rows) - 2} held-out domains"
    caption = f"{scale.title} {where.replace('the held-out domain', domains)}"
    return replace(whole, caption=caption, rows=whole.rows[-2:], foot=0), folded


def domain_plot(
    name: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    label: Naming,
    bars: bool = False,
) -> Plot:
    """Lines by held-out domain as bars, or as dots with the average below."""
    scale, domains = scale_of(columns[0][0].metric), domains_of(columns)
    if len(domains) > SORTED:
        grid, line = columns[0]
        order = {d: estimate(grid.at(line, d)).mean for d in domains}
        domains.sort(key=lambda d: -order[d] if not math.isnan(order[d]) else math.inf)
        caption += f" Sorted by {label(line)}."
    series = []
    for grid, line in columns:
        found = [estimate(grid.at(line, d)) for d in domains]
        found += [] if bars else [estimate(grid.average(line))]
        series.append(_series(scale, line, label, found))
    drawing: Bars | Dots = Bars(tuple(domains), tuple(series))
    if not bars:
        drawing = Dots((*domains, "average"), tuple(series), 1, _floor(scale))
    if bars or len(domains) <= LONG_TABLE:
        caption += " Whiskers: t 90 % interval over trials." if _has_spread(series) else ""
    averages = (f"{label(h)} {scale.value(estimate(g.average(h)).mean)}" for g, h in columns)
    alt = f"Averages in {scale.axis}: {', '.join(averages)}."
    return Plot(name, title, scale.axis, drawing, caption + _off_axis(scale, series), alt)


def _floor(scale: Scale) -> float | None:
    """An R² below -1 is off the axis: how bad it is would flatten everything else."""
    return -1.0 if scale.name == "R²" else None


def _off_axis(scale: Scale, series: Sequence[Series]) -> str:
    floor = _floor(scale)
    below = floor is not None and any(v < floor for s in series for v in s.values)
    return " Arrows: below −1." if below else ""


def _has_spread(series: Sequence[Series]) -> bool:
    return any(math.isfinite(v) for s in series for v in s.spread)


def _series(scale: Scale, line: str, label: Naming, found: Sequence[Estimate]) -> Series:
    means = tuple(scale.scaled(e.mean) for e in found)
    return Series(line, label(line), means, tuple(scale.scaled(e.t.half_width) for e in found))


def sweep_levels(sweep: Sweep, others: Sequence[Column], label: Naming) -> tuple[Level, ...]:
    """What does not depend on x: lines of the study itself, and others beside it."""
    scale = scale_of(sweep.grids[0].metric)
    own = [(sweep.level, line) for line in sweep.level.lines] if sweep.level else []
    means = {line: estimate(grid.average(line)).mean for grid, line in (*others, *own)}
    return tuple(Level(h, label(h), scale.scaled(v)) for h, v in means.items() if not math.isnan(v))


def sweep_plot(
    name: str, title: str, sweep: Sweep, levels: tuple[Level, ...], label: Naming, x_label: str
) -> Plot:
    """Averages over held-out domains against x."""
    scale = scale_of(sweep.grids[0].metric)
    series = [_series(scale, line, label, sweep.averages(line)) for line in sweep.lines]
    caption = f"Average over held-out domains by {x_label}."
    caption += " Bands: t 90 % interval over trials." if _has_spread(series) else ""
    ends = [
        f"{s.label} {_said(scale, s.values[0])} to {_said(scale, s.values[-1])}" for s in series
    ]
    ends += [f"{level.label} {_said(scale, level.value)} throughout" for level in levels]
    span = f"from {number(sweep.x[0])} to {number(sweep.x[-1])}"
    alt = f"{scale.title} over {x_label} {span}: {'; '.join(ends)}."
    drawing = Lines(sweep.x, x_label, tuple(series), levels, _floor(scale))
    return Plot(name, title, scale.axis, drawing, caption, alt)


def sweep_table(
    name: str, sweep: Sweep, levels: tuple[Level, ...], label: Naming, x_label: str
) -> Table:
    """Averages over held-out domains, a row for each x."""
    scale = scale_of(sweep.grids[0].metric)
    found = {line: sweep.averages(line) for line in sweep.lines}
    said = ", ".join(f"{level.label} {_said(scale, level.value)}" for level in levels)
    return Table(
        name,
        f"{scale.title}, average over held-out domains",
        (x_label, *(label(line) for line in sweep.lines)),
        tuple(
            row(number(x), (estimated(scale, found[line][i]) for line in sweep.lines))
            for i, x in enumerate(sweep.x)
        ),
        (f"For comparison: {said}.",) if said else (),
        grid=True,
        trials=len(sweep.grids[0].trials),
        kind=kind_of_trials([(sweep.grids[0], line) for line in sweep.lines]),
    )


def _said(scale: Scale, drawn: float) -> str:
    """A value of an axis as a table would have it."""
    return scale.value(drawn / scale.factor)
