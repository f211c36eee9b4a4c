"""Matrices that the theorems share: square roots of a covariance, a projection, random matrices.

Notation: S (d, d) a covariance with eigenvectors U and eigenvalues s², A (d, d) with A Aᵀ = S,
B (d, E) latent means as columns.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

# Eigenvalues that differ by less than this share of the largest are the same.
_RTOL = 1e-12


def symmetric_power(S: np.ndarray, power: float) -> np.ndarray:
    """S to a power, by its eigenvalues; a stack of matrices at once.

    Eigenvalues that rounding took below zero count as zero.
    """
    values, U = np.linalg.eigh(S)
    return (U * np.maximum(values, 0.0)[..., None, :] ** power) @ np.swapaxes(U, -1, -2)


def symmetric_root(S: np.ndarray) -> np.ndarray:
    """The one symmetric A without negative eigenvalues such that ``A A = S``.

    It depends on S alone: neither the signs nor the order of eigenvectors matter.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import symmetric_root
    >>> bool(np.allclose(symmetric_root(np.diag([4.0, 1.0])), np.diag([2.0, 1.0])))
    True
    """
    return symmetric_power(S, 0.5)


def eigen_root(S: np.ndarray) -> np.ndarray:
    """``A = U diag(s)``, as the paper recovers it under its assumption 1.

    Columns are in descending order, and the largest entry of each is positive: a choice, since
    ``A D`` has the same covariance for every diagonal D of signs.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import eigen_root
    >>> A = np.diag([-2.0, 1.0])
    >>> bool(np.allclose(eigen_root(A @ A.T), np.diag([2.0, 1.0])))
    True
    """
    values, U = np.linalg.eigh(S)
    A = U[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    largest = np.take_along_axis(A, np.abs(A).argmax(axis=0)[None], axis=0)
    return A * np.where(largest < 0, -1.0, 1.0)


def mean_null_projection(B: np.ndarray) -> np.ndarray:
    """The projection onto what no latent mean touches, ``I - B B⁺``.

    Singular values of B below the rounding of its largest count as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import mean_null_projection
    >>> mean_null_projection(np.array([[2.0, 4.0], [0.0, 0.0]])) + 0.0
    array([[0., 0.],
           [0., 1.]])
    """
    U, values, _ = linalg.svd(B, full_matrices=False)
    U = U[:, values > max(B.shape) * np.finfo(float).eps * values.max(initial=0.0)]
    return np.eye(len(B)) - U @ U.T


def effective_rank(S: np.ndarray) -> float:
    """``tr(S) / ‖S‖``: in how many directions a covariance varies, weighted by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory.matrices import effective_rank
    >>> effective_rank(np.diag([2.0, 1.0, 1.0]))
    2.0
    """
    return float(np.trace(S) / np.linalg.eigvalsh(S)[-1])


def eigengap(S: np.ndarray) -> float:
    """Smallest difference between consecutive eigenvalues, all of them: zero if one repeats.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory.matrices import eigengap
    >>> eigengap(np.diag([4.0, 3.0, 1.0])), eigengap(np.diag([4.0, 0.0, 0.0]))
    (1.0, 0.0)
    """
    if len(S) < 2:
        raise ValueError("S has one eigenvalue, and a gap needs 2; give a larger matrix")
    values = np.linalg.eigvalsh(S)
    gap = float(np.diff(values).min())
    return gap if gap > _RTOL * values[-1] else 0.0


def random_orthogonal(d: int, rng: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix, uniform over all of them."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diag(R))


def random_symmetric(d: int, spread: float, rng: np.random.Generator) -> np.ndarray:
    """A random symmetric matrix with log eigenvalues uniform in ±spread."""
    U = random_orthogonal(d, rng)
    return (U * np.exp(rng.uniform(-spread, spread, d))) @ U.T


def random_direction(d: int, rng: np.random.Generator) -> np.ndarray:
    """A random vector of length one."""
    v = rng.standard_normal(d)
    return v / np.linalg.norm(v)
