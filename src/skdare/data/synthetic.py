"""Data drawn from the paper's latent model.

Notation: A (d, d) a domain's transformation with eigenvectors U (d, d), b (d,) its latent mean,
β (d,) the truth.
"""

from __future__ import annotations

import numpy as np

from skdare.data.domain_data import DomainData

# Scales of a direction without a moving mean are within a factor √2 of one: then a guess that
# averages training domains errs by less than 1 on it, as in the paper's assumption 3.
_STEADY = 0.5 * np.log(2.0)
# Standard deviation of the latent means along each of their directions, at a shift of one.
_MEAN_SHIFT = 1.5


def make_latent_domains(
    n_domains: int = 4,
    n_rows: int = 300,
    n_features: int = 8,
    *,
    task: str = "classification",
    shift: float = 1.0,
    mean_rank: int = 2,
    noise: float = 0.1,
    random_state: int | None = None,
) -> DomainData:
    """Sample the paper's model: ``x = A_e (ε₀ + b_e)`` and ``y`` a function of ``βᵀ(ε₀ + b_e)``.

    β is the same in all domains and ε₀ standard normal. Every ``A_e`` is symmetric with the same
    eigenvectors (assumption 1). The means ``b_e`` vary in the span of ``mean_rank`` of them
    (assumption 2 with B = 0), and the scale of each other eigenvector stays within a factor √2 of
    one (assumption 3).

    Parameters
    ----------
    n_domains, n_rows, n_features : int
        Domains, rows in each, features.
    task : {"classification", "regression"}
        Two classes with logistic noise, or a number with normal noise.
    shift : float
        How far the domains are apart: 0 makes them alike.
    mean_rank : int
        Dimension of the subspace in which the domain means vary.
    noise : float
        Standard deviation of the regression noise.
    random_state : int, optional

    Returns
    -------
    DomainData

    Examples
    --------
    >>> from skdare.data import make_latent_domains
    >>> make_latent_domains(n_domains=3, n_rows=50, random_state=0).X.shape
    (150, 8)
    """
    rng = np.random.default_rng(random_state)
    beta = rng.normal(size=n_features) * 2.0
    U = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    # The largest log scale of each eigenvector, either way.
    reach = np.full(n_features, min(shift, 1.0) * _STEADY)
    reach[:mean_rank] = shift
    X, y = [], []
    for _ in range(n_domains):
        A = (U * np.exp(rng.uniform(-reach, reach))) @ U.T
        b = U[:, :mean_rank] @ rng.normal(scale=_MEAN_SHIFT * shift, size=mean_rank)
        latent = rng.normal(size=(n_rows, n_features)) + b
        score = latent @ beta
        if task == "classification":
            y.append((score + rng.logistic(size=n_rows) > 0).astype(int))
        else:
            y.append(score + noise * rng.normal(size=n_rows))
        X.append(latent @ A)
    domains = np.repeat(np.arange(n_domains), n_rows)
    return DomainData.of(np.concatenate(X), np.concatenate(y), domains=domains, name="latent")
