"""Which candidate is chosen, given the scores on held-out domains, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from skdare.choosing.strategies import Candidate
from skdare.errors import counted

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


class Reason(Enum):
    """Why a choice declines to adapt."""

    ONE_DOMAIN = "there was one training domain, and none to hold out"
    NOT_SCORED = "no training domain could be held out and scored"
    NONE_TRIED = "no strategy that adapts was tried"
    NO_GAIN = "no strategy that adapts scored higher on {domains}"
    UNSURE = (
        "adapting made squared errors {gain:.0f} % smaller on {domains}, and that can be chance "
        "(two standard errors: {error:.0f} %)"
    )


@dataclass(frozen=True)
class Declined:
    """Why a choice does not adapt, and the numbers that decided; the text is one sentence."""

    reason: Reason
    domains: int  # held out and scored
    # Mean gain of the best strategy that adapts: of scores, or the logarithm by which squared
    # errors shrank, which must exceed two standard errors.
    gain: float | None = None
    standard_error: float | None = None

    def __str__(self) -> str:
        size = -100.0 * np.expm1(-(self.gain or 0.0))
        error = 100.0 * _STANDARD_ERRORS * (self.standard_error or 0.0)
        held_out = counted(self.domains, "held-out training domain")
        return self.reason.value.format(domains=held_out, gain=size, error=error)


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """Which candidates are used, and the score of each on the held-out domains."""

    candidates: list[Candidate]
    scores: np.ndarray  # (candidates, domains); NaN where a domain could not be scored
    metric: str
    predicting: int  # for domains without rows
    adapting: int  # for domains with rows: the same one if adapting is declined
    best_adapting: int  # that was tried; the same as for predicting if none was
    # For each domain, the two that the scores of the other domains would have given.
    predicting_without: list[int]
    adapting_without: list[int]
    declined: Declined | None = None

    @property
    def adapts(self) -> bool:
        return self.candidates[self.adapting].strategy.adapts

    @property
    def estimates_shares(self) -> bool:
        """Whether adapting estimates the class proportions of a new domain."""
        mixture = self.candidates[self.adapting].strategy.mixture
        return mixture is not None and mixture.estimates_shares

    @property
    def means(self) -> np.ndarray:
        return mean_scores(self.scores)

    @property
    def expected(self) -> float:
        """Cross-fitted score of what is chosen for domains without rows; see `without_each`."""
        return self._mean_of(self.predicting_without)

    @property
    def expected_adapting(self) -> float:
        """Cross-fitted score of the best strategy that adapts, declined or not."""
        return self._mean_of(self.adapting_without)

    def _mean_of(self, chosen: Sequence[int]) -> float:
        """Over the domains that every candidate has a score of, by what is chosen for each."""
        scored = _scored_by_all(self.scores)
        values = [self.scores[chosen[e], e] for e in scored]
        return float(np.mean(values)) if values else float("nan")

    def best_ridge(self, strategy: str) -> float:
        """The ridge with which a strategy has its highest mean; the strongest of several."""
        pairs = zip(self.means, self.candidates, strict=True)
        return max((mean, tried.l2) for mean, tried in pairs if tried.name == strategy)[1]

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        """The choice and its reason, in two sentences."""
        main = self.candidates[self.predicting].strategy
        if np.isnan(self.expected):
            reason = _unscored(self.scores).value
            return f"{reason[0].upper()}{reason[1:]}: it predicts by {main.words}."
        held_out = f"{self._written(self.expected)} on held-out domains"
        if main.adapts:
            return f"Every strategy adapts; it uses {main.words}: {held_out}, given their rows."
        start = f"Without rows of a new domain it predicts by {main.words}: {held_out}."
        best = self.candidates[self.best_adapting].strategy
        score = self._written(self.expected_adapting)
        gain = self.expected_adapting - self.expected
        if self.declined is not None:
            end = ""
            if best.adapts and gain <= 0:
                end = f" (the best, {best.words}: {score})"
            return f"{start} With rows it does the same: {self.declined}{end}."
        size = f"{100 * abs(gain):.1f} points" if self.metric in _IN_PERCENT else f"{abs(gain):.3f}"
        if gain < 0:  # the decision is not cross-fitted; and errors may shrink where R² falls
            return (
                f"{start} With rows it adapts by {best.words}: that did best on held-out domains, "
                f"but what the other domains would have chosen scores {score}, {size} less."
            )
        return f"{start} With rows it adapts by {best.words}: {score}, {size} more."

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
    taken, and adapts if it scores higher: the loss of an adapted classifier does not grow with the
    size of a shift, that of an unadapted one does. But a squared error has no ceiling: in
    regression, for which ``log_errors`` are given, that gain must be sure as well. Candidates are
    then judged by these and not by R², of which one domain can decide the mean, unless the user
    named a scoring.
    """
    judged = scores if log_errors is None or metric != "r2" else -log_errors
    judged = np.where(np.isnan(scores), np.nan, judged)
    steady = [c for c, candidate in enumerate(candidates) if not candidate.strategy.adapts]
    adapting = [c for c, candidate in enumerate(candidates) if candidate.strategy.adapts]
    unadapted = partial(_surely_best, candidates, among=steady, errors=standard_errors)
    adapted = partial(_highest, among=adapting)
    main = unadapted if steady else adapted
    best = adapted if adapting else unadapted
    predicting = main(judged)
    best_adapting = best(judged)
    declined = None
    if steady:
        declined = _declined(judged, log_errors, steady, predicting, best_adapting)
    return Choice(
        list(candidates),
        scores,
        metric,
        predicting,
        best_adapting if declined is None else predicting,
        best_adapting,
        without_each(main, judged),
        without_each(best, judged),
        declined,
    )


def _declined(
    judged: np.ndarray,
    log_errors: np.ndarray | None,
    steady: Sequence[int],
    predicting: int,
    best_adapting: int,
) -> Declined | None:
    """Why the best candidate that adapts is not used, if it is not."""
    scored = _scored_by_all(judged)
    n = len(scored)
    if not n:
        return Declined(_unscored(judged), 0)
    if best_adapting in steady:
        return Declined(Reason.NONE_TRIED, n)
    if log_errors is None:
        # By the winners' own means, which flatter both. By cross-fitted ones (`without_each`) a few
        # domains declined an adaptation that gained three points on sets that were not tuned on.
        means = mean_scores(judged)
        gain = float(means[best_adapting] - means[predicting])
        return None if gain > 0 else Declined(Reason.NO_GAIN, n, gain)
    plain = _highest(judged, steady)
    gains = (log_errors[plain] - log_errors[best_adapting])[scored]
    gain = float(gains.mean())
    squares = n * gains.var() + _PRIOR_DOMAINS * _PRIOR_GAIN**2
    error = float(np.sqrt(squares / (n + _PRIOR_DOMAINS - 1.0) / n))
    if gain > _STANDARD_ERRORS * error:
        return None
    return Declined(Reason.UNSURE if gain > 0 else Reason.NO_GAIN, n, gain, error)


def without_each(rule: Callable[[np.ndarray], int], scores: np.ndarray) -> list[int]:
    """The candidate that a rule takes for each domain by the scores of the others.

    Its scores are what choosing is worth: the winner's own mean is the highest of many, and
    promises more than a new domain keeps.
    """
    chosen = [rule(scores)] * scores.shape[1]
    scored = _scored_by_all(scores)
    if len(scored) > 1:
        for e in scored:
            chosen[e] = rule(scores[:, scored[scored != e]])
    return chosen


def _surely_best(
    candidates: Sequence[Candidate], scores: np.ndarray, among: Sequence[int], errors: float
) -> int:
    """The highest mean of those whose gain over the simplest exceeds its standard errors.

    The simplest is the first strategy at its best ridge, and is taken if no gain is sure.
    """
    scores = scores[:, _scored_by_all(scores[among])]
    if not scores.shape[1]:
        return among[0]
    means = scores.mean(axis=1)
    simplest = candidates[among[0]].name
    base = max((c for c in among if candidates[c].name == simplest), key=lambda c: means[c])
    for c in sorted(among, key=lambda c: -means[c]):
        gains = scores[c] - scores[base]
        error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        error *= 1.0 + 1e-9  # a gain on a single domain is its standard error, but for rounding
        if gains.mean() > max(errors * error, _LEAST_GAIN * np.abs(scores[base]).mean()):
            return c
    return base


def _highest(scores: np.ndarray, among: Sequence[int]) -> int:
    """The highest mean; the first of several."""
    means = mean_scores(scores)
    return max(among, key=lambda c: means[c])


def mean_scores(scores: np.ndarray) -> np.ndarray:
    """Mean of each candidate over the domains that every one has a score of."""
    scored = _scored_by_all(scores)
    return scores[:, scored].mean(axis=1) if len(scored) else scores[:, 0]


def _scored_by_all(scores: np.ndarray) -> np.ndarray:
    """Numbers of the domains that every candidate has a score of."""
    return np.flatnonzero(~np.isnan(scores).any(axis=0))


def _unscored(scores: np.ndarray) -> Reason:
    return Reason.ONE_DOMAIN if scores.shape[1] < 2 else Reason.NOT_SCORED
