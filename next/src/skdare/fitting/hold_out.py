"""A domain held out, and the others as a problem of their own.

A search and a rehearsal are loops over this, so that neither can leak in its own way: preparations
and the scale of targets are refitted to the others, and rows that share a group are never on both
sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from skdare.arrays import take
from skdare.checks import check_rows
from skdare.errors import InputError
from skdare.fitting.mixture import Sample
from skdare.fitting.problem import Classes, Numbers, Problem
from skdare.whitening.moments import Moments


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Domains that are new, and the others, to which nothing of them is known."""

    problem: Problem  # all domains, as the others have prepared and standardised them
    domains: list[int]
    others: list[int]
    moments: Sequence[Moments] = ()  # of all domains, if a search has them

    @property
    def rest(self) -> Problem:
        """What can be fitted to."""
        return self.problem.only(self.others)

    @property
    def can_be_learnt(self) -> bool:
        """Whether the others have more than one class."""
        T = [self.problem.T[self.problem.index[e]] for e in self.others]
        if not isinstance(self.problem.targets, Classes):
            return bool(T)
        return bool(T) and len(np.unique(np.concatenate(T))) > 1

    def among_others(self, values: Sequence[Any]) -> list[Any]:
        return [values[e] for e in self.others]

    def sample(self, e: int) -> Sample:
        """All rows of a domain."""
        index = self.problem.index[e]
        return Sample(take(self.problem.X, index), self.problem.weight[index], self.moments[e])


def hold_out(problem: Problem, domains: Sequence[int]) -> HeldOut:
    """Hold out some domains, by number; those that share a group with them are in neither part.

    Without a preparation no row is copied.
    """
    tied = {e for unit in units(problem) if set(unit) & set(domains) for e in unit}
    others = [e for e in range(len(problem.index)) if e not in tied]
    index = [problem.index[e] for e in others]
    if problem.preparation is not None:
        names = ", ".join(repr(problem.labels[e]) for e in domains)
        fitted, X = problem.preparation.fitted_to(index, f", fitted without {names},")
        if X is not problem.X:
            problem = replace(problem, X=check_rows(X, type(fitted).__name__))
    if isinstance(problem.targets, Numbers):
        y = problem.targets.decode(problem.T)
        centre = problem.targets.centre != 0.0  # without an intercept they were not centred
        targets, T = Numbers.encode(y, problem.weight, index, centre=centre)
        problem = replace(problem, targets=targets, T=T)
    return HeldOut(problem, list(domains), others)


def units(problem: Problem) -> list[list[int]]:
    """Domains that share a group, or a chain of groups, together; else each by itself."""
    E = len(problem.index)
    if problem.groups is None:
        return [[e] for e in range(E)]
    present = [np.unique(problem.groups[index]) for index in problem.index]
    owner = np.repeat(np.arange(E), [len(groups) for groups in present])
    member = np.concatenate(present)
    holds = sparse.csr_array((np.ones(len(owner), bool), (owner, member)))
    count, unit = csgraph.connected_components((holds @ holds.T).astype(bool), directed=False)
    if count == 1 and E > 1:
        raise InputError(
            f"groups tie all {E} domains together, and none can be held out without rows of a "
            "group on both sides",
            "leave out the rows of groups that are in several domains, or pass no groups",
        )
    return [np.flatnonzero(unit == u).tolist() for u in range(count)]
