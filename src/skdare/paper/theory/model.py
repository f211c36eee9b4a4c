"""The paper's model of shift: x = A_e (ε₀ + b_e), and y a function of βᵀ(ε₀ + b_e) alone.

Notation: A (d, d) a domain's transformation, b (d,) its latent mean, β (d,) the truth,
U, V (d, d) orthogonal, s (d,) singular values, Z (n, d) latents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.checks import check_choice, check_count, check_number
from skdare.data.domain_data import DomainData
from skdare.paper.theory.matrices import random_orthogonal, random_symmetric

TASKS = ("regression", "classification")
VECTORS = ("symmetric", "shared", "free")

_FREEDOM = 5.0
# Two normal humps at ±0.8, each of variance 0.36: 0.64 + 0.36 = 1.
_HUMP = 0.8


def _mixture(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    side = rng.choice([-_HUMP, _HUMP], shape)
    return side + np.sqrt(1.0 - _HUMP**2) * rng.standard_normal(shape)


# Laws of the latent residuals: independent coordinates with mean zero and variance one.
LAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "laplace": lambda rng, shape: rng.laplace(scale=0.5**0.5, size=shape),
    "student": lambda rng, shape: (
        rng.standard_t(_FREEDOM, shape) * np.sqrt((_FREEDOM - 2.0) / _FREEDOM)
    ),
    "uniform": lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape),
    "mixture": _mixture,
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 1.0,
}


@dataclass(frozen=True, eq=False)
class LatentDomain:
    """One domain: ``x = A (ε₀ + b)`` with residuals of mean zero and identity covariance.

    Parameters
    ----------
    A : array of shape (d, d)
    b : array of shape (d,)
    law : one of `LAWS`
        Law of the residuals ε₀; no population quantity in regression depends on it.
    """

    A: np.ndarray
    b: np.ndarray
    law: str = "gaussian"

    def __post_init__(self) -> None:
        check_choice("law", self.law, tuple(LAWS))
        d = len(self.b)
        if self.A.shape != (d, d):
            raise ValueError(
                f"A has shape {self.A.shape} and b has {d} entries; pass an A of shape ({d}, {d})"
            )

    @property
    def mean(self) -> np.ndarray:
        """Mean of the features x."""
        return self.A @ self.b

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the features x."""
        return self.A @ self.A.T

    @property
    def second_moment(self) -> np.ndarray:
        """Second moment of x, not centred."""
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
    >>> from skdare.paper.theory import LatentModel
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
            check_beta(self.beta, f"domain {e}", domain)

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
            Standard deviation of the latent means along each direction of that subspace.
        spread : float
            Log singular values of A are uniform in ±spread.
        vectors : {"symmetric", "shared", "free"}
            Right singular vectors of A: equal to those on the left (A is symmetric, and the
            symmetric root recovers it), the identity in every domain (the paper's assumption 1),
            or random.
        law : one of `LAWS`
        task : "regression" or "classification"
        noise : float
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
        span = random_orthogonal(d, rng)[:, :rank]
        domains = []
        for _ in range(n_domains):
            U = random_orthogonal(d, rng)
            s = np.exp(rng.uniform(-spread, spread, d))
            # Drawn in every case, so that one seed gives the same b whatever the vectors.
            free = random_orthogonal(d, rng)
            V = {"symmetric": U, "shared": np.eye(d), "free": free}[vectors]
            b = span @ rng.normal(scale=shift, size=span.shape[1])
            domains.append(LatentDomain((U * s) @ V.T, b, law))
        return cls(beta / np.linalg.norm(beta), tuple(domains), task, noise)

    @classmethod
    def invariant_subspace(
        cls,
        invariant: int,
        varying: int,
        n_domains: int,
        *,
        spread: float = 1.0,
        random_state: int | np.random.Generator | None = None,
    ) -> LatentModel:
        """The paper's running example: one block of A is the same everywhere, the other varies.

        Latent means are zero, so that all of β can be aligned, and an invariant predictor throws
        the varying part of it away.
        """
        check_count("invariant", invariant, 1)
        check_count("varying", varying, 1)
        check_count("n_domains", n_domains, 1)
        check_number("spread", spread)
        rng = np.random.default_rng(random_state)
        d = invariant + varying
        beta = rng.standard_normal(d)
        fixed = random_symmetric(invariant, spread, rng)
        domains = []
        for _ in range(n_domains):
            A = np.zeros((d, d))
            A[:invariant, :invariant] = fixed
            A[invariant:, invariant:] = random_symmetric(varying, spread, rng)
            domains.append(LatentDomain(A, np.zeros(d)))
        return cls(beta / np.linalg.norm(beta), tuple(domains))

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
            Z = domain.latents(n, rng)
            X.append(Z @ domain.A.T)
            y.append(self.targets(Z, rng))
        return stack_domains(X, y)


def exact_rows(model: LatentModel, n: int, rng: np.random.Generator) -> DomainData:
    """n rows of every domain, without noise: latents of mean b and covariance I to rounding.

    A head that depends on second moments alone must give the population's solution on them.
    """
    X, y = [], []
    for domain in model.domains:
        Z = domain.latents(n, rng)
        Z = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[0] * np.sqrt(n) + domain.b
        X.append(Z @ domain.A.T)
        y.append(Z @ model.beta)
    return stack_domains(X, y)


def stack_domains(X: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> DomainData:
    """The rows of domains 0, 1, … one below another."""
    labels = np.repeat(np.arange(len(X)), [len(rows) for rows in X])
    return DomainData.of(np.concatenate(X), np.concatenate(y), domains=labels)


def check_beta(beta: np.ndarray, whose: str, domain: LatentDomain) -> None:
    """There is one weight for each latent of the domain."""
    if np.shape(beta) != np.shape(domain.b):
        raise ValueError(
            f"beta has shape {np.shape(beta)} and {whose} has {len(domain.b)} latents; pass one "
            "weight for each latent"
        )
