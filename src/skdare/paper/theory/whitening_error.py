"""How far a whitener from n rows is from the true one: the lemmas behind theorem 4.

Notation: Σ, S (d, d) a covariance and Σ̂ its sample version, C = Σ^{-1/2} Σ̂ Σ^{-1/2} (…, d, d) that
of the latents, n rows, κ = λ_max/λ_min, ∘ the entrywise product.
"""

from __future__ import annotations

import math

import numpy as np

from skdare.checks import check_choice
from skdare.paper.theory.matrices import symmetric_power

FORMS = ("printed", "repaired", "free")


def latent_covariances(d: int, n: float, repeats: int, rng: np.random.Generator) -> np.ndarray:
    """Centred sample covariances of n latents (with 1/n), by Bartlett's decomposition.

    An array (repeats, d, d); infinitely many rows give the identity, once.
    """
    if math.isinf(n):
        return np.eye(d)[None]
    if n <= d:
        raise ValueError(f"{n:g} rows give no full covariance of {d} features; {d + 1} are needed")
    L = np.tril(rng.standard_normal((repeats, d, d)), -1)
    at = np.arange(d)
    L[:, at, at] = np.sqrt(rng.chisquare(n - 1 - at, (repeats, d)))
    return L @ np.swapaxes(L, 1, 2) / n


def whitening_error(S: np.ndarray, C: np.ndarray) -> np.ndarray:
    """``Σ^{1/2} Σ̂^{-1/2} - I`` for each sample covariance C of the latents."""
    A = symmetric_power(S, 0.5)
    return A @ symmetric_power(A @ C @ A, -0.5) - np.eye(len(S))


def whitening_error_bound(C: np.ndarray) -> np.ndarray:
    """A bound on ‖Σ^{1/2} Σ̂^{-1/2} - I‖_F that holds for every Σ: ‖C^{-1/2} - I‖_F + ½‖log C‖_F.

    C = Σ^{-1/2} Σ̂ Σ^{-1/2} has a law without Σ in it, so that no condition number is needed. By
    the polar decomposition C^{1/2} Σ^{1/2} = Q Σ̂^{1/2}, the matrix in question is C^{-1/2} Q.
    Along the path C^s the factor Q turns at the rate Ω, in the eigenbasis of the other factor
    with eigenvalues p, ``Ω_ij = G_ij (p_j - p_i)/(p_j + p_i)``, G similar to ½ log C by an
    orthogonal matrix: ‖Ω‖_F ≤ ½‖log C‖_F, and so is ‖Q - I‖_F.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import whitening_error_bound
    >>> float(whitening_error_bound(np.eye(3)))
    0.0
    """
    values = np.linalg.eigvalsh(C)
    stretch = np.sqrt(((values**-0.5 - 1.0) ** 2).sum(axis=-1))
    return stretch + 0.5 * np.sqrt((np.log(values) ** 2).sum(axis=-1))


def whitening_spread(S: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """n times the covariance of (Σ^{1/2} Σ̂^{-1/2} - I) β, to first order; also of its inverse.

    Write Σ̂ = Σ^{1/2} (I + H) Σ^{1/2}; H has variances 1/n off the diagonal and 2/n on it. In the
    eigenbasis of Σ, with t the roots of its eigenvalues, the divided differences of the inverse
    root give the error as -K∘H with ``K_ij = t_i/(t_i + t_j)``. K lies between 0 and 1 whatever
    the condition number: at most four times the trace at Σ = I, which is (d + 1)/4 ‖β‖².
    """
    values, U = np.linalg.eigh(S)
    t = np.sqrt(values)
    c = U.T @ beta
    K = t[:, None] / (t[:, None] + t)
    C = np.diag((K**2) @ c**2) + K * K.T * np.outer(c, c)
    return U @ C @ U.T


def condition_m(S: np.ndarray, form: str = "printed") -> float:
    """The theorem's m(Σ), or one of two numbers that can stand in its place.

    "printed" is λ_max/λ_min³, which depends on the units of x. "repaired" is κ²: the lemma's proof
    with the divided differences taken at the eigenvalues of Σ⁻¹, where it differentiates. "free"
    is 1: see `whitening_error_bound`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import condition_m
    >>> condition_m(np.diag([4.0, 2.0])), condition_m(np.diag([4.0, 2.0]), "repaired")
    (0.5, 4.0)
    """
    check_choice("form", form, FORMS)
    low, high = np.linalg.eigvalsh(S)[[0, -1]]
    return float({"printed": high / low**3, "repaired": (high / low) ** 2, "free": 1.0}[form])


def eigen_root_risk(
    values: np.ndarray, beta: np.ndarray, n: int, repeats: int, rng: np.random.Generator
) -> float:
    """Mean risk with the paper's other root, A = U S from the eigendecomposition of Σ̂.

    Eigenvectors are ordered by eigenvalue and their signs are set to the true ones, which nobody
    knows; ``values`` are Σ's eigenvalues, in falling order, and U = I.
    """
    A = np.diag(np.sqrt(values))
    C = latent_covariances(len(beta), n, repeats, rng)
    rising, U = np.linalg.eigh(A @ C @ A)
    U = U[:, :, ::-1]
    U = U * np.where(np.diagonal(U, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, None, :]
    V = A @ (U / np.sqrt(rising[:, ::-1])[:, None, :]) @ beta - beta
    return float((V**2).sum(axis=1).mean())
