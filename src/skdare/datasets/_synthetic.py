"""Data drawn from the paper's latent model.

Notation: A (d, d) a domain's transformation with eigenvectors U (d, d), b (d,) its latent mean,
β (d,) the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.datasets._domain_data import DomainData

# Scales of a direction without a moving mean are within a factor √2 of one: then a guess that
# averages training domains errs by less than 1 on it, as the paper's assumption 3 asks.
_STEADY = 0.5 * np.log(2.0)
# Standard deviation of the latent means along each of their directions, at a shift of one.
_MEAN_SHIFT = 1.5


@dataclass(frozen=True, eq=False)
class LatentLaw:
    """The law that the domains of `make_latent_domains` are drawn from.

    Parameters
    ----------
    beta : array of shape (d,)
    U : array of shape (d, d)
        Eigenvectors of every A; the first ``mean_rank`` span the latent means.
    mean_rank : int
    """

    beta: np.ndarray
    U: np.ndarray
    mean_rank: int

    @classmethod
    def draw(cls, n_features: int, mean_rank: int, rng: np.random.Generator) -> LatentLaw:
        """A random truth and random eigenvectors."""
        beta = rng.normal(size=n_features) * 2.0
        return cls(beta, np.linalg.qr(rng.normal(size=(n_features, n_features)))[0], mean_rank)

    def reach(self, shift: float) -> np.ndarray:
        """The largest log scale of each eigenvector, either way: (d,).

        That of eigenvectors in which means move grows with ``shift``; that of the others no
        further than at a shift of one.
        """
        steady = np.full(len(self.beta), min(shift, 1.0) * _STEADY)
        steady[: self.mean_rank] = shift
        return steady

    def transformation(self, log_scales: np.ndarray) -> np.ndarray:
        """The symmetric A with these log scales."""
        return (self.U * np.exp(log_scales)) @ self.U.T

    def domain(
        self, shift: float, rng: np.random.Generator, *, further: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """A and b of a random domain, its log scales ``further`` times as far from zero."""
        reach = self.reach(further * shift)
        A = self.transformation(rng.uniform(-reach, reach))
        deviation = _MEAN_SHIFT * shift
        return A, self.U[:, : self.mean_rank] @ rng.normal(scale=deviation, size=self.mean_rank)


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

    Domains keep the paper's assumptions:

    - the model itself: β is the same in all domains, the noise of y is logistic for classes and
      normal for numbers, and ε₀ is standard normal, as theorem 1 asks for classes;
    - assumption 1: every ``A_e`` has the same right singular vectors. Here all are symmetric with
      the same eigenvectors, so that either root of a covariance recovers ``A_e``;
    - assumption 2 with B = 0: the means ``b_e`` vary in the span of ``mean_rank`` of these
      eigenvectors, and the error of an averaged guess does not mix them with the others;
    - assumption 3: the scale of each other eigenvector stays within a factor √2 of one, so that
      the guess errs by less than one there. Scales of the ``mean_rank`` may differ by more.

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
    >>> from skdare.datasets import make_latent_domains
    >>> make_latent_domains(n_domains=3, n_rows=50, random_state=0).X.shape
    (150, 8)
    """
    rng = np.random.default_rng(random_state)
    law = LatentLaw.draw(n_features, mean_rank, rng)
    X, y, domains = [], [], []
    for domain in range(n_domains):
        A, b = law.domain(shift, rng)
        latent = rng.normal(size=(n_rows, n_features)) + b
        score = latent @ law.beta
        if task == "classification":
            y.append((score + rng.logistic(size=n_rows) > 0).astype(int))
        else:
            y.append(score + noise * rng.normal(size=n_rows))
        X.append(latent @ A)
        domains.append(np.full(n_rows, domain))
    return DomainData(np.concatenate(X), np.concatenate(y), np.concatenate(domains))
