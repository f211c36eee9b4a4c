"""Heads that see every domain through one scalar, whatever they minimise."""

from __future__ import annotations

from abc import abstractmethod

from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.heads._estimator import Head
from skdare.objective.coordinates import Coordinates
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock
from skdare.solvers import Solution
from skdare.whitening.adjustment import Adjustment


class UnadjustedHead(Head):
    """A head that sees every domain through one scalar, one over the root mean variance.

    Without it l2 would mean something else on raw features than on whitened ones, and something
    else again when the features change their unit.
    """

    def _solve(self, problem: Problem, statistics: ProblemStatistics) -> None:
        domains = range(len(problem.index))
        adjustment = Adjustment(problem.d, statistics.unit(domains) ** -0.5)
        origin = adjustment.back(statistics.mean(domains))
        coordinates = Coordinates(problem.d, problem.k, self.fit_intercept, origin=origin)
        blocks = self._blocks(problem, adjustment)
        solution = self._minimise(Objective(blocks, problem.loss, coordinates, self.l2), problem)
        B, b = coordinates.unpack(solution.theta)
        self._set_weights(adjustment.apply(B), b, solution, (B, b))

    @abstractmethod
    def _blocks(self, problem: Problem, adjustment: Adjustment) -> list[DomainBlock]:
        """The rows to sum over."""

    @abstractmethod
    def _minimise(self, objective: Objective, problem: Problem) -> Solution:
        """Minimise the objective of a head that adjusts nothing."""


def domain_blocks(problem: Problem, adjustment: Adjustment) -> list[DomainBlock]:
    """One block for each domain, its rows weighing one together."""
    domains = range(len(problem.index))
    return [DomainBlock(adjustment, (problem.domain_rows(e, 1.0),)) for e in domains]
