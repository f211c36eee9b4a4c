"""One adjusted problem, solved: canonical weights, and the weights on raw features they make.

Notation: B (d, k) canonical weights, b (k,) intercept, W (d, d) adjustment, V = W B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare.arrays import as_float64, to_numpy
from skdare.fitting.formulation import Formulation
from skdare.fitting.lagrangian import empirical_lagrangian
from skdare.fitting.problem import Problem
from skdare.fitting.solver_options import SolverOptions
from skdare.fitting.statistics import ProblemStatistics
from skdare.solvers import Solution
from skdare.whitening.adjustment import Adjustment

CanonicalWeights = tuple[np.ndarray, np.ndarray]
"""B and b: where a similar fit can start."""


@dataclass(frozen=True, eq=False)
class CanonicalFit:
    """Canonical weights, and what they were fitted with.

    Parameters
    ----------
    formulation : Formulation
    B, b : arrays of shape (d, k) and (k,)
    adjustments : list of Adjustment
        One for each training domain.
    mean : array of shape (d,)
        Equal-weight mean of the domain means.
    solution : Solution
    """

    formulation: Formulation
    B: np.ndarray
    b: np.ndarray
    adjustments: list[Adjustment]
    mean: np.ndarray
    solution: Solution

    @property
    def weights(self) -> CanonicalWeights:
        """The canonical weights B and the intercepts b."""
        return self.B, self.b

    def raw_weights(
        self, adjustment: Adjustment, shift: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercept on raw features of a domain with this adjustment.

        ``shift`` is subtracted from its rows, by way of the intercept.
        """
        return raw_weights(self.weights, adjustment, shift)

    def raw_weights_for_unseen(
        self,
        guess: Adjustment,
        means: Sequence[np.ndarray],
        shares: Sequence[float],
        *,
        intercept: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercept for a domain without rows, by its guessed adjustment.

        Rows that were centred by domain say nothing of the score at a mean, so the intercept is
        set to predict the mean target on average at the training domains' means,
        ``b - Σ_e q_e μ_eᵀW_e B`` with the domains' shares q in the guess. Under the exact
        constraint that is b itself. It is computed about the mean of the means: also a guess that
        is no mean of the W_e then has nothing to do with the origin of the features.

        Parameters
        ----------
        guess : Adjustment
        means : sequence of arrays of shape (d,)
            Of the training domains.
        shares : sequence of float
            What each training domain counts in the guess.
        intercept : bool
            Whether the head has an intercept.
        """
        treatment = self.formulation.means
        if treatment.subtract_in_use:
            return self.raw_weights(guess, self.mean)
        if not (treatment.center_in_training and intercept):
            return self.raw_weights(guess)
        V, b = self.raw_weights(guess, self.mean)
        for W, mean, share in zip(self.adjustments, means, shares, strict=True):
            b = b - share * (mean - self.mean) @ self.raw_weights(W)[0]
        return V, b


def raw_weights(
    weights: CanonicalWeights, adjustment: Adjustment, shift: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and intercept on raw features: V = W B and b - mᵀV."""
    B, b = weights
    V = to_numpy(as_float64(adjustment.apply(adjustment.like(B))))
    return V, b if shift is None else b - shift @ V


def fit_canonical(
    problem: Problem,
    statistics: ProblemStatistics,
    chosen: Sequence[int],
    formulation: Formulation,
    options: SolverOptions,
    *,
    start: CanonicalWeights | None = None,
    adjustments: list[Adjustment] | None = None,
) -> CanonicalFit:
    """Minimise the empirical Lagrangian over the chosen domains.

    Parameters
    ----------
    problem : Problem
    statistics : ProblemStatistics
        Of the same problem.
    chosen : sequence of int
        Numbers of the domains to fit to.
    formulation : Formulation
    options : SolverOptions
    start : canonical weights, optional
        Where to start; used where its shape fits.
    adjustments : list of Adjustment, optional
        Of the chosen domains, where they are known.
    """
    if adjustments is None:
        adjustments = statistics.adjustments(chosen, formulation.whitening)
    objective = empirical_lagrangian(
        problem, statistics, chosen, formulation, adjustments, intercept=options.intercept
    )
    theta = np.zeros(objective.size)
    if start is not None and start[0].shape == (problem.d, problem.k):
        theta = objective.coordinates.pack(*start)
    solution = options.minimise(objective, theta)
    B, b = objective.coordinates.unpack(solution.theta)
    return CanonicalFit(formulation, B, b, adjustments, statistics.mean(chosen), solution)
