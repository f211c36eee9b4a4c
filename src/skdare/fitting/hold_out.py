"""Domains held out, and the others as a problem of their own.

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

from skdare.arrays import length, take
from skdare.checks import check_rows
from skdare.errors import InputError
from skdare.fitting.mixture import Sample
from skdare.fitting.problem import Classes, Numbers, Problem
from skdare.whitening.moments import Moments


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Domains that are new, and the others, into which nothing of them goes."""

    problem: Problem  # all domains, as the others have prepared and standardised them
    domains: list[int]
    others: list[int]
    moments: Sequence[Moments] = ()  # of all domains, if a search has them

    @property
    def rest(self) -> Problem:
        """The other domains, which can be fitted to."""
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
    count, unit = chained_by_groups(owner, member)
    if count == 1 and E > 1:
        raise InputError(
            f"groups tie all {E} domains together, and none can be held out without rows of a "
            "group on both sides",
            "leave out the rows of groups that are in several domains, or pass no groups",
        )
    return [np.flatnonzero(unit == u).tolist() for u in range(count)]


def chained_by_groups(domains: np.ndarray, groups: np.ndarray) -> tuple[int, np.ndarray]:
    """How many units domains form that share a group, or a chain of groups, and which each is of.

    Both are numbers, of the domain and the group of a row.
    """
    holds = sparse.csr_array((np.ones(len(domains), bool), (domains, groups)))
    return csgraph.connected_components((holds @ holds.T).astype(bool), directed=False)


def check_cv(cv: Any) -> None:
    """Refuse what is neither a number of folds nor something that gives splits."""
    if isinstance(cv, int) and not isinstance(cv, bool) and cv >= 2:
        return
    if isinstance(cv, int | str) or not (hasattr(cv, "split") or np.iterable(cv)):
        raise InputError(
            f"cv is {cv!r}",
            "pass a number from 2, a splitter such as LeaveOneGroupOut(), or pairs of row numbers",
        )


def folds_of(problem: Problem, cv: Any) -> list[list[int]]:
    """Whole domains, by number, that are held out together, if the others can be learnt.

    A number is the most folds there may be, of about as many rows each; else a splitter by groups,
    or pairs of training and held-out rows.
    """
    if len(problem.index) < 2:
        return []
    folds = _by_size(problem, cv) if isinstance(cv, int) else _by_splitter(problem, cv)
    without = [[e for e in range(len(problem.index)) if e not in fold] for fold in folds]
    pairs = zip(folds, without, strict=True)
    return [fold for fold, others in pairs if HeldOut(problem, fold, others).can_be_learnt]


def _by_size(problem: Problem, at_most: int) -> list[list[int]]:
    together = units(problem)
    sizes = [sum(length(problem.index[e]) for e in unit) for unit in together]
    folds: list[list[int]] = [[] for _ in range(min(at_most, len(together)))]
    rows = np.zeros(len(folds))
    for u in sorted(range(len(together)), key=lambda u: -sizes[u]):
        smallest = int(rows.argmin())
        folds[smallest].extend(together[u])
        rows[smallest] += sizes[u]
    return [sorted(fold) for fold in folds]


def _by_splitter(problem: Problem, cv: Any) -> list[list[int]]:
    E = len(problem.index)
    together = units(problem)
    domains = np.full(len(problem.T), E)
    for e, index in enumerate(problem.index):
        domains[index] = e
    used = np.flatnonzero(domains < E)
    pairs = cv
    if hasattr(cv, "split"):
        split = cv.split(np.zeros((len(used), 1)), problem.T[used], groups=domains[used])
        pairs = [(used[train], used[test]) for train, test in split]
    folds: list[list[int]] = []
    for _, test in pairs:
        counts = np.bincount(domains[test], minlength=E + 1)[:E]
        fold = np.flatnonzero(counts).tolist()
        for e in fold:
            wrong = None
            unit = next(unit for unit in together if e in unit)
            if counts[e] < length(problem.index[e]):
                wrong = "some rows of domain {!r} and not others"
            elif any(e in other for other in folds):
                wrong = "domain {!r} twice"
            elif not set(unit) <= set(fold):
                wrong = "domain {!r} without others that share a group with it"
            if wrong is not None:
                raise InputError(
                    f"cv holds out {wrong.format(problem.labels[e])}",
                    "use a splitter by groups, such as LeaveOneGroupOut(), or a number of folds",
                )
        folds.append(fold)
    return folds
