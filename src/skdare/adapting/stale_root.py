"""An inverse root kept from earlier moments, and how far scores are from those of a new one.

Notation: A = W⁻¹ the stale root of a shrunk second moment, S the shrunk second moment now,
B (d, k) canonical weights, D what must be added to W, Q (d, d) eigenvectors of A.

W + D is the inverse root of S when (W + D) S (W + D) = I. With S = A (I + E) A and terms of
second order left out, that is the Lyapunov equation A D + D A = -E, which
D = -∫ exp(-tA) E exp(-tA) dt solves. A sum over a few t gives D B from products of S with as many
times k columns: d² k, where a new root costs d³. In eigenvectors of A with values aᵢ,
Dᵢⱼ = -Eᵢⱼ / (aᵢ + aⱼ). The cheaper estimate ‖E B‖ / 2 is right only where all aᵢ are about the
same: along other pairs the factor aᵢ / (aᵢ + aⱼ) of whitened scores is anything from 0 to 1.
"""

from __future__ import annotations

import numpy as np

from skdare.fitting.domain_fit import Adaptation
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments
from skdare.whitening.prior import Trust
from skdare.whitening.roots.eigen import Spectrum
from skdare.whitening.shrinkage import ridge_of

# Trapezoids in log t: 1 / (x + y) is then off by 0.5 % at most inside the range of the roots.
_STEP = 1.25
# What is left out: at most 1.4 times the square of the first order in 60 streams (three forms,
# five shrinkages, stationary and drifting); twice that is allowed for.
_SECOND_ORDER = 3.0
MAX_STALENESS = 0.1


class StaleRoot:
    """The adjustment of a domain, with the spectrum that it was made of.

    Parameters
    ----------
    adaptation : Adaptation
    spectrum : Spectrum
    rho : float
        The strength of shrinkage.
    adjustment : Adjustment, optional
        Their inverse root, where it is known.
    """

    def __init__(
        self,
        adaptation: Adaptation,
        spectrum: Spectrum,
        rho: float,
        adjustment: Adjustment | None = None,
    ) -> None:
        self._adaptation = adaptation
        self.spectrum = spectrum
        self.rho = rho
        ridge = ridge_of(rho, adaptation.whitening.target, spectrum.scale)
        if adjustment is None:
            adjustment = spectrum.inverse_root(rho, ridge)
        self.adjustment = adjustment
        self._roots = np.sqrt((1.0 - rho) * spectrum.values + ridge)
        self._coordinates = spectrum.vectors.T @ adaptation.B
        self._adjusted = adjustment.apply(adaptation.B)
        self._guessed = adaptation.guess.apply(adaptation.B)

    @property
    def is_bounded(self) -> bool:
        """Whether no direction was cut off: only then do small changes have small effects."""
        low, high = self._range()
        return low > 1e-6 * high

    def serves(self, moments: Moments, trust: Trust, staleness: float) -> bool:
        """Whether scores of the rows seen are within ``staleness`` of those of a new root."""
        change = self.score_change(moments, trust)
        return change * (1.0 + _SECOND_ORDER * change) <= staleness

    def score_change(self, moments: Moments, trust: Trust) -> float:
        """How far scores of the rows seen are from those of a new root, relative, to first order.

        ``‖Z D B‖ / ‖Z V‖`` in the Frobenius norm, for the rows Z (weighted as they count now, and
        less what the head subtracts in use), times the trust in D, with V the blended weights.
        """
        share = trust.adjustment
        V = share * self._adjusted + (1.0 - share) * self._guessed
        k = V.shape[1]
        shift = self._adaptation.shift(moments.mean, trust)
        offset = moments.mean if shift is None else moments.mean - shift
        M = np.concatenate([share * self._correction(moments), V], axis=1)
        squares = np.sum(M * (moments.scatter @ M), axis=0) / moments.n + (offset @ M) ** 2
        change = squares[:k].sum()
        size = squares[k:].sum()
        return float(np.sqrt(max(change, 0.0) / size)) if size > 0 else 0.0

    def _correction(self, moments: Moments) -> np.ndarray:
        """D B, as Σ w (exp(-2tA) - exp(-tA) W S W exp(-tA)) B over the times t.

        Moments that did not change then have no correction at all.
        """
        times, weights = self._quadrature()
        decays = np.exp(-np.outer(self._roots, times))
        inverse = decays / self._roots[:, None]
        G = self._apply(inverse)
        H = self._shrunk_product(moments, G.reshape(len(G), -1)).reshape(G.shape)
        Q = self.spectrum.vectors
        inner = np.tensordot(Q, H, axes=(0, 0))
        after = Q @ np.einsum("p,ip,ipk->ik", weights, inverse, inner)
        return self._apply((decays**2 @ weights)[:, None])[:, 0] - after

    def _apply(self, roots: np.ndarray) -> np.ndarray:
        """f(A) B for several f, (d, p, k), from their values along Q."""
        inner = roots[:, :, None] * self._coordinates[:, None, :]
        Q = self.spectrum.vectors
        return (Q @ inner.reshape(len(inner), -1)).reshape(len(Q), *inner.shape[1:])

    def _shrunk_product(self, moments: Moments, M: np.ndarray) -> np.ndarray:
        """S M with the shrinkage that the moments ask for now."""
        whitening = self._adaptation.whitening
        rho = whitening.strength(moments)
        ridge = whitening.ridge(moments)
        product = moments.scatter @ M / moments.n
        if not whitening.centered:
            product += moments.mean[:, None] * (moments.mean @ M)[None, :]
        return (1.0 - rho) * product + ridge * M

    def _range(self) -> tuple[float, float]:
        return float(self._roots.min()), float(self._roots.max())

    def _quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and weights with Σ w exp(-t x) ≈ 1/x between the sums of two roots."""
        low, high = self._range()
        times = np.exp(np.arange(np.log(0.0025 / high), np.log(3.5 / low) + _STEP, _STEP))
        return times, _STEP * times
