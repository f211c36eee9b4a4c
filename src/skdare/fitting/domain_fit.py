"""A fit to domains: canonical weights, and the weights for a domain that they make.

Notation: B (d, k) canonical weights, W (d, d) adjustment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare.arrays import as_float64, to_numpy
from skdare.fitting.lagrangian import adjusted_objective
from skdare.fitting.plan import Plan
from skdare.fitting.problem import Problem
from skdare.fitting.solver import Solving
from skdare.fitting.statistics import Statistics
from skdare.solvers import Solution
from skdare.whitening.adjustment import Adjustment


@dataclass(frozen=True, eq=False)
class Fitted:
    """Canonical weights, and what they were fitted with.

    Parameters
    ----------
    B, b : arrays of shape (d, k) and (k,)
    adjustments : list of Adjustment
    mean : array of shape (d,)
        Equal-weight mean of the domain means.
    solution : Solution
    """

    B: np.ndarray
    b: np.ndarray
    adjustments: list[Adjustment]
    mean: np.ndarray
    solution: Solution

    @property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Where a similar fit can start."""
        return self.B, self.b

    def weights(
        self, adjustment: Adjustment, shift: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercept on raw features: V = W B and b - mᵀV."""
        V = to_numpy(as_float64(adjustment.apply(adjustment.like(self.B))))
        return V, self.b if shift is None else self.b - shift @ V


def weights_for_unseen(
    fitted: Fitted,
    plan: Plan,
    guess: Adjustment,
    means: Sequence[np.ndarray],
    shares: Sequence[float],
    *,
    intercept: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and intercept for a domain without rows, by its guessed adjustment.

    Rows that were centred by domain say nothing of the score at a mean, so the intercept is set
    to predict the mean target on average at the training domains' means, ``b - Σ_e q_e μ_eᵀW_e B``
    with the domains' shares q in the guess. Under the exact constraint that is b itself. It is
    computed about the mean of the means: also a guess that is no mean of the W_e then has nothing
    to do with the origin of the features.
    """
    if plan.form.subtract:
        return fitted.weights(guess, fitted.mean)
    if not (plan.form.centered and intercept):
        return fitted.weights(guess)
    V, b = fitted.weights(guess, fitted.mean)
    for W, mean, share in zip(fitted.adjustments, means, shares, strict=True):
        b = b - share * (mean - fitted.mean) @ fitted.weights(W)[0]
    return V, b


def fit_adjusted(
    problem: Problem,
    statistics: Statistics,
    chosen: Sequence[int],
    plan: Plan,
    solving: Solving,
    *,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    adjustments: list[Adjustment] | None = None,
) -> Fitted:
    """Minimise the empirical Lagrangian over the chosen domains."""
    if adjustments is None:
        adjustments = statistics.adjustments(chosen, plan.whitening)
    given = (problem, statistics, chosen, plan, adjustments)
    objective = adjusted_objective(*given, intercept=solving.intercept)
    begin = np.zeros(objective.size)
    if start is not None and start[0].shape == (problem.d, problem.k):
        begin = objective.pack(*start)
    solution = solving(objective, begin)
    B, b = objective.unpack(solution.theta)
    return Fitted(B, b, adjustments, statistics.mean(chosen), solution)


def trust_in(n: float, prior_rows: float) -> float:
    """The share of the adjustment of a domain with n rows beside the guess."""
    return n / (n + prior_rows)


def blended_shift(plan: Plan, fitted: Fitted, mean: np.ndarray, trust: float) -> np.ndarray | None:
    """What is subtracted from the rows of a domain with this mean, if anything is."""
    return trust * mean + (1.0 - trust) * fitted.mean if plan.form.subtract else None
