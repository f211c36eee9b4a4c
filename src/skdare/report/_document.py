"""The document: a summary as sections of words, tables and plots, for any format to write."""

from __future__ import annotations

from skdare.report._against import comparison_part, gains_plot
from skdare.report._conditions import condition_part, failure_parts
from skdare.report._grids import estimated
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
from skdare.summary.grid import estimate
from skdare.summary.groups import Group, Summary

NOTES = (
    (
        "Normal 90 % interval",
        "Mean ± 1.645 σ̂/√n over n trials, as the paper prints it. It takes the estimated spread "
        "for the true one, and with three trials it covers 76 times in 100, not 90.",
    ),
    (
        "t 90 % interval",
        "Mean ± t σ̂/√n with the quantile of Student's law, 2.920 for three trials. It would cover "
        "90 times in 100 if scores were normal and independent. But trials are splits of the same "
        "rows: their training rows overlap, and where all held-out rows are scored, they are the "
        "same rows each time. So it says how much another split of these rows would change a "
        "score, not how much other rows would, and tests over trials are optimistic (Nadeau and "
        "Bengio, 2003). Tests over domains and McNemar's test do not rest on trials.",
    ),
    (
        "Average and worst domain",
        "Taken within each trial over the held-out domains, then averaged over trials. A trial "
        "that lacks a domain has neither.",
    ),
    (
        "Marks",
        "Bold: the highest mean, by one-sided paired t-tests over trials against every other head "
        "at p = 0.1. Underlined: above the baseline by the same test. As in the paper they are not "
        "corrected for their number, and they are optimistic, as trials share rows. Heads that saw "
        "anything of the held-out domain do not compete, and two heads that agree on every row "
        "bar each other.",
    ),
    (
        "Sign-flip test",
        "The share of sign changes of the paired differences that give as high a mean. It assumes "
        "no normality, and of n differences it cannot go below 1/2ⁿ: 1/8 for three.",
    ),
    (
        "Holm",
        "p-values corrected for the number of heads compared with the baseline: those that saw "
        "nothing of the held-out domain are one family, the others another. Not corrected for the "
        "number of domains.",
    ),
    (
        "McNemar's test",
        "Compares two heads on the rows of one split that only one of them gets right. It says "
        "nothing about another split or another domain.",
    ),
)


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
    return Document(title, overview(summary, label) if len(groups) > 1 else None, sections, NOTES)


def _section(group: Group, label: Naming, prefix: str) -> Section:
    parts: list[Part] = []
    levels = levels_plot(group, label, f"{prefix}-levels")
    if group.main:
        gains = gains_plot(group.main, label, f"{prefix}-gains")
        plots = tuple(plot for plot in (levels, gains) if plot)
        parts.append(standing_part(group, group.main, label))
        parts.append(comparison_part(group.main, label, plots))
    if group.ceilings:
        alone = (levels,) if levels and not group.main else ()
        parts.append(ceiling_part(group, label, alone))
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
    )
