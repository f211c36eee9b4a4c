"""Adjustments: symmetric inverse square roots of second moments, and guesses made of them.

Notation: S (d, d) second moment, W (d, d) its inverse root, U (d, r) low-rank columns, C (d, d)
what domains share, B (d, k) weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare.arrays import Array, as_float64, like, namespace, power_of_two_near, product, to_numpy
from skdare.whitening.sums import STACK


@dataclass(frozen=True, eq=False)
class Adjustment:
    """A matrix applied to weights, in coordinates that domains share if any.

    Whitening multiplies the weights, never the rows: ``(X W) B = X (W B)``. Without a common
    matrix, ``W = scale I + diag(diagonal) + matrix + U Q diag(weights) Qᵀ Uᵀ``: a scalar needs no
    matrix, standardising a diagonal, a domain with few rows only a low-rank U. With one, every
    domain is first seen through the symmetric C, ``W = C W̃``, where W̃ has the same form with C U
    in place of U: adjusted points are ``W̃ᵀ C x``.

    Parameters
    ----------
    d : int
    scale : float
    matrix : array of shape (d, d), optional
    U : array of shape (d, r), optional
        On raw features, with or without a common matrix, so that moments can share it.
    weights : array of shape (q,), optional
    Q : array of shape (r, q), optional
        Orthonormal columns; default: the identity. Not merged with the weights: in
        float32 their product would lose the weak directions beside strong ones.
    common : array of shape (d, d), optional
        C.
    score_map : array of shape (m, m), optional
        What the adjustment does to the scores of the m rows that it was made from,
        ``X W B = score_map (X C B)``; only in training, and only of few rows.
    diagonal : array of shape (d,), optional
    """

    d: int
    scale: float
    matrix: Array | None = None
    U: Array | None = None
    weights: Array | None = None
    Q: Array | None = None
    common: Array | None = None
    score_map: np.ndarray | None = None
    diagonal: Array | None = None

    @property
    def is_scalar(self) -> bool:
        """Whether there is nothing but a scale (and what all domains share)."""
        return self.matrix is None and self.U is None and self.diagonal is None

    def like(self, B: Array) -> Array:
        """B in the array library and dtype of this adjustment."""
        arrays = [a for a in (self.matrix, self.U, self.common, self.diagonal) if a is not None]
        return like(B, arrays[0], arrays[0].dtype) if arrays else B

    def apply(self, B: Array) -> Array:
        """W B: weights on raw features from canonical ones."""
        return self._common_times(self._inner(B))

    def back(self, G: Array) -> Array:
        """Wᵀ G: points, or gradients in weights on raw features, in canonical coordinates."""
        return self._inner(self._common_times(G), transposed=True)

    def _common_times(self, B: Array) -> Array:
        return B if self.common is None else product(self.common, B)

    def _inner(self, B: Array, *, transposed: bool = False) -> Array:
        result = self.scale * B
        if self.diagonal is not None:
            result = result + self.diagonal[:, None] * B
        if self.matrix is not None:
            matrix = self.matrix
            if transposed:
                matrix = namespace(matrix).matrix_transpose(matrix)
            result = result + product(matrix, B)
        if self.U is not None:
            inside = namespace(self.U).matrix_transpose(self.U) @ self._common_times(B)
            result = result + self._common_times(self.U @ self.weigh(inside))
        return result

    def weigh(self, inside: Array) -> Array:
        """``Q diag(weights) Qᵀ`` times (r, k) coefficients."""
        weights = self.weights[:, None]  # type: ignore[index]
        if self.Q is None:
            return weights * inside
        return self.Q @ (weights * (namespace(self.Q).matrix_transpose(self.Q) @ inside))

    def dense(self, beside: Adjustment | None = None) -> Array:
        """W as a (d, d) array, in the array library of another adjustment where it has none.

        With a common matrix it is ``C W̃``, and not symmetric.
        """
        return self._common_times(self.inner._dense(beside or self))

    @property
    def inner(self) -> Adjustment:
        """The adjustment in the coordinates that domains share: W̃ alone."""
        if self.common is None:
            return self
        U = None if self.U is None else self._common_times(self.U)
        return Adjustment(
            self.d, self.scale, self.matrix, U, self.weights, self.Q, diagonal=self.diagonal
        )

    def _dense(self, beside: Adjustment) -> Array:
        """W without a common matrix, in the array library of another adjustment."""
        if not self.scale and self.matrix is not None and self.U is None and self.diagonal is None:
            return self.matrix
        result = beside.like(self.scale * np.eye(self.d))
        if self.diagonal is not None:
            result = result + self.diagonal[:, None] * beside.like(np.eye(self.d))
        if self.matrix is not None:
            result = result + self.matrix
        if self.U is not None:
            result = result + self.U @ self.weigh(namespace(self.U).matrix_transpose(self.U))
        return result

    def to_numpy(self, common: np.ndarray | None = None) -> Adjustment:
        """The adjustment as NumPy arrays on the host, without what only training needs.

        The common matrix may be given where it is on the host already.
        """
        matrix, U, weights, Q, diagonal = (
            None if a is None else to_numpy(a)
            for a in (self.matrix, self.U, self.weights, self.Q, self.diagonal)
        )
        if common is None and self.common is not None:
            common = to_numpy(self.common)
        return Adjustment(self.d, self.scale, matrix, U, weights, Q, common, diagonal=diagonal)


def is_low_rank(W: Adjustment) -> bool:
    """Whether W is a scale but for low-rank columns, fewer than half of the features."""
    if W.matrix is not None or W.common is not None or W.diagonal is not None:
        return False
    return W.U is None or 2 * W.U.shape[1] < W.d


def low_rank_columns(W: Adjustment) -> tuple[np.ndarray, np.ndarray]:
    """U with Q merged into it and their weights, in float64 on the host; none of a scale."""
    if W.U is None:
        return np.empty((W.d, 0)), np.empty(0)
    U, weights = (to_numpy(a).astype(np.float64) for a in (W.U, W.weights))
    return (U if W.Q is None else U @ to_numpy(W.Q).astype(np.float64)), weights


def trace(W: Adjustment) -> float:
    """tr(W) of one without a common matrix."""
    U, weights = low_rank_columns(W)
    dense = 0.0 if W.matrix is None else float(np.trace(to_numpy(W.matrix)))
    if W.diagonal is not None:
        dense += float(to_numpy(W.diagonal).sum())
    return W.d * W.scale + dense + float(weights @ np.sum(U * U, axis=0))


def on_host(adjustments: Sequence[Adjustment]) -> list[Adjustment]:
    """Adjustments as NumPy arrays, which share what they shared."""
    common = adjustments[0].common
    host_common = None if common is None else to_numpy(common)
    return [a.to_numpy(host_common) for a in adjustments]


def average(
    adjustments: Sequence[Adjustment], weights: Sequence[float] | None = None
) -> Adjustment:
    """Weighted mean of adjustments (default: equal weights).

    Average the whiteners, not the covariances: W is what multiplies the features, and with
    symmetric roots the mean does not depend on eigenvector signs.
    """
    if weights is None:
        weights = [1.0 / len(adjustments)] * len(adjustments)
    pairs = list(zip(adjustments, weights, strict=True))
    first = adjustments[0]
    scale = sum(w * a.scale for a, w in pairs)
    diagonals = [w * a.diagonal for a, w in pairs if a.diagonal is not None]
    diagonal = sum(diagonals[1:], diagonals[0]) if diagonals else None
    matrices = [a for a in adjustments if a.matrix is not None or a.U is not None]
    if not matrices:
        return Adjustment(first.d, scale, common=first.common, diagonal=diagonal)
    rank = sum(0 if a.U is None else a.U.shape[1] for a in matrices)
    if any(a.matrix is not None for a in matrices) or rank >= first.d // 2:
        matrix = _weighted_matrix(pairs, matrices[0])
        return Adjustment(first.d, scale, matrix, common=first.common, diagonal=diagonal)
    xp = namespace(matrices[0].U)
    U = xp.concat([a.U if a.Q is None else a.U @ a.Q for a in matrices], axis=1)
    weighted = [w * a.weights for a, w in pairs if a.weights is not None]
    return Adjustment(
        first.d, scale, None, U, xp.concat(weighted), common=first.common, diagonal=diagonal
    )


def _weighted_matrix(pairs: Sequence[tuple[Adjustment, float]], beside: Adjustment) -> Array:
    """Σ w (W̃ - scale I) in one (d, d) accumulator; low-rank ones many at a time."""
    matrix: Array = sum(w * a.matrix for a, w in pairs if a.matrix is not None)
    if all(a.U is None for a, _ in pairs):
        return matrix
    matrix = matrix + beside.like(np.zeros((beside.d, beside.d)))
    low_rank = as_float64(matrix) * 0.0
    waiting = []
    rank = 0
    for a, w in pairs:
        if a.U is not None:
            waiting.append((a, w))
            rank += a.U.shape[1]
        if rank >= STACK:
            low_rank = low_rank + _stacked(waiting)
            waiting = []
            rank = 0
    if waiting:
        low_rank = low_rank + _stacked(waiting)
    if beside.common is not None:
        C = as_float64(beside.common)
        low_rank = C @ low_rank @ C
    return matrix + like(low_rank, matrix, matrix.dtype)


def _stacked(pairs: Sequence[tuple[Adjustment, float]]) -> Array:
    """``Σ w U Q diag(weights) Qᵀ Uᵀ``, by one symmetric product for each sign of the weights."""
    xp = namespace(pairs[0][0].U)
    turned = [a.U if a.Q is None else a.U @ a.Q for a, _ in pairs]
    rows = xp.concat([xp.matrix_transpose(U) for U in turned], axis=0)
    weights = xp.concat([w * a.weights for a, w in pairs if a.weights is not None])
    result: Array = 0.0
    for sign in (1.0, -1.0):
        signed = xp.nonzero(sign * weights > 0)[0]
        if signed.shape[0]:
            root = (sign * xp.take(weights, signed)) ** 0.5
            A = xp.take(rows, signed, axis=0) * root[:, None]
            unit = power_of_two_near(float(xp.max(xp.abs(A))))  # float32 then holds the squares
            A = A / unit
            result = result + sign * unit**2 * as_float64(xp.matrix_transpose(A) @ A)
    return result


def adjustment_error(guess: Adjustment, true: Adjustment) -> float:
    """``‖Ŵ - W‖² / ‖W‖²`` in the Frobenius norm, in coordinates that both share if any.

    Examples
    --------
    >>> from skdare.whitening import Adjustment, adjustment_error
    >>> adjustment_error(Adjustment(3, 1.5), Adjustment(3, 1.0))
    0.25
    """
    if same_common(guess, true):
        guess = guess.inner
        true = true.inner
    if is_low_rank(guess) and is_low_rank(true):
        return _low_rank_error(guess, true)
    W = to_numpy(true.dense()).astype(np.float64)
    return float(np.sum((to_numpy(guess.dense(true)) - W) ** 2) / np.sum(W**2))


def _low_rank_error(guess: Adjustment, true: Adjustment) -> float:
    """``‖s I + U diag(w) Uᵀ‖² = d s² + 2 s Σ w ‖u‖² + wᵀ (K ∘ K) w`` with K = Uᵀ U, twice."""
    (G, guessed) = low_rank_columns(guess)
    (T, weights) = low_rank_columns(true)
    U = np.concatenate([G, T], axis=1)
    K = U.T @ U

    def squared_norm(scale: float, w: np.ndarray) -> float:
        return float(true.d * scale**2 + 2.0 * scale * (w @ np.diagonal(K)) + w @ (K * K) @ w)

    error = squared_norm(guess.scale - true.scale, np.concatenate([guessed, -weights]))
    size = squared_norm(true.scale, np.concatenate([0.0 * guessed, weights]))
    return max(error, 0.0) / size


def same_common(a: Adjustment, b: Adjustment) -> bool:
    """Whether two adjustments see domains through the same matrix."""
    if a.common is None or b.common is None:
        return a.common is b.common
    return a.common is b.common or np.array_equal(to_numpy(a.common), to_numpy(b.common))


def back(W: Adjustment, points: np.ndarray) -> np.ndarray:
    """Points, (d, m), in canonical coordinates: their dtype holds what that of W may not."""
    return to_numpy(W.back(points)).astype(points.dtype, copy=False)
