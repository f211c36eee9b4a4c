"""The figures of a run beside published ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skdare._scale import NONE
from skdare.report._document import SectionPart
from skdare.report._names import Naming
from skdare.report._numbers import scale_of_grid
from skdare.report._studies import CAPTIONS
from skdare.report._table import Table, row
from skdare.report.summary.grid import Grid
from skdare.report.summary.main_study import BASELINE
from skdare.report.summary.published import Figures, Published
from skdare.report.summary.summary import SummaryGroup

# The protocol that published figures were made by.
PROTOCOL = "paper"
# What it gains over the baseline is what the paper is about.
HEAD = "dare"


def published_parts(
    group: SummaryGroup, published: Published | None, label: Naming
) -> Iterator[SectionPart]:
    """Tables of the run with the published figures in brackets, under the paper's protocol."""
    if published is None or group.protocol != PROTOCOL:
        return
    grids = {
        "main": group.main.grid if group.main else None,
        "adjustment": group.adjustment,
        "alignment": group.alignment,
    }
    tables = []
    for study, grid in grids.items():
        figures = getattr(published, study)
        if grid is not None and any(line in figures for line in grid.lines):
            caption = CAPTIONS.get(study) or f"{scale_of_grid(grid).title} on the held-out domain"
            caption += f"; in brackets {published.source}"
            tables.append(_table(f"published-{study}", caption, grid, figures, label))
    if tables:
        text = "Means over the trials of this run, and published ones of the same study."
        yield SectionPart("Beside published figures", text, (), tuple(tables))


def _table(
    name: str,
    caption: str,
    grid: Grid,
    figures: Figures,
    label: Naming,
) -> Table:
    """A row for each held-out domain and for their average; what DARE gains beside heads."""
    scale = scale_of_grid(grid)
    lines = [line for line in grid.lines if line in figures]
    gains = {BASELINE, HEAD} <= set(lines)

    def means(domain: str | None) -> dict[str, tuple[float, float]]:
        """Ours and theirs of each line, on one domain or on average."""
        pairs = {}
        for line in lines:
            column = grid.column(line)
            own = (column.average if domain is None else column.at(domain)).mean
            names = grid.domains if domain is None else (domain,)
            theirs = [figures[line].get(name, math.nan) for name in names]
            pairs[line] = (own, sum(theirs) / len(theirs) / scale.factor)
        return pairs

    def cells(domain: str | None) -> Iterator[str]:
        pairs = means(domain)
        for own, theirs in pairs.values():
            yield _beside(scale.value(own), scale.value(theirs))
        if gains:
            own, theirs = (
                above - below for above, below in zip(pairs[HEAD], pairs[BASELINE], strict=True)
            )
            yield _beside(scale.gain(own), scale.gain(theirs))

    names = [label(line) for line in lines]
    names += [f"{label(HEAD)} − {label(BASELINE)}"] if gains else []
    return Table(
        name,
        caption,
        ("held out", *names),
        (*(row(domain, cells(domain)) for domain in grid.domains), row("average", cells(None))),
        foot=1,
        grid=True,
    )


def _beside(own: str, published: str) -> str:
    """A figure, and a published one in brackets; a dash alone where both are unknown."""
    return own if own == published == NONE else f"{own} ({published})"
