"""Ridge regressions on the same rows that differ in the weights of rows and in the ridge.

Notation: Z (n, d) rows, T (n,) targets, B (p, 1, d) weights, b (p, 1) intercepts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg


@dataclass(frozen=True, eq=False)
class RidgeProblems:
    """Least squares with a ridge, in closed form: one decomposition for all ridges of a fold.

    Parameters
    ----------
    Z : array of shape (n, d)
    T : array of shape (n,)
    row_weights : array of shape (g, n)
        Weights of the rows, which sum to one; rows that are left out have none.
    group : array of shape (p,)
        Which of these weights each problem has.
    ridge : array of shape (p,)
    intercept : bool
    """

    Z: np.ndarray
    T: np.ndarray
    row_weights: np.ndarray
    group: np.ndarray
    ridge: np.ndarray
    intercept: bool = True

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """B (p, 1, d) and b (p, 1), in float64."""
        p = len(self.group)
        d = self.Z.shape[1]
        B = np.zeros((p, 1, d))
        b = np.zeros((p, 1))
        for g, weight in enumerate(self.row_weights):
            numbers = np.flatnonzero(self.group == g)
            rows = np.flatnonzero(weight)
            root = weight[rows].astype(np.float64) ** 0.5
            Z = self.Z[rows].astype(np.float64)
            T = self.T[rows]
            centre = root**2 @ Z if self.intercept else np.zeros(d)
            middle = float(root**2 @ T) if self.intercept else 0.0
            A = (Z - centre) * root[:, None]
            t = (T - middle) * root
            # By way of the smaller of the two Gram matrices.
            few = len(rows) < d
            values, vectors = linalg.eigh(A @ A.T if few else A.T @ A, check_finite=False)
            inside = vectors.T @ (t if few else A.T @ t)
            shrunk = np.maximum(values, 0.0)[:, None] + self.ridge[numbers]
            # Without a ridge, directions in which rows do not vary have no weight.
            present = shrunk > 1e-12 * values[-1]
            solved = vectors @ np.where(present, inside[:, None] / np.where(present, shrunk, 1), 0)
            B[numbers, 0] = (A.T @ solved if few else solved).T
            b[numbers, 0] = middle - B[numbers, 0] @ centre
        return B, b
