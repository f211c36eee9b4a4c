"""Population quantities that several theorems use: the excess risk, and two predictors.

Notation: A (d, d) a domain's transformation, b (d,) its latent mean, W (d, d) the guess for the
inverse of A.
"""

from __future__ import annotations

import numpy as np

from skdare.paper.theory.matrices import symmetric_power
from skdare.paper.theory.model import LatentDomain, LatentModel


def latent_risk(V: np.ndarray, b: np.ndarray) -> np.ndarray:
    """E[(vᵀε)²] for latents ε of mean b and identity covariance; V holds v along its last axis."""
    return (V**2).sum(axis=-1) + (V @ b) ** 2


def excess_risk(beta: np.ndarray, truth: np.ndarray, W: np.ndarray, domain: LatentDomain) -> float:
    """Mean squared difference between the prediction ``βᵀ W x`` and the truth's ``βᵀ ε``.

    With ``v = AᵀWᵀβ - truth`` it is ``‖v‖² + (vᵀb)²``, whatever the law of the residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentDomain, excess_risk
    >>> domain = LatentDomain(2.0 * np.eye(2), b=np.array([1.0, 0.0]))
    >>> excess_risk(np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.eye(2), domain)
    2.0
    """
    return float(latent_risk(domain.A.T @ (W.T @ beta) - truth, domain.b))


def averaged_guess(model: LatentModel) -> np.ndarray:
    """The mean of the domains' symmetric inverse roots: the adjustment of an unseen domain.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentModel, averaged_guess
    >>> model = LatentModel.draw(d=3, n_domains=1, random_state=0)
    >>> bool(np.allclose(averaged_guess(model) @ model.domains[0].A, np.eye(3)))
    True
    """
    return np.mean([symmetric_power(domain.covariance, -0.5) for domain in model.domains], axis=0)


def pooled_regression(model: LatentModel) -> np.ndarray:
    """Least squares on the raw features of all domains together, without an intercept: (d,).

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentModel, pooled_regression
    >>> model = LatentModel.draw(d=3, n_domains=1, random_state=0)
    >>> bool(np.allclose(model.domains[0].A.T @ pooled_regression(model), model.beta))
    True
    """
    second = sum(domain.second_moment for domain in model.domains)
    cross = sum(
        domain.A @ (model.beta + domain.b * (domain.b @ model.beta)) for domain in model.domains
    )
    return np.linalg.solve(second, cross)
