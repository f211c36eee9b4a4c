"""The main study: scores on each held-out domain, and every head against the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from skdare._safe_text import counted
from skdare._scale import Scale
from skdare.bench._record import NOTHING
from skdare.report._document import SectionPart
from skdare.report._grids import domain_rows, domain_tables, kind_of_trials, shortened
from skdare.report._names import ROWS, Naming
from skdare.report._numbers import p_value, scale_of_grid
from skdare.report._plot import Gain, Gains, Plot
from skdare.report._table import Cell, Table, row
from skdare.report._verdict import ENOUGH, evidence
from skdare.report.summary.grid import Grid
from skdare.report.summary.main_study import MainStudy, PairedTest, RowTest
from skdare.report.summary.statistics import SignFlip
from skdare.report.summary.summary import SummaryGroup

FAR = 3.0  # times the size that one difference in ten exceeds
_ROWS_NOTE = (
    "Rows that only one of the two heads gets right; p is exact and two-sided. The test is about "
    "more rows of the same domains for these fitted heads, not about another split or domain."
)

# Scores


def scores_part(group: SummaryGroup, main: MainStudy, label: Naming) -> SectionPart:
    """Scores on each held-out domain."""
    rows = [ROWS.get(name, name) for name in group.conditions.tested_on]
    where = f", scored on {' or '.join(rows)}" if rows else ""
    text = f"Each domain in turn is held out of training and then predicted{where}."
    return SectionPart(
        "Scores on held-out domains", text, (), shortened(_scores_table(main, label))
    )


def further_part(main: MainStudy, label: Naming) -> SectionPart:
    """Metrics beside that by which heads are compared."""
    tables: list[Table] = []
    for metric, grid in main.further.items():
        tables += domain_tables(metric, grid.columns, label, "on the held-out domain")
    return SectionPart("Further metrics", "The same predictions.", (), tuple(tables))


def rmse_part(rmse: Grid, label: Naming) -> SectionPart:
    """Errors in the units of the target, folded."""
    tables = domain_tables("rmse", rmse.columns, label, "on the held-out domain")
    return SectionPart("RMSE", "", (), tables, folded=True)


def _scores_table(main: MainStudy, label: Naming) -> Table:
    """Heads by held-out domain; with two heads their difference and its p as well."""
    grid = main.grid
    scale = scale_of_grid(grid)
    rows = domain_rows(grid.columns, scale, main.marks)
    names = tuple(label(h) + ("" if main.uses[h] == NOTHING else "†") for h in grid.lines)
    notes = []
    for use in dict.fromkeys(use for use in main.uses.values() if use != NOTHING):
        notes.append(f"† uses {use} of the held-out domain, so it is not marked.")
    two = len(grid.lines) == 2 and bool(main.comparison.across_domains)
    if two:
        rows = [(*cells, *gain) for cells, gain in zip(rows, _gain_cells(main), strict=True)]
        names += ("gain", "p")
        notes.append(_p_note(main))
    marked = len(main.competitors) > 1 and len(grid.trials) > 1
    return Table(
        "main",
        f"{scale.title} on the held-out domain",
        ("held out", *names),
        tuple(rows),
        tuple(notes),
        foot=2,
        grid=not two,
        baseline=label(main.baseline) if marked else "",
        trials=len(grid.trials),
        kind=kind_of_trials(grid.columns),
    )


def _p_note(main: MainStudy) -> str:
    """What the p of a table of two heads is."""
    average = "for the average, a sign-flip test over domains, one-sided."
    if len(main.grid.trials) > 1:
        return f"p: paired t-test over trials, one-sided; {average}"
    if main.comparison.all_rows:
        return f"p: McNemar's test on the test rows, two-sided; {average}"
    return f"p: {average}"


def _gain_cells(main: MainStudy) -> list[list[Cell]]:
    """Gain and p of the only other head, for each domain, the average and the worst domain."""
    scale = scale_of_grid(main.grid)
    comparison = main.comparison
    [head] = [h for h in main.grid.lines if h != main.baseline]
    one_trial = len(main.grid.trials) == 1

    def cells(gain: float, p: float) -> list[Cell]:
        return [Cell(scale.gain(gain)), Cell(p_value(p))]

    by_domain = []
    for domain in main.grid.domains:
        paired = comparison.by_domain[domain].get(head)
        rows = comparison.rows_by_domain[domain].get(head) if one_trial else None
        p = rows.test.p if rows else paired.difference.p if paired else math.nan
        by_domain.append(cells(paired.difference.mean if paired else math.nan, p))
    across = comparison.across_domains[head]
    # Of one domain nothing follows for others.
    p = across.higher if across.difference.n > 1 else math.nan
    worst = main.grid.column(head).worst.mean - main.grid.column(main.baseline).worst.mean
    return [*by_domain, cells(across.difference.mean, p), cells(worst, math.nan)]


# Every head against the baseline


def comparison_part(main: MainStudy, label: Naming, plots: tuple[Plot, ...]) -> SectionPart:
    """Tests by domains, by trials and by rows, folded."""
    tables: list[Table] = []
    if main.comparison.across_domains:
        tables += [_across_table(main, label), _by_domain_table(main, label)]
    if main.comparison.all_rows:
        tables += _row_tables(main, label)
    text = " ".join(evidence(main, label))
    return SectionPart("Tests of the differences", text, plots, tuple(tables), folded=True)


def _across_table(main: MainStudy, label: Naming) -> Table:
    """The domain means as units."""
    scale = scale_of_grid(main.grid)
    tests = main.comparison.across_domains
    return Table(
        "across",
        f"Each head minus {label(main.baseline)}, averaged over held-out domains",
        ("head", "gain", "t 90 % interval", "sign-flip p (corrected)"),
        tuple(
            row(label(head), [*_gain_and_interval(scale, test), _flip_cell(test)])
            for head, test in tests.items()
        ),
        (
            "The units are the domain means, so the interval and the test are about another "
            "domain like these; the means share training domains, so they are not quite "
            "independent. p: one-sided, that the head is higher; in brackets: corrected for the "
            f"number of heads. Each interval is of one head alone. {_smallest_p(tests.values())}",
        ),
    )


def _by_domain_table(main: MainStudy, label: Naming) -> Table:
    """The trials as units."""
    scale = scale_of_grid(main.grid)
    tests = [
        (domain, head, test)
        for domain, heads in main.comparison.by_domain.items()
        for head, test in heads.items()
    ]
    trials = counted(len(main.grid.trials), "trial")
    another = "another network and split" if main.grid.fresh else "another split"
    return Table(
        "differences",
        f"Each head minus {label(main.baseline)} on each held-out domain, over {trials}",
        (
            "held out",
            "head",
            "gain",
            "t 90 % interval",
            "t-test p (Holm)",
            "sign-flip p (corrected)",
        ),
        tuple(
            row(
                domain,
                [
                    label(head),
                    *_gain_and_interval(scale, test),
                    _p_cell(test.difference.p, test.holm),
                    _flip_cell(test),
                ],
            )
            for domain, head, test in tests
        ),
        (
            f"The units are the trials, so the tests are about {another} of the same domains. "
            + _smallest_p(test for _, _, test in tests),
        ),
        detail=True,
    )


def _gain_and_interval(scale: Scale, test: PairedTest) -> list[Cell]:
    d = test.difference
    return [Cell(scale.gain(d.mean)), Cell(scale.interval(d.low, d.high))]


def _flip_cell(test: PairedTest) -> Cell:
    return _p_cell(test.difference.sign_flip.p, test.higher)


def _p_cell(p: float, corrected: float) -> Cell:
    """A p-value, and in brackets corrected for the number of heads."""
    return Cell(p_value(p), "" if math.isnan(corrected) else f"({p_value(corrected)})")


def _smallest_p(tests: Iterable[PairedTest]) -> str:
    """The smallest p that the sign-flip tests can reach, by the number of units."""

    def smallest(flip: SignFlip) -> str:
        return f"1/{2**flip.n}" if flip.exact else p_value(flip.smallest)

    flips = {test.difference.n: test.difference.sign_flip for test in tests}
    limits = (f"{smallest(flips[n])} for n = {n}" for n in sorted(flips))
    return f"The smallest p that a sign-flip test can reach is {', '.join(limits)}."


def _row_tables(main: MainStudy, label: Naming) -> list[Table]:
    """The test rows of one trial as units: of all domains together, and by domain."""
    scale = scale_of_grid(main.grid)
    comparison = main.comparison
    base = label(main.baseline)
    columns = ("only this head right", f"only {base} right", "gain", "90 % interval", "p (Holm)")
    together = [row(label(h), _row_cells(scale, test)) for h, test in comparison.all_rows.items()]
    by_domain = [
        row(domain, [label(h), *_row_cells(scale, test)])
        for domain, heads in comparison.rows_by_domain.items()
        for h, test in heads.items()
    ]
    start = f"Each head and {base} on the test rows of trial {comparison.trial}"
    return [
        Table(
            "rows",
            f"{start}, all held-out domains together (McNemar)",
            ("head", *columns),
            tuple(together),
            (_ROWS_NOTE,),
            detail=len(main.grid.trials) > 1,
        ),
        Table(
            "rows-by-domain",
            f"{start}, by held-out domain (McNemar)",
            ("held out", "head", *columns),
            tuple(by_domain),
            (_ROWS_NOTE,),
            detail=True,
        ),
    ]


def _row_cells(scale: Scale, row_test: RowTest) -> list[Cell]:
    test = row_test.test
    d = test.difference
    return [
        Cell(f"{test.only_a:,}"),
        Cell(f"{test.only_b:,}"),
        Cell(scale.gain(d.mean)),
        Cell(scale.interval(d.low, d.high)),
        _p_cell(test.p, row_test.holm),
    ]


def gains_plot(main: MainStudy, label: Naming, name: str) -> Plot | None:
    """Every head minus the baseline: a point for each domain, their mean and its interval."""
    scale = scale_of_grid(main.grid)
    tests = main.comparison.across_domains
    gains = []
    for head, test in tests.items():
        domains = (by for by in main.comparison.by_domain.values() if head in by)
        points = tuple(scale.scaled(by[head].difference.mean) for by in domains)
        d = test.difference
        mean, low, high = (scale.scaled(v) for v in (d.mean, d.low, d.high))
        adapted = main.uses[head] != NOTHING
        gains.append(Gain(head, label(head), points, mean, low, high, scale.gain(d.mean), adapted))
    if not gains:
        return None
    gains.sort(key=lambda gain: gain.adapted)
    base = label(main.baseline)
    limit = _axis_limit(gains)
    beyond = max(abs(v) for g in gains for v in g.points) > limit
    arrows = " Arrows: domains beyond the axis." if beyond else ""
    interval = " and its t 90 % interval" if any(not math.isnan(g.low) for g in gains) else ""
    n = len(main.grid.domains)
    few = f" Of {n} domains, an interval clear of zero is no proof." * (1 < n < ENOUGH)
    return Plot(
        name,
        f"Difference from {base}",
        f"difference from {base} in {scale.axis.replace('(%)', '(points)')}",
        Gains(tuple(gains), limit),
        f"Each head minus {base}. Open circles: held-out domains. Dots and bars: mean over "
        f"domains{interval}.{few}{arrows}",
        _gains_in_words(scale, tests, label),
    )


def _axis_limit(gains: Sequence[Gain]) -> float:
    """How far the axis must go: to all means and intervals, and to all but far points."""
    ends = [abs(v) for g in gains for v in (g.mean, g.low, g.high) if not math.isnan(v)]
    points = [abs(v) for g in gains for v in g.points]
    return max(*ends, FAR * float(np.percentile(points, 90)))


def _gains_in_words(scale: Scale, tests: Mapping[str, PairedTest], label: Naming) -> str:
    parts = []
    for head, test in tests.items():
        d = test.difference
        interval = "" if math.isnan(d.low) else f", interval {scale.interval(d.low, d.high)}"
        parts.append(f"{label(head)} {scale.gain(d.mean)}{interval}")
    return "; ".join(parts) + "."
