"""What a head keeps of a fit to domains, and what adapting to a new one starts from.

Notation: B (d, k) canonical weights, b (k,) intercept, W (d, d) adjustment.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skdare.fitting.canonical_fit import CanonicalFit, CanonicalWeights
from skdare.fitting.formulation import Formulation
from skdare.fitting.guard import AdaptationGuard
from skdare.fitting.mixture import ClassFinder, ClassPlaces, ClassSums, Mixture, NewRows
from skdare.fitting.targets import ClassShares
from skdare.solvers import Solution
from skdare.whitening.adjustment import Adjustment, average, on_host
from skdare.whitening.guess import GuessRule
from skdare.whitening.moments import Moments
from skdare.whitening.prior import PriorRows, Trust
from skdare.whitening.roots.eigen import Spectrum
from skdare.whitening.whitening import Whitening


class WeightedSample(Protocol):
    """Some rows of a domain, of which ``n_seen`` were seen."""

    n_seen: int

    def weighted_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows on the host, and what each counts."""


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
    prior_rows : PriorRows
        How many rows of a new domain the averages count as.
    mixture : Mixture, optional
        How classes may move besides.
    places : ClassPlaces, optional
        Where they lay in training; with a mixture.
    """

    formulation: Formulation
    B: np.ndarray
    b: np.ndarray
    mean: np.ndarray
    solution: Solution
    guess: Adjustment
    prior_rows: PriorRows
    mixture: Mixture | None = None
    places: ClassPlaces | None = None

    @classmethod
    def of(
        cls,
        fit: CanonicalFit,
        moments: Sequence[Moments],
        mixture: Mixture | None = None,
        sums: Sequence[ClassSums] | None = None,
    ) -> Adaptation:
        """What adapting needs of a fit without penalty, and of moments on the host.

        A mixture also needs the domains' sums by class.
        """
        guess = average(fit.adjustments).to_numpy()
        prior_rows = PriorRows.of_domains(moments, fit.formulation.whitening)
        places = None
        if mixture is not None and sums is not None:
            adjustments = on_host(fit.adjustments)
            places = ClassPlaces.of_domains(sums, moments, adjustments, fit.formulation)
        return cls(
            fit.formulation,
            fit.B,
            fit.b,
            fit.mean,
            fit.solution,
            guess,
            prior_rows,
            mixture,
            places,
        )

    @property
    def whitening(self) -> Whitening:
        """How second moments become adjustments."""
        return self.formulation.whitening

    def spectrum(self, moments: Moments) -> Spectrum | None:
        """Spectrum of the second moment; None where the adjustment does not go by way of it."""
        whitening = self.whitening
        if not whitening.adjust or self.guess.common is not None or moments.factor is not None:
            return None
        if whitening.target == "diagonal" or whitening.strength(moments) == 1.0:
            return None
        return Spectrum.of_matrix(moments.second_moment(centered=whitening.centered))

    def adjustment(self, moments: Moments, spectrum: Spectrum | None) -> Adjustment:
        """The adjustment of a domain with these moments, without any guess in it."""
        if not self.whitening.adjust:
            return self.guess
        return self.whitening.adjustment(moments, spectrum, self.guess.common)

    def trust(self, n: float, prior_rows: float | None = None) -> Trust:
        """What n rows of a new domain count beside the averages, or beside that many rows."""
        given = self.prior_rows if prior_rows is None else PriorRows(prior_rows, prior_rows)
        return given.trust(n)

    def shift(self, mean: np.ndarray, trust: Trust) -> np.ndarray | None:
        """What is subtracted from the rows in use, if anything is."""
        return blended_shift(self.formulation, self.mean, mean, trust)

    def blended(self, adjustment: Adjustment, trust: Trust) -> Adjustment:
        """The adjustment of a domain as far as it is trusted, and for the rest the guess."""
        guess = self.guess
        share = trust.adjustment
        if share == 1.0:
            return adjustment
        others = (adjustment.U, guess.U, adjustment.diagonal, guess.diagonal)
        mixed = any(part is not None for part in others)
        if adjustment.matrix is None or guess.matrix is None or mixed:
            return average([adjustment, guess], [share, 1.0 - share])
        scale = share * adjustment.scale + (1.0 - share) * guess.scale
        matrix = share * adjustment.matrix
        matrix += (1.0 - share) * guess.matrix
        return Adjustment(adjustment.d, scale, matrix, common=adjustment.common)

    def weights(
        self,
        adjustment: Adjustment,
        moments: Moments,
        trust: Trust,
        sample: WeightedSample | None,
        codes: np.ndarray | None = None,
    ) -> CanonicalWeights:
        """Canonical weights for a domain of these moments, by its blended adjustment.

        They are those of the training domains, but for a mixture, which needs a sample of the rows,
        and takes the number of each one's class, or -1, where some are labelled.
        """
        if self.mixture is None or self.places is None or sample is None:
            return self.B, self.b
        X, weight = sample.weighted_rows()
        # Sums by class of some rows beside the scatter of all could leave less than nothing.
        own = Moments.of(X, None, weight) if len(X) < sample.n_seen else moments
        weight = weight * (moments.n / weight.sum())
        rows = NewRows.of(X, weight, own, adjustment, self.shift(moments.mean, trust), codes)
        return ClassFinder(self.places, rows).weights(self.mixture, self.B, self.b)


def blended_shift(
    formulation: Formulation, training_mean: np.ndarray, mean: np.ndarray, trust: Trust
) -> np.ndarray | None:
    """What is subtracted from the rows of a domain with this mean, if anything is."""
    if not formulation.means.subtract_in_use:
        return None
    return trust.mean * mean + (1.0 - trust.mean) * training_mean


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
    guard : AdaptationGuard, optional
        What may object to adapting once there are rows.
    class_shares : ClassShares, optional
        Of a classifier.
    adapted_mean : array of shape (d,), optional
        Mean of the rows adapted to.
    unadapted : coef_ and intercept_, optional
        Of an adapted head: its weights before.
    """

    whitening: Whitening
    moments: Mapping[Hashable, Moments]
    adjustments: Mapping[Hashable, Adjustment]
    B: np.ndarray
    adjustment: Adjustment
    guess_rule: GuessRule
    adaptation: Adaptation | None = None
    declined: str | None = None
    guard: AdaptationGuard | None = None
    class_shares: ClassShares | None = None
    adapted_mean: np.ndarray | None = None
    unadapted: tuple[np.ndarray, Any] | None = None

    @property
    def unconstrained_weights(self) -> np.ndarray:
        """Canonical weights without the constraint on the means where there are any, else B."""
        adaptation = self.adaptation
        if adaptation is not None and adaptation.whitening == self.whitening:
            return adaptation.B
        return self.B

    def adapted(
        self,
        B: np.ndarray,
        adjustment: Adjustment,
        mean: np.ndarray,
        unadapted: tuple[np.ndarray, Any],
    ) -> DomainFit:
        """The same fit with the weights for a domain of this (blended) adjustment and mean."""
        return replace(
            self,
            B=B,
            adjustment=adjustment,
            adapted_mean=mean,
            unadapted=unadapted,
        )


def domain_fit_of(head: Any) -> DomainFit:
    """What a fitted head learnt of its training domains; refused where a file was without it."""
    check_is_fitted(head)
    fit: DomainFit | None = head._domain_fit
    if fit is None and head.labelled_rows_ is not None:
        raise NotFittedError(
            f"this {type(head).__name__} took labels and only predicts, as it has new classes or "
            "was saved with adaptable=False; use the head that it was adapted from"
        )
    if fit is None:
        raise NotFittedError(
            f"this {type(head).__name__} was saved with adaptable=False, and only predicts; save "
            "the head that was fitted again, with adaptable=True"
        )
    return fit
