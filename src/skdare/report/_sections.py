"""The sections of a report: a summary as words, tables and plots, for any format to write."""

from __future__ import annotations

from skdare._scale import NONE
from skdare.report._conditions import condition_part, failure_parts
from skdare.report._document import Document, Section, SectionPart
from skdare.report._figure_one import belongs_in_report, first_figure
from skdare.report._grids import estimate_cell, kind_of_trials
from skdare.report._main_study import (
    comparison_part,
    further_part,
    gains_plot,
    rmse_part,
    scores_part,
)
from skdare.report._method import method_notes
from skdare.report._names import Naming
from skdare.report._numbers import scale_of_grid
from skdare.report._published import published_parts
from skdare.report._studies import (
    ablation_parts,
    ceiling_part,
    curve_part,
    diagnostic_parts,
    levels_plot,
)
from skdare.report._table import Table, row
from skdare.report._verdict import remarks, verdict
from skdare.report.summary.published import Published
from skdare.report.summary.summary import Summary, SummaryGroup


def document(summary: Summary) -> Document:
    """The whole report of a summary."""
    groups = summary.groups
    own = {head: before for group in groups for head, before in group.own_names.items()}
    label = Naming(own)
    sections = tuple(
        _section(group, summary.published, label, f"g{i}") for i, group in enumerate(groups, 1)
    )
    overview = _overview(summary, label) if len(groups) > 1 else None
    lead = "Linear heads on frozen features, each domain held out in turn."
    return Document(_title(groups), overview, sections, method_notes(summary), lead)


def _title(groups: tuple[SummaryGroup, ...]) -> str:
    """The only group's title; with several, each has a heading of its own."""
    if len(groups) == 1:
        return groups[0].title
    data = list(dict.fromkeys(group.data for group in groups))
    return ", ".join(data) if len(data) < 4 else f"{len(data)} data sets"


def _section(
    group: SummaryGroup, published: Published | None, label: Naming, prefix: str
) -> Section:
    parts: list[SectionPart] = []
    first = first_figure(group, f"{prefix}-first") if belongs_in_report(group) else None
    # The paper's figure shows what the plot of levels would, and more.
    levels = None if first else levels_plot(group, label, f"{prefix}-levels")
    plots = (levels,) if levels else ()
    ceilings = group.ceilings or group.networks
    if group.main:
        parts.append(scores_part(group, group.main, label))
        if group.main.further:
            parts.append(further_part(group.main, label))
    parts += published_parts(group, published, label)
    if ceilings and (first or not group.main):
        shown = (first.plot,) if first else plots
        parts.append(ceiling_part(group, label, shown, folded=False))
    if group.curve:
        parts.append(curve_part(group, group.curve, label, f"{prefix}-curve"))
    parts += ablation_parts(group, label, prefix)
    if group.main:
        parts.append(comparison_part(group.main, label, () if ceilings else plots))
        if group.main.rmse:
            parts.append(rmse_part(group.main.rmse, label))
        if ceilings and not first:
            parts.append(ceiling_part(group, label, plots, folded=True))
    parts += diagnostic_parts(group, label)
    parts += failure_parts(group, label)
    parts.append(condition_part(group, label))
    picture = gains_plot(group.main, label, f"{prefix}-gains") if group.main else None
    words = verdict(group, label)
    return Section(group.title, words, tuple(parts), remarks(group, label), picture)


def _overview(summary: Summary, label: Naming) -> Table:
    """The average of every head on every data set."""
    shown = [(group, group.main.grid) for group in summary.groups if group.main]
    heads = dict.fromkeys(head for _, grid in shown for head in grid.lines)
    protocols = len({group.protocol for group, _ in shown}) > 1
    rows = []
    for group, grid in shown:
        scale = scale_of_grid(grid)
        cells = [
            estimate_cell(scale, grid.column(head).average) if head in grid.lines else NONE
            for head in heads
        ]
        name = f"{group.data}, {group.protocol}" if protocols else group.data
        rows.append(row(f"{name}, {scale.axis}", cells))
    return Table(
        "overview",
        "Average over held-out domains, by data set and head",
        ("data", *(label(head) for head in heads)),
        tuple(rows),
        grid=True,
        trials=max((len(grid.trials) for _, grid in shown), default=0),
        kind=kind_of_trials([column for _, grid in shown for column in grid.columns]),
    )
