"""The fits of one strategy without each fold, at every ridge: one product with the rows serves all.

They differ in which rows are held out and in the ridge: dozens of small problems on the same rows.
Their scores are one product, k columns for each problem, which is several times quicker than as
many products of k columns; the solver is that of every fit, on all of them in lockstep.

Notation: Z (n, d) adjusted rows, R (n, m) the same on a basis Q (d, r), and a column of ones for
the intercept, p problems, A (p, k, m) weights, H a second derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from skdare.arrays import symmetric_eigen
from skdare.objective.losses import Loss
from skdare.solvers.lbfgs import lockstep

# Three digits are enough to rank candidates.
_TOL = 4e-4
_MAX_ITER = 200
# Features, or rows, up to which their correlations are worth a decomposition.
_ROTATED = 2048
# Parameters of one problem up to which its second derivative is worth as much. How much farther
# from a minimum it may be taken, and how much closer to one it then leads.
_CURVED = 300
_ROUGH = 10.0
_CLOSE = 0.2
# Scores that are held at once, and numbers that a second derivative is made of.
_SCORES = 1 << 22
_CURVATURE_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems on the same rows: f folds, each with c candidates."""

    Z: np.ndarray
    T: np.ndarray
    loss: Loss
    k: int
    row_weights: np.ndarray  # (f, g, n), in g ways; they sum to one, and are zero in the fold
    weighing: np.ndarray  # (c,), which of these ways a candidate has
    ridge: np.ndarray  # (f, c)
    intercept: bool

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """B (f, c, d, k) and b (f, c, k)."""
        if self.loss.is_quadratic:
            return self._least_squares()
        Z, Q = _uncorrelated(self.Z, self.row_weights.mean(axis=(0, 1)))
        R = np.hstack([Z, np.ones((len(Z), 1), Z.dtype)]) if self.intercept else Z
        f, c = self.ridge.shape
        family = np.tile(np.arange(c), f)
        weights = self.row_weights[:, self.weighing].reshape(f * c, -1)
        each = LogisticFits(R, self.T, self.loss, self.k, weights, self.ridge.ravel(), Z.shape[1])
        if self.k * R.shape[1] > _CURVED:
            A = each.solve(_TOL)
        else:
            # Problems of one candidate are nearly the same: a rough solution on the mean of their
            # row weights has the curvature of all of them.
            whole = LogisticFits(
                R,
                self.T,
                self.loss,
                self.k,
                self.row_weights.mean(axis=0)[self.weighing],
                self.ridge.mean(axis=0),
                Z.shape[1],
            )
            start = whole.solve(_ROUGH * _TOL)
            roots = [whole.root(start, number) for number in range(c)]
            A = each.solve(_CLOSE * _TOL, Curvatures(roots, family), start[family])
        B = A[:, :, : Z.shape[1]] @ Q.T if Q is not None else A[:, :, : Z.shape[1]]
        b = A[:, :, -1] if self.intercept else np.zeros(A.shape[:2])
        return B.transpose(0, 2, 1).reshape(f, c, -1, self.k), b.reshape(f, c, self.k)

    def _least_squares(self) -> tuple[np.ndarray, np.ndarray]:
        """In closed form: one decomposition for all ridges of a fold."""
        f, c = self.ridge.shape
        d = self.Z.shape[1]
        B = np.zeros((f, c, d, 1))
        b = np.zeros((f, c, 1))
        for fold, way in np.ndindex(*self.row_weights.shape[:2]):
            weight = self.row_weights[fold, way].astype(np.float64)
            rows = np.flatnonzero(weight)
            weight = weight[rows]
            Z = self.Z[rows].astype(np.float64)
            T = self.T[rows]
            centre = self.intercept * (weight @ Z)
            middle = self.intercept * float(weight @ T)
            A = (Z - centre) * weight[:, None] ** 0.5
            t = (T - middle) * weight**0.5
            # By way of the smaller of the two Gram matrices.
            few = len(rows) < d
            values, vectors = symmetric_eigen(A @ A.T if few else A.T @ A)
            inside = vectors.T @ (t if few else A.T @ t)
            for candidate in np.flatnonzero(self.weighing == way):
                shrunk = np.clip(values, 0.0, None) + self.ridge[fold, candidate]
                # Without a ridge, directions in which rows do not vary have no weight.
                present = shrunk > 1e-12 * values[-1]
                solved = vectors @ np.where(present, inside / np.where(present, shrunk, 1.0), 0.0)
                B[fold, candidate, :, 0] = A.T @ solved if few else solved
                b[fold, candidate] = middle - centre @ B[fold, candidate, :, 0]
        return B, b


class Lengths:
    """Coordinates with a length for each parameter of each problem, (p, k m)."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths

    def parameters(self, theta: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return theta * self.lengths[problems]

    def points(self, A: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return A / self.lengths[problems]

    def gradients(self, G: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return G * self.lengths[problems]


class Curvatures:
    """Coordinates θ = A L, shared by the problems of a family; H = L Lᵀ becomes the identity."""

    def __init__(self, roots: Sequence[np.ndarray], family: np.ndarray) -> None:
        self.roots = roots
        self.inverses = [
            linalg.solve_triangular(L, np.eye(len(L), dtype=L.dtype), lower=True) for L in roots
        ]
        self.family = family

    def parameters(self, theta: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return self._times(theta, problems, self.inverses)

    def points(self, A: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return self._times(A, problems, self.roots)

    def gradients(self, G: np.ndarray, problems: np.ndarray) -> np.ndarray:
        return self._times(G, problems, [M.T for M in self.inverses])

    def _times(
        self, A: np.ndarray, problems: np.ndarray, matrices: Sequence[np.ndarray]
    ) -> np.ndarray:
        result = np.empty(A.shape)
        for number, M in enumerate(matrices):
            chosen = self.family[problems] == number
            result[chosen] = A[chosen].astype(M.dtype, copy=False) @ M
        return result


@dataclass(frozen=True, eq=False)
class LogisticFits:
    """Logistic regressions on the same rows."""

    R: np.ndarray
    T: np.ndarray
    loss: Loss
    k: int
    row_weights: np.ndarray  # (p, n)
    ridge: np.ndarray  # (p,)
    r: int  # columns of R with a ridge

    def solve(
        self,
        tol: float,
        coordinates: Lengths | Curvatures | None = None,
        start: np.ndarray | None = None,
    ) -> np.ndarray:
        """A (p, k, m); by default from zero.

        A fit that started from one to all rows and stopped early would still depend on the rows
        held out. That flattered plain ERM on four boards of gas sensors by five points, and
        changed the choice.
        """
        everyone = np.arange(len(self.ridge))
        shape = (len(everyone), self.k, self.R.shape[1])
        if coordinates is None:
            coordinates = Lengths(np.tile(self._lengths, self.k))
        theta = np.zeros((len(everyone), self.k * self.R.shape[1]))
        if start is not None:
            theta = coordinates.points(start.reshape(theta.shape), everyone)

        def evaluate(
            numbers: list[int], thetas: list[np.ndarray]
        ) -> tuple[list[float], list[np.ndarray]]:
            problems = np.array(numbers)
            A = coordinates.parameters(np.stack(thetas), problems)
            values, G = self._losses(A.reshape(-1, *shape[1:]), problems)
            gradients = coordinates.gradients(G.reshape(len(problems), -1), problems)
            return values.tolist(), list(gradients)

        solutions = lockstep(evaluate, list(theta), tol=tol, max_iter=_MAX_ITER)
        theta = np.stack([solution.theta for solution in solutions])
        return coordinates.parameters(theta, everyone).reshape(shape)

    def _losses(self, A: np.ndarray, problems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (q,) of some problems at A (q, k, m), and gradients."""
        ridge = self.ridge[problems][:, None, None]
        G = ridge * A
        G[:, :, self.r :] = 0.0
        values = 0.5 * np.sum(G * A, axis=(1, 2))
        A = A.astype(self.R.dtype)
        step = max(1, _SCORES // (len(self.R) * self.k))
        for start in range(0, len(problems), step):
            part = slice(start, start + step)
            weight = self.row_weights[problems[part]]
            F = (A[part].reshape(-1, A.shape[2]) @ self.R.T).reshape(len(weight), self.k, -1)
            losses, P = self.loss.value_and_residual(F, self.T)
            values[part] += np.sum(weight * losses, axis=1, dtype=np.float64)
            P *= weight[:, None, :]
            G[part] += (P.reshape(-1, len(self.R)) @ self.R).reshape(A[part].shape)
        return values, G

    @property
    def _even(self) -> float:
        """Variance of a class that is as probable as the others."""
        return 0.25 if self.k == 1 else (1.0 - 1.0 / self.k) / self.k

    @cached_property
    def _variances(self) -> np.ndarray:
        """Curvature of the loss along each column of R where all classes are as probable."""
        weight = self.row_weights.mean(axis=0)
        return self._even * np.einsum("n,nm,nm->m", weight, self.R, self.R, dtype=np.float64)

    @cached_property
    def _some_ridge(self) -> np.ndarray:
        """(p, m); without any, directions in which rows do not vary must still have a length."""
        ridge = np.zeros((len(self.ridge), self.R.shape[1]))
        least = 1e-6 * self._variances[: self.r].mean()
        ridge[:, : self.r] = np.maximum(self.ridge, least)[:, None]
        return ridge

    @property
    def _lengths(self) -> np.ndarray:
        """(p, m), by which the curvature is about one where all classes are as probable."""
        return (self._variances + self._some_ridge) ** -0.5

    def root(self, A: np.ndarray, p: int) -> np.ndarray:
        """L, lower triangular, with L Lᵀ = H of one problem at its A, by as many rows as it takes.

        H = Σ w (diag(π) - π πᵀ) ⊗ x xᵀ with the probabilities π of the classes in a row x.
        """
        step = 1 + len(self.R) * A[p].size // _CURVATURE_CELLS
        rows = self.R[::step]
        weight = self.row_weights[p, ::step]
        weight = weight / weight.sum()
        F = A[p].astype(rows.dtype) @ rows.T
        _, P = self.loss.value_and_residual(F, np.zeros((len(rows), self.k), rows.dtype))
        blocks = [(rows.T * (weight * share)) @ rows for share in P]
        mixed = (P.T[:, :, None] * (rows * weight[:, None] ** 0.5)[:, None, :]).reshape(
            len(rows), -1
        )
        H = (linalg.block_diag(*blocks) - mixed.T @ mixed).astype(np.float64)
        ridge = self._some_ridge[p].copy()
        ridge[self.r :] = 1e-3 * self._even  # an intercept is as good for all classes together
        H[np.diag_indices(len(H))] += np.tile(ridge, self.k)
        return linalg.cholesky(H, lower=True, check_finite=False).astype(rows.dtype)


def _uncorrelated(Z: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows (n, r) on a basis Q (d, r) of their span in which features hardly correlate, and Q.

    Too many features stay as they are, without a Q.
    """
    n, d = Z.shape
    if min(n, d) > _ROTATED:
        return Z, None
    if n >= d:
        weighted = Z * (weight**0.5).astype(Z.dtype)[:, None]
        _, Q = symmetric_eigen(weighted.T @ weighted)
        return Z @ Q, Q
    rows = Z.astype(np.float64)
    values, U = symmetric_eigen(rows @ rows.T)
    present = values > np.finfo(np.float64).eps * n * values[-1]
    lengths = values[present] ** 0.5
    Q = rows.T @ (U[:, present] / lengths)
    return (U[:, present] * lengths).astype(Z.dtype), Q
