"""How a head solves its objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.objective import Objective
from skdare.solvers import SOLVERS, Solution


@dataclass(frozen=True)
class Solving:
    """Solver, tolerance and limit, and whether there is an intercept.

    ``"auto"`` is the direct solver for a quadratic small enough, else L-BFGS.
    """

    intercept: bool
    solver: str
    tol: float
    max_iter: int

    @classmethod
    def of_head(cls, head: Any) -> Solving:
        """As a head's options say."""
        return cls(head.fit_intercept, head.solver, head.tol, head.max_iter)

    def __call__(self, objective: Objective, start: np.ndarray) -> Solution:
        """Minimise the objective."""
        solver = self.solver
        if solver == "auto":
            solver = "direct" if objective.suits_direct else "lbfgs"
        return SOLVERS[solver](objective, start, tol=self.tol, max_iter=self.max_iter)
