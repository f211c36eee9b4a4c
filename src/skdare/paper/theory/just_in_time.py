"""Theorem 4: whitening a new domain by its own unlabelled rows (JIT-UDA).

Latents ε ~ N(b, I) and x = A ε with A a symmetric root of Σ. Half of the source rows give Σ̂_S,
half give β̂, the least-squares weights on Σ̂_S^{-1/2} x; a new row is predicted by
β̂ᵀ Σ̂_T^{-1/2} x. Only moments enter, so Wishart matrices are drawn, not rows.

Notation: Σ (d, d) a covariance of x, C (…, d, d) sample covariances of the latents, n rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdare.checks import check_count, check_number
from skdare.paper.theory.matrices import random_orthogonal, symmetric_power
from skdare.paper.theory.model import LatentDomain, check_beta
from skdare.paper.theory.population import latent_risk
from skdare.paper.theory.whitening_error import condition_m, latent_covariances, whitening_spread


@dataclass(frozen=True, eq=False)
class JustInTime:
    """A source with labels, a target without, and the truth.

    Parameters
    ----------
    source, target : LatentDomain
        With symmetric A: the symmetric root is what the theorem's proof perturbs.
    beta : array of shape (d,)
    noise : float
        Standard deviation of the additive noise.
    """

    source: LatentDomain
    target: LatentDomain
    beta: np.ndarray
    noise: float = 1.0

    def __post_init__(self) -> None:
        check_number("noise", self.noise)
        check_beta(self.beta, "the source", self.source)
        check_beta(self.beta, "the target", self.target)

    @classmethod
    def draw(
        cls,
        d: int,
        *,
        condition: float = math.exp(2.0),
        shift: float = 1.0,
        noise: float = 0.5,
        random_state: int | np.random.Generator | None = None,
    ) -> JustInTime:
        """Random axes, this condition number of both covariances, latent means of norm shift."""
        rng = np.random.default_rng(random_state)
        beta = rng.standard_normal(d)
        s = np.geomspace(condition**-0.25, condition**0.25, d)
        domains = []
        for _ in range(2):
            U = random_orthogonal(d, rng)
            b = rng.standard_normal(d)
            domains.append(LatentDomain((U * s) @ U.T, shift * b / np.linalg.norm(b)))
        return cls(domains[0], domains[1], beta / np.linalg.norm(beta), noise)

    @classmethod
    def plain(cls, d: int, b: np.ndarray | float = 0.0, scale: float = 1.0) -> JustInTime:
        """No noise, a source with Σ = I, and a target with Σ = scale² I and latent mean b."""
        source = LatentDomain(np.eye(d), np.zeros(d))
        target = LatentDomain(scale * np.eye(d), np.broadcast_to(b, d))
        return cls(source, target, np.ones(d) / np.sqrt(d), 0.0)

    def in_units(self, scale: float) -> JustInTime:
        """The same rows in other units: x → scale · x."""
        source = LatentDomain(scale * self.source.A, self.source.b)
        target = LatentDomain(scale * self.target.A, self.target.b)
        return JustInTime(source, target, self.beta, self.noise)


def just_in_time_risk(
    problem: JustInTime,
    n_source: float,
    n_target: float,
    *,
    split: bool = True,
    repeats: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> np.ndarray:
    """Excess risk on the target, for each of several draws of the rows.

    Parameters
    ----------
    problem : JustInTime
    n_source, n_target : int or math.inf
        Rows; infinity leaves that side without error.
    split : bool
        Half of the source rows for Σ̂_S and half for β̂, as the theorem says, or all for both.
    repeats : int
    random_state : int or Generator, optional

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import JustInTime, LatentDomain, just_in_time_risk
    >>> plain = LatentDomain(np.eye(3), np.zeros(3))
    >>> problem = JustInTime(plain, plain, np.array([1.0, 0.0, 0.0]))
    >>> risk = just_in_time_risk(problem, 10**6, 10**6, random_state=0)
    >>> bool(risk.mean() < 1e-4)
    True
    """
    check_count("repeats", repeats, 1)
    rng = np.random.default_rng(random_state)
    A = problem.target.A
    beta = _source_weights(problem, n_source, split, repeats, rng)
    W = symmetric_power(A @ latent_covariances(len(A), n_target, repeats, rng) @ A.T, -0.5)
    return latent_risk((A.T @ W @ beta[..., None])[..., 0] - problem.beta, problem.target.b)


def _source_weights(
    problem: JustInTime, n: float, split: bool, repeats: int, rng: np.random.Generator
) -> np.ndarray:
    """β̂ = Σ̂_S^{1/2} θ̂, where θ̂ is least squares on x: whitening is a change of variables."""
    A = problem.source.A
    b = problem.source.b
    latent = problem.beta[None]
    rows = n // 2 if split and not math.isinf(n) else n
    C = latent_covariances(len(b), rows, repeats, rng)
    if not math.isinf(n):
        means = b + rng.standard_normal((repeats, len(b))) / np.sqrt(rows)
        again = latent_covariances(len(b), rows, repeats, rng) if split else C
        L = np.linalg.cholesky(rows * (again + means[:, :, None] * means[:, None, :]))
        error = np.linalg.solve(np.swapaxes(L, 1, 2), rng.standard_normal((repeats, len(b), 1)))
        latent = latent + problem.noise * error[..., 0]
    theta = np.linalg.solve(A.T, latent.T).T
    return (symmetric_power(A @ C @ A.T, 0.5) @ theta[..., None])[..., 0]


def just_in_time_expected(
    problem: JustInTime, n_source: float, n_target: float, *, split: bool = True
) -> float:
    """Mean excess risk to first order in 1/n_S and 1/n_T.

    Examples
    --------
    >>> import math
    >>> from skdare.paper.theory import JustInTime, just_in_time_expected
    >>> round(just_in_time_expected(JustInTime.plain(3), math.inf, 100), 6)
    0.01
    """
    rows = n_source / 2 if split else n_source
    b = problem.source.b
    noise = problem.noise**2 * (np.eye(len(b)) - np.outer(b, b) / (1.0 + b @ b))
    spread = (whitening_spread(problem.source.covariance, problem.beta) + noise) / rows
    spread = spread + whitening_spread(problem.target.covariance, problem.beta) / n_target
    return float(np.trace(spread) + problem.target.b @ spread @ problem.target.b)


def just_in_time_bound(
    problem: JustInTime, n_source: float, n_target: float, form: str = "printed"
) -> float:
    """The bound of theorem 4, fully stated, with constants of one.

    "printed" has the mean of x where the other forms have that of the latents.

    Examples
    --------
    >>> import math
    >>> from skdare.paper.theory import JustInTime, just_in_time_bound
    >>> round(just_in_time_bound(JustInTime.plain(3), math.inf, 100), 6)
    0.09
    """
    d = len(problem.beta)
    target = problem.target
    shift = target.mean if form == "printed" else target.b
    source = d * problem.noise**2 + d**2 * condition_m(problem.source.covariance, form)
    adapted = d**2 * condition_m(target.covariance, form) / n_target
    return float((1.0 + shift @ shift) * (source / n_source + adapted))


@dataclass(frozen=True, eq=False)
class Simulation:
    """Repeated draws of the rows: a number of repeats, and a random generator."""

    repeats: int
    rng: np.random.Generator

    def risk(
        self, problem: JustInTime, n_source: float, n_target: float, *, split: bool = True
    ) -> float:
        """The mean of `just_in_time_risk`."""
        risks = just_in_time_risk(
            problem, n_source, n_target, split=split, repeats=self.repeats, random_state=self.rng
        )
        return float(risks.mean())
