"""Grids: the scores of several lines on each held-out domain, trial by trial.

Notation: S scores, (lines, domains, trials); NaN where a trial failed or has not been run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.bench import Record
from skdare.datasets._natural import natural
from skdare.report.summary.statistics import Interval, normal_interval, t_interval

LOWER_IS_BETTER = ("rmse", "error")


@dataclass(frozen=True)
class Estimate:
    """A mean over n trials with its two intervals; NaN where no trial has a score."""

    mean: float
    normal: Interval
    t: Interval
    n: int


NO_ESTIMATE = Estimate(math.nan, Interval(math.nan, math.nan), Interval(math.nan, math.nan), 0)


def estimate(values: np.ndarray) -> Estimate:
    """Mean and intervals of the finite values."""
    x = values[np.isfinite(values)]
    if not len(x):
        return NO_ESTIMATE
    return Estimate(float(x.mean()), normal_interval(x), t_interval(x), len(x))


@dataclass(frozen=True, eq=False)
class Grid:
    """Scores by line, held-out domain and trial.

    Parameters
    ----------
    metric : str
    lines : tuple of str
        Heads, or whatever else is compared, in order of appearance.
    domains : tuple of str
    trials : tuple of int
    S : array of (lines, domains, trials)
    fresh : set of str
        Lines whose features come from a new network in every trial.
    """

    metric: str
    lines: tuple[str, ...]
    domains: tuple[str, ...]
    trials: tuple[int, ...]
    S: np.ndarray
    fresh: frozenset[str] = frozenset()

    def of(self, line: str) -> np.ndarray:
        """Scores of one line, (domains, trials)."""
        return self.S[self.lines.index(line)]

    def at(self, line: str, domain: str) -> np.ndarray:
        """Scores of one line on one domain, by trial; NaN for a domain that is not here."""
        if domain not in self.domains:
            return np.full(len(self.trials), np.nan)
        return self.of(line)[self.domains.index(domain)]

    # A trial that lacks a domain has no average: what is left would be another quantity, and a
    # head must not gain by failing where it is hard.
    def average(self, line: str) -> np.ndarray:
        """Mean over domains, by trial; NaN where a domain is missing."""
        return self.of(line).mean(axis=0)

    def worst(self, line: str) -> np.ndarray:
        """Score on the worst domain, by trial; NaN where a domain is missing."""
        S = self.of(line)
        return S.max(axis=0) if self.metric in LOWER_IS_BETTER else S.min(axis=0)

    def best(self, lines: Iterable[str]) -> str | None:
        """The line with the best average; None where none of them has an average."""
        means = {line: self.column(line).average.mean for line in lines}
        averaged = [line for line in means if not math.isnan(means[line])]
        sign = 1 if self.metric in LOWER_IS_BETTER else -1
        return min(averaged, key=lambda line: sign * means[line]) if averaged else None

    def column(self, line: str) -> Column:
        return Column(self, line)

    @property
    def columns(self) -> list[Column]:
        """A column for each line."""
        return [Column(self, line) for line in self.lines]


@dataclass(frozen=True, eq=False)
class Column:
    """The estimates of one line of a grid, as a column of a table has them."""

    grid: Grid
    line: str

    def at(self, domain: str) -> Estimate:
        """The score on one held-out domain."""
        return estimate(self.grid.at(self.line, domain))

    @property
    def average(self) -> Estimate:
        """The average over domains."""
        return estimate(self.grid.average(self.line))

    @property
    def worst(self) -> Estimate:
        """The score on the worst domain."""
        return estimate(self.grid.worst(self.line))

    # Only a line with every domain has an average that can be held against the others'.
    def average_over(self, domains: Sequence[str]) -> Estimate:
        """The average over these domains; NaN where the line lacks one of them."""
        return self.average if len(self.grid.domains) == len(domains) else NO_ESTIMATE

    def worst_over(self, domains: Sequence[str]) -> Estimate:
        """The score on the worst of these domains; NaN where the line lacks one of them."""
        return self.worst if len(self.grid.domains) == len(domains) else NO_ESTIMATE

    @property
    def fresh(self) -> bool:
        """Whether every trial has a network of its own."""
        return self.line in self.grid.fresh


def domains_of(columns: Sequence[Column]) -> list[str]:
    """Every domain of these columns, in order of appearance."""
    return list(dict.fromkeys(d for column in columns for d in column.grid.domains))


LineOf = Callable[[Record], str]


def gather(
    records: Sequence[Record],
    value: str | None = None,
    *,
    metric: str | None = None,
    line: LineOf = lambda record: record.head,
    like: Grid | None = None,
) -> Grid:
    """Records as a grid; domains in natural order, so that no order of finishing shows.

    A cell is the mean over the sets of training domains that were tried, and NaN if one failed; a
    later record of the same trial replaces the earlier.

    Parameters
    ----------
    value : str, optional
        Name among a record's values to take in place of its score.
    metric : str, optional
        What that is; default: the records' own metric.
    line : callable
        The line that a record belongs to.
    like : Grid, optional
        Whose lines, domains and trials to take.
    """
    lines = like.lines if like else tuple(dict.fromkeys(line(r) for r in records))
    domains = like.domains if like else tuple(sorted({r.held_out for r in records}, key=natural))
    trials = like.trials if like else tuple(sorted({r.trial for r in records}))
    cells: dict[tuple[int, int, int], dict[str, float]] = {}
    for r in records:
        score = r.values.get(value) if value else r.score
        cell = lines.index(line(r)), domains.index(r.held_out), trials.index(r.trial)
        trained_on = str(r.values.get("seen"))
        cells.setdefault(cell, {})[trained_on] = score if r.ok and score is not None else np.nan
    S = np.full((len(lines), len(domains), len(trials)), np.nan)
    for cell, scores in cells.items():
        S[cell] = np.mean(list(scores.values()))
    fresh = frozenset(line(r) for r in records if r.values.get("features_of") == "trial")
    return Grid(metric or records[0].metric, lines, domains, trials, S, fresh)


@dataclass(frozen=True, eq=False)
class Sweep:
    """A grid for each value of the one number that a study varies.

    Parameters
    ----------
    x : tuple of float
        Ascending.
    grids : tuple of Grid
        One for each x, all of the same lines, domains and trials.
    level : Grid or None
        Lines that do not depend on x.
    """

    x: tuple[float, ...]
    grids: tuple[Grid, ...]
    level: Grid | None

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines that depend on x."""
        return self.grids[0].lines

    def complete(self) -> Sweep:
        """Without the values of x that some domain lacks, as they have no average."""
        averaged = [i for i, g in enumerate(self.grids) if any(c.average.n for c in g.columns)]
        if not averaged:
            return self
        x = tuple(self.x[i] for i in averaged)
        return Sweep(x, tuple(self.grids[i] for i in averaged), self.level)

    def averages(self, line: str) -> list[Estimate]:
        """Average over domains at each x, over trials."""
        return [grid.column(line).average for grid in self.grids]


def sweep(records: Sequence[Record], value: str | None = None, *, line: LineOf) -> Sweep:
    """Records that differ in x as a sweep."""
    varied = [r for r in records if r.x is not None]
    fixed = [r for r in records if r.x is None]
    shape = gather(varied, line=line)
    x = sorted({r.x for r in varied if r.x is not None})
    grids = [gather([r for r in varied if r.x == v], value, line=line, like=shape) for v in x]
    level = gather(fixed, value, line=line) if fixed else None
    return Sweep(tuple(x), tuple(grids), level)
