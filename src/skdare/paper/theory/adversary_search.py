"""Searches for the worst new domain, which use none of the closed forms.

Notation: A = L Lᵀ (d, d) symmetric, W (d, d) the guess, β (d,) the truth, w (d,) what the error of
the guess does to Πβ, b (d,) the latent mean, Π a projection.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from skdare.checks import check_count
from skdare.paper.theory.adversary import Adversary, worst_mean
from skdare.paper.theory.model import LatentDomain
from skdare.paper.theory.population import latent_risk


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
        The predictor to hurt; default: DARE's solution.
    starts : int
        Random starts near a perfect guess.
    size : float
        Bound on the entries of L: the risk of most predictors has none.
    random_state : int or Generator, optional

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import Adversary, attack, excess_risk
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
    rng = np.random.default_rng(random_state)
    beta = adversary.solution if beta is None else beta
    error = _Residual(np.eye(len(W)), W @ beta, adversary.truth)
    constraints = _constraints(adversary, W)
    perfect = np.linalg.inv(W)
    center = np.linalg.cholesky(perfect)[np.tril_indices(len(W))]
    worst = perfect
    largest = -1.0
    for _ in range(starts):
        start = center + 0.1 * np.abs(center).max() * rng.standard_normal(len(center))
        L = error.matrix(_climb(error, constraints, start, size))
        A = _pulled_inside(adversary, W, L @ L.T, perfect)
        cost = float(np.sum((A @ error.a - error.t) ** 2))
        if cost > largest:
            worst = A
            largest = cost
    return LatentDomain(worst, worst_mean(worst @ error.a - error.t, adversary.rho))


@dataclass(frozen=True, eq=False)
class _Residual:
    """``r = P (L Lᵀ a - t)`` as a function of the entries of L, a lower triangle."""

    P: np.ndarray
    a: np.ndarray
    t: np.ndarray

    @cached_property
    def lower(self) -> tuple[np.ndarray, np.ndarray]:
        """Where in L the entries stand."""
        return np.tril_indices(len(self.a))

    def matrix(self, entries: np.ndarray) -> np.ndarray:
        """The lower triangular matrix L."""
        L = np.zeros((len(self.a), len(self.a)))
        L[self.lower] = entries
        return L

    def __call__(self, entries: np.ndarray) -> np.ndarray:
        L = self.matrix(entries)
        return self.P @ (L @ (L.T @ self.a) - self.t)

    def slopes(self, entries: np.ndarray) -> np.ndarray:
        """Derivatives of every entry of r: ∂r = P (∂L Lᵀ a + L ∂Lᵀ a)."""
        L = self.matrix(entries)
        by_left = np.einsum("mi,j->mij", self.P, L.T @ self.a)
        by_right = np.einsum("i,mj->mij", self.a, self.P @ L)
        return (by_left + by_right)[(slice(None), *self.lower)]

    def square(self, entries: np.ndarray) -> float:
        """The squared length of r, ‖r‖²."""
        return float(np.sum(self(entries) ** 2))

    def square_slopes(self, entries: np.ndarray) -> np.ndarray:
        """Derivatives of ‖r‖² by the parameters."""
        return 2.0 * np.einsum("m,mn->n", self(entries), self.slopes(entries))


def _climb(
    error: _Residual, constraints: list[dict[str, Any]], start: np.ndarray, size: float
) -> np.ndarray:
    """The entries at which one local search for the largest error ends."""
    with warnings.catch_warnings():
        # Before SciPy 1.16 steps leave the bounds by rounding, and are brought back.
        warnings.filterwarnings("ignore", "Values in x were outside bounds")
        return minimize(
            lambda entries: -error.square(entries),
            start,
            jac=lambda entries: -error.square_slopes(entries),
            method="SLSQP",
            bounds=Bounds(-size, size),
            constraints=constraints,
            options={"maxiter": 300, "ftol": 1e-10},
        ).x


def _constraints(adversary: Adversary, W: np.ndarray) -> list[dict[str, Any]]:
    """Assumptions 2 and 3, as SLSQP takes them."""
    d = len(W)
    vectors = np.linalg.eigh(adversary.projection)[1]
    rest = vectors[:, : d - round(np.trace(adversary.projection))].T
    whole = _Residual(np.eye(d), W @ adversary.kept, adversary.kept)
    across = _Residual(rest, W @ adversary.kept, adversary.kept)
    constraints = [_ball(whole, adversary.norms[0])]
    if adversary.reach > 0:
        constraints.append(_ball(across, adversary.reach))
    elif len(rest):
        constraints.append({"type": "eq", "fun": across, "jac": across.slopes})
    return constraints


def _ball(residual: _Residual, radius: float) -> dict[str, Any]:
    """The constraint ``‖r‖² ≤ radius²``, as SciPy takes it."""
    return {
        "type": "ineq",
        "fun": lambda entries: radius**2 - residual.square(entries),
        "jac": lambda entries: -residual.square_slopes(entries),
    }


def _pulled_inside(
    adversary: Adversary, W: np.ndarray, A: np.ndarray, perfect: np.ndarray
) -> np.ndarray:
    """A, pulled towards the perfect guess by as much as the search overstepped: Δ is linear."""
    w = A @ (W @ adversary.kept) - adversary.kept
    whole = float(np.linalg.norm(w))
    across = float(np.linalg.norm(w - adversary.projection @ w))
    share = min(1.0, (1.0 - 1e-9) * adversary.norms[0] / max(whole, 1e-300))
    if adversary.reach > 0:
        share = min(share, adversary.reach / max(across, 1e-300))
    return perfect + share * (A - perfect)


def supremum_with_means(
    adversary: Adversary,
    *,
    starts: int = 10,
    random_state: int | np.random.Generator | None = None,
) -> float:
    """The largest risk of DARE's solution that a search finds under assumption 3 as it is stated.

    Its lemma forgets the new mean: the risks it compares are ``‖w‖² + (wᵀb)²`` and
    ``‖Πβ‖² + (bᵀΠβ)²``. The search is over w and b, as if every w were possible.
    """
    check_count("starts", starts, 1)
    rng = np.random.default_rng(random_state)
    limit = adversary.interaction * adversary.norms[0]
    rank = round(np.trace(adversary.projection))
    # For w, what Π keeps first. Without interaction w has no part across, and a ball of radius
    # zero has no normal.
    basis = np.linalg.eigh(adversary.projection)[1][:, ::-1]
    basis = basis if limit > 0 else basis[:, :rank]
    width = basis.shape[1]

    def loss(x: np.ndarray) -> float:
        v = adversary.scale * (basis @ x[:width] + adversary.kept) - adversary.truth
        return -float(latent_risk(v, x[width:]))

    def room(x: np.ndarray) -> list[float]:
        b = x[width:]
        slack = float(latent_risk(adversary.kept, b) - latent_risk(basis @ x[:width], b))
        bounds = [slack, float(adversary.rho**2 - b @ b)]
        across = adversary.scale * float(np.linalg.norm(x[rank:width]))
        return [*bounds, limit**2 - across**2] if limit > 0 else bounds

    best = 0.0
    for _ in range(starts):
        start = 0.3 * rng.standard_normal(width + len(basis))
        end = minimize(loss, start, method="SLSQP", constraints={"type": "ineq", "fun": room})
        if min(room(end.x)) > -1e-6:
            best = max(best, -float(end.fun))
    return best
