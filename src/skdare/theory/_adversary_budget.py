"""Predictors side by side under a budget for the error of the guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdare.theory._adversary import averaged_guess
from skdare.theory._budget import Block, attack_blocks, worst_case
from skdare.theory._claim import Chart, Claim, Curve
from skdare.theory._closed_form import closed_form, pooled_regression
from skdare.theory._measurement import ROUNDING, near
from skdare.theory._model import LatentDomain, LatentModel


@dataclass(frozen=True, eq=False)
class Budget:
    """Predictors in one space: two invariant latents, two that vary, two with moving means."""

    truth: np.ndarray
    predictors: Mapping[str, np.ndarray]

    @classmethod
    def example(cls, seed: int) -> Budget:
        """Four training domains."""
        rng, d = np.random.default_rng(seed), 6
        model = LatentModel.invariant_subspace(2, 4, 4, spread=0.7, random_state=rng)
        means = rng.standard_normal((4, d)) * (np.arange(d) >= 4)
        domains = [
            LatentDomain(domain.A, b) for domain, b in zip(model.domains, means, strict=True)
        ]
        # The same weight on every latent, so that each subspace has a third.
        model = replace(model, beta=np.full(d, d**-0.5), domains=domains)
        pooled = np.linalg.solve(averaged_guess(model).T, pooled_regression(model))
        predictors = {
            "DARE": closed_form(model).coef,
            "DARE, no constraint": model.beta,
            "pooled least squares": pooled,
            "invariant": model.beta * (np.arange(d) < 2),
            "zero": np.zeros(d),
        }
        return cls(model.beta, predictors)

    def blocks(self, error: float) -> Sequence[Block]:
        """The invariant latents are known, and assumption 3 bounds the error on the next two."""
        radii = (0.0, min(error, 1.0), error)
        return [(np.diag((np.arange(6) // 2 == k) * 1.0), r) for k, r in enumerate(radii)]

    def worst(self, name: str, error: float) -> float:
        """The largest risk of a predictor."""
        return worst_case(self.predictors[name], self.truth, self.blocks(error))

    def found(self, name: str, error: float, seed: int) -> float:
        """The same by a search."""
        beta = self.predictors[name]
        M = attack_blocks(beta, self.truth, self.blocks(error), random_state=seed)
        return float(np.sum((M @ beta - self.truth) ** 2))


def budget_claim(budget: Budget) -> Claim:
    """That DARE outperforms invariant prediction."""

    def row(error: float) -> str:
        values = [f"{name} {budget.worst(name, error):.3g}" for name in budget.predictors]
        return ", ".join(values)

    grid = np.linspace(0.0, 2.0, 201)
    dare, free, pooled, invariant = (
        np.array([budget.worst(name, e) for e in grid])
        for name in ("DARE", "DARE, no constraint", "pooled least squares", "invariant")
    )
    below, above, better = grid < 1.0 - ROUNDING, grid > 1.0 + ROUNDING, pooled < dare
    return Claim(
        "theorem 2, remark",
        "Where limited new variation is allowed, DARE should outperform invariant prediction.",
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


def budget_chart(budget: Budget, seed: int, n_dots: int) -> Chart:
    """Worst cases against the error of the guess."""
    errors, dots = np.linspace(0.0, 2.0, 81), np.linspace(0.0, 2.0, n_dots)
    curves = {}
    for name in budget.predictors:
        curves[name] = Curve(errors, np.array([budget.worst(name, e) for e in errors]))
        found = [budget.found(name, e, seed) for e in dots]
        curves[f"{name}, found"] = Curve(dots, np.array(found), dots=True)
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
