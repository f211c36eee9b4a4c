"""The adversary of theorem 2: which new domains it may choose, and how much they can cost.

Notation: A (d, d) the new domain's transformation, b (d,) its latent mean, W (d, d) the guess for
its inverse, β (d,) the truth, Π (d, d) the projection of theorem 1, Δ = AᵀWᵀ - I the error of the
guess, w = ΔΠβ what it does to the part of the truth that DARE keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.checks import check_number
from skdare.paper.theory.model import LatentDomain

# The share of ‖Πβ‖ by which an optimiser may overstep assumption 2.
_TOLERANCE = 1e-7


def guess_error(W: np.ndarray, domain: LatentDomain) -> np.ndarray:
    """Δ, by which adjusted latents differ from the true ones: ``v = (I + Δ) β - truth``.

    It is ``AᵀWᵀ - I``; the paper prints ``A W - I``, which is the same for symmetric roots.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentDomain, guess_error
    >>> bool(guess_error(np.eye(2), LatentDomain(np.eye(2), np.zeros(2))).any())
    False
    """
    return domain.A.T @ W.T - np.eye(len(domain.b))


@dataclass(frozen=True, eq=False)
class Adversary:
    """The set of new domains in theorem 2, with assumption 3 as its lemma rewrites it.

    A domain is in it when ``‖(I - Π) Δ αΠβ‖ ≤ B ‖Πβ‖``, ``‖Δ Πβ‖ < ‖Πβ‖`` and ``‖b‖ ≤ ρ``.

    Parameters
    ----------
    truth : array of shape (d,)
        The truth β.
    projection : array of shape (d, d)
        The projection Π of theorem 1.
    interaction : float
        B of assumption 2.
    rho : float
        The bound ρ on the length of the new latent mean.
    scale : float
        α, which is one in regression: DARE's solution, to which assumption 2 refers, is αΠβ.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import Adversary, excess_risk
    >>> adversary = Adversary(np.array([0.6, 0.8]), np.diag([1.0, 0.0]), interaction=0.5)
    >>> round(adversary.supremum(), 2), round(adversary.supremum(np.zeros(2)), 2)
    (1.48, 1.0)
    >>> domain = adversary.worst_domain(np.eye(2))
    >>> adversary.admits(np.eye(2), domain)
    True
    >>> round(excess_risk(adversary.solution, adversary.truth, np.eye(2), domain), 2)
    1.48
    """

    truth: np.ndarray
    projection: np.ndarray
    interaction: float = 0.0
    rho: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("interaction", self.interaction)
        check_number("rho", self.rho)
        check_number("scale", self.scale)
        if not self.norms[0] > 0:
            raise ValueError(
                "projection takes all of truth away, and then no domain meets assumption 3; pass "
                "a projection that keeps a part of it"
            )

    @property
    def kept(self) -> np.ndarray:
        """Πβ, what DARE keeps of the truth."""
        return self.projection @ self.truth

    @property
    def dropped(self) -> np.ndarray:
        """(I - Π)β, what DARE drops of the truth."""
        return self.truth - self.kept

    @property
    def solution(self) -> np.ndarray:
        """The solution that DARE finds, αΠβ."""
        return self.scale * self.kept

    @property
    def norms(self) -> tuple[float, float]:
        """p = ‖Πβ‖ and q = ‖(I - Π)β‖."""
        return float(np.linalg.norm(self.kept)), float(np.linalg.norm(self.dropped))

    @property
    def reach(self) -> float:
        """The largest ‖(I - Π)w‖ that assumptions 2 and 3 allow: min(B/α, 1) ‖Πβ‖."""
        share = min(self.interaction / self.scale, 1.0) if self.scale > 0 else 1.0
        return share * self.norms[0]

    def admits(self, W: np.ndarray, domain: LatentDomain) -> bool:
        """Whether the domain is in the set, when the guess is W."""
        w = guess_error(W, domain) @ self.kept
        p = self.norms[0]
        across = self.scale * np.linalg.norm(w - self.projection @ w)
        return bool(
            across <= (self.interaction + _TOLERANCE) * p
            and np.linalg.norm(w) < p
            and np.linalg.norm(domain.b) <= self.rho * (1.0 + 1e-12)
        )

    def printed_supremum(self) -> float:
        """The paper's supremum: (1 + ρ²) (‖β‖² + 2 B ‖Πβ‖ ‖(I - Π)β‖)."""
        p, q = self.norms
        return float((1.0 + self.rho**2) * (p**2 + q**2 + 2.0 * self.interaction * p * q))

    def supremum(self, beta: np.ndarray | None = None) -> float:
        """The supremum over the set of the excess risk of β, by default DARE's solution.

        For ``β = aΠβ`` and ``t = ‖(I - Π)w‖`` it is (1 + ρ²) times the largest value of
        ``(|a| √(p² - t²) + |1 - a| p)² + (|a| t + q)²``; no other direction is bounded. Every w
        counts as possible; with symmetric A that is so where `worst_domain` finds a domain.
        """
        a = self._factor(self.solution if beta is None else beta)
        if a is None:
            return np.inf
        p, q = self.norms
        t = self._across(a)
        inside = abs(a) * np.sqrt(max(p**2 - t**2, 0.0)) + abs(1.0 - a) * p
        return float((1.0 + self.rho**2) * (inside**2 + (abs(a) * t + q) ** 2))

    def domain(
        self, W: np.ndarray, error: np.ndarray, b: np.ndarray, *, stretch: float = 1.0
    ) -> LatentDomain:
        """The domain with a symmetric positive definite A at which ``ΔΠβ`` is this error.

        Parameters
        ----------
        W : array of shape (d, d)
            The guess.
        error : array of shape (d,)
            The error w.
        b : array of shape (d,)
            The latent mean.
        stretch : float
            A in the directions on which no assumption bears: the risk of a predictor that is not
            along Πβ grows with it, without bound.
        """
        start = W.T @ self.kept
        target = self.kept + error
        meet = float(start @ target)
        if not meet > 0:
            raise ValueError(
                "no symmetric positive definite A has this error: it takes WᵀΠβ to a vector at an "
                "obtuse angle; use a guess nearer to a multiple of the identity"
            )
        # The first term takes start to target, the second leaves it alone.
        A = np.outer(target, target) / meet
        A += stretch * (np.eye(len(start)) - np.outer(start, start) / (start @ start))
        return LatentDomain(A, b)

    def worst_domain(
        self, W: np.ndarray, beta: np.ndarray | None = None, *, slack: float = 1e-3
    ) -> LatentDomain:
        """A domain of the set whose risk tends to the supremum as the slack tends to zero.

        Parameters
        ----------
        W : array of shape (d, d)
        beta : array of shape (d,), optional
            A predictor along Πβ; default: DARE's solution.
        slack : float in (0, 1)
            The share by which w stays inside the set.
        """
        check_number("slack", slack, 0.0, 1.0)
        a = self._factor(self.solution if beta is None else beta)
        if a is None:
            raise ValueError(
                "beta is not along the projected truth, and its risk has no bound; pass a multiple "
                "of adversary.kept"
            )
        error = (1.0 - slack) * self._worst_error(a)
        v = a * (self.kept + error) - self.truth
        return self.domain(W, error, worst_mean(v, self.rho))

    def _factor(self, beta: np.ndarray) -> float | None:
        """a such that β = aΠβ, or None."""
        a = float(beta @ self.kept / (self.kept @ self.kept))
        rest = np.linalg.norm(beta - a * self.kept)
        return None if rest > 1e-9 * np.linalg.norm(beta) else a

    def _across(self, a: float) -> float:
        """‖(I - Π)w‖ of the worst w: where the risk, a concave function of it, is largest."""
        p, q = self.norms
        if a == 0.0 or q == 0.0:
            return 0.0
        return min(self.reach, p * q / float(np.hypot(q, (1.0 - a) * p)))

    def _worst_error(self, a: float) -> np.ndarray:
        """w at which the risk of aΠβ is the supremum."""
        p, q = self.norms
        t = self._across(a)
        inward = -1.0 if 0.0 < a < 1.0 else 1.0
        w = inward * np.sqrt(max(p**2 - t**2, 0.0)) / p * self.kept
        return w - np.sign(a) * t / q * self.dropped if t > 0 else w


def worst_mean(v: np.ndarray, rho: float) -> np.ndarray:
    """The latent mean of length ρ that costs most where v is the error of a predictor."""
    return rho * v / max(float(np.linalg.norm(v)), 1e-300)
