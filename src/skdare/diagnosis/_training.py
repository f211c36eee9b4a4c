"""What a fitted head says of its training domains, each seen as if it were new.

Notation: W (d, d) adjustment, M (d, E) adjusted means, B (d, k) canonical weights, Q (d, r) a
basis of M, C (d, d) covariance.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from skdare.arrays import Array, like, to_numpy
from skdare.diagnosis._geometry import (
    adjusted_mean,
    adjusted_variance,
    adjustment_difference,
    span,
    spectral_norm,
)
from skdare.fitting.domain_fit import DomainFit, domain_fit_of
from skdare.whitening.adjustment import Adjustment, adjustment_error
from skdare.whitening.guess import GuessRule, guess_adjustment
from skdare.whitening.moments import Moments, covariance_times
from skdare.whitening.whitening import Whitening


def names_of(labels: Sequence[Hashable]) -> list[str]:
    """Labels as text, told apart by their type where they look alike."""
    names = [str(label) for label in labels]
    pairs = zip(labels, names, strict=True)
    return [repr(label) if names.count(name) > 1 else name for label, name in pairs]


@dataclass(frozen=True)
class MeanShift:
    """How far a domain's adjusted mean is from the average of the others, and in which directions.

    Parameters
    ----------
    covered, new : float
        Squared length along and across the directions in which the others' means vary; across,
        sampling noise is taken off.
    covered_moves, new_moves : float
        Root mean square, over classes, by which each part moves the scores, noise taken off, over
        the deviation of the scores within the domain.
    at_least : float
        By how much both move them together, less two standard errors.
    """

    covered: float
    new: float
    covered_moves: float
    new_moves: float
    at_least: float

    @property
    def share(self) -> float:
        """Share of the squared length that is covered."""
        whole = self.covered + self.new
        return 1.0 if whole <= 0 else self.covered / whole


@dataclass(frozen=True)
class HeldOut:
    """A training domain beside the others: their guess for it, and what of its shift they cover."""

    name: str
    error: float
    norm: float
    covered: float


@dataclass(frozen=True, eq=False)
class TrainingDomains:
    """Moments and adjustments of the training domains, and the canonical weights.

    Parameters
    ----------
    labels : list of domain labels
    moments : list of Moments
    adjustments : list of Adjustment
    rule : str or mapping
        How the guess is made; see `guess_adjustment`.
    B : array of shape (d, k)
        Canonical weights of the head.
    truth : array of shape (d, k)
        An estimate of the paper's β*: canonical weights without the constraint on the means, where
        the head has any, else B.
    whitening : Whitening
    """

    labels: list[Hashable]
    moments: list[Moments]
    adjustments: list[Adjustment]
    rule: GuessRule
    B: np.ndarray
    truth: np.ndarray
    whitening: Whitening

    @classmethod
    def of(cls, head: Any) -> TrainingDomains:
        """What a fitted head knows of its training domains, computed once for each fit."""
        fit = domain_fit_of(head)
        if fit not in _TRAINING:
            labels = list(fit.adjustments)
            _TRAINING[fit] = cls(
                labels,
                [fit.moments[label] for label in labels],
                [fit.adjustments[label] for label in labels],
                fit.guess_rule,
                np.asarray(fit.B, dtype=np.float64),
                np.asarray(fit.unconstrained_weights, dtype=np.float64),
                fit.whitening,
            )
        return _TRAINING[fit]

    @cached_property
    def names(self) -> list[str]:
        """Labels as text."""
        return names_of(self.labels)

    @cached_property
    def guess(self) -> Adjustment:
        """The guess for an unseen domain."""
        return guess_adjustment(
            self.rule, self.adjustments, self.labels, self.moments, self.whitening
        ).to_numpy()

    def common_like(self, X: Array) -> Array | None:
        """What domains have in common, beside X, where they are shrunk towards their pool."""
        common = self.adjustments[0].common
        return None if common is None else like(common, X)

    @cached_property
    def means(self) -> np.ndarray:
        """Adjusted means as columns, (d, E)."""
        pairs = zip(self.adjustments, self.moments, strict=True)
        return np.stack([adjusted_mean(W, m) for W, m in pairs], axis=1)

    def without(self, e: int) -> TrainingDomains:
        """The other domains; a guess that weighs domains weighs those that are left."""
        rest = [i for i in range(len(self.labels)) if i != e]
        labels = [self.labels[i] for i in rest]
        rule = self.rule
        if isinstance(rule, Mapping):
            rule = {label: rule[label] for label in labels if rule.get(label, 0) > 0} or "mean"
        return replace(
            self,
            labels=labels,
            moments=[self.moments[i] for i in rest],
            adjustments=[self.adjustments[i] for i in rest],
            rule=rule,
        )

    @cached_property
    def held_out(self) -> list[HeldOut]:
        """Each domain beside the others."""
        return [self._held_out(e) for e in range(len(self.labels))]

    def _held_out(self, e: int) -> HeldOut:
        others = self.without(e)
        own = self.adjustments[e]
        norm = spectral_norm(adjustment_difference(own, others.guess))
        error = adjustment_error(others.guess, own)
        return HeldOut(self.names[e], error, norm, others.shift(self.moments[e]).share)

    def shift(self, moments: Moments) -> MeanShift:
        """Shift of the mean of a domain with these moments, adjusted by the guess."""
        centre = self.means.mean(axis=1)
        # Directions of the differences, so that a common offset of all features does not count.
        Q = span(self.means - centre[:, None])
        delta = adjusted_mean(self.guess, moments) - centre
        inside = Q @ (Q.T @ delta)
        outside = delta - inside
        B = self._told_apart
        # The estimated mean is off by a covariance of C/n.
        along_means = len(Q.T) * self._variance(self._guessed(Q), moments) if Q.size else 0.0
        noise = max(adjusted_variance(self.guess, moments) - along_means, 0.0) / moments.n
        along = Q @ (Q.T @ B)
        moves = [
            self._moves(part, B, self._variance(self._guessed(weights), moments) / moments.n)
            for part, weights in ((inside, along), (outside, B - along), (delta, B))
        ]
        spread = self._variance(self._guessed(B), moments) ** 0.5 or 1.0
        return MeanShift(
            float(inside @ inside),
            max(float(outside @ outside) - noise, 0.0),
            moves[0].value / spread,
            moves[1].value / spread,
            moves[2].at_least / spread,
        )

    @staticmethod
    def _moves(part: np.ndarray, B: np.ndarray, noise: float) -> _Moves:
        square = float(np.mean((part @ B) ** 2))
        low = max(square**0.5 - 2.0 * noise**0.5, 0.0)
        return _Moves(max(square - noise, 0.0) ** 0.5, low)

    @property
    def _told_apart(self) -> np.ndarray:
        """Canonical weights without what is common to all classes, which changes nothing."""
        return self.B if self.B.shape[1] == 1 else self.B - self.B.mean(axis=1, keepdims=True)

    def _guessed(self, V: np.ndarray) -> np.ndarray:
        """Weights on raw features, by the guess."""
        return to_numpy(self.guess.apply(self.guess.like(V))).astype(np.float64)

    @staticmethod
    def _variance(V: np.ndarray, moments: Moments) -> float:
        """Mean over columns of the variance of scores V within a domain."""
        # Rounding may leave less than nothing of the variance along a direction that has none.
        variance = np.mean(np.sum(V * to_numpy(covariance_times(moments, V)), axis=0))
        return max(float(variance), 0.0)


# Each fit's domains beside each other take a decomposition or two for every domain.
_TRAINING: WeakKeyDictionary[DomainFit, TrainingDomains] = WeakKeyDictionary()


class _Moves(NamedTuple):
    """How far scores are moved, noise taken off, and at least."""

    value: float
    at_least: float
