"""Copies of rows, adjusted domain by domain.

Notation: X (n, d) rows, W (d, d) adjustment, Z (n, d) adjusted rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skdare.arrays import length, take
from skdare.fitting.problem import Problem
from skdare.whitening.adjustment import Adjustment


def adjusted_rows(
    problem: Problem,
    chosen: Sequence[int],
    adjustments: Sequence[Adjustment],
    shifts: Sequence[np.ndarray | None],
) -> np.ndarray:
    """Z = (X - m) W of the chosen domains, one after the other, for rows in memory.

    Parameters
    ----------
    problem : Problem
    chosen : sequence of int
        Numbers of the domains.
    adjustments, shifts : sequences
        W and m of each of them; None subtracts nothing.
    """
    n = sum(length(problem.index[e]) for e in chosen)
    Z = np.empty((n, problem.d), dtype=problem.X.dtype)
    start = 0
    for e, W, shift in zip(chosen, adjustments, shifts, strict=True):
        rows = take(problem.X, problem.index[e])
        if shift is not None:
            rows = rows - shift.astype(rows.dtype)
        stop = start + len(rows)
        Z[start:stop] = rows * rows.dtype.type(W.scale) if W.is_scalar else W.back(rows.T).T
        start = stop
    return Z
