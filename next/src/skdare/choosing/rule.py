"""Which candidate is taken, given what held-out domains showed, and why, in two sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from skdare.choosing.strategies import Candidate

# Compared with the scores themselves; a gain of less is the rounding of heads that are the same.
_LEAST_GAIN = 1e-4
_IN_PERCENT = ("accuracy", "balanced_accuracy", "f1_macro")
# A regression adapts if the mean logarithm by which its squared errors shrink on held-out domains
# exceeds two standard errors, to which two more domains are counted whose gains are 0 ± 0.3: three
# domains that gained .09, .07 and .08 are not sure yet, and adapting then cost 0.2 of R² on a
# fourth. On the 18 families of sets that it was picked on, adapting then cost nothing. On others
# (features of eight sets as targets), of 240 searches among three domains 5 % lost more than 0.05
# of R² and 3 % won as much, -0.022 on average; of 124 among four or more, none of either.
_STANDARD_ERRORS = 2.0
_PRIOR_DOMAINS = 2.0
_PRIOR_GAIN = 0.3


@dataclass(frozen=True, eq=False)
class Choice:
    """Which candidates are used, and what each scored on the held-out domains."""

    candidates: list[Candidate]
    scores: np.ndarray  # (candidates, domains); NaN where a domain could not be scored
    metric: str
    predicting: int  # for domains without rows
    adapting: int  # for domains with rows: the same one where adapting does not pay
    best_adapting: int  # that was tried; the same as for predicting where none was
    # For each domain, which two the scores of the others alone would have given.
    predicting_without: list[int]
    adapting_without: list[int]

    @property
    def adapts(self) -> bool:
        return self.candidates[self.adapting].strategy.adapts

    @property
    def estimates_shares(self) -> bool:
        """Whether adapting takes the classes of a new domain to be rarer or more common."""
        mixture = self.candidates[self.adapting].strategy.mixture
        return mixture is not None and mixture.estimates_shares

    @property
    def means(self) -> np.ndarray:
        return mean_scores(self.scores)

    @property
    def expected(self) -> float:
        """What choosing a candidate for domains without rows scores; see `without_each`."""
        return _mean_of(self.scores, self.predicting_without)

    @property
    def expected_adapting(self) -> float:
        """What choosing one that adapts scores, whether or not it pays."""
        return _mean_of(self.scores, self.adapting_without)

    def __str__(self) -> str:
        """What was chosen, and why."""
        domains = self.scores.shape[1]
        main = self.candidates[self.predicting].strategy
        if domains < 2:
            return f"There is only one domain, and none to hold out: it predicts by {main.words}."
        if np.isnan(self.expected):
            return f"No domain could be held out and scored: it predicts by {main.words}."
        held_out = f"{self._written(self.expected)} on held-out domains"
        if main.adapts:
            return f"Every strategy adapts; it uses {main.words}: {held_out}, given their rows."
        start = f"Without rows of a new domain it predicts by {main.words}: {held_out}."
        best = self.candidates[self.best_adapting].strategy
        if not best.adapts:
            return f"{start} No strategy that adapts was tried."
        adapted = self._written(self.expected_adapting)
        gain = self.expected_adapting - self.expected
        if not self.adapts:
            better = "did not score higher"
            if gain > 0:
                better = f"gained too little to be sure of, on {domains} domains"
            return f"{start} With rows it does the same: {best.words} {better}, {adapted}."
        size = f"{100 * abs(gain):.1f} points" if self.metric in _IN_PERCENT else f"{abs(gain):.3f}"
        more = "more" if gain >= 0 else "less"  # of numbers, errors may shrink and R² fall
        return f"{start} With rows it adapts by {best.words}: {adapted}, {size} {more}."

    def _written(self, score: float) -> str:
        return f"{100 * score:.1f} %" if self.metric in _IN_PERCENT else f"{score:.3f}"


def choose(
    candidates: Sequence[Candidate],
    scores: np.ndarray,
    metric: str,
    standard_errors: float,
    log_errors: np.ndarray | None = None,
) -> Choice:
    """What predicts for domains without rows, and what for those with rows.

    Without rows, the gain over the simplest strategy must be sure. With rows, the highest mean is
    taken, and adapts if it scores higher: what an adapted classifier loses does not grow
    with the size of a shift, what one that is not adapted loses does. But a squared error has no
    ceiling: of numbers, for which ``log_errors`` are given, that gain must be sure, too. They are
    judged by these, unless by a scoring of one's own: of R², one domain can decide the mean.
    """
    judged = scores if log_errors is None or metric != "r2" else -log_errors
    judged = np.where(np.isnan(scores), np.nan, judged)
    steady = [c for c, candidate in enumerate(candidates) if not candidate.strategy.adapts]
    adapting = [c for c, candidate in enumerate(candidates) if candidate.strategy.adapts]
    unadapted = partial(_surely_best, candidates, among=steady, errors=standard_errors)
    adapted = partial(_highest, among=adapting)
    main, best = (unadapted if steady else adapted), (adapted if adapting else unadapted)
    predicting, best_adapting = main(judged), best(judged)
    predicting_without, adapting_without = without_each(main, judged), without_each(best, judged)
    # By the winners' own means: both are flattered, and by what choosing is worth (`without_each`)
    # a few domains declined an adaptation that gained three points on sets that nobody tuned to.
    means = mean_scores(judged)
    pays = means[best_adapting] > means[predicting]
    if log_errors is not None and steady:
        plain = _highest(judged, steady)
        known = ~np.isnan(judged).any(axis=0)
        pays = _is_sure((log_errors[plain] - log_errors[best_adapting])[known])
    return Choice(
        list(candidates),
        scores,
        metric,
        predicting,
        best_adapting if pays else predicting,
        best_adapting,
        predicting_without,
        adapting_without,
    )


def without_each(rule: Callable[[np.ndarray], int], scores: np.ndarray) -> list[int]:
    """The candidate that a rule takes for each domain by the scores of the others.

    Its score there is what choosing is worth: the winner's own mean is the highest of many, and
    promises more than a new domain keeps.
    """
    chosen = [rule(scores)] * scores.shape[1]
    known = np.flatnonzero(~np.isnan(scores).any(axis=0))
    if len(known) > 1:
        for e in known:
            chosen[e] = rule(scores[:, known[known != e]])
    return chosen


def _mean_of(scores: np.ndarray, chosen: Sequence[int]) -> float:
    """Of the candidate chosen for each domain, over those that every candidate has a score of."""
    known = np.flatnonzero(~np.isnan(scores).any(axis=0))
    own = [scores[chosen[e], e] for e in known]
    return float(np.mean(own)) if own else float("nan")


def _is_sure(gains: np.ndarray) -> bool:
    """Whether the gains of a regression on held-out domains, as logarithms, are no luck."""
    n = len(gains)
    if not n:
        return False
    squares = n * gains.var() + _PRIOR_DOMAINS * _PRIOR_GAIN**2
    error = np.sqrt(squares / (n + _PRIOR_DOMAINS - 1.0) / n)
    return bool(gains.mean() > _STANDARD_ERRORS * error)


def _surely_best(
    candidates: Sequence[Candidate], scores: np.ndarray, among: Sequence[int], errors: float
) -> int:
    """The highest mean of those whose gain over the simplest exceeds its standard errors.

    The simplest is the first strategy at its best ridge, and is taken where no gain is sure.
    """
    known = scores[:, ~np.isnan(scores[among]).any(axis=0)]
    if not known.shape[1]:
        return among[0]
    means = known.mean(axis=1)
    simplest = candidates[among[0]].family
    base = max((c for c in among if candidates[c].family == simplest), key=lambda c: means[c])
    for c in sorted(among, key=lambda c: -means[c]):
        gains = known[c] - known[base]
        error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        error *= 1.0 + 1e-9  # a gain on one domain alone is its standard error, but for rounding
        if gains.mean() > max(errors * error, _LEAST_GAIN * np.abs(known[base]).mean()):
            return c
    return base


def _highest(scores: np.ndarray, among: Sequence[int]) -> int:
    """The highest mean; the first of several."""
    means = mean_scores(scores)
    return max(among, key=lambda c: means[c])


def mean_scores(scores: np.ndarray) -> np.ndarray:
    """Of each candidate, over the domains that every one has a score of."""
    known = scores[:, ~np.isnan(scores).any(axis=0)]
    return known.mean(axis=1) if known.size else scores[:, 0]
