"""Every head against the baseline: tests by domains, by trials and by rows, and their picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from skdare.report._names import Naming
from skdare.report._numbers import Scale, count, p_value, scale_of, smallest
from skdare.report._part import Part
from skdare.report._plot import Gain, Gains, Plot
from skdare.report._table import Cell, Table, row
from skdare.report.summary.standing import Paired, RowTest, Standing

FAR = 3.0  # times the size that one difference in ten exceeds
_ROWS_NOTE = (
    "Rows that only one of the two heads gets right; p is exact and two-sided. It speaks of "
    "more rows of the same domains for these fitted heads, not of another split or domain."
)


def comparison_part(standing: Standing, label: Naming, plots: tuple[Plot, ...]) -> Part:
    """Every head against the baseline."""
    tables: list[Table] = []
    if standing.against.across:
        tables += [_across_table(standing, label), _domain_table(standing, label)]
    if standing.against.pooled:
        tables += _row_tables(standing, label)
    return Part("Heads compared", "", plots, tuple(tables))


def _across_table(standing: Standing, label: Naming) -> Table:
    """The domain means as units."""
    scale = scale_of(standing.grid.metric)
    rows = [
        row(label(head), _paired_cells(scale, found))
        for head, found in standing.against.across.items()
    ]
    return Table(
        "across",
        f"Each head minus {label(standing.baseline)}, averaged over held-out domains",
        ("head", "gain", "t 90 % interval", "p (Holm)", "sign-flip p (Holm)"),
        tuple(rows),
        (
            "Units are the domain means, so the interval and the tests speak of another domain "
            "like these; they share training domains, so they are not quite independent. p: "
            "one-sided paired t-test that the head is higher; in brackets: "
            f"corrected by Holm for the number of heads. {_reach(standing.against.across)}",
        ),
    )


def _domain_table(standing: Standing, label: Naming) -> Table:
    """The trials as units."""
    scale = scale_of(standing.grid.metric)
    rows = [
        row(domain, [label(head), *_paired_cells(scale, found)])
        for domain, heads in standing.against.domains.items()
        for head, found in heads.items()
    ]
    trials = count(len(standing.grid.trials), "trial")
    another = "another network and split" if standing.grid.fresh else "another split"
    return Table(
        "differences",
        f"Each head minus {label(standing.baseline)} on each held-out domain, over {trials}",
        ("held out", "head", "gain", "t 90 % interval", "p (Holm)", "sign-flip p (Holm)"),
        tuple(rows),
        (
            f"Units are the trials, so the tests speak of {another} of the same domains. "
            + _reach(
                {d + h: p for d, by in standing.against.domains.items() for h, p in by.items()}
            ),
        ),
        detail=True,
    )


def _paired_cells(scale: Scale, found: Paired) -> list[Cell]:
    d = found.difference
    return [
        Cell(scale.gain(d.mean)),
        Cell(scale.interval(d.low, d.high)),
        _corrected(d.p, found.holm),
        _corrected(d.sign_flip.p, found.holm_sign_flip),
    ]


def _corrected(p: float, holm: float) -> Cell:
    """A p-value, and in brackets after Holm's correction."""
    return Cell(p_value(p), "" if math.isnan(holm) else f"({p_value(holm)})")


def _reach(found: Mapping[str, Paired]) -> str:
    """The smallest p that the sign-flip tests can reach, by the number of units."""
    flips = {p.difference.n: p.difference.sign_flip for p in found.values()}
    said = (f"{smallest(flips[n])} for n = {n}" for n in sorted(flips))
    return f"The smallest p that a sign-flip test can reach is {', '.join(said)}."


def _row_tables(standing: Standing, label: Naming) -> list[Table]:
    """The test rows of one split as units: pooled, which is what one trial has, and by domain."""
    scale, against = scale_of(standing.grid.metric), standing.against
    base, many = label(standing.baseline), len(standing.grid.trials) > 1
    columns = ("it alone right", f"{base} alone right", "gain", "90 % interval", "p (Holm)")
    pooled = [row(label(h), _row_cells(scale, found)) for h, found in against.pooled.items()]
    single = [
        row(domain, [label(h), *_row_cells(scale, found)])
        for domain, heads in against.rows.items()
        for h, found in heads.items()
    ]
    start, notes = f"Each head and {base} on the test rows of trial {against.trial}", (_ROWS_NOTE,)
    together = f"{start}, all held-out domains together (McNemar)"
    apart = f"{start}, by held-out domain (McNemar)"
    return [
        Table("rows", together, ("head", *columns), tuple(pooled), notes, detail=many),
        Table(
            "rows-by-domain",
            apart,
            ("held out", "head", *columns),
            tuple(single),
            notes,
            detail=True,
        ),
    ]


def _row_cells(scale: Scale, found: RowTest) -> list[Cell]:
    test, d = found.test, found.test.difference
    return [
        Cell(f"{test.only_a:,}"),
        Cell(f"{test.only_b:,}"),
        Cell(scale.gain(d.mean)),
        Cell(scale.interval(d.low, d.high)),
        _corrected(test.p, found.holm),
    ]


def gains_plot(standing: Standing, label: Naming, name: str) -> Plot | None:
    """Every head minus the baseline: a point a domain, their mean and its interval."""
    scale, against = scale_of(standing.grid.metric), standing.against
    gains = []
    for head, found in against.across.items():
        d = found.difference
        points = (by[head].difference.mean for by in against.domains.values() if head in by)
        mean, low, high = (scale.scaled(v) for v in (d.mean, d.low, d.high))
        gains.append(Gain(head, label(head), tuple(map(scale.scaled, points)), mean, low, high))
    if not gains:
        return None
    base, limit = label(standing.baseline), _limit(gains)
    far = " Arrows: domains beyond the axis." if _reach_of(gains) > limit else ""
    interval = " and its t 90 % interval" if any(not math.isnan(g.low) for g in gains) else ""
    return Plot(
        name,
        f"Difference from {base}",
        f"difference in {scale.axis.replace('(%)', '(points)')}",
        Gains(tuple(gains), limit),
        f"Each head minus {base}. Open circles: held-out domains, means over trials. "
        f"Dots and bars: mean over domains{interval}.{far}",
        _said(scale, against.across, label),
    )


def _reach_of(gains: Sequence[Gain]) -> float:
    return max(abs(v) for g in gains for v in g.points)


def _limit(gains: Sequence[Gain]) -> float:
    """How far the axis must go: to all means and intervals, and to all but far points."""
    ends = [abs(v) for g in gains for v in (g.mean, g.low, g.high) if not math.isnan(v)]
    points = [abs(v) for g in gains for v in g.points]
    return max(*ends, FAR * float(np.percentile(points, 90)))


def _said(scale: Scale, across: Mapping[str, Paired], label: Naming) -> str:
    """The differences in words."""
    parts = []
    for head, found in across.items():
        d = found.difference
        interval = "" if math.isnan(d.low) else f", interval {scale.interval(d.low, d.high)}"
        parts.append(f"{label(head)} {scale.gain(d.mean)}{interval}")
    return "; ".join(parts) + "."
