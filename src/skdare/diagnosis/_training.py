"""What a fitted head says of its training domains, each seen as if it were new."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdare._array import to_numpy
from skdare.adjustment import Adjustment, adjustment_error, average
from skdare.diagnosis._geometry import (
    adjusted_mean,
    adjustment_difference,
    span,
    spectral_norm,
)
from skdare.domain_statistics import Whitening
from skdare.moments import Moments


@dataclass(frozen=True, eq=False)
class MeanShift:
    """How far a domain's adjusted mean is from the average of the others, and in which directions.

    Parameters
    ----------
    covered, new : float
        Squared length inside and outside the span of the others' means; outside, sampling noise
        is taken off.
    covered_scores, new_scores : float
        Root mean square, over classes, by which each part moves the scores.
    """

    covered: float
    new: float
    covered_scores: float
    new_scores: float

    @property
    def share(self) -> float:
        """Of the squared length that is covered."""
        whole = self.covered + self.new
        return 1.0 if whole <= 0 else self.covered / whole


@dataclass(frozen=True, eq=False)
class TrainingDomains:
    """Moments and adjustments of the training domains, and the canonical weights.

    Parameters
    ----------
    labels : list of domain labels
    moments : list of Moments
    adjustments : list of Adjustment
    guess : Adjustment
    B : array of shape (d, k)
        Canonical weights of the head.
    truth : array of shape (d, k)
        Canonical weights without the constraint on the means, an estimate of the paper's β*.
    whitening : Whitening
    """

    labels: list[Hashable]
    moments: list[Moments]
    adjustments: list[Adjustment]
    guess: Adjustment
    B: np.ndarray
    truth: np.ndarray
    whitening: Whitening

    @cached_property
    def means(self) -> np.ndarray:
        """Adjusted means as columns, (d, E)."""
        pairs = zip(self.adjustments, self.moments, strict=True)
        return np.stack([adjusted_mean(W, m) for W, m in pairs], axis=1)

    def without(self, e: int) -> TrainingDomains:
        """The other domains, with their own guess."""
        rest = [i for i in range(len(self.labels)) if i != e]
        adjustments = [self.adjustments[i] for i in rest]
        return TrainingDomains(
            [self.labels[i] for i in rest],
            [self.moments[i] for i in rest],
            adjustments,
            average(adjustments),
            self.B,
            self.truth,
            self.whitening,
        )

    @cached_property
    def errors(self) -> dict[str, float]:
        """Normalised error of the others' guess for each domain."""
        return {
            str(label): adjustment_error(self.without(e).guess, self.adjustments[e])
            for e, label in enumerate(self.labels)
        }

    @cached_property
    def norms(self) -> dict[str, float]:
        """‖Δ‖ of the others' guess for each domain."""
        return {
            str(label): spectral_norm(
                adjustment_difference(self.adjustments[e], self.without(e).guess)
            )
            for e, label in enumerate(self.labels)
        }

    def shift(self, moments: Moments) -> MeanShift:
        """Of a domain with these moments, adjusted by the guess."""
        Q = span(self.means)
        delta = adjusted_mean(self.guess, moments) - self.means.mean(axis=1)
        inside = Q @ (Q.T @ delta)
        outside = delta - inside
        covered = float(inside @ inside)
        noise = max(self._noise(moments, Q), 0.0)
        new = max(float(outside @ outside) - noise, 0.0)
        return MeanShift(covered, new, self._moved(inside), self._moved(outside))

    def _noise(self, moments: Moments, Q: np.ndarray) -> float:
        """Expected squared length, outside the span, of the error of an estimated mean."""
        W = to_numpy(self.guess.dense()).astype(np.float64)
        C = to_numpy(moments.scatter).astype(np.float64) / moments.n
        inside = W @ Q
        covered = float(np.sum(inside * (C @ inside)))
        return (float(np.sum((C @ W) * W)) - covered) / moments.n

    def _moved(self, part: np.ndarray) -> float:
        moved = part @ self.B
        if len(moved) > 1:  # a common change of all scores changes nothing
            moved = moved - moved.mean()
        return float(np.sqrt(np.mean(moved**2)))

    @cached_property
    def shifts(self) -> dict[str, MeanShift]:
        """Of each domain, beside the others."""
        return {
            str(label): self.without(e).shift(self.moments[e])
            for e, label in enumerate(self.labels)
        }
