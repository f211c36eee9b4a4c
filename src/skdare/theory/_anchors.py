"""Appendix A: anchor regression with the domain as anchor, on whole distributions.

Notation: A (d, d) and b (d,) of a domain, B (d, E) latent means, W̄ (d, d) the averaged guess.
Every result is weights (d,) on x, for a domain nobody has seen.
"""

from __future__ import annotations

import numpy as np

from skdare.theory._adversary import averaged_guess
from skdare.theory._model import LatentModel


def population_anchor(model: LatentModel, gamma: float) -> np.ndarray:
    """Weights on x that minimise squared error within domains plus γ times that at the means.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory import LatentModel, population_anchor
    >>> model = LatentModel.draw(d=3, n_domains=1, spread=0.0, random_state=0)
    >>> bool(np.allclose(population_anchor(model, 10.0), model.beta))
    True
    """
    H, right = 0.0, 0.0
    for domain in model.domains:
        A, mean = domain.A, domain.mean
        H = H + A @ A.T + gamma * np.outer(mean, mean)
        right = right + A @ model.beta + gamma * mean * (domain.b @ model.beta)
    return np.linalg.solve(H, right)


def population_whitened_anchor(model: LatentModel, gamma: float) -> np.ndarray:
    """The same after each domain is aligned; on x by the averaged guess.

    The objective is ``‖β - β*‖² + γ mean_e ((β - β*)ᵀ b_e)²``: γ changes nothing, because the
    latent means move y by the same β* that the residuals do.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory import LatentModel, population_whitened_anchor
    >>> model = LatentModel.draw(d=3, n_domains=1, spread=0.0, random_state=0)
    >>> bool(np.allclose(population_whitened_anchor(model, 10.0), model.beta))
    True
    """
    return _aligned(model, gamma, model.means.T @ model.beta)


def population_dare(model: LatentModel, mean_penalty: float) -> np.ndarray:
    """Domain-adjusted regression in Lagrangian form; on x by the averaged guess.

    ``‖β - β*‖² + λ mean_e (βᵀ b_e)²``: at the means zero is asked for, not their target.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory import LatentModel, population_dare
    >>> model = LatentModel.draw(d=3, n_domains=1, spread=0.0, random_state=0)
    >>> bool(np.allclose(population_dare(model, 0.0), model.beta))
    True
    """
    return _aligned(model, mean_penalty, np.zeros(len(model.domains)))


def _aligned(model: LatentModel, penalty: float, targets: np.ndarray) -> np.ndarray:
    """W̄ times the minimiser of ``‖β - β*‖² + penalty · mean_e (βᵀ b_e - target_e)²``."""
    B = np.sqrt(penalty / len(targets)) * model.means
    right = model.beta + np.sqrt(penalty / len(targets)) * B @ targets
    return averaged_guess(model) @ np.linalg.solve(np.eye(len(B)) + B @ B.T, right)
