"""Advice: which head to use on a new domain, with unlabelled rows of it and without."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from skdare.bench._record import NOTHING
from skdare.report.summary.main_study import MainStudy
from skdare.report.summary.statistics import Interval, prediction_interval

# A difference below this is rounding, and no head is better by it.
TIE = 1e-12


@dataclass(frozen=True)
class HeadOutlook:
    """What a head can be expected to score on one more domain, and how it stands to the baseline.

    Parameters
    ----------
    head : str
    expected : Interval
        Mean over held-out domains, and where one more would fall 80 times in 100.
    gain : float
        Mean over held-out domains of the difference from the baseline; 0 for the baseline.
    better : int
        Domains on which it is above the baseline.
    domains : int
        Domains on which both were scored.
    """

    head: str
    expected: Interval
    gain: float
    better: int
    domains: int

    @property
    def mostly_better(self) -> bool:
        """Above the baseline on average, and on more than half of the domains."""
        return self.gain > TIE and 2 * self.better > self.domains


@dataclass(frozen=True)
class Advice:
    """Which head to use on a new domain.

    The head with the highest mean among those that are above the baseline on more than half of
    the domains; if no head is, the baseline. To ask for a significant difference instead
    would forgo most of what can be gained: with a few domains hardly any difference is.

    Parameters
    ----------
    without : HeadOutlook or None
        The head to use where nothing is known of the new domain.
    adapted : HeadOutlook or None
        The head to use with unlabelled rows of it, where that is better.
    outlooks : tuple of HeadOutlook
        Every head with a score on every domain, the highest mean first.
    """

    without: HeadOutlook | None
    adapted: HeadOutlook | None
    outlooks: tuple[HeadOutlook, ...]

    @property
    def best(self) -> HeadOutlook | None:
        """The head to use with whatever can be had."""
        return self.adapted or self.without

    @property
    def rivals(self) -> tuple[HeadOutlook, ...]:
        """The heads that are not recommended, the highest mean first."""
        return tuple(o for o in self.outlooks if o not in (self.without, self.adapted))


def advise(main: MainStudy) -> Advice:
    """Advice from the scores on the held-out domains."""
    outlooks = [outlook for head in main.grid.lines if (outlook := _outlook(main, head))]
    ranked = sorted(outlooks, key=lambda outlook: -outlook.expected.mean)
    without = _chosen(main, [o for o in ranked if main.uses[o.head] == NOTHING])
    overall = _chosen(main, ranked)
    # Ranked together: an adapted head must be above the best of those that see nothing.
    adapted = overall if overall and main.uses[overall.head] != NOTHING else None
    return Advice(without, adapted, tuple(ranked))


def _chosen(main: MainStudy, ranked: Iterable[HeadOutlook]) -> HeadOutlook | None:
    """The first that is mostly better than the baseline, else the baseline."""
    outlooks = list(ranked)
    baseline = [o for o in outlooks if o.head == main.baseline]
    # Where the baseline failed there is nothing to be better than.
    better = [o for o in outlooks if o.mostly_better] or baseline or outlooks
    return better[0] if better else None


def _outlook(main: MainStudy, head: str) -> HeadOutlook | None:
    """None for a head without a score on some domain, which has no average to compare."""
    scores = main.grid.of(head)
    scored = np.isfinite(scores)
    if not scored.any(axis=1).all():
        return None
    means = np.where(scored, scores, 0.0).sum(axis=1) / scored.sum(axis=1)
    test = main.comparison.across_domains.get(head)
    gains = [by[head].difference.mean for by in main.comparison.by_domain.values() if head in by]
    return HeadOutlook(
        head,
        prediction_interval(means),
        test.difference.mean if test else 0.0,
        sum(gain > TIE for gain in gains),
        len(gains),
    )
