"""Theorem 3: how many domains it takes to see every direction in which latent means vary.

Notation: S (d, d) covariance of the latent means, λ its eigenvalues, R its rank, E domains,
B (d, E) their means, Π̂ the projection onto what no mean touches and Π its limit,
W (d, d) the guess for an unseen domain, v (d,) error of a predictor on the latents.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from skdare.checks import check_count, check_number
from skdare.paper.theory.matrices import effective_rank, eigengap
from skdare.paper.theory.model import LatentDomain, check_beta
from skdare.paper.theory.population import latent_risk

# Eigenvalues below this, relative to the largest, count as zero.
_RTOL = 1e-12


def environment_bound(S: np.ndarray, E: float, delta: float = 0.05) -> float:
    """The bracket of theorem 3, item 2, without its constant.

    ``‖S‖/ξ(S) (√(r(S)/E) + max(√(log(1/δ)/E), log(1/δ)/E))``; infinite where the gap is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import environment_bound
    >>> environment_bound(np.diag([4.0, 2.0, 1.0]), E=7, delta=1.0)
    2.0
    """
    check_number("E", E, 1.0)
    check_number("delta", delta, 0.0, 1.0)
    gap = eigengap(S)
    if gap == 0.0 or delta == 0.0:
        return np.inf
    log = -np.log(delta)
    tail = max(np.sqrt(log / E), log / E)
    return float(np.linalg.eigvalsh(S)[-1] / gap * (np.sqrt(effective_rank(S) / E) + tail))


def environment_risk(
    S: np.ndarray,
    beta: np.ndarray,
    new: LatentDomain,
    guess: np.ndarray,
    n_domains: int,
    *,
    differences: bool = False,
    repeats: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> np.ndarray:
    """Risk of Π̂ β* above that of Π β*, averaged over draws of the domains.

    Parameters
    ----------
    S : array of shape (d, d)
        Covariance of the latent means, which are Gaussian around zero.
    beta : array of shape (d,)
        β*.
    new : LatentDomain
        The domain on which the risk is taken.
    guess : array of shape (d, d)
        Adjustment of the new domain.
    n_domains : int
    differences : bool
        Project out only the differences of means, as an invariant predictor does: it asks for
        equal predictions at all means, and domain-adjusted regression for zero at each.
    repeats : int
    random_state : int or Generator, optional

    Returns
    -------
    array of shape (n_domains,)
        Entry E - 1 is for E domains.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentDomain, environment_risk
    >>> S, new = np.diag([4.0, 1.0, 0.0]), LatentDomain(np.diag([3.0, 3.0, 1.0]), np.zeros(3))
    >>> risk = environment_risk(S, np.ones(3), new, np.eye(3), 3, random_state=0)
    >>> bool(risk[0] > 1.0), bool(abs(risk[1]) < 1e-12)
    (True, True)
    """
    check_count("n_domains", n_domains, 1)
    check_count("repeats", repeats, 1)
    check_beta(beta, "the new domain", new)
    for name, matrix in (("S", S), ("guess", guess)):
        if matrix.shape != new.A.shape:
            raise ValueError(f"{name} has shape {matrix.shape}; pass one of shape {new.A.shape}")
    rng = np.random.default_rng(random_state)
    values, U = np.linalg.eigh(S)
    varies = values > _RTOL * values[-1]
    scale = np.sqrt(values[varies])
    span = U[:, varies]
    rank = len(scale)
    F = new.A.T @ guess.T
    total = np.zeros(rank + 1)
    best = latent_risk(F @ (beta - span @ (span.T @ beta)) - beta, new.b)
    for _ in range(repeats):
        # Domains come one after another, so that one QR holds the span of every first E of them.
        means = scale[:, None] * rng.standard_normal((rank, rank + 1))
        means = means[:, 1:] - means[:, :1] if differences else means[:, :-1]
        Q = span @ np.linalg.qr(means)[0]
        removed = np.cumsum(np.hstack([np.zeros((len(beta), 1)), Q * (beta @ Q)]), axis=1)
        total += latent_risk((beta[:, None] - removed).T @ F.T - beta, new.b) - best
    directions = np.minimum(np.arange(1, n_domains + 1) - int(differences), rank)
    return total[directions] / repeats


def expected_kept(eigenvalues: np.ndarray, E: int) -> np.ndarray:
    """The share of each eigendirection that Π̂ keeps after E domains, in expectation.

    ``κ/(λ + κ)``, with κ such that R - E directions are kept in all: exact for equal eigenvalues,
    else the deterministic equivalent of a random projection (Dereziński et al., 2020).
    The risk follows β* and the spectrum through it; neither r(S) nor ξ(S) appears. ``eigenvalues``
    are the positive ones.
    """
    rank = len(eigenvalues)
    if E <= 0 or rank <= E:
        return np.full(rank, float(E <= 0))

    def excess(log_kappa: float) -> float:
        return float((eigenvalues / (eigenvalues + np.exp(log_kappa))).sum() - E)

    # At κ = λ_min/(2R) more than R - 1/2 directions are covered, at κ = 2 tr less than 1/2.
    low = np.log(eigenvalues.min() / (2 * rank))
    high = np.log(2 * eigenvalues.sum())
    kappa = np.exp(optimize.brentq(excess, low, high))
    return kappa / (eigenvalues + kappa)
