"""What a bounded error of the guess can cost a predictor, block by block.

Notation: M (d, d) symmetric without negative eigenvalues, the new domain as the guess sees it, so
that x = W⁻¹ M ε; Δ = M - I; Π_i (d, d) projections that sum to the identity; β (d,) a predictor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# A subspace that Δ maps to itself, and a bound on the spectral norm of Δ there.
Block = tuple[np.ndarray, float]


def worst_case(
    beta: np.ndarray, truth: np.ndarray, blocks: Sequence[Block], rho: float = 0.0
) -> float:
    """The largest excess risk of a predictor when the guess errs by no more than the blocks say.

    On a block M is its middle m plus r times a symmetric contraction, which can turn any vector
    into any other that is no longer: the cost is ``(‖m β - truth‖ + r ‖β‖)²``. Up to a radius of
    one that is ``(‖β - truth‖ + radius ‖β‖)²``.

    Parameters
    ----------
    beta, truth : arrays of shape (d,)
    blocks : sequence of pairs (projection, radius)
        Subspaces that Δ maps to themselves, and bounds on the spectral norm of Δ there. The
        projections, of shape (d, d), sum to the identity.
    rho : float
        Length of the new latent mean.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory import worst_case
    >>> worst_case(np.array([1.0, 0.0]), np.array([1.0, 1.0]), [(np.eye(2), 0.0)])
    1.0
    """
    total = 0.0
    for projection, radius in blocks:
        low, high = interval(radius)
        part, goal = projection @ beta, projection @ truth
        miss = np.linalg.norm(0.5 * (low + high) * part - goal)
        total += float(miss + 0.5 * (high - low) * np.linalg.norm(part)) ** 2
    return float((1.0 + rho**2) * total)


def attack_blocks(
    beta: np.ndarray,
    truth: np.ndarray,
    blocks: Sequence[Block],
    *,
    starts: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> np.ndarray:
    """The most costly M (d, d) that a search finds.

    Each step goes to the M that is best for the linearised risk, which cannot lower a convex one:
    all eigenvalues of a block go to one end of its interval or the other.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory._budget import attack_blocks
    >>> attack_blocks(np.array([1.0]), np.array([1.0]), [(np.eye(1), 0.5)], random_state=0)
    array([[1.5]])
    """
    rng, best, largest = np.random.default_rng(random_state), np.eye(len(beta)), -1.0
    for _ in range(starts):
        v, cost = rng.standard_normal(len(beta)), -1.0
        for _ in range(200):
            M = _steepest(v, beta, blocks)
            v, last, cost = M @ beta - truth, cost, float(np.sum((M @ beta - truth) ** 2))
            if cost <= last * (1.0 + 1e-12):
                break
        if cost > largest:
            best, largest = M, cost
    return best


def interval(radius: float) -> tuple[float, float]:
    """Bounds on the eigenvalues of M on a block: they are not negative."""
    return max(1.0 - radius, 0.0), 1.0 + radius


def _steepest(v: np.ndarray, beta: np.ndarray, blocks: Sequence[Block]) -> np.ndarray:
    """M of the set with the largest vᵀ M β."""
    M = np.zeros((len(beta), len(beta)))
    for projection, radius in blocks:
        low, high = interval(radius)
        left, right = projection @ v, projection @ beta
        values, U = np.linalg.eigh(np.outer(left, right) + np.outer(right, left))
        towards = (U * np.where(values > 0, high, low)) @ U.T
        M += projection @ towards @ projection
    return M
