"""The paper's model of shift: x = A_e (ε₀ + b_e), and y a function of βᵀ(ε₀ + b_e) alone.

Notation: A (d, d) a domain's transformation, b (d,) its latent mean, β (d,) the truth,
U, V (d, d) orthogonal, s (d,) singular values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare._validation import check_choice, check_count, check_number
from skdare.datasets import DomainData
from skdare.theory._laws import LAWS

TASKS = ("regression", "classification")
VECTORS = ("symmetric", "shared", "free")


@dataclass(frozen=True, eq=False)
class LatentDomain:
    """One domain: ``x = A (ε₀ + b)`` with residuals of mean zero and identity covariance.

    Parameters
    ----------
    A : array of shape (d, d)
    b : array of shape (d,)
    law : one of `LAWS`
        Of the residuals ε₀; no population quantity below depends on it.
    """

    A: np.ndarray
    b: np.ndarray
    law: str = "gaussian"

    def __post_init__(self) -> None:
        check_choice("law", self.law, tuple(LAWS))
        if self.A.shape != (len(self.b), len(self.b)):
            d = len(self.b)
            raise ValueError(
                f"A has shape {self.A.shape} and b has {d} entries; pass an A of shape ({d}, {d})"
            )

    @classmethod
    def of_svd(
        cls, U: np.ndarray, s: np.ndarray, V: np.ndarray, b: np.ndarray, law: str = "gaussian"
    ) -> LatentDomain:
        """``A = U diag(s) Vᵀ``."""
        return cls((U * s) @ V.T, b, law)

    @property
    def mean(self) -> np.ndarray:
        """Of x."""
        return self.A @ self.b

    @property
    def covariance(self) -> np.ndarray:
        """Of x."""
        return self.A @ self.A.T

    @property
    def second_moment(self) -> np.ndarray:
        """Of x, not centred."""
        return self.covariance + np.outer(self.mean, self.mean)

    def latents(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Samples of ε, (n, d)."""
        return LAWS[self.law](rng, (n, len(self.b))) + self.b


@dataclass(frozen=True, eq=False)
class LatentModel:
    """Domains that share one regression vector on the latents.

    Parameters
    ----------
    beta : array of shape (d,)
    domains : sequence of LatentDomain
    task : "regression" or "classification"
    noise : float
        Standard deviation of the additive noise; classification has standard logistic noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.theory import LatentModel
    >>> model = LatentModel.draw(d=5, n_domains=3, mean_rank=2, random_state=0)
    >>> data = model.sample(100, random_state=0)
    >>> data.X.shape
    (300, 5)
    >>> float(np.linalg.matrix_rank(model.means))
    2.0
    """

    beta: np.ndarray
    domains: Sequence[LatentDomain]
    task: str = "regression"
    noise: float = 1.0

    def __post_init__(self) -> None:
        check_choice("task", self.task, TASKS)
        check_number("noise", self.noise)
        if not len(self.domains):
            raise ValueError("domains is empty; pass one or more")
        for e, domain in enumerate(self.domains):
            check_length("beta", self.beta, f"domain {e}", domain)

    @classmethod
    def draw(
        cls,
        d: int,
        n_domains: int,
        *,
        mean_rank: int | None = None,
        shift: float = 1.0,
        spread: float = 0.5,
        vectors: str = "symmetric",
        law: str = "gaussian",
        task: str = "regression",
        noise: float = 1.0,
        random_state: int | np.random.Generator | None = None,
    ) -> LatentModel:
        """Random domains around one truth of norm one.

        Parameters
        ----------
        d, n_domains : int
        mean_rank : int, optional
            Dimension of the subspace in which latent means vary; default: all.
        shift : float
            Deviation of the latent means along each of its directions.
        spread : float
            Singular values are exp of a uniform number in ±spread.
        vectors : {"symmetric", "shared", "free"}
            Right singular vectors: those on the left (A is symmetric, and the symmetric root
            recovers it), the identity in every domain (the paper's assumption 1), or random.
        law, task, noise
            Of the residuals, the target and its noise.
        random_state : int or Generator, optional
        """
        check_count("d", d, 1)
        check_count("n_domains", n_domains, 1)
        check_choice("vectors", vectors, VECTORS)
        check_choice("law", law, tuple(LAWS))
        check_choice("task", task, TASKS)
        rank = d if mean_rank is None else mean_rank
        check_count("mean_rank", rank, 0)
        if rank > d:
            raise ValueError(f"mean_rank is {rank} among {d} dimensions; use {d} or fewer")
        for name, value in (("shift", shift), ("spread", spread), ("noise", noise)):
            check_number(name, value)
        rng = np.random.default_rng(random_state)
        beta = rng.standard_normal(d)
        span = orthogonal(d, rng)[:, :rank]
        domains = []
        for _ in range(n_domains):
            U, s = orthogonal(d, rng), np.exp(rng.uniform(-spread, spread, d))
            free = orthogonal(d, rng)
            V = {"symmetric": U, "shared": np.eye(d), "free": free}[vectors]
            b = span @ rng.normal(scale=shift, size=span.shape[1])
            domains.append(LatentDomain.of_svd(U, s, V, b, law))
        return cls(beta / np.linalg.norm(beta), tuple(domains), task, noise)

    @classmethod
    def invariant_subspace(
        cls,
        invariant: int,
        varying: int,
        n_domains: int,
        *,
        spread: float = 1.0,
        task: str = "regression",
        noise: float = 1.0,
        random_state: int | np.random.Generator | None = None,
    ) -> LatentModel:
        """The paper's running example: one block of A is the same everywhere, the other varies.

        Latent means are zero, so that all of β can be aligned, and an invariant predictor throws
        the varying part of it away.
        """
        for name, value in (("invariant", invariant), ("varying", varying)):
            check_count(name, value, 1)
        check_count("n_domains", n_domains, 1)
        check_number("spread", spread)
        rng, d = np.random.default_rng(random_state), invariant + varying
        beta, fixed = rng.standard_normal(d), _symmetric(invariant, spread, rng)
        domains = []
        for _ in range(n_domains):
            A = np.zeros((d, d))
            A[:invariant, :invariant] = fixed
            A[invariant:, invariant:] = _symmetric(varying, spread, rng)
            domains.append(LatentDomain(A, np.zeros(d)))
        return cls(beta / np.linalg.norm(beta), tuple(domains), task, noise)

    @property
    def means(self) -> np.ndarray:
        """The latent means as columns, (d, E): the paper's 𝔹."""
        return np.stack([domain.b for domain in self.domains], axis=1)

    def targets(self, latents: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """y for these latents."""
        scores = latents @ self.beta
        if self.task == "classification":
            return (scores + rng.logistic(size=len(scores)) > 0).astype(int)
        return scores + rng.normal(scale=self.noise, size=len(scores))

    def sample(
        self, n: int, *, random_state: int | np.random.Generator | None = None
    ) -> DomainData:
        """n rows of every domain."""
        check_count("n", n, 1)
        rng = np.random.default_rng(random_state)
        X, y = [], []
        for domain in self.domains:
            latents = domain.latents(n, rng)
            X.append(latents @ domain.A.T)
            y.append(self.targets(latents, rng))
        labels = np.repeat(np.arange(len(self.domains)), n)
        return DomainData(np.concatenate(X), np.concatenate(y), labels)


def latent_risk(V: np.ndarray, b: np.ndarray) -> np.ndarray:
    """E[(vᵀε)²] for latents ε of mean b and identity covariance; V holds v along its last axis."""
    return (V**2).sum(axis=-1) + (V @ b) ** 2


def check_length(name: str, beta: np.ndarray, whose: str, domain: LatentDomain) -> None:
    """There is one weight for each latent of the domain."""
    if np.shape(beta) != np.shape(domain.b):
        raise ValueError(
            f"{name} has shape {np.shape(beta)} and {whose} has {len(domain.b)} latents; pass one "
            "weight for each latent"
        )


def orthogonal(d: int, rng: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix, uniform over all of them."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diag(R))


def _symmetric(d: int, spread: float, rng: np.random.Generator) -> np.ndarray:
    U = orthogonal(d, rng)
    return (U * np.exp(rng.uniform(-spread, spread, d))) @ U.T
