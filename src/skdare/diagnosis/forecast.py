"""The expected score on a new domain: unadapted, adapted, and with some labels.

The unadapted and the adapted model are compared on the new rows. Where they agree, both are right
as often as they were on held-out domains where they agreed; where they disagree, each is right as
often as it was there. So a domain on which they disagree much is expected to be a hard one for the
unadapted model, and an easy or a hard one for the adapted model, as in the rehearsal.
In regression, the unadapted model loses what adapting gained there for each unit of disagreement.
Confidence, distances between domains and mixtures of them were tried, and forecast worse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import stdtrit

from skdare.diagnosis.rehearsal import Rehearsal, Rehearsed
from skdare.fitting.score import Metric

# The range holds this share of new domains.
COVERAGE = 0.8
# Rows, as a share of each domain's, on which two models are taken to disagree before any is seen,
# and how often either is right there: a few rows of a rehearsal say little of another domain.
_UNSEEN = 0.01
_RIGHT_UNADAPTED = 0.25
_RIGHT_ADAPTED = 0.45
# How far a forecast usually misses, which counts for this many rehearsed domains; twice that far
# where features were trained on the held-out domains, which makes all of them look alike.
_USUAL_MISS = {"accuracy": 0.07, "balanced_accuracy": 0.07, "r2": 0.2}
_MISSES_KNOWN = 4.0
_SATURATED_MISS = 2.0

# From some domains, and the disagreement on a further one or None, to the expected score there.
Rule = Callable[[Sequence[Rehearsed], float | None], float]


@dataclass(frozen=True)
class Forecast:
    """An expected score, and a range that holds four out of five domains."""

    expected: float
    low: float
    high: float

    @classmethod
    def of(cls, expected: float, misses: Sequence[float], rehearsal: Rehearsal) -> Self:
        """With Student's range for one more domain; a handful of misses is a poor estimate."""
        metric = rehearsal.metric
        usual = _USUAL_MISS[metric.name] * (_SATURATED_MISS if rehearsal.saturated else 1.0)
        n = len(misses)
        count = n + _MISSES_KNOWN
        square = float(np.sum(np.square(misses))) + _MISSES_KNOWN * usual**2
        quantile = stdtrit(count - 1, 0.5 + 0.5 * COVERAGE)
        half = float(quantile * np.sqrt(square / count) * np.sqrt(1.0 + 1.0 / max(n, 1)))
        ends = np.clip([expected, expected - half, expected + half], metric.least, 1.0)
        return cls(*ends.tolist())

    def moved(self, by: float, metric: Metric) -> Forecast:
        ends = np.clip(np.array([self.expected, self.low, self.high]) + by, metric.least, 1.0)
        return Forecast(*ends.tolist())


@dataclass(frozen=True)
class Outlook:
    """Expected scores, unadapted, adapted and with labels."""

    unadapted: Forecast
    adapted: Forecast | None  # None if adapting changes nothing
    labels: dict[int, Forecast]  # by how many there are


def outlook(rehearsal: Rehearsal, disagreement: float | None, rows: int) -> Outlook:
    """The scores to expect on a new domain.

    Parameters
    ----------
    rehearsal : Rehearsal
    disagreement : float, optional
        Between the unadapted and the adapted model on the new rows; None if nothing adapts.
    rows : int
        Of the new domain.
    """
    classes = rehearsal.metric.name != "r2"
    rule = _by_agreement(adapted=False) if classes else _regression_unadapted
    forecast = _forecast(rehearsal, rule, lambda scores: scores.unadapted, disagreement)
    adapted = None
    if disagreement is not None:
        rule = _by_agreement(adapted=True) if classes else _regression_adapted
        adapted = _forecast(rehearsal, rule, lambda scores: scores.adapted_by_all, disagreement)
        curves = [scores.adapted for scores in rehearsal.domains if scores.adapted is not None]
        lost_by_few_rows = [curve.at(rows) - curve.scores[-1] for curve in curves]
        if lost_by_few_rows:
            adapted = adapted.moved(float(np.mean(lost_by_few_rows)), rehearsal.metric)
    best = forecast.expected if adapted is None else max(forecast.expected, adapted.expected)
    return Outlook(forecast, adapted, _with_labels(rehearsal, rows, best))


def _forecast(
    rehearsal: Rehearsal,
    rule: Rule,
    score: Callable[[Rehearsed], float],
    disagreement: float | None,
) -> Forecast:
    """By a rule, with a range from its errors on each held-out domain, given the others."""
    domains = rehearsal.domains
    misses = []
    for e, new in enumerate(domains):
        others = [*domains[:e], *domains[e + 1 :]]
        if others:
            misses.append(
                score(new) - rule(others, None if disagreement is None else new.disagreement)
            )
    return Forecast.of(rule(domains, disagreement), misses, rehearsal)


def _by_agreement(*, adapted: bool) -> Rule:
    """How often the unadapted or the adapted classifier is right."""
    usual = _RIGHT_ADAPTED if adapted else _RIGHT_UNADAPTED

    def score(scores: Rehearsed) -> float:
        return scores.adapted_by_all if adapted else scores.unadapted

    def rule(domains: Sequence[Rehearsed], disagreement: float | None) -> float:
        if disagreement is None:
            return float(np.mean([score(domain) for domain in domains]))
        apart = sum(domain.disagreement or 0.0 for domain in domains)
        # A model that could not be adapted agrees with itself.
        both = sum(d.unadapted if d.both_right is None else d.both_right for d in domains)
        # Every domain counts the same.
        agreed = len(domains) - apart
        right_agreed = both / agreed if agreed > 0 else 0.5
        unseen = _UNSEEN * len(domains)
        right_apart = sum(map(score, domains)) - both + unseen * usual
        return (1.0 - disagreement) * right_agreed + disagreement * right_apart / (apart + unseen)

    return rule


def _regression_adapted(domains: Sequence[Rehearsed], disagreement: float | None) -> float:
    """The median: one domain of little variance can decide a mean of R²."""
    return float(np.median([domain.adapted_by_all for domain in domains]))


def _regression_unadapted(domains: Sequence[Rehearsed], disagreement: float | None) -> float:
    apart = sum(domain.disagreement or 0.0 for domain in domains)
    gained = sum(domain.adapted_by_all - domain.unadapted for domain in domains)
    if disagreement is None or apart <= 0 or gained <= 0:
        return float(np.median([domain.unadapted for domain in domains]))
    return _regression_adapted(domains, None) - gained / apart * disagreement


def _with_labels(rehearsal: Rehearsal, rows: int, without: float) -> dict[int, Forecast]:
    """By how many labels half of the labelled domains gave, and the new rows can give.

    The mean over these domains, or what is expected ``without`` labels if that is more. A domain
    that is too small for a number counts with the most labels it gave: without it, the others would
    promise too much, as small domains are often hard.
    """
    curves = [d.labelled for d in rehearsal.domains if d.labelled is not None]
    forecasts = {}
    for n in sorted({n for curve in curves for n in curve.numbers}):
        gave = sum(n in curve.numbers for curve in curves)
        if 2 * gave < len(curves) or 2 * n > rows:
            continue
        at_most = [[s for m, s in zip(c.numbers, c.scores, strict=True) if m <= n] for c in curves]
        values = [some[-1] for some in at_most if some]
        mean = float(np.mean(values))
        misses = [value - mean for value in values]
        forecasts[n] = Forecast.of(max(mean, without), misses, rehearsal)
    return forecasts
