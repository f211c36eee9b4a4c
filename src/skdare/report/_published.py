"""The figures of a run beside published ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from skdare._scale import NONE, Scale
from skdare.report._document import SectionPart
from skdare.report._names import Naming
from skdare.report._numbers import scale_of_grid
from skdare.report._studies import CAPTIONS
from skdare.report._table import Cell, Table, row
from skdare.report.summary.grid import Grid, estimate
from skdare.report.summary.main_study import BASELINE
from skdare.report.summary.published import PROTOCOL, Figures, Published
from skdare.report.summary.summary import SummaryGroup

# What it gains over the baseline is what the paper is about.
_HEAD = "dare"


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
        if grid is None:
            continue
        figures = getattr(published, study)
        lines = [line for line in grid.lines if figures.get(line, {}).keys() & set(grid.domains)]
        if lines:
            caption = CAPTIONS.get(study) or f"{scale_of_grid(grid).title} on the held-out domain"
            caption += f"; in brackets {published.source}"
            tables.append(_table(f"published-{study}", caption, grid, lines, figures, label))
    if tables:
        text = "Means over the trials of this run, and published ones of the same study."
        yield SectionPart("Beside published figures", text, (), tuple(tables))


def _table(
    name: str, caption: str, grid: Grid, lines: Sequence[str], figures: Figures, label: Naming
) -> Table:
    """A row for each held-out domain and for their average.

    Where both heads have figures, the last column is the gain of DARE over the baseline.
    """
    scale = scale_of_grid(grid)
    gains = {BASELINE, _HEAD} <= set(lines)

    def cells(
        title: str, domains: Sequence[str], own: Mapping[str, np.ndarray]
    ) -> tuple[Cell, ...]:
        """A row: our scores by trial, and the published ones on these domains."""
        theirs = {line: _mean(figures[line], domains) for line in lines}
        texts = []
        for line in lines:
            published = _in_print(theirs[line], scale)
            texts.append(_beside(scale.value(estimate(own[line]).mean), scale.value(published)))
        if gains:
            # By trial, as one that lacks either head says nothing of the gain.
            gain = estimate(own[_HEAD] - own[BASELINE]).mean
            published = _in_print(theirs[_HEAD] - theirs[BASELINE], scale)
            texts.append(_beside(scale.gain(gain), scale.gain(published)))
        return row(title, texts)

    rows = [
        cells(domain, [domain], {line: grid.at(line, domain) for line in lines})
        for domain in grid.domains
    ]
    rows.append(cells("average", grid.domains, {line: grid.average(line) for line in lines}))
    names = [label(line) for line in lines]
    names += [f"{label(_HEAD)} − {label(BASELINE)}"] if gains else []
    return Table(name, caption, ("held out", *names), tuple(rows), foot=1, grid=True)


def _mean(figures: Mapping[str, float], domains: Sequence[str]) -> Decimal:
    """Mean of published figures, exact; not a number where one is not known."""
    known = [Decimal(repr(figures.get(domain, math.nan))) for domain in domains]
    return sum(known, Decimal(0)) / len(known)


def _in_print(value: Decimal, scale: Scale) -> float:
    """A published number as a score, rounded as it would be by hand: 83.85 to 83.9."""
    digits = value.quantize(Decimal(1).scaleb(-scale.digits), ROUND_HALF_UP)
    return float(digits) / scale.factor


def _beside(own: str, published: str) -> str:
    """A figure, and a published one in brackets; a dash alone where both are unknown."""
    return own if own == published == NONE else f"{own} ({published})"
