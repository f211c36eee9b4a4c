"""An inverse root kept from earlier moments, and how far scores are from those of a new one.

Notation: A = W⁻¹ the kept root of a shrunk second moment, S the shrunk second moment now,
B (d, k) canonical weights, D what must be added to W.

W + D is the inverse root of S when (W + D) S (W + D) = I. With S = A (I + E) A and terms of
second order left out, that is the Lyapunov equation A D + D A = -E, which
D = -∫ exp(-tA) E exp(-tA) dt solves. A sum over a few t gives D B from products of S with as many
times k columns: d² k, where a new root costs d³. In eigenvectors of A with values aᵢ,
Dᵢⱼ = -Eᵢⱼ / (aᵢ + aⱼ). The cheaper estimate ‖E B‖ / 2 is right only where all aᵢ are about the
same: along other pairs the factor aᵢ / (aᵢ + aⱼ) of whitened scores is anything from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skdare.adjustment import Adjustment, Spectrum
from skdare.heads._adaptation import Adaptation
from skdare.moments import Moments

# Trapezoids in log t: 1 / (x + y) is then off by 0.4 % at most inside the range of the roots.
_STEP = 1.25
# Below this share of the bound the terms of second order do not lead beyond it.
MARGIN = 0.9
MAX_STALENESS = 0.1


class KeptRoot:
    """The adjustment of a domain, with the spectrum that it was made of.

    Parameters
    ----------
    adaptation : Adaptation
    spectrum : Spectrum
    rho : float
        The strength of shrinkage.
    own : Adjustment, optional
        Their inverse root, where it is known.
    """

    def __init__(
        self,
        adaptation: Adaptation,
        spectrum: Spectrum,
        rho: float,
        own: Adjustment | None = None,
    ) -> None:
        self._adaptation, self.spectrum, self.rho = adaptation, spectrum, rho
        target = adaptation.plan.whitening.target
        self.own = spectrum.inverse_root(rho, target) if own is None else own
        ridge = rho * (1.0 if target == "identity" else spectrum.scale)
        self._roots = np.sqrt((1.0 - rho) * spectrum.values + ridge)
        self._rest = np.sqrt(ridge)
        self._thin = spectrum.vectors.shape[1] < spectrum.d
        self._coordinates = spectrum.vectors.T @ adaptation.fitted.B

    @property
    def is_bounded(self) -> bool:
        """Whether no direction was cut off: only then do small changes have small effects."""
        smallest = min(self._roots.min(), self._rest) if self._thin else self._roots.min()
        return bool(smallest > 1e-6 * self._roots.max())

    def score_change(self, moments: Moments, trust: float) -> float:
        """How far scores of the rows seen are from those of a new root, relative, to first order.

        ``‖Z D B‖ / ‖Z V‖`` in the Frobenius norm, for the rows Z (weighted as they count now, and
        less what the head subtracts in use), times the trust in D, with V the blended weights.
        """
        adaptation, B = self._adaptation, self._adaptation.fitted.B
        change = trust * self._correction(moments)
        V = trust * self.own.apply(B) + (1.0 - trust) * adaptation.guess.apply(B)
        shift = adaptation.shift(moments.mean, trust)
        offset = moments.mean if shift is None else moments.mean - shift

        def square(M: np.ndarray) -> float:
            spread = np.sum(M * (moments.scatter @ M)) / moments.n
            return float(spread + np.sum((offset @ M) ** 2))

        size = square(V)
        return float(np.sqrt(square(change) / size)) if size > 0 else 0.0

    def _correction(self, moments: Moments) -> np.ndarray:
        """D B."""
        times, weights = self._quadrature()
        B = self._adaptation.fitted.B
        parts = [self._apply(lambda a, t=t: np.exp(-t * a) / a, B) for t in times]
        H = self._shrunk_product(moments, np.concatenate(parts, axis=1))
        C, result = self.spectrum.vectors.T @ H, np.zeros_like(B)
        k = B.shape[1]
        inner = np.zeros_like(C[:, :k])
        for p, (t, w) in enumerate(zip(times, weights, strict=True)):
            part = slice(p * k, (p + 1) * k)
            rest = np.exp(-t * self._rest) / self._rest if self._thin else 0.0
            factor = np.exp(-t * self._roots) / self._roots - rest
            inner += w * factor[:, None] * C[:, part]
            result += (w * rest) * H[:, part]
        # The same sum for E = 0, so that moments which did not change have no correction at all.
        unchanged = self._apply(lambda a: np.exp(-2.0 * np.outer(a, times)) @ weights, B)
        return unchanged - result - self.spectrum.vectors @ inner

    def _apply(self, f: Callable, B: np.ndarray) -> np.ndarray:
        """f(A) B."""
        values, C = f(self._roots), self._coordinates
        if not self._thin:
            return self.spectrum.vectors @ (values[:, None] * C)
        rest = f(np.array([self._rest]))[0]
        return rest * B + self.spectrum.vectors @ ((values - rest)[:, None] * C)

    def _shrunk_product(self, moments: Moments, M: np.ndarray) -> np.ndarray:
        """S M with the shrinkage that the moments ask for now."""
        rho, ridge = _shrinkage(self._adaptation, moments)
        product = moments.scatter @ M / moments.n
        if not self._adaptation.plan.whitening.centered:
            product += moments.mean[:, None] * (moments.mean @ M)[None, :]
        return (1.0 - rho) * product + ridge * M

    def _quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and weights with Σ w exp(-t x) ≈ 1/x between the sums of two roots."""
        low, high = 2.0 * self._roots.min(), 2.0 * self._roots.max()
        if self._thin:
            low, high = min(low, 2.0 * self._rest), max(high, 2.0 * self._rest)
        times = np.exp(np.arange(np.log(0.005 / high), np.log(7.0 / low) + _STEP, _STEP))
        return times, _STEP * times


def _shrinkage(adaptation: Adaptation, moments: Moments) -> tuple[float, float]:
    """Its strength, and what it adds to every eigenvalue."""
    whitening = adaptation.plan.whitening
    rho = moments.shrinkage(whitening.shrinkage, centered=whitening.centered)
    identity = whitening.target == "identity"
    return rho, rho * (1.0 if identity else moments.scale(centered=whitening.centered))
