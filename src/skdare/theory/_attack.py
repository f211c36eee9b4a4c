"""Searches for the worst new domain, which know nothing of the closed forms they are held against.

Notation: A = L Lᵀ (d, d) symmetric, W (d, d) the guess, β (d,) the truth, Δ (d, d) the error of the
guess, Π a projection.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from skdare._validation import check_count
from skdare.theory._adversary import Adversary, along
from skdare.theory._model import LatentDomain, latent_risk

# From the entries of a triangular matrix to the matrix, and where in it they are.
_Unfold = Callable[[np.ndarray], np.ndarray]
_Entries = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class _Residual:
    """``r = P (L Lᵀ a - t)`` as a function of the lower triangle of L."""

    P: np.ndarray
    a: np.ndarray
    t: np.ndarray

    def __call__(self, L: np.ndarray) -> np.ndarray:
        return self.P @ (L @ (L.T @ self.a) - self.t)

    def slopes(self, L: np.ndarray) -> np.ndarray:
        """Of every entry of r, (m, d, d): ∂r = P (∂L Lᵀ a + L ∂Lᵀ a)."""
        return np.einsum("mi,j->mij", self.P, L.T @ self.a) + np.einsum(
            "i,mj->mij", self.a, self.P @ L
        )


def attack(
    adversary: Adversary,
    W: np.ndarray,
    beta: np.ndarray | None = None,
    *,
    starts: int = 3,
    size: float = 10.0,
    random_state: int | np.random.Generator | None = None,
) -> LatentDomain:
    """The most costly domain of the set that a local search over symmetric A finds.

    Parameters
    ----------
    adversary : Adversary
    W : array of shape (d, d)
    beta : array of shape (d,), optional
        The predictor to hurt; default: DARE's.
    starts : int
        Random starts near a perfect guess.
    size : float
        Bound on the entries of L: the risk of most predictors has none.
    random_state : int or Generator, optional

    Returns
    -------
    LatentDomain

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory import Adversary, attack, excess_risk
    >>> adversary = Adversary(np.array([0.6, 0.8]), np.diag([1.0, 0.0]), interaction=0.5)
    >>> domain = attack(adversary, np.eye(2), random_state=0)
    >>> round(excess_risk(adversary.solution, adversary.truth, np.eye(2), domain), 2)
    1.48
    """
    check_count("starts", starts, 1)
    if not (np.allclose(W, W.T) and np.linalg.eigvalsh(W)[0] > 0):
        raise ValueError(
            "W is not symmetric and positive definite, and the search starts at its inverse; pass "
            "a guess such as averaged_guess(model)"
        )
    rng, beta = np.random.default_rng(random_state), adversary.solution if beta is None else beta
    search = _Search(adversary, W, beta, size)
    found = [search.climb(rng) for _ in range(starts)]
    A = max(found, key=search.cost)
    v = A @ (W @ beta) - adversary.truth
    return LatentDomain(A, along(v, adversary.rho))


@dataclass(frozen=True, eq=False)
class _Search:
    adversary: Adversary
    W: np.ndarray
    beta: np.ndarray
    size: float

    def cost(self, A: np.ndarray) -> float:
        return float(np.sum((A @ (self.W @ self.beta) - self.adversary.truth) ** 2))

    def climb(self, rng: np.random.Generator) -> np.ndarray:
        """One local search: a symmetric A that meets both assumptions."""
        d, center = len(self.beta), np.linalg.inv(self.W)
        lower, eye = np.tril_indices(d), np.eye(d)
        start = np.linalg.cholesky(center)[lower]
        start = start + 0.1 * np.abs(start).max() * rng.standard_normal(len(start))
        risk = _Residual(eye, self.W @ self.beta, self.adversary.truth)

        def unfold(values: np.ndarray) -> np.ndarray:
            L = np.zeros((d, d))
            L[lower] = values
            return L

        def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
            L = unfold(values)
            r = risk(L)
            return -float(r @ r), -2.0 * np.einsum("m,mij->ij", r, risk.slopes(L))[lower]

        with warnings.catch_warnings():
            # Before SciPy 1.16 steps leave the bounds by rounding, and are brought back.
            warnings.filterwarnings("ignore", "Values in x were outside bounds")
            found = minimize(
                loss,
                start,
                jac=True,
                method="SLSQP",
                bounds=Bounds(-self.size, self.size),
                constraints=self._constraints(unfold, lower),
                options={"maxiter": 300, "ftol": 1e-10},
            )
        L = unfold(found.x)
        return self._inside(L @ L.T, center)

    def _constraints(self, unfold: _Unfold, lower: _Entries) -> list[dict[str, Any]]:
        adversary, d = self.adversary, len(self.beta)
        a, (p, _) = self.W @ adversary.kept, adversary.norms
        whole = _Residual(np.eye(d), a, adversary.kept)
        vectors = np.linalg.eigh(adversary.projection)[1]
        rest = vectors[:, : d - round(np.trace(adversary.projection))].T
        across = _Residual(rest, a, adversary.kept)
        constraints = [_ball(whole, p, unfold, lower)]
        if adversary.reach > 0:
            return [*constraints, _ball(across, adversary.reach, unfold, lower)]
        equal = {
            "type": "eq",
            "fun": lambda x: across(unfold(x)),
            "jac": lambda x: across.slopes(unfold(x))[(slice(None), *lower)],
        }
        return [*constraints, equal] if len(rest) else constraints

    def _inside(self, A: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Pull A towards the perfect guess by as much as the search overstepped: Δ is linear."""
        adversary = self.adversary
        w = A @ (self.W @ adversary.kept) - adversary.kept
        whole, across = (float(np.linalg.norm(part)) for part in (w, w - adversary.projection @ w))
        share = min(1.0, (1.0 - 1e-9) * adversary.norms[0] / max(whole, 1e-300))
        if adversary.reach > 0:
            share = min(share, adversary.reach / max(across, 1e-300))
        return center + share * (A - center)


def _ball(residual: _Residual, radius: float, unfold: _Unfold, lower: _Entries) -> dict[str, Any]:
    """``‖r‖² ≤ radius²`` as SLSQP takes it."""

    def slope(values: np.ndarray) -> np.ndarray:
        L = unfold(values)
        return -2.0 * np.einsum("m,mij->ij", residual(L), residual.slopes(L))[lower]

    return {
        "type": "ineq",
        "fun": lambda values: radius**2 - np.sum(residual(unfold(values)) ** 2),
        "jac": slope,
    }


def supremum_with_means(
    adversary: Adversary,
    *,
    starts: int = 10,
    random_state: int | np.random.Generator | None = None,
) -> float:
    """The largest risk of DARE's solution that a search finds under assumption 3 as it is stated.

    Its lemma forgets the new mean: the risks it compares are ``‖w‖² + (wᵀb)²`` and
    ``‖Πβ‖² + (bᵀΠβ)²``. The search is over w and b, as if every w were possible.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory import Adversary
    >>> from skdare.theory._attack import supremum_with_means
    >>> adversary = Adversary(np.array([0.6, 0.8]), np.diag([1.0, 0.0]), 0.5, rho=1.0)
    >>> supremum_with_means(adversary, random_state=0) < 0.95 * adversary.supremum()
    True
    """
    check_count("starts", starts, 1)
    rng, search, best = np.random.default_rng(random_state), _WithMeans(adversary), 0.0
    limits = {"type": "ineq", "fun": search.room}
    for _ in range(starts):
        start = 0.3 * rng.standard_normal(search.size)
        found = minimize(search.loss, start, method="SLSQP", constraints=limits)
        if min(search.room(found.x)) > -1e-6:
            best = max(best, -float(found.fun))
    return best


@dataclass(frozen=True, eq=False)
class _WithMeans:
    """Risk and limits as functions of x: first w in an orthonormal basis, then b."""

    adversary: Adversary

    @property
    def limit(self) -> float:
        """Of the part of w outside Π."""
        return self.adversary.interaction * self.adversary.norms[0]

    @property
    def rank(self) -> int:
        """Of Π."""
        return round(np.trace(self.adversary.projection))

    @cached_property
    def basis(self) -> np.ndarray:
        """For w, what Π keeps first."""
        vectors = np.linalg.eigh(self.adversary.projection)[1][:, ::-1]
        # Without interaction w has no part across, and a ball of radius zero has no normal.
        return vectors if self.limit > 0 else vectors[:, : self.rank]

    @property
    def size(self) -> int:
        return sum(self.basis.shape)

    def loss(self, x: np.ndarray) -> float:
        w, b = self._parts(x)
        v = self.adversary.scale * (w + self.adversary.kept) - self.adversary.truth
        return -float(latent_risk(v, b))

    def room(self, x: np.ndarray) -> list[float]:
        (w, b), adversary = self._parts(x), self.adversary
        slack = float(latent_risk(adversary.kept, b) - latent_risk(w, b))
        bounds = [slack, float(adversary.rho**2 - b @ b)]
        across = adversary.scale * float(np.linalg.norm(x[self.rank : self.basis.shape[1]]))
        return [*bounds, self.limit**2 - across**2] if self.limit > 0 else bounds

    def _parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = self.basis.shape[1]
        return self.basis @ x[:r], x[r:]
