"""The main study: who stands where on each held-out domain."""

from __future__ import annotations

import math

from skdare.bench._record import NOTHING
from skdare.report._grids import domain_rows, domain_tables, kind_of_trials
from skdare.report._names import Naming
from skdare.report._numbers import NONE, p_value, scale_of
from skdare.report._part import Part
from skdare.report._table import Cell, Table
from skdare.report.summary.grid import estimate
from skdare.report.summary.groups import Group
from skdare.report.summary.standing import Paired, RowTest, Standing

ROWS = {
    "reserved": "its rows set aside",
    "rest": "its rows not set aside",
    "all": "all its rows",
    "unknown": "rows that nobody noted",
}


def standing_part(group: Group, standing: Standing, label: Naming) -> Part:
    """Scores on each held-out domain."""
    tables = [main_table(standing, label)]
    if standing.rmse:
        columns = [(standing.rmse, head) for head in standing.rmse.lines]
        tables += domain_tables("rmse", columns, label, "on the held-out domain")
    tested = [ROWS.get(name, name) for name in group.conditions.tested_on]
    where = f", scored on {' or '.join(tested)}" if tested else ""
    text = f"Each domain in turn is held out of training and then predicted{where}."
    return Part("Scores on held-out domains", text, (), tuple(tables))


def main_table(standing: Standing, label: Naming) -> Table:
    """Heads by held-out domain; with two heads their difference and its p as well."""
    grid, scale = standing.grid, scale_of(standing.grid.metric)
    columns = [(grid, head) for head in grid.lines]
    rows = domain_rows(columns, scale, standing.marks)
    names = tuple(label(h) + ("" if standing.uses[h] == NOTHING else "†") for h in grid.lines)
    notes = []
    for use in dict.fromkeys(use for use in standing.uses.values() if use != NOTHING):
        notes.append(f"† uses {use} of the held-out domain, so it is not marked.")
    two = len(grid.lines) == 2 and bool(standing.against.across)
    if two:
        rows = [(*cells, *more) for cells, more in zip(rows, _gains(standing), strict=True)]
        names += ("gain", "p")
        notes.append(_p_note(standing))
    fair = len(standing.competitors) > 1 and len(grid.trials) > 1
    return Table(
        "main",
        f"{scale.title} on the held-out domain",
        ("held out", *names),
        tuple(rows),
        tuple(notes),
        foot=2,
        grid=not two,
        baseline=label(standing.baseline) if fair else "",
        trials=len(grid.trials),
        kind=kind_of_trials(columns),
    )


def _p_note(standing: Standing) -> str:
    """What the p of a table of two heads is."""
    if len(standing.grid.trials) == 1 and standing.against.pooled:
        return "p: McNemar's test on the test rows, two-sided; for the average, on all of them."
    return "p: one-sided paired t-test over trials; for the average, over domains."


def _gains(standing: Standing) -> list[list[Cell]]:
    """Gain and p of the only other head, for each domain, the average and the worst domain."""
    scale, against = scale_of(standing.grid.metric), standing.against
    [head] = [h for h in standing.grid.lines if h != standing.baseline]
    one = len(standing.grid.trials) == 1

    def cells(found: Paired | None, rows: RowTest | None) -> list[Cell]:
        p = rows.test.p if one and rows else found.difference.p if found else math.nan
        return [Cell(scale.gain(found.difference.mean if found else math.nan)), Cell(p_value(p))]

    parts = [
        cells(against.domains[d].get(head), against.rows[d].get(head))
        for d in standing.grid.domains
    ]
    ours, theirs = (estimate(standing.grid.worst(h)).mean for h in (head, standing.baseline))
    worst = [Cell(scale.gain(ours - theirs)), Cell(NONE)]
    return [*parts, cells(against.across.get(head), against.pooled.get(head)), worst]
