"""Which training domains are held out together, and which folds can be searched together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdare.arrays import length
from skdare.errors import InputError
from skdare.fitting.hold_out import HeldOut, units
from skdare.fitting.problem import Problem
from skdare.whitening.moments import Moments, mean_variance

# Variance compared with the usual one, below which a fold is searched alone: at 1e-6 its scores
# were off by 0.1 to 0.2 when it was not.
_SMALL = 0.1


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


def alike(others: Sequence[Sequence[int]], moments: Sequence[Moments]) -> list[list[int]]:
    """Folds, by number, that can be solved together: what is left without each is of one scale.

    Without a domain of far larger features the others are small in the unit that all folds share,
    and a solver that stops at one gradient for all would stop there at once. A fold without which
    no feature varies is left out.
    """
    scales = np.array([mean_variance([moments[e] for e in chosen]) for chosen in others])
    usual = np.median(scales)
    together = [f for f, scale in enumerate(scales) if scale >= _SMALL * usual and scale > 0]
    alone = [[f] for f, scale in enumerate(scales) if 0 < scale < _SMALL * usual]
    return [folds for folds in (together, *alone) if folds]
