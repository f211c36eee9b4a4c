"""Where domains lie in canonical space, from moments and adjustments alone.

Notation: W (d, d) adjustment, M (d, E) adjusted domain means, Q (d, r) orthonormal columns,
D (d, d) the adjustment's error Δ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse.linalg import svds

from skdare._array import to_numpy
from skdare.adjustment import Adjustment
from skdare.moments import Moments

# Features above which the largest singular value is found by iteration.
_LARGE = 200
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
    values = np.linalg.eigvalsh(S)
    gap = float(np.diff(values).min())
    return gap if gap > _RTOL * values[-1] else 0.0


def adjustment_difference(own: Adjustment, guess: Adjustment) -> np.ndarray:
    """The paper's Δ: the own adjustment undone, then the guess, minus the identity."""
    W = to_numpy(own.dense(guess)).astype(np.float64)
    guessed = to_numpy(guess.dense(own)).astype(np.float64)
    return np.linalg.solve(W, guessed) - np.eye(own.d)


def spectral_norm(D: np.ndarray) -> float:
    """Largest singular value."""
    if len(D) <= _LARGE:
        return float(np.linalg.norm(D, 2))
    start = np.ones(len(D)) / np.sqrt(len(D))
    return float(svds(D, k=1, v0=start, tol=1e-4, return_singular_vectors=False)[0])


def adjusted_mean(W: Adjustment, moments: Moments) -> np.ndarray:
    """W μ, on the host."""
    mean = to_numpy(moments.mean).astype(np.float64)
    return to_numpy(W.apply(W.like(mean[:, None]))).astype(np.float64)[:, 0]


def span(M: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns."""
    Q, values, _ = np.linalg.svd(M, full_matrices=False)
    return Q[:, values > values.max(initial=0.0) * max(M.shape) * 2.3e-16]


def gram_of_means(means: Sequence[np.ndarray]) -> np.ndarray:
    """The covariance of the means through its thin side, (E, E), with its non-zero eigenvalues."""
    M = np.stack(means, axis=1)
    centred = M - M.mean(axis=1, keepdims=True)
    return centred.T @ centred / len(means)
