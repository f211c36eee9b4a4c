"""What a bounded error of the guess can cost a predictor, block by block.

Notation: M (d, d) symmetric without negative eigenvalues, the new domain as the guess sees it, so
that x = W⁻¹ M ε; Δ = M - I; Π_i (d, d) projections that sum to the identity; β (d,) a predictor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from skdare.paper.theory.charts import Chart, Curve
from skdare.paper.theory.claims import ROUNDING, Measurement, near, statement
from skdare.paper.theory.closed_form import closed_form
from skdare.paper.theory.model import LatentDomain, LatentModel
from skdare.paper.theory.population import averaged_guess, pooled_regression

# The projection onto a subspace that Δ maps to itself, and a bound on the spectral norm of Δ there.
BoundedBlock = tuple[np.ndarray, float]


def worst_case(
    beta: np.ndarray, truth: np.ndarray, blocks: Sequence[BoundedBlock], rho: float = 0.0
) -> float:
    """The largest excess risk of a predictor when the guess errs by no more than the blocks say.

    On a block M is its middle m plus r times a symmetric contraction, which can turn any vector
    into any other that is no longer: the cost is ``(‖m β - truth‖ + r ‖β‖)²``. Up to a radius of
    one that is ``(‖β - truth‖ + radius ‖β‖)²``.

    Parameters
    ----------
    beta, truth : arrays of shape (d,)
    blocks : sequence of pairs (projection, radius)
        Projections of shape (d, d), which sum to the identity, onto subspaces that Δ maps to
        themselves, and bounds on the spectral norm of Δ there.
    rho : float
        Length of the new latent mean.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import worst_case
    >>> worst_case(np.array([1.0, 0.0]), np.array([1.0, 1.0]), [(np.eye(2), 0.0)])
    1.0
    """
    total = 0.0
    for projection, radius in blocks:
        low, high = eigenvalue_bounds(radius)
        part = projection @ beta
        miss = np.linalg.norm(0.5 * (low + high) * part - projection @ truth)
        total += float(miss + 0.5 * (high - low) * np.linalg.norm(part)) ** 2
    return float((1.0 + rho**2) * total)


def attack_blocks(
    beta: np.ndarray,
    truth: np.ndarray,
    blocks: Sequence[BoundedBlock],
    *,
    starts: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> np.ndarray:
    """The most costly M (d, d) that a search finds.

    Each step goes to the M that is best for the linearised risk, which cannot lower a convex one:
    all eigenvalues of a block go to one end of its interval or the other.
    """
    rng = np.random.default_rng(random_state)
    worst = np.eye(len(beta))
    largest = -1.0
    for _ in range(starts):
        v = rng.standard_normal(len(beta))
        cost = -1.0
        for _ in range(200):
            M = _steepest(v, beta, blocks)
            v = M @ beta - truth
            last = cost
            cost = float(np.sum(v**2))
            if cost <= last * (1.0 + 1e-12):
                break
        if cost > largest:
            worst = M
            largest = cost
    return worst


def eigenvalue_bounds(radius: float) -> tuple[float, float]:
    """Bounds on the eigenvalues of M on a block: they are not negative."""
    return max(1.0 - radius, 0.0), 1.0 + radius


def _steepest(v: np.ndarray, beta: np.ndarray, blocks: Sequence[BoundedBlock]) -> np.ndarray:
    """M of the set with the largest vᵀ M β."""
    M = np.zeros((len(beta), len(beta)))
    for projection, radius in blocks:
        low, high = eigenvalue_bounds(radius)
        product = np.outer(projection @ v, projection @ beta)
        values, U = np.linalg.eigh(product + product.T)
        towards = (U * np.where(values > 0, high, low)) @ U.T
        M += projection @ towards @ projection
    return M


# -- Predictors side by side ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ErrorBudget:
    """Predictors in one space: two invariant latents, two that vary, two with moving means."""

    truth: np.ndarray
    predictors: dict[str, np.ndarray]

    @classmethod
    def example(cls, seed: int) -> ErrorBudget:
        """Predictors learnt on four training domains."""
        rng = np.random.default_rng(seed)
        model = LatentModel.invariant_subspace(2, 4, 4, spread=0.7, random_state=rng)
        means = rng.standard_normal((4, 6)) * (np.arange(6) >= 4)
        domains = [
            LatentDomain(domain.A, b) for domain, b in zip(model.domains, means, strict=True)
        ]
        # The same weight on every latent, so that each subspace has a third.
        model = replace(model, beta=np.full(6, 6**-0.5), domains=domains)
        predictors = {
            "DARE": closed_form(model).coef,
            "DARE, no constraint": model.beta,
            "pooled least squares": np.linalg.solve(
                averaged_guess(model).T, pooled_regression(model)
            ),
            "invariant": model.beta * (np.arange(6) < 2),
            "zero": np.zeros(6),
        }
        return cls(model.beta, predictors)

    def blocks(self, error: float) -> Sequence[BoundedBlock]:
        """The invariant latents are known, and assumption 3 bounds the error on the next two."""
        radii = (0.0, min(error, 1.0), error)
        return [(np.diag((np.arange(6) // 2 == k) * 1.0), r) for k, r in enumerate(radii)]

    def worst(self, name: str, error: float) -> float:
        """The largest risk of a predictor when ‖Δ‖ is at most the error."""
        return worst_case(self.predictors[name], self.truth, self.blocks(error))

    def searched(self, name: str, error: float, seed: int) -> float:
        """The largest risk that a search finds."""
        beta = self.predictors[name]
        M = attack_blocks(beta, self.truth, self.blocks(error), random_state=seed)
        return float(np.sum((M @ beta - self.truth) ** 2))


@statement("theorem 2, remark")
def budget_claim(budget: ErrorBudget) -> Measurement:
    """Where limited new variation is allowed, DARE should outperform invariant prediction."""

    def row(error: float) -> str:
        return ", ".join(f"{name} {budget.worst(name, error):.3g}" for name in budget.predictors)

    grid = np.linspace(0.0, 2.0, 201)
    dare, free, pooled, invariant = (
        np.array([budget.worst(name, e) for e in grid])
        for name in ("DARE", "DARE, no constraint", "pooled least squares", "invariant")
    )
    below = grid < 1.0 - ROUNDING
    above = grid > 1.0 + ROUNDING
    better = pooled < dare
    return Measurement(
        "With assumption 3, which caps the error on what DARE keeps at 1, worst risk when the "
        f"guess errs by ‖Δ‖ ≤ 0.5: {row(0.5)}. By ‖Δ‖ ≤ 1.5: {row(1.5)}. DARE "
        "is below the invariant predictor as long as ‖Δ‖ < 1 and equal to it beyond; its "
        "constraint on the means pays only beyond ‖Δ‖ = 1. Pooled least squares is below DARE up "
        f"to ‖Δ‖ = {grid[better].max(initial=0.0):.3g} here.",
        near(dare[~below], invariant[~below], ROUNDING)
        and bool(np.all(dare[below] < invariant[below]))
        and bool(np.all(free[below] < dare[below]))
        and bool(np.all(dare[above] < free[above]))
        # Once above, pooled least squares stays above.
        and not np.any(np.diff(better.astype(int)) > 0),
    )


def budget_chart(budget: ErrorBudget, seed: int, n_dots: int) -> Chart:
    """Worst cases against the error of the guess."""
    lines = np.linspace(0.0, 2.0, 81)
    dots = np.linspace(0.0, 2.0, n_dots)
    curves = {}
    for name in budget.predictors:
        curves[name] = Curve.of(partial(budget.worst, name), lines)
        searched = partial(budget.searched, name, seed=seed)
        curves[f"{name}, found"] = Curve.of(searched, dots, dots=True)
    return Chart(
        "adversary_budget",
        "What an error of the guess can cost",
        "largest error of the guess, ‖Δ‖",
        "worst excess risk",
        "A third of β on invariant latents, a third on latents whose A varies, a third on latents "
        "whose means move. Points are found by a search.",
        curves,
        marks={"‖Δ‖ = 1": 1.0},
    )
