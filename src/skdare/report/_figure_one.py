"""The paper's first figure: heads on a domain they have not seen, and ceilings that have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.bench._record import NETWORK
from skdare.report import _text
from skdare.report._grids import Column, domain_rows, domains_of, kind_of_trials
from skdare.report._names import label
from skdare.report._numbers import scale_of
from skdare.report._part import Document, Part, Section
from skdare.report._plot import Levels, Plot, Series
from skdare.report._studies import other_rows
from skdare.report._table import Table
from skdare.report.summary.grid import estimate
from skdare.report.summary.groups import Group, Summary

TITLE = "Accuracy with and without a look at the held-out domain"
PRETRAINED = " (pretrained features)"
MOST_DOMAINS = 8  # whose bars fit across a page


@dataclass(frozen=True)
class Bar:
    """One of the figure's bars: its colour's name, its label, and whether it saw labels."""

    line: str
    label: str
    seen: bool = False


BARS = (
    Bar("network", "ERM network"),
    Bar("erm", "ERM"),
    Bar("dare", "DARE"),
    Bar("ceiling", "Linear ceiling†", True),
    Bar("end-to-end", "End-to-end ceiling†", True),
    Bar("pretrained", "Linear ceiling, pretrained†", True),
)


@dataclass(frozen=True)
class FigureOne:
    """The figure, and its numbers as a table."""

    title: str
    plot: Plot
    table: Table

    def text(self, width: int = 100) -> str:
        """The numbers for a terminal of this width."""
        section = Section(self.title, (), (Part("", tables=(self.table,)),))
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
            f"{group.data} is a regression, and the figure is of accuracies; name other data "
            "(--data)"
        )
    found = first_figure(group, "figure1")
    if found is None:
        raise ValueError(
            f"{group.data} has no records of the heads erm or dare under protocol "
            f"{group.protocol}; make them with `skdare bench`"
        )
    return found


def _chosen(summary: Summary, data: str | None, protocol: str | None) -> Group:
    names = list(dict.fromkeys(group.data for group in summary.groups))
    if data is None and len(names) > 1:
        raise ValueError(f"the run has data sets {', '.join(names)}; name one of them (--data)")
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


def belongs_in_report(group: Group) -> bool:
    """Whether a group has the figure's bars beyond those of any run, and few enough domains."""
    bars = columns_of(group)
    telling = {"network", "end-to-end", "pretrained"} & bars.keys()
    fits = group.metric == "accuracy" and len(domains_of([*bars.values()])) <= MOST_DOMAINS
    return bool(telling) and {"erm", "ceiling"} <= bars.keys() and fits


def first_figure(group: Group, name: str) -> FigureOne | None:
    """The figure of one data set under one protocol; None without a head to show."""
    bars = columns_of(group)
    if not bars.keys() & {"erm", "dare"}:
        return None
    shown = [bar for bar in BARS if bar.line in bars]
    columns = [bars[bar.line] for bar in shown]
    domains = domains_of(columns)
    series = tuple(_series(bar, bars[bar.line], domains) for bar in shown)
    drawing = Levels((*domains, "average"), series, tuple(bar.seen for bar in shown))
    table = Table(
        "figure1",
        f"{scale_of(group.metric).title} on the held-out domain",
        ("held out", *(bar.line + "†" * bar.seen for bar in shown)),
        tuple(domain_rows(columns, scale_of(group.metric))[:-1]),
        tuple(_notes(group, drawing)),
        foot=1,
        grid=True,
        trials=max(len(grid.trials) for grid, _ in columns),
        kind=kind_of_trials(columns),
    )
    title = f"{group.data}, {group.protocol} protocol"
    return FigureOne(title, _plot(group, name, drawing, table), table)


def _plot(group: Group, name: str, drawing: Levels, table: Table) -> Plot:
    """The drawing with the words of its table."""
    scale = scale_of(group.metric)
    caption = " ".join(table.notes)
    if any(math.isfinite(v) for s in drawing.series for v in s.spread):
        caption += f" Whiskers: t 90 % interval over {table.trials} trials, {table.kind}."
    means = (f"{s.label} {scale.value(s.values[-1] / scale.factor)}" for s in drawing.series)
    alt = f"Averages in {scale.axis}: {', '.join(means)}."
    return Plot(name, TITLE, scale.axis, drawing, caption, alt)


def columns_of(group: Group) -> dict[str, Column]:
    """Where the scores of each bar are that the records have."""
    main, ceilings, linear = group.main, group.ceilings, _linear(group)
    heads = (main.reserved or main.grid) if main else None
    places = {
        "network": (group.networks, NETWORK),
        "erm": (heads, "erm"),
        "dare": (heads, "dare"),
        "ceiling": (ceilings, linear),
        "end-to-end": (ceilings, "end-to-end"),
        "pretrained": (ceilings, linear + PRETRAINED),
    }
    return {
        bar: (grid, line)
        for bar, (grid, line) in places.items()
        if grid and line in grid.lines and np.isfinite(grid.of(line)).any()
    }


def _linear(group: Group) -> str:
    """Which linear ceiling: the one that more features have; of two, the protocol's own."""
    lines = group.ceilings.lines if group.ceilings else ()
    kinds = ["ceiling-exact", "ceiling-sgd"]
    if group.protocol == "paper":
        kinds.reverse()
    return max(kinds, key=lambda kind: (kind in lines) + (kind + PRETRAINED in lines))


def _series(bar: Bar, column: Column, domains: Sequence[str]) -> Series:
    """Means and half widths on each domain, and on average where no domain is missing."""
    (grid, line), scale = column, scale_of(column[0].metric)
    whole = len(grid.domains) == len(domains)
    scores = [grid.at(line, domain) for domain in domains]
    scores.append(grid.average(line) if whole else np.full(1, np.nan))
    found = [estimate(x) for x in scores]
    means = tuple(scale.scaled(e.mean) for e in found)
    halves = tuple(scale.scaled(e.t.half_width) for e in found)
    return Series(bar.line, bar.label, means, halves)


def _notes(group: Group, drawing: Levels) -> Iterator[str]:
    """What the bars are, on which rows, and which are not there."""
    lines = [s.line for s in drawing.series]
    yield "Scored on the rows of the held-out domain that were set aside."
    if group.main and group.main.reserved is None:
        yield "But the heads were scored on all its rows, as none were set aside."
    yield from other_rows(group, label)
    if any(drawing.seen):
        yield "† has seen labels of the held-out domain, on other rows."
    if "erm" in lines:
        yield "ERM stands for the paper's approximate SOTA."
    if "ceiling" in lines:
        how = "by the paper's descent" if _linear(group) == "ceiling-sgd" else "to the optimum"
        yield f"Heads and linear ceiling are on the same features; the ceiling is solved {how}."
    absent = [bar.label for bar in BARS if bar.line not in lines]
    gaps = []
    for s in drawing.series:
        places = zip(drawing.categories, s.values, strict=True)
        without = [place for place, value in places if math.isnan(value)]
        gaps += [f"{s.label} on {', '.join(without)}"] if without else []
    if absent or gaps:
        yield f"Not on record: {'; '.join([*absent, *gaps])}."
