"""Geometry of domains in canonical space, from moments and adjustments alone.

Notation: W (d, d) adjustment, M (d, E) adjusted domain means, Q (d, r) orthonormal columns,
D (d, d) the adjustment's error Δ.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds

from skdare.arrays import symmetric_eigen, to_numpy
from skdare.whitening.adjustment import Adjustment, is_low_rank, low_rank_columns
from skdare.whitening.moments import Moments, covariance_times

# Features above which iteration finds the largest singular value sooner than a decomposition.
_LARGE = 200
_ROUNDING = 1e-12
# Eigenvalues that differ by less than this share of the largest are the same.
_RTOL = 1e-12


def effective_rank(S: np.ndarray) -> float:
    """``tr(S) / ‖S‖``: in how many directions a covariance varies, weighted by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.diagnosis import effective_rank
    >>> effective_rank(np.diag([2.0, 1.0, 1.0]))
    2.0
    """
    return float(np.trace(S) / np.linalg.eigvalsh(S)[-1])


def eigengap(S: np.ndarray) -> float:
    """Smallest difference between consecutive eigenvalues, all of them: zero if one repeats.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.diagnosis import eigengap
    >>> eigengap(np.diag([4.0, 3.0, 1.0])), eigengap(np.diag([4.0, 0.0, 0.0]))
    (1.0, 0.0)
    """
    if len(S) < 2:
        raise ValueError("S has one eigenvalue, and a gap needs 2; give a larger matrix")
    values = np.linalg.eigvalsh(S)
    gap = float(np.diff(values).min())
    return gap if gap > _RTOL * values[-1] else 0.0


def adjustment_difference(own: Adjustment, guess: Adjustment) -> np.ndarray | LinearOperator:
    """The paper's Δ: the own adjustment undone, then the guess, minus the identity.

    What both have in common is undone, too. Directions that the own adjustment maps to zero were
    without variance, and stay at zero. Low-rank adjustments need no (d, d) matrix.
    """
    own = own.inner
    guess = guess.inner
    if is_low_rank(own) and is_low_rank(guess):
        return _low_rank_difference(own, guess)
    values, vectors = symmetric_eigen(to_numpy(own.dense(guess)).astype(np.float64))
    present = values > len(values) * np.finfo(np.float64).eps * values[-1]
    inverse = np.where(present, 1.0 / np.where(present, values, 1.0), 0.0)
    guessed = to_numpy(guess.dense(own)).astype(np.float64)
    within = vectors @ (present[:, None] * vectors.T)
    return vectors @ (inverse[:, None] * (vectors.T @ guessed)) - within


def _low_rank_difference(own: Adjustment, guess: Adjustment) -> LinearOperator:
    """Δ as a function of vectors: own is a scale but for the few directions Z of its columns."""
    U, weights = low_rank_columns(own)
    Z, R = np.linalg.qr(U)
    values, turn = np.linalg.eigh(own.scale * np.eye(len(R)) + (R * weights) @ R.T)
    noise = own.d * np.finfo(np.float64).eps * values.max(initial=own.scale)
    Z = Z @ turn
    present = values > noise
    inverse = np.where(present, 1.0 / np.where(present, values, 1.0), 0.0)
    beyond = 1.0 / own.scale if own.scale > noise else 0.0
    G, guessed = low_rank_columns(guess)

    def guess_times(V: np.ndarray) -> np.ndarray:
        return guess.scale * V + G @ (guessed[:, None] * (G.T @ V))

    def undone(V: np.ndarray, within: np.ndarray, rest: float) -> np.ndarray:
        return rest * V + Z @ ((within - rest)[:, None] * (Z.T @ V))

    def forth(V: np.ndarray) -> np.ndarray:
        V = V.reshape(own.d, -1)
        return undone(guess_times(V), inverse, beyond) - undone(V, present, float(beyond > 0))

    def back(V: np.ndarray) -> np.ndarray:
        V = V.reshape(own.d, -1)
        return guess_times(undone(V, inverse, beyond)) - undone(V, present, float(beyond > 0))

    shape = (own.d, own.d)
    return LinearOperator(shape, forth, back, forth, np.dtype(np.float64), back)


def spectral_norm(D: np.ndarray | LinearOperator) -> float:
    """Largest singular value."""
    d = D.shape[0]
    if isinstance(D, np.ndarray) and d <= _LARGE:
        return float(np.linalg.norm(D, 2))
    start = np.random.default_rng(0).standard_normal(d)
    # These are differences of matrices of order one: of equal ones, rounding is left.
    if np.linalg.norm(D @ start) <= _ROUNDING * np.linalg.norm(start):
        return 0.0
    return float(svds(D, k=1, v0=start, tol=1e-4, return_singular_vectors=False)[0])


def adjusted_mean(W: Adjustment, moments: Moments) -> np.ndarray:
    """Wᵀ μ, on the host."""
    mean = to_numpy(moments.mean).astype(np.float64)
    return to_numpy(W.back(W.like(mean[:, None]))).astype(np.float64)[:, 0]


def adjusted_variance(W: Adjustment, moments: Moments) -> float:
    """Total variance of a domain after adjustment, ``tr(Wᵀ C W)``; of few rows, through them."""
    if moments.factor is None:
        dense = to_numpy(W.dense()).astype(np.float64)
        return float(np.sum(to_numpy(covariance_times(moments, dense)) * dense))
    rows = to_numpy(moments.factor)[:-1]
    adjusted = to_numpy(W.back(W.like(rows.T))).astype(np.float64)
    return float(np.sum(adjusted**2)) / moments.n


def span(M: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns."""
    Q, values, _ = np.linalg.svd(M, full_matrices=False)
    return Q[:, values > values.max(initial=0.0) * max(M.shape) * 2.3e-16]
