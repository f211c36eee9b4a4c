"""Which solver minimises an objective, and how far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdare.arrays import Array, to_numpy
from skdare.objective.objective import Objective
from skdare.solvers import SOLVERS, History, Solution, lbfgs

# The share of the first gradient down to which TF32 products lead a solver as well as exact ones.
_COARSE = 3e-4


@dataclass(frozen=True)
class SolverOptions:
    """Solver, tolerance and limit, and whether there is an intercept.

    Parameters
    ----------
    intercept : bool
    solver : str
        "auto" is the direct solver for a quadratic small enough, else L-BFGS.
    tol : float
    max_iter : int
    """

    intercept: bool
    solver: str
    tol: float
    max_iter: int

    @classmethod
    def of_head(cls, head: Any) -> SolverOptions:
        """The options of a head."""
        return cls(head.fit_intercept, head.solver, head.tol, head.max_iter)

    def minimise(self, objective: Objective, start: np.ndarray) -> Solution:
        """Minimise the objective by the solver chosen."""
        solver = self.solver
        if solver == "auto":
            solver = "direct" if objective.suits_direct else "lbfgs"
        if solver == "lbfgs":
            return self._lbfgs(objective, objective.place(start))
        return SOLVERS[solver](objective, start, tol=self.tol, max_iter=self.max_iter)

    def _lbfgs(self, objective: Objective, start: Array) -> Solution:
        """L-BFGS where the rows are, with coarse products until they would show."""
        history = History(start)
        coarse = None
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        if objective.has_coarse:
            coarse = lbfgs(objective.coarsened(), start, reach=_COARSE, history=history, **limits)
            start = coarse.theta
            limits["max_iter"] = max(1, self.max_iter - coarse.n_iter)
        solution = lbfgs(objective, start, history=history, **limits)
        solution = replace(solution, theta=to_numpy(solution.theta))
        if coarse is None:
            return solution
        return replace(
            solution,
            n_iter=coarse.n_iter + solution.n_iter,
            n_evaluations=coarse.n_evaluations + solution.n_evaluations,
            n_coarse=coarse.n_evaluations,
        )
