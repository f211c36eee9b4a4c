"""The paper's first figure: heads on a domain they have not seen, and ceilings that have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skdare._scale import scale_of
from skdare.bench._record import NETWORK
from skdare.report import _text
from skdare.report._document import Document, Section, SectionPart
from skdare.report._grids import domain_table, has_spread, series_of
from skdare.report._names import Naming
from skdare.report._plot import Bars, Plot, Series
from skdare.report._studies import other_rows
from skdare.report._table import Table
from skdare.report.summary.grid import Column, domains_of
from skdare.report.summary.summary import Summary, SummaryGroup

TITLE = "Accuracy with and without a look at the held-out domain"
PRETRAINED = " (pretrained features)"
MOST_DOMAINS = 8  # whose bars fit across a page


@dataclass(frozen=True)
class FigureBar:
    """One of the figure's bars: its colour's name, its label, and whether it saw labels."""

    line: str
    label: str
    saw_labels: bool = False


BARS = (
    FigureBar("network", "ERM network"),
    FigureBar("erm", "ERM"),
    FigureBar("dare", "DARE"),
    FigureBar("ceiling", "Linear ceiling†", True),
    FigureBar("end-to-end", "End-to-end ceiling†", True),
    FigureBar("pretrained", "Linear ceiling, pretrained†", True),
)


@dataclass(frozen=True)
class FigureOne:
    """The paper's first figure from a run's records, as `figure_one` makes it."""

    title: str
    plot: Plot
    table: Table

    def text(self, width: int = 100) -> str:
        """The numbers for a terminal of this width."""
        section = Section(self.title, (), (SectionPart("", tables=(self.table,)),))
        return _text.render(Document(self.title, None, (section,), ()), width)


def figure_one(
    summary: Summary, *, data: str | None = None, protocol: str | None = None
) -> FigureOne:
    """The paper's first figure from the records of a run.

    Parameters
    ----------
    summary : Summary
    data : str, optional
        Which data set; default: the only one.
    protocol : "default" or "paper", optional
        Default: the only one, else "paper".
    """
    group = _chosen(summary, data, protocol)
    if group.metric != "accuracy":
        raise ValueError(
            f"{group.data} is a regression, and the figure is of accuracies; choose other data "
            "with data="
        )
    figure = first_figure(group, "figure1")
    if figure is None:
        raise ValueError(
            f"{group.data} has no records of the heads erm or dare under protocol "
            f"{group.protocol}; bench those heads first"
        )
    return figure


def _chosen(summary: Summary, data: str | None, protocol: str | None) -> SummaryGroup:
    names = list(dict.fromkeys(group.data for group in summary.groups))
    if data is None and len(names) > 1:
        raise ValueError(f"the run has data sets {', '.join(names)}; name one of them with data=")
    data = names[0] if data is None else data
    groups = {group.protocol: group for group in summary.groups if group.data == data}
    if not groups:
        raise ValueError(f"the run has no data set {data!r}; it has {', '.join(names)}")
    protocol = protocol or ("paper" if len(groups) > 1 else next(iter(groups)))
    if protocol not in groups:
        raise ValueError(
            f"{data} has no records under protocol {protocol}; it has {', '.join(groups)}"
        )
    return groups[protocol]


def belongs_in_report(group: SummaryGroup) -> bool:
    """Whether a group has the figure's bars beyond those of any run, and few enough domains."""
    columns = _columns(group)
    special = {"network", "end-to-end", "pretrained"} & columns.keys()
    fits = group.metric == "accuracy" and len(domains_of([*columns.values()])) <= MOST_DOMAINS
    return bool(special) and {"erm", "ceiling"} <= columns.keys() and fits


def first_figure(group: SummaryGroup, name: str) -> FigureOne | None:
    """The figure of one data set under one protocol; None without a head to show."""
    columns = _columns(group)
    if not columns.keys() & {"erm", "dare"}:
        return None
    shown = [bar for bar in BARS if bar.line in columns]
    ordered = [columns[bar.line] for bar in shown]
    domains = domains_of(ordered)
    scale = scale_of(group.metric)
    series = []
    for bar, column in zip(shown, ordered, strict=True):
        estimates = [*(column.at(d) for d in domains), column.average_over(domains)]
        saw = bar.saw_labels
        series.append(series_of(scale, bar.line, bar.label, estimates, saw_labels=saw))
    bars = Bars((*domains, "average"), tuple(series))
    caption = f"{scale.title} on the held-out domain"
    names = [bar.line + "†" * bar.saw_labels for bar in shown]
    notes = [*_notes(group, bars)]
    table = domain_table("figure1", caption, ordered, names, notes, scale)
    return FigureOne(group.title, _plot(group, name, bars, table), table)


def _plot(group: SummaryGroup, name: str, bars: Bars, table: Table) -> Plot:
    """The bars with the words of their table."""
    scale = scale_of(group.metric)
    caption = " ".join(table.notes)
    if has_spread(bars.series):
        caption += f" Whiskers: t 90 % interval over {table.trials} trials, {table.kind}."
    means = (f"{s.label} {scale.value(s.values[-1] / scale.factor)}" for s in bars.series)
    alt = f"Averages in {scale.axis}: {', '.join(means)}."
    return Plot(name, TITLE, scale.axis, bars, caption, alt)


def _columns(group: SummaryGroup) -> dict[str, Column]:
    """The scores of each bar that the records have."""
    heads = (group.main.reserved or group.main.grid) if group.main else None
    linear = _linear_ceiling(group)
    sources = {
        "network": (group.networks, NETWORK),
        "erm": (heads, "erm"),
        "dare": (heads, "dare"),
        "ceiling": (group.ceilings, linear),
        "end-to-end": (group.ceilings, "end-to-end"),
        "pretrained": (group.ceilings, linear + PRETRAINED),
    }
    return {
        bar: grid.column(line)
        for bar, (grid, line) in sources.items()
        if grid and line in grid.lines and np.isfinite(grid.of(line)).any()
    }


def _linear_ceiling(group: SummaryGroup) -> str:
    """Which linear ceiling: the one that more features have; of two, the protocol's own."""
    lines = group.ceilings.lines if group.ceilings else ()
    kinds = ["ceiling-exact", "ceiling-sgd"]
    if group.protocol == "paper":
        kinds.reverse()
    return max(kinds, key=lambda kind: (kind in lines) + (kind + PRETRAINED in lines))


def _notes(group: SummaryGroup, bars: Bars) -> Iterator[str]:
    """What the bars are, on which rows, and which are missing."""
    lines = [s.line for s in bars.series]
    yield "Scored on the rows of the held-out domain that were set aside."
    if group.main and group.main.reserved is None:
        yield "But the heads were scored on all its rows, as none were set aside."
    yield from other_rows(group, Naming())
    if any(s.saw_labels for s in bars.series):
        yield "† has seen labels of the held-out domain, on other rows."
    if "erm" in lines:
        yield "ERM stands for the paper's approximate SOTA."
    if "ceiling" in lines:
        sgd = _linear_ceiling(group) == "ceiling-sgd"
        how = "by the paper's descent" if sgd else "to the optimum"
        yield f"Heads and linear ceiling use the same features; the ceiling is solved {how}."
    missing = [bar.label for bar in BARS if bar.line not in lines]
    missing += _gaps(bars.categories, bars.series)
    if missing:
        yield f"Not on record: {'; '.join(missing)}."


def _gaps(categories: Sequence[str], series: Sequence[Series]) -> Iterator[str]:
    """Bars that some category lacks."""
    for s in series:
        lacking = [c for c, v in zip(categories, s.values, strict=True) if math.isnan(v)]
        if lacking:
            yield f"{s.label} on {', '.join(lacking)}"
