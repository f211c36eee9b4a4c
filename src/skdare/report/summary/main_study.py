"""The main study: the heads on each held-out domain, their marks, and each against the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.bench import Record
from skdare.bench._record import METRIC, NOTHING
from skdare.datasets._natural import natural
from skdare.report.summary.grid import Grid, gather
from skdare.report.summary.statistics import (
    Marks,
    McNemar,
    PairedDifference,
    differences,
    holm,
    joint_sign_flip,
    mark_best,
    mcnemar,
    paired_difference,
)

BASELINE = "erm"


@dataclass(frozen=True)
class PairedTest:
    """A head minus the baseline, and its p-values corrected for the number of heads.

    Parameters
    ----------
    difference : PairedDifference
    holm : float
        p of the t-test after Holm's correction.
    higher, lower : float
        p of the sign-flip test that the head is higher, or lower, with all heads flipped together.
    heads : int
        How many heads are held against the baseline.
    """

    difference: PairedDifference
    holm: float
    higher: float
    lower: float
    heads: int


@dataclass(frozen=True)
class RowTest:
    """McNemar's test of a head and the baseline, and its p-value after Holm's correction."""

    test: McNemar
    holm: float


@dataclass(frozen=True, eq=False)
class HeadTests:
    """Every other head against the baseline.

    Parameters
    ----------
    by_domain : mapping from held-out domain to head to PairedTest
        The trials are the units.
    across_domains : mapping from head to PairedTest
        The domain means are the units.
    trial : int
        The trial whose test rows are compared.
    rows_by_domain : mapping from held-out domain to head to RowTest
        The test rows of that trial are the units.
    all_rows : mapping from head to RowTest
        The same over the rows of all domains.
    grouped : bool
        Whether rows come in groups. They are not independent then, and no test counts rows.
    """

    by_domain: Mapping[str, Mapping[str, PairedTest]]
    across_domains: Mapping[str, PairedTest]
    trial: int
    rows_by_domain: Mapping[str, Mapping[str, RowTest]]
    all_rows: Mapping[str, RowTest]
    grouped: bool


@dataclass(frozen=True, eq=False)
class MainStudy:
    """Scores of the heads, and how they compare.

    Parameters
    ----------
    grid : Grid
        The metric on the rows that were tested.
    uses : mapping from head to what it saw of the held-out domain
    baseline : str
    marks : mapping from held-out domain to Marks
        Bold and underline as in the paper's Table 1, among heads that saw nothing. The average
        is not marked: trials are its wrong units, and `HeadTests` has the right ones.
    comparison : HeadTests
    reserved : Grid or None
        The metric on the reserved rows, on which ceilings are scored.
    rmse : Grid or None
    further : mapping from metric to Grid
        Metrics beside that of ``grid``, on the same rows.
    chosen : mapping from head to held-out domain to strategy to the number of trials
        What heads that choose chose.
    """

    grid: Grid
    uses: Mapping[str, str]
    baseline: str
    marks: Mapping[str, Marks]
    comparison: HeadTests
    reserved: Grid | None
    rmse: Grid | None
    further: Mapping[str, Grid]
    chosen: Mapping[str, Mapping[str, Mapping[str, int]]]

    @property
    def competitors(self) -> tuple[str, ...]:
        """Heads that saw nothing of the held-out domain; all, where every head saw something."""
        return _competitors(self.grid.lines, self.uses)


def main_study(records: Sequence[Record]) -> MainStudy:
    """Scores and comparison of the heads in the records of a main study."""
    grid = gather(records)
    uses = {r.head: r.uses for r in records}
    heads = _competitors(grid.lines, uses)
    baseline = BASELINE if BASELINE in grid.lines else heads[0]
    reserved = gather(records, "score_reserved", like=grid)
    rmse = gather(records, "rmse", metric="rmse", like=grid)
    return MainStudy(
        grid,
        uses,
        baseline,
        {d: _marks({h: grid.at(h, d) for h in heads}, baseline) for d in grid.domains},
        _comparison(grid, baseline, records),
        reserved if np.isfinite(reserved.S).any() else None,
        rmse if np.isfinite(rmse.S).any() else None,
        _further(records, grid),
        _chosen(records),
    )


def _further(records: Sequence[Record], grid: Grid) -> dict[str, Grid]:
    """A grid for each further metric, in order of appearance."""
    names = dict.fromkeys(name for r in records for name in r.values if name.startswith(METRIC))
    metrics = {name: name.removeprefix(METRIC) for name in names}
    return {m: gather(records, name, metric=m, like=grid) for name, m in metrics.items()}


def _chosen(records: Sequence[Record]) -> dict[str, dict[str, Counter[str]]]:
    """How often heads that choose chose which strategy, by held-out domain."""
    chosen: dict[str, dict[str, Counter[str]]] = {}
    for r in sorted(records, key=lambda r: natural(r.held_out)):
        if r.ok and "chosen" in r.values:
            of_head = chosen.setdefault(r.head, {})
            of_head.setdefault(r.held_out, Counter())[str(r.values["chosen"])] += 1
    return chosen


def _competitors(heads: tuple[str, ...], uses: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(head for head in heads if uses[head] == NOTHING) or heads


def _marks(scores: Mapping[str, np.ndarray], baseline: str) -> Marks:
    """Marks from the trials that every head with a score has; empty where the baseline failed."""
    scored = {head: x for head, x in scores.items() if np.isfinite(x).any()}
    shared = np.all([np.isfinite(x) for x in scored.values()], axis=0) if scored else np.zeros(0)
    if baseline not in scored or not shared.any():
        return dict.fromkeys(scores, "")
    marks = mark_best({head: x[shared] for head, x in scored.items()}, baseline)
    return {head: marks.get(head, "") for head in scores}


Pair = tuple[np.ndarray, np.ndarray]


def _comparison(grid: Grid, baseline: str, records: Sequence[Record]) -> HeadTests:
    """Every other head against the baseline: by trials, by domains, and by rows."""
    others = [head for head in grid.lines if head != baseline]
    by_domain = {
        d: _paired_tests({h: (grid.at(h, d), grid.at(baseline, d)) for h in others})
        for d in grid.domains
    }
    across = _paired_tests({h: _domain_means(grid, h, baseline) for h in others})
    trial = grid.trials[0]
    grouped = any("n_groups" in r.values for r in records)
    rows = [r for r in records if r.trial == trial and r.ok and not grouped]
    correct = {(r.head, r.held_out): r.correct() for r in rows}
    pairs = {
        d: {h: _same_rows(correct.get((h, d)), correct.get((baseline, d))) for h in others}
        for d in grid.domains
    }
    by_rows = {d: _row_tests({h: [p] for h, p in pairs[d].items() if p}) for d in pairs}
    all_rows = _row_tests({h: [p for by in pairs.values() if (p := by[h])] for h in others})
    return HeadTests(by_domain, across, trial, by_rows, all_rows, grouped)


def _domain_means(grid: Grid, head: str, baseline: str) -> Pair:
    """Mean scores of two heads by domain, over the trials that both have; NaN without any."""
    a = grid.of(head)
    b = grid.of(baseline)
    both = np.isfinite(a) & np.isfinite(b)
    n = np.where(both.any(axis=1), both.sum(axis=1), np.nan)
    means = [np.where(both, S, 0.0).sum(axis=1) / n for S in (a, b)]
    return means[0], means[1]


def _paired_tests(pairs: Mapping[str, Pair]) -> dict[str, PairedTest]:
    """Each head's scores and the baseline's, pair by pair; pairs that lack one are left out."""
    paired: dict[str, PairedDifference] = {}
    rows = []
    for head, (a, b) in pairs.items():
        both = np.isfinite(a) & np.isfinite(b)
        if both.any():
            paired[head] = paired_difference(a[both], b[both])
            row = np.full(len(a), np.nan)
            row[both] = differences(a[both], b[both])
            rows.append(row)
    if not paired:
        return {}
    D = np.stack(rows)
    p = holm({head: d.p for head, d in paired.items()})
    corrected = zip(paired.items(), joint_sign_flip(D), joint_sign_flip(-D), strict=True)
    return {
        head: PairedTest(d, p[head], float(higher), float(lower), len(paired))
        for (head, d), higher, lower in corrected
    }


def _same_rows(a: np.ndarray | None, b: np.ndarray | None) -> Pair | None:
    """Which rows each has right, where both were scored on the same number of rows."""
    return None if a is None or b is None or len(a) != len(b) or not len(a) else (a, b)


def _row_tests(pairs: Mapping[str, Sequence[Pair]]) -> dict[str, RowTest]:
    tests = {
        head: mcnemar(np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))
        for head, parts in pairs.items()
        if parts
    }
    adjusted = holm({head: test.p for head, test in tests.items()})
    return {head: RowTest(test, adjusted[head]) for head, test in tests.items()}
