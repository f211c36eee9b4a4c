"""The standing of the heads: the main study, its marks, and every head against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.bench import Record
from skdare.bench._record import NOTHING
from skdare.report.summary.comparison import (
    Marks,
    McNemar,
    PairedDifference,
    holm,
    mark_best,
    mcnemar,
    paired_difference,
)
from skdare.report.summary.grid import Grid, gather

BASELINE = "erm"


@dataclass(frozen=True)
class Paired:
    """A head minus the baseline, and its p-values after Holm's correction over its family.

    Heads that saw nothing of the held-out domain are one family, the others another; ``family``
    is the number of heads in it.
    """

    difference: PairedDifference
    holm: float
    holm_lower: float
    holm_sign_flip: float
    family: int


@dataclass(frozen=True)
class RowTest:
    """McNemar's test of a head and the baseline, and its p-value after Holm's correction."""

    test: McNemar
    holm: float


@dataclass(frozen=True, eq=False)
class Against:
    """Every other head against the baseline.

    Parameters
    ----------
    baseline : str
    trial : int
        The split whose rows are tested.
    domains : mapping from held-out domain to head to Paired
        The trials are the units.
    across : mapping from head to Paired
        The domain means are the units.
    rows : mapping from held-out domain to head to RowTest
        The test rows of one split are the units.
    pooled : mapping from head to RowTest
        The same over the rows of all domains.
    """

    baseline: str
    trial: int
    domains: Mapping[str, Mapping[str, Paired]]
    across: Mapping[str, Paired]
    rows: Mapping[str, Mapping[str, RowTest]]
    pooled: Mapping[str, RowTest]


@dataclass(frozen=True, eq=False)
class Standing:
    """The main study.

    Parameters
    ----------
    grid : Grid
        The metric on the rows that were tested.
    uses : mapping from head to what it saw of the held-out domain
    marks : mapping from held-out domain to Marks
        Bold and underline as in the paper's Table 1, among heads that saw nothing. The average
        is not marked: trials are its wrong units, and `Against` has the right ones.
    against : Against
    reserved : Grid or None
        The metric on the reserved rows, on which ceilings are scored.
    rmse : Grid or None
    """

    grid: Grid
    uses: Mapping[str, str]
    marks: Mapping[str, Marks]
    against: Against
    reserved: Grid | None
    rmse: Grid | None

    @property
    def competitors(self) -> tuple[str, ...]:
        """Heads that saw nothing of the held-out domain; all, where every head saw something."""
        return _fair(self.grid.lines, self.uses)

    @property
    def baseline(self) -> str:
        return self.against.baseline


def stand(records: Sequence[Record]) -> Standing:
    """The standing of the heads in the records of a main study."""
    grid = gather(records)
    uses = {r.head: r.uses for r in records}
    fair = _fair(grid.lines, uses)
    baseline = BASELINE if BASELINE in grid.lines else fair[0]
    reserved = gather(records, "score_reserved", like=grid)
    rmse = gather(records, "rmse", metric="rmse", like=grid)
    return Standing(
        grid,
        uses,
        {d: _marks({h: grid.at(h, d) for h in fair}, baseline) for d in grid.domains},
        compare(grid, baseline, records, uses),
        reserved if np.isfinite(reserved.S).any() else None,
        rmse if np.isfinite(rmse.S).any() else None,
    )


def compare(
    grid: Grid, baseline: str, records: Sequence[Record], uses: Mapping[str, str]
) -> Against:
    """Every other head against the baseline: by trials, by domains, and by rows."""
    others = [head for head in grid.lines if head != baseline]
    fair = {head: uses[head] == NOTHING for head in others}
    domains = {
        d: _paired({h: (grid.at(h, d), grid.at(baseline, d)) for h in others}, fair)
        for d in grid.domains
    }
    across = _paired({h: _domain_means(grid, h, baseline) for h in others}, fair)
    trial = grid.trials[0]
    right = {(r.head, r.held_out): r.correct() for r in records if r.trial == trial and r.ok}
    pairs = {
        d: {h: _both(right.get((h, d)), right.get((baseline, d))) for h in others}
        for d in grid.domains
    }
    rows = {d: _row_tests({h: [p] for h, p in pairs[d].items() if p}) for d in pairs}
    pooled = _row_tests({h: [p for by in pairs.values() if (p := by[h])] for h in others})
    return Against(baseline, trial, domains, across, rows, pooled)


Pair = tuple[np.ndarray, np.ndarray]


def _fair(heads: tuple[str, ...], uses: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(head for head in heads if uses[head] == NOTHING) or heads


def _marks(scores: Mapping[str, np.ndarray], baseline: str) -> Marks:
    """Marks from the trials that every head with a score has; none where the baseline has none."""
    there = {head: x for head, x in scores.items() if np.isfinite(x).any()}
    shared = np.all([np.isfinite(x) for x in there.values()], axis=0) if there else np.zeros(0)
    if baseline not in there or not shared.any():
        return dict.fromkeys(scores, "")
    found = mark_best({head: x[shared] for head, x in there.items()}, baseline)
    return {head: found.get(head, "") for head in scores}


def _domain_means(grid: Grid, head: str, baseline: str) -> Pair:
    """Mean on each domain over the trials that both have, where there are any."""
    a, b = grid.of(head), grid.of(baseline)
    both = np.isfinite(a) & np.isfinite(b)
    kept = both.any(axis=1)
    n = both.sum(axis=1)[kept]
    means = [np.where(both, S, 0.0).sum(axis=1)[kept] / n for S in (a, b)]
    return means[0], means[1]


def _paired(pairs: Mapping[str, Pair], fair: Mapping[str, bool]) -> dict[str, Paired]:
    found = {}
    for head, (a, b) in pairs.items():
        both = np.isfinite(a) & np.isfinite(b)
        if both.any():
            found[head] = paired_difference(a[both], b[both])
    corrected: dict[str, Paired] = {}
    for kind in (True, False):
        family = {head: d for head, d in found.items() if fair[head] == kind}
        p = holm({head: d.p for head, d in family.items()})
        lower = holm({head: d.p_lower for head, d in family.items()})
        flip = holm({head: d.sign_flip.p for head, d in family.items()})
        for head, d in family.items():
            corrected[head] = Paired(d, p[head], lower[head], flip[head], len(family))
    return {head: corrected[head] for head in found}


def _both(a: np.ndarray | None, b: np.ndarray | None) -> Pair | None:
    """Which rows each has right, where both were scored on the same number."""
    return None if a is None or b is None or len(a) != len(b) or not len(a) else (a, b)


def _row_tests(pairs: Mapping[str, Sequence[Pair]]) -> dict[str, RowTest]:
    tests = {
        head: mcnemar(np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))
        for head, parts in pairs.items()
        if parts
    }
    adjusted = holm({head: test.p for head, test in tests.items()})
    return {head: RowTest(test, adjusted[head]) for head, test in tests.items()}
