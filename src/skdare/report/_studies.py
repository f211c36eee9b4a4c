"""The other studies: ceilings, the learning curve, diagnostics, ablations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skdare.report._document import SectionPart
from skdare.report._grids import (
    domain_plot,
    domain_table,
    domain_tables,
    sweep_levels,
    sweep_plot,
    sweep_table,
)
from skdare.report._names import ROWS, Naming, ablation
from skdare.report._numbers import scale_of_grid
from skdare.report._plot import Plot
from skdare.report._table import Table
from skdare.report._verdict import ceiling_gap
from skdare.report.summary.grid import Column, Grid, Sweep
from skdare.report.summary.summary import SummaryGroup

_CEILINGS = (
    "Ceilings cheat: they were trained with labels of the held-out domain, on rows other than "
    "those scored. The linear ceiling shows what a linear head on the same features can reach at "
    "least, once it has those labels; a head without them need not reach it, and another linear "
    "head may do better still."
)
_NETWORK = (
    "The network is the one that made the features, with its own last layer; it has seen "
    "nothing of the held-out domain."
)
_CURVE = (
    "The last layer is fitted again with a few labelled rows of the held-out domain, with the "
    "same ridge as the heads and the ceiling, and scored on the rows set aside."
)


def columns_to_compare(group: SummaryGroup) -> list[Column]:
    """The baseline, DARE and the best head, then the networks and ceilings, on reserved rows.

    Without networks and ceilings: every head, on the rows that were tested.
    """
    main = group.main
    others = [grid for grid in (group.networks, group.ceilings) if grid]
    if not others:
        return main.grid.columns if main else []
    heads: list[Column] = []
    if main and main.reserved:
        shown = dict.fromkeys([main.baseline, "dare", main.grid.best(main.competitors)])
        heads = [main.reserved.column(h) for h in shown if h in main.reserved.lines]
    return heads + [column for grid in others for column in grid.columns]


def levels_plot(group: SummaryGroup, label: Naming, name: str) -> Plot | None:
    """Per held-out domain the heads, the networks and the ceilings."""
    columns = columns_to_compare(group)
    if not columns:
        return None
    if group.ceilings is None and group.networks is None:
        caption = "Scores on each held-out domain."
        return domain_plot(name, "Heads by held-out domain", caption, columns, label)
    caption = " ".join(
        (
            "Scores on the reserved rows of each held-out domain.",
            "Ceilings (open markers) were given labels of that domain.",
            *other_rows(group, label),
        )
    )
    title = "Heads and ceilings by held-out domain"
    return domain_plot(name, title, caption, columns, label, group.ceilings)


def ceiling_part(
    group: SummaryGroup, label: Naming, plots: tuple[Plot, ...], *, folded: bool
) -> SectionPart:
    """Heads, networks and ceilings on the reserved rows."""
    texts = [*ceiling_gap(group, label)]
    texts += [_CEILINGS] * (group.ceilings is not None) + [_NETWORK] * (group.networks is not None)
    where = "on the reserved rows of the held-out domain"
    tables = domain_tables("ceilings", columns_to_compare(group), label, where)
    tables = tuple(replace(t, notes=(*t.notes, *other_rows(group, label))) for t in tables)
    heading = "Ceilings" if group.ceilings else "The network"
    return SectionPart(heading, " ".join(texts), plots, tables, folded=folded)


def other_rows(group: SummaryGroup, label: Naming) -> Iterator[str]:
    """Which columns are not on the rows set aside, as the others are."""
    for line, rows in group.other_rows.items():
        yield f"{label(line)} was scored on {' and '.join(ROWS.get(on, on) for on in rows)}."


def curve_part(group: SummaryGroup, curve: Sweep, label: Naming, name: str) -> SectionPart:
    """The last layer retrained on ever more labelled rows of the held-out domain."""
    x_label = "labelled rows" if group.task == "regression" else "labelled rows per class"
    curve = curve.complete()
    shown = (group.main.baseline if group.main else "", "dare", "ceiling-exact")
    beside = [column for column in columns_to_compare(group) if column.line in shown]
    levels = sweep_levels(curve, beside, label)
    heading = "Retraining on labelled rows"
    plot = sweep_plot(name, heading, curve, levels, label, x_label)
    table = sweep_table("curve", curve, levels, label, x_label)
    return SectionPart(heading, _CURVE, (plot,), (table,))


CAPTIONS = {
    "adjustment": "Error of the guessed adjustment, ‖Ŵ − W‖²/‖W‖²",
    "alignment": "Mean cosine similarity of the optimal classifiers of single domains",
}


def diagnostic_parts(group: SummaryGroup, label: Naming) -> Iterator[SectionPart]:
    """The paper's Tables 2 and 3."""
    studies = (
        (
            "adjustment",
            group.adjustment,
            "As in the paper's Table 2: zero is a perfect guess of the held-out domain's whitener. "
            "A scalar amounts to no whitening: shrinkage makes both errors small. ",
        ),
        (
            "alignment",
            group.alignment,
            "As in the paper's Table 3: one means the same classifier in every domain. A stronger "
            "ridge makes any two alike. ",
        ),
    )
    tables = tuple(
        _diagnostic(name, grid, label, note + _options(group, name))
        for name, grid, note in studies
        if grid
    )
    if tables:
        text = "Whether the adjustment can be guessed, and whether it brings the domains together."
        folded = group.main is not None
        yield SectionPart("Geometry of the domains", text, (), tables, folded=folded, abreast=True)


def _options(group: SummaryGroup, study: str) -> str:
    """The options that decide a diagnostic."""
    options = group.diagnostic_options.get(study, {})
    return ", ".join(f"{name} {' and '.join(values)}" for name, values in options.items())


def _diagnostic(name: str, grid: Grid, label: Naming, note: str) -> Table:
    names = ("normalised error",) if len(grid.lines) == 1 else tuple(map(label, grid.lines))
    return domain_table(name, CAPTIONS[name], grid.columns, names, [note], scale_of_grid(grid))


def ablation_parts(group: SummaryGroup, label: Naming, prefix: str) -> Iterator[SectionPart]:
    """Each ablation with its figure and its table."""
    if group.ablations:
        yield SectionPart("Ablations")
    for i, (name, study) in enumerate(group.ablations.items(), 1):
        heading, x_label, text = ablation(name)
        anchor = f"{prefix}-ablation{i}"
        if isinstance(study, Sweep):
            sweep = study.complete()
            levels = sweep_levels(sweep, (), label)
            plot = sweep_plot(anchor, heading, sweep, levels, label, x_label)
            tables: tuple[Table, ...] = (sweep_table(name, sweep, levels, label, x_label),)
        else:
            caption = "Scores on each held-out domain."
            plot = domain_plot(anchor, heading, caption, study.columns, label)
            tables = domain_tables(name, study.columns, label, "on the held-out domain")
        yield SectionPart(heading, text, (plot,), tables, below=True)
