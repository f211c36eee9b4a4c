"""What score to expect on a new domain, as it is, adapted, or adapted with labels.

The head as it is and the adapted one are compared on the new rows. On rows where they agree, both
are right as often as they were on rehearsed domains where they agreed; on the others each is right
as often as it was there. So a domain on which they disagree much is expected to be a hard one for
the head as it is, and an easy or a hard one for the adapted head by what the rehearsal has shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from skdare.diagnosis._rehearsal import Rehearsal, Rehearsed
from skdare.diagnosis._score_scale import ScoreScale

# The range holds this share of new domains.
COVERAGE = 0.8
# These were set by eye on the sets that `benchmarks/diagnose.py` calls "chosen on", not fitted.
# Rows, as a share of each domain's, on which two heads are taken to disagree before any is seen,
# and how often either is right there: a few rows of a rehearsal say little of another domain.
_UNSEEN = 0.01
_RIGHT_AS_IS = 0.25
_RIGHT_ADAPTED = 0.45
# Rehearsed domains that the usual size of a miss counts for, beside those of this rehearsal.
_MISSES_KNOWN = 4.0
# How much larger the usual miss is where domains were hardly held out: features that were
# fine-tuned on them make all of them look alike.
_SATURATED_MISS = 2.0
# Scores within which a smaller number of labelled rows is as good as a larger one.
_AS_GOOD = 0.01


@dataclass(frozen=True)
class Forecast:
    """An expected score, and a range that holds four out of five domains."""

    expected: float
    low: float
    high: float

    @property
    def miss(self) -> float:
        """Half the width of the range."""
        return 0.5 * (self.high - self.low)


@dataclass(frozen=True)
class Outlook:
    """Scores to expect of what one can do.

    Parameters
    ----------
    use : Forecast
        As it is.
    adapt : Forecast, optional
        Adapted to the rows at hand; None where that changes nothing.
    label : Forecast, optional
        Retrained with labels.
    labelled_rows : int, optional
        How many labels these are.
    """

    use: Forecast
    adapt: Forecast | None = None
    label: Forecast | None = None
    labelled_rows: int | None = None

    @property
    def prefers_adapting(self) -> bool:
        """Whether the adapted head is expected to score higher than the head as it is."""
        return self.adapt is not None and self.adapt.expected > self.use.expected


def foresee(rehearsal: Rehearsal, disagreement: float | None, rows: int) -> Outlook:
    """The scores to expect on a new domain.

    Parameters
    ----------
    rehearsal : Rehearsal
    disagreement : float, optional
        Between the head as it is and the adapted one, on the new rows; None where adapting was
        declined, or is not to be had.
    rows : int
        Unlabelled rows of the new domain.
    """
    use = _forecast(rehearsal, _as_is, _score_as_is, disagreement)
    adapt = None
    if disagreement:
        whole = _forecast(rehearsal, _adapted, _adapted_score, disagreement)
        adapt = _moved(whole, _lost_by_few_rows(rehearsal, rows), rehearsal.task)
    label, labelled_rows = _by_labels(rehearsal, rows)
    return Outlook(use, adapt, label, labelled_rows)


def foresee_unseen(rehearsal: Rehearsal) -> Outlook:
    """The scores to expect on a domain of which no row is known yet."""
    adapt = None
    if any(one.adapted_by_all is not None for one in rehearsal.domains):
        adapt = _forecast(rehearsal, _adapted, _adapted_score, None)
    return Outlook(_forecast(rehearsal, _as_is, _score_as_is, None), adapt)


Rule = Callable[[Sequence[Rehearsed], float | None], float]


def _score_as_is(one: Rehearsed) -> float:
    return one.as_is


def _adapted_score(one: Rehearsed) -> float:
    score = one.adapted_by_all
    return one.as_is if score is None else score


def _as_is(domains: Sequence[Rehearsed], disagreement: float | None) -> float:
    """Expected score of the head as it is."""
    if _of_numbers(domains):
        if disagreement is None:
            return _middle(domains, _score_as_is)
        gain = _gain_by_disagreement(domains)
        if gain <= 0:
            return _middle(domains, _score_as_is)
        return _middle(domains, _adapted_score) - gain * disagreement
    if disagreement is None:
        return float(np.mean([one.as_is for one in domains]))
    right = _share(domains, lambda one: one.as_is - (one.both_right or 0.0), _RIGHT_AS_IS)
    return (1.0 - disagreement) * _right_where_agreed(domains) + disagreement * right


def _adapted(domains: Sequence[Rehearsed], disagreement: float | None) -> float:
    """Expected score of the adapted head."""
    if _of_numbers(domains):
        return _middle(domains, _adapted_score)
    if disagreement is None:
        return float(np.mean([_adapted_score(one) for one in domains]))
    right = _share(
        domains, lambda one: _adapted_score(one) - (one.both_right or 0.0), _RIGHT_ADAPTED
    )
    return (1.0 - disagreement) * _right_where_agreed(domains) + disagreement * right


def _of_numbers(domains: Sequence[Rehearsed]) -> bool:
    return any(one.both_right is None for one in domains)


def _middle(domains: Sequence[Rehearsed], score: Callable[[Rehearsed], float]) -> float:
    """The median: of a mean of R², one domain of little variance can make anything."""
    return float(np.median([score(one) for one in domains]))


def _right_where_agreed(domains: Sequence[Rehearsed]) -> float:
    """How often both are right where they agree; every domain counts the same."""
    agreed = sum(1.0 - (one.disagreement or 0.0) for one in domains)
    return sum(one.both_right or 0.0 for one in domains) / agreed if agreed else 0.5


def _share(
    domains: Sequence[Rehearsed], right: Callable[[Rehearsed], float], usual: float
) -> float:
    """How often one head is right where the two disagree."""
    unseen = _UNSEEN * len(domains)
    disagreed = sum(one.disagreement or 0.0 for one in domains)
    return (sum(map(right, domains)) + unseen * usual) / (disagreed + unseen)


def _gain_by_disagreement(domains: Sequence[Rehearsed]) -> float:
    """What adapting gained in R² for each unit of disagreement."""
    disagreed = sum(one.disagreement or 0.0 for one in domains)
    gained = sum(_adapted_score(one) - one.as_is for one in domains)
    return gained / disagreed if disagreed > 0 else 0.0


def _forecast(
    rehearsal: Rehearsal,
    rule: Rule,
    score: Callable[[Rehearsed], float],
    disagreement: float | None,
) -> Forecast:
    """The rule's forecast, with a range by how it misses each domain given the others."""
    domains = rehearsal.domains
    expected = rule(domains, disagreement)
    misses = []
    for e, one in enumerate(domains):
        others = [*domains[:e], *domains[e + 1 :]]
        if others:
            seen = None if disagreement is None else one.disagreement
            misses.append(score(one) - rule(others, seen))
    return _ranged(expected, misses, rehearsal)


def _ranged(expected: float, misses: Sequence[float], rehearsal: Rehearsal) -> Forecast:
    """A forecast with Student's range for one more domain."""
    task = rehearsal.task
    usual = _SATURATED_MISS * task.usual_miss if rehearsal.saturated else task.usual_miss
    n = len(misses)
    square = float(np.sum(np.square(misses))) + _MISSES_KNOWN * usual**2
    spread = np.sqrt(square / (n + _MISSES_KNOWN))
    quantile = student.ppf(0.5 + 0.5 * COVERAGE, n + _MISSES_KNOWN - 1)
    half = float(quantile * spread * np.sqrt(1.0 + 1.0 / max(n, 1)))
    expected = _within(expected, task)
    return Forecast(expected, _within(expected - half, task), _within(expected + half, task))


def _within(score: float, task: ScoreScale) -> float:
    """The score, or the nearest that there is."""
    return float(min(max(score, task.least), 1.0))


def _moved(forecast: Forecast, by: float, task: ScoreScale) -> Forecast:
    ends = (forecast.expected, forecast.low, forecast.high)
    return Forecast(*(_within(score + by, task) for score in ends))


def _lost_by_few_rows(rehearsal: Rehearsal, rows: int) -> float:
    """Mean change of the adapted score when only this many rows are at hand."""
    gains = [
        (few, whole)
        for one in rehearsal.domains
        if (few := one.gain(rows)) is not None and (whole := one.gain(one.rows)) is not None
    ]
    return float(np.mean([few - whole for few, whole in gains])) if gains else 0.0


def _by_labels(rehearsal: Rehearsal, rows: int) -> tuple[Forecast | None, int | None]:
    """The score with labels, at the fewest that are nearly as good as more."""
    # Half of the rows at most, as in the rehearsal: labels are for the sake of the others.
    curve = {n: scores for n, scores in rehearsal.retrained().items() if 2 * n <= rows}
    if not curve:
        return None, None
    means = {n: float(np.mean(scores)) for n, scores in curve.items()}
    enough = max(means.values()) - _AS_GOOD
    # Features fine-tuned on these domains make few labels look enough.
    chosen = max(means) if rehearsal.saturated else min(n for n in means if means[n] >= enough)
    misses = [score - means[chosen] for score in curve[chosen]]
    return _ranged(means[chosen], misses, rehearsal), chosen
