"""The rows that a search looks at: in memory, and no more than it needs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import sparse

from skdare.arrays import Array, length, take, to_numpy, work_dtype
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics

# Numbers that are held: a search has adjusted copies of them.
_CELLS = 1 << 26


def rows_to_search(
    problem: Problem, statistics: ProblemStatistics
) -> tuple[Problem, ProblemStatistics]:
    """The problem itself where its rows are in memory and few enough, else one of some rows.

    Rows that are on disk, on a GPU, with workers or sparse are brought here; of too many, every
    domain keeps the same share of its rows, evenly spread.
    """
    X = problem.X
    rows = sum(length(index) for index in problem.index)
    step = -(-rows * problem.d // _CELLS)
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.dtype.itemsize >= 4 and step == 1:
        return problem, statistics
    numbers = np.arange(X.shape[0])
    kept = [numbers[index][::step] for index in problem.index]
    host = np.concatenate([_on_host(take(X, part)) for part in kept])
    bounds = np.cumsum([0, *(len(part) for part in kept)])
    order = np.concatenate(kept)
    sample = replace(
        problem,
        X=host.astype(work_dtype(host), copy=False),
        T=problem.T[order],
        weight=problem.weight[order],
        index=[slice(a, b) for a, b in pairwise(bounds.tolist())],
    )
    return sample, ProblemStatistics(sample)


def _on_host(rows: Array) -> np.ndarray:
    dense: np.ndarray = rows.toarray() if sparse.issparse(rows) else to_numpy(rows)
    return dense
