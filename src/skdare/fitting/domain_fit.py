"""What a head keeps of a fit to domains, and what adapting to a new one starts from.

Notation: B (d, k) canonical weights, b (k,) intercept, W (d, d) adjustment.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skdare.fitting.canonical_fit import CanonicalFit, raw_weights
from skdare.fitting.formulation import Formulation
from skdare.fitting.targets import ClassShares
from skdare.solvers import Solution
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.guess import GuessRule
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import Spectrum
from skdare.whitening.whitening import Whitening


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Canonical weights for a domain whose rows are seen, and how to adjust them for it.

    Parameters
    ----------
    formulation : Formulation
    B, b : arrays of shape (d, k) and (k,)
    mean : array of shape (d,)
        Equal-weight mean of the training domains' means.
    solution : Solution
    guess : Adjustment
        The averaged adjustment, towards which few rows are blended.
    """

    formulation: Formulation
    B: np.ndarray
    b: np.ndarray
    mean: np.ndarray
    solution: Solution
    guess: Adjustment

    @classmethod
    def of(cls, fit: CanonicalFit) -> Adaptation:
        """What adapting needs of a fit without penalty, on the host."""
        guess = average(fit.adjustments).to_numpy()
        return cls(fit.formulation, fit.B, fit.b, fit.mean, fit.solution, guess)

    @property
    def whitening(self) -> Whitening:
        """How second moments become adjustments."""
        return self.formulation.whitening

    def spectrum(self, moments: Moments) -> Spectrum | None:
        """Spectrum of the second moment; None where the adjustment does not go by way of it."""
        whitening = self.whitening
        if self.guess.common is not None or moments.factor is not None:
            return None
        if whitening.strength(moments) == 1.0:
            return None
        return Spectrum.of_matrix(moments.second_moment(centered=whitening.centered))

    def adjustment(self, moments: Moments, spectrum: Spectrum | None) -> Adjustment:
        """The adjustment of a domain with these moments, without any guess in it."""
        return self.whitening.adjustment(moments, spectrum, self.guess.common)

    def shift(self, mean: np.ndarray, trust: float) -> np.ndarray | None:
        """What is subtracted from the rows in use, if anything is."""
        return blended_shift(self.formulation, self.mean, mean, trust)

    def blended(self, adjustment: Adjustment, trust: float) -> Adjustment:
        """``trust`` times the adjustment of a domain, and for the rest the guess."""
        guess = self.guess
        if trust == 1.0:
            return adjustment
        low_rank = adjustment.U is not None or guess.U is not None
        if adjustment.matrix is None or guess.matrix is None or low_rank:
            return average([adjustment, guess], [trust, 1.0 - trust])
        scale = trust * adjustment.scale + (1.0 - trust) * guess.scale
        matrix = trust * adjustment.matrix
        matrix += (1.0 - trust) * guess.matrix
        return Adjustment(adjustment.d, scale, matrix, common=adjustment.common)

    def raw_weights(
        self, adjustment: Adjustment, mean: np.ndarray, trust: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercept on raw features, by an adjustment that is blended already."""
        return raw_weights((self.B, self.b), adjustment, self.shift(mean, trust))


def trust_in(n: float, prior_rows: float) -> float:
    """The share of the adjustment of a domain with n rows beside the guess."""
    return n / (n + prior_rows)


def blended_shift(
    formulation: Formulation, training_mean: np.ndarray, mean: np.ndarray, trust: float
) -> np.ndarray | None:
    """What is subtracted from the rows of a domain with this mean, if anything is."""
    if not formulation.means.subtract_in_use:
        return None
    return trust * mean + (1.0 - trust) * training_mean


@dataclass(frozen=True, eq=False)
class DomainFit:
    """A fit to training domains, and the domain that its weights are for.

    Parameters
    ----------
    whitening : Whitening
    moments : mapping from domain label to Moments
    adjustments : mapping from domain label to Adjustment
    B : array of shape (d, k)
        Canonical weights.
    adjustment : Adjustment
        The guess for an unseen domain, or that of the domain adapted to.
    guess_rule : str or mapping
        How the guess for an unseen domain is made.
    adaptation : Adaptation, optional
        What adapting starts from; None where the head was fitted without.
    declined : str, optional
        Why adapting changes nothing, where a search found that it does not pay.
    class_shares : ClassShares, optional
        Of a classifier.
    adapted_mean : array of shape (d,), optional
        Mean of the rows adapted to.
    """

    whitening: Whitening
    moments: Mapping[Hashable, Moments]
    adjustments: Mapping[Hashable, Adjustment]
    B: np.ndarray
    adjustment: Adjustment
    guess_rule: GuessRule
    adaptation: Adaptation | None = None
    declined: str | None = None
    class_shares: ClassShares | None = None
    adapted_mean: np.ndarray | None = None

    @property
    def unconstrained_weights(self) -> np.ndarray:
        """Canonical weights without the constraint on the means where there are any, else B."""
        adaptation = self.adaptation
        if adaptation is not None and adaptation.whitening == self.whitening:
            return adaptation.B
        return self.B

    def adapted(self, adjustment: Adjustment, mean: np.ndarray) -> DomainFit:
        """The same fit with the weights for a domain of this (blended) adjustment and mean."""
        assert self.adaptation is not None
        return replace(self, B=self.adaptation.B, adjustment=adjustment, adapted_mean=mean)


def domain_fit_of(head: Any) -> DomainFit:
    """What a fitted head learnt of its training domains; refused where a file was without it."""
    check_is_fitted(head)
    fit: DomainFit | None = head._domain_fit
    if fit is None:
        raise NotFittedError(
            f"this {type(head).__name__} was saved with adaptable=False, and only predicts; save "
            "the head that was fitted again, with adaptable=True"
        )
    return fit
