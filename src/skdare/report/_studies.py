"""The other studies: ceilings, the learning curve, diagnostics, ablations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skdare.report._grids import (
    SORTED,
    Column,
    domain_plot,
    domain_rows,
    domain_tables,
    domains_of,
    kind_of_trials,
    sweep_levels,
    sweep_plot,
    sweep_table,
)
from skdare.report._names import Naming, ablation
from skdare.report._numbers import scale_of
from skdare.report._part import Part
from skdare.report._plot import Plot
from skdare.report._standing import ROWS
from skdare.report._table import Table
from skdare.report.summary.grid import Grid, Sweep
from skdare.report.summary.groups import Group

ROOM_FOR_NAMES = 62  # characters side by side under bars


def columns_to_compare(group: Group) -> list[Column]:
    """The baseline, DARE and the best head, then the networks and ceilings, on reserved rows.

    Without networks and ceilings: every head, on the rows that were tested.
    """
    main, others = group.main, [grid for grid in (group.networks, group.ceilings) if grid]
    if not others:
        return [(main.grid, head) for head in main.grid.lines] if main else []
    heads: list[Column] = []
    if main and main.reserved:
        shown = dict.fromkeys([main.baseline, "dare", main.grid.best(main.competitors)])
        heads = [(main.reserved, h) for h in shown if h in main.reserved.lines]
    return heads + [(grid, line) for grid in others for line in grid.lines]


def levels_plot(group: Group, label: Naming, name: str) -> Plot | None:
    """Per held-out domain the heads, the networks and the ceilings."""
    columns = columns_to_compare(group)
    if not columns:
        return None
    if group.ceilings is None and group.networks is None:
        caption = "Scores on each held-out domain."
        return domain_plot(name, "Heads by held-out domain", caption, columns, label)
    domains = domains_of(columns)
    fits = len(domains) <= SORTED and len(domains) * max(map(len, domains)) <= ROOM_FOR_NAMES
    bars = fits and group.metric == "accuracy"
    paler = ", in softer colours," if bars else ""
    caption = " ".join(
        (
            "Scores on the reserved rows of each held-out domain.",
            f"Ceilings{paler} were given labels of that domain.",
            *other_rows(group, label),
        )
    )
    title = "Heads and ceilings by held-out domain"
    return domain_plot(name, title, caption, columns, label, bars)


def ceiling_part(group: Group, label: Naming, plots: tuple[Plot, ...]) -> Part:
    """Heads, networks and ceilings on the reserved rows."""
    text = (
        "Ceilings cheat: they were trained with labels of the held-out domain, on rows other than "
        "those scored. The linear ceiling shows that a linear head on the same features does at "
        "least so well when it is told where to look; a head without those labels need not be able "
        "to, and another linear head may do better still."
    )
    network = (
        "The network is the one that made the features, with its own last layer; it has seen "
        "nothing of the held-out domain."
    )
    said = [text] * (group.ceilings is not None) + [network] * (group.networks is not None)
    where = "on the reserved rows of the held-out domain"
    tables = domain_tables("ceilings", columns_to_compare(group), label, where)
    tables = tuple(replace(t, notes=(*t.notes, *other_rows(group, label))) for t in tables)
    heading = "Ceilings" if group.ceilings else "The network"
    return Part(heading, " ".join(said), plots, tables)


def other_rows(group: Group, label: Naming) -> Iterator[str]:
    """Which columns are not on the rows set aside, as the others are."""
    for line, rows in group.other_rows.items():
        yield f"{label(line)} was scored on {' and '.join(ROWS.get(on, on) for on in rows)}."


def curve_part(group: Group, curve: Sweep, label: Naming, name: str) -> Part:
    """The last layer retrained on ever more labelled rows of the held-out domain."""
    x_label = "labelled rows" if group.task == "regression" else "labelled rows per class"
    curve = curve.complete()
    baseline = group.main.baseline if group.main else ""
    shown = (baseline, "dare", "ceiling-exact")
    beside = [(grid, line) for grid, line in columns_to_compare(group) if line in shown]
    levels = sweep_levels(curve, beside, label)
    text = (
        "The last layer is fitted again with a few labelled rows of the held-out domain, with the "
        "same ridge as the heads and the ceiling, and scored on the rows set aside."
    )
    heading = "Retraining on labelled rows"
    plot = sweep_plot(name, heading, curve, levels, label, x_label)
    return Part(heading, text, (plot,), (sweep_table("curve", curve, levels, label, x_label),))


def diagnostic_parts(group: Group, label: Naming) -> Iterator[Part]:
    """The paper's Tables 2 and 3."""
    found = (
        (
            "adjustment",
            group.adjustment,
            "Error of the guessed adjustment, ‖Ŵ − W‖²/‖W‖²",
            "As the paper's Table 2: zero is a perfect guess of the held-out domain's whitener. A "
            "scalar is what no whitening comes to: shrinkage makes both small. ",
        ),
        (
            "alignment",
            group.alignment,
            "Mean cosine similarity of the optimal classifiers of single domains",
            "As the paper's Table 3: one is the same classifier in every domain. A stronger ridge "
            "makes any two alike. ",
        ),
    )
    tables = tuple(
        _diagnostic(name, grid, label, caption, note + _with(group, name))
        for name, grid, caption, note in found
        if grid
    )
    if tables:
        text = "Whether the adjustment can be guessed, and whether it brings the domains together."
        yield Part("Diagnostics", text, (), tables, abreast=True)


def _with(group: Group, study: str) -> str:
    """The options that decide a diagnostic."""
    options = group.diagnosed.get(study, {})
    return ", ".join(f"{name} {' and '.join(values)}" for name, values in options.items())


def _diagnostic(name: str, grid: Grid, label: Naming, caption: str, note: str) -> Table:
    names = ("normalised error",) if len(grid.lines) == 1 else tuple(map(label, grid.lines))
    columns = [(grid, line) for line in grid.lines]
    rows = domain_rows(columns, scale_of(grid.metric))[:-1]
    return Table(
        name,
        caption,
        ("held out", *names),
        tuple(rows),
        (note,),
        foot=1,
        grid=True,
        trials=len(grid.trials),
        kind=kind_of_trials(columns),
    )


def ablation_parts(group: Group, label: Naming, prefix: str) -> Iterator[Part]:
    """Each ablation with its figure and its table."""
    if group.ablations:
        yield Part("Ablations")
    for i, (name, found) in enumerate(group.ablations.items(), 1):
        heading, x_label, text = ablation(name)
        anchor = f"{prefix}-ablation{i}"
        if isinstance(found, Sweep):
            found = found.complete()
            levels = sweep_levels(found, (), label)
            plot = sweep_plot(anchor, heading, found, levels, label, x_label)
            tables: tuple[Table, ...] = (sweep_table(name, found, levels, label, x_label),)
        else:
            columns = [(found, line) for line in found.lines]
            caption, where = "Scores on each held-out domain.", "on the held-out domain"
            plot = domain_plot(anchor, heading, caption, columns, label)
            tables = domain_tables(name, columns, label, where)
        yield Part(heading, text, (plot,), tables, below=True)
