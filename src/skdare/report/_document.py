"""The document: a summary as sections of words, tables and plots, for any format to write."""

from __future__ import annotations

from skdare.report._against import comparison_part, gains_plot
from skdare.report._conditions import condition_part, failure_parts
from skdare.report._figure_one import belongs_in_report, first_figure
from skdare.report._grids import estimated, kind_of_trials
from skdare.report._method import notes_on
from skdare.report._names import Naming
from skdare.report._numbers import NONE, scale_of
from skdare.report._part import Document, Part, Section
from skdare.report._standing import standing_part
from skdare.report._studies import (
    ablation_parts,
    ceiling_part,
    curve_part,
    diagnostic_parts,
    levels_plot,
)
from skdare.report._table import Table, row
from skdare.report._verdict import verdict
from skdare.report.summary.grid import estimate
from skdare.report.summary.groups import Group, Summary


def document(summary: Summary, label: Naming) -> Document:
    """The whole report."""
    groups = summary.groups
    # One group gives the page its name; of several each has a heading of its own.
    one = [f"{group.data}, {group.protocol} protocol" for group in groups]
    data = list(dict.fromkeys(group.data for group in groups))
    title = (
        one[0] if len(one) == 1 else ", ".join(data) if len(data) < 4 else f"{len(data)} data sets"
    )
    sections = tuple(_section(group, label, f"g{i}") for i, group in enumerate(groups, 1))
    table = overview(summary, label) if len(groups) > 1 else None
    return Document(title, table, sections, notes_on(summary))


def _section(group: Group, label: Naming, prefix: str) -> Section:
    parts: list[Part] = []
    first = first_figure(group, f"{prefix}-first") if belongs_in_report(group) else None
    # The paper's figure shows what the plot of levels would, and more.
    levels = None if first else levels_plot(group, label, f"{prefix}-levels")
    if group.main:
        gains = gains_plot(group.main, label, f"{prefix}-gains")
        plots = tuple(plot for plot in (levels, gains) if plot)
        parts.append(standing_part(group, group.main, label))
        parts.append(comparison_part(group.main, label, plots))
    if group.ceilings or group.networks:
        alone = (levels,) if levels and not group.main else ()
        parts.append(ceiling_part(group, label, (first.plot,) if first else alone))
    if group.curve:
        parts.append(curve_part(group, group.curve, label, f"{prefix}-curve"))
    parts += diagnostic_parts(group, label)
    parts += ablation_parts(group, label, prefix)
    parts += failure_parts(group, label)
    parts.append(condition_part(group, label))
    title = f"{group.data}, {group.protocol} protocol"
    return Section(title, verdict(group, label), tuple(parts))


def overview(summary: Summary, label: Naming) -> Table:
    """The average of every head on every data set."""
    shown = [(group, group.main) for group in summary.groups if group.main]
    heads = dict.fromkeys(head for _, main in shown for head in main.grid.lines)
    protocols = len({group.protocol for group, _ in shown}) > 1
    rows = []
    for group, main in shown:
        scale = scale_of(group.metric)
        cells = [
            estimated(scale, estimate(main.grid.average(h))) if h in main.grid.lines else NONE
            for h in heads
        ]
        name = f"{group.data}, {group.protocol}" if protocols else group.data
        rows.append(row(f"{name}, {scale.axis}", cells))
    return Table(
        "overview",
        "Average over held-out domains, by data set and head",
        ("data", *(label(h) for h in heads)),
        tuple(rows),
        grid=True,
        trials=max((len(main.grid.trials) for _, main in shown), default=0),
        kind=kind_of_trials([(main.grid, head) for _, main in shown for head in main.grid.lines]),
    )
