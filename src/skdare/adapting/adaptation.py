"""Just-in-time adaptation: new weights for a new domain from its unlabelled rows alone."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from skdare._validation import warn
from skdare.fitting.domain_fit import Fitted, blended_shift
from skdare.fitting.plan import Plan
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import Spectrum


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What a head keeps so that it can adapt: canonical weights and how to adjust for a domain.

    Parameters
    ----------
    plan : Plan
    fitted : Fitted
    guess : Adjustment
        The averaged adjustment, towards which few rows are blended.
    """

    plan: Plan
    fitted: Fitted
    guess: Adjustment

    @classmethod
    def of(cls, plan: Plan, fitted: Fitted) -> Adaptation:
        """On the host, from a fit without penalty."""
        guess = average(fitted.adjustments).to_numpy()
        return cls(plan, replace(fitted, adjustments=[]), guess)

    def spectrum(self, moments: Moments) -> Spectrum | None:
        """Of the second moment; None where the adjustment does not go by way of it."""
        whitening = self.plan.whitening
        if self.guess.common is not None or moments.factor is not None:
            return None
        if moments.shrinkage(whitening.shrinkage, centered=whitening.centered) == 1.0:
            return None
        return Spectrum.of_matrix(moments.second_moment(centered=whitening.centered))

    def own(self, moments: Moments, spectrum: Spectrum | None) -> Adjustment:
        """The adjustment of a domain with these moments, without any guess in it."""
        return self.plan.whitening.of_moments(moments, spectrum, self.guess.common, None)

    def shift(self, mean: np.ndarray, trust: float) -> np.ndarray | None:
        """What is subtracted from the rows in use, if anything is."""
        return blended_shift(self.plan, self.fitted, mean, trust)

    def weights(
        self, own: Adjustment, mean: np.ndarray, trust: float
    ) -> tuple[Adjustment, np.ndarray, np.ndarray]:
        """Blended adjustment, weights and intercept for a domain."""
        W = _blend(own, self.guess, trust)
        return W, *self.fitted.weights(W, self.shift(mean, trust))

    def adapted(
        self, head: Any, own: Adjustment, mean: np.ndarray, trust: float, n_rows: int
    ) -> Any:
        """A copy of the head with the weights for a domain of which so many rows were seen."""
        head, (W, V, b) = copy.copy(head), self.weights(own, mean, trust)
        head.adjustment_, head.adapted_rows_, head.adapted_mean_ = W, n_rows, mean
        head.canonical_coef_, head.solution_ = self.fitted.B.T, self.fitted.solution
        head._set_weights(V, b)
        return head


def _blend(own: Adjustment, guess: Adjustment, trust: float) -> Adjustment:
    """``trust`` times one adjustment, and for the rest the other."""
    if trust == 1.0:
        return own
    if own.matrix is None or guess.matrix is None or own.U is not None or guess.U is not None:
        return average([own, guess], [trust, 1.0 - trust])
    scale = trust * own.scale + (1.0 - trust) * guess.scale
    matrix = trust * own.matrix
    matrix += (1.0 - trust) * guess.matrix
    return Adjustment(own.d, scale, matrix, common=own.common)


def head_digest(head: Any) -> str:
    """A checksum of all that adapting with this head depends on."""
    digest, adaptation = hashlib.sha256(), head.adaptation_
    arrays = [head.coef_, head.intercept_]
    if adaptation is not None:
        fitted, guess = adaptation.fitted, adaptation.guess
        digest.update(repr(adaptation.plan).encode())
        arrays += [fitted.B, fitted.b, fitted.mean, guess.common]
        arrays += [guess.scale, guess.matrix, guess.U, guess.weights]
    for array in arrays:
        values = np.zeros(0) if array is None else np.asarray(array, dtype="<f8")
        digest.update(repr(values.shape).encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def warn_of_outliers(moments: Mapping[Hashable, Moments]) -> None:
    """Say where one or two rows decide a domain's second moment."""
    dominated = [label for label, m in moments.items() if m.dominated]
    if dominated:
        more = f" (and of {len(dominated) - 1} more)" if len(dominated) > 1 else ""
        warn(
            f"one or two of the rows of domain {dominated[0]}{more} hold most of their variance, "
            "and decide how the others are adjusted; look for outliers, or clip the features"
        )


def check_kept(head: Any) -> None:
    """The head has what adapting and diagnosing need: a file may have been without it."""
    if not hasattr(head, "moments_"):
        raise ValueError(
            f"this {type(head).__name__} was saved with adaptable=False, and only predicts; save "
            "the head that was fitted again, with adaptable=True"
        )


def check_adaptable(head: Any) -> None:
    """The head is fitted, and was fitted so that it can adapt."""
    if not hasattr(head, "solution_"):
        raise NotFittedError(
            f"this {type(head).__name__} is not fitted yet; call fit before adapt or adapter"
        )
    check_kept(head)
    if head.adaptation_ is None and getattr(head, "adapts_", True):
        raise ValueError(
            f"this {type(head).__name__} cannot adapt: it was fitted with "
            f"adaptation=None or adjust=False; set adaptation='centered' or 'raw' and fit again"
        )
