"""The paper's formulas written naively, row by row, in float64: what the library must equal."""

from __future__ import annotations

import numpy as np
from sklearn.covariance import ledoit_wolf, oas


def second_moment(X: np.ndarray, *, centered: bool) -> np.ndarray:
    """1/n Σ (x - c)(x - c)ᵀ about the mean or the origin."""
    Z = X - X.mean(axis=0) if centered else X
    return sum(np.outer(z, z) for z in Z) / len(Z)


def inverse_root(S: np.ndarray) -> np.ndarray:
    """Symmetric inverse square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(S)
    return vectors @ np.diag(values**-0.5) @ vectors.T


def shrunk(S: np.ndarray, shrinkage: float, target: str) -> np.ndarray:
    """(1 - ρ) S + ρ times the identity, raw or with the trace of S."""
    scale = np.trace(S) / len(S) if target == "scaled" else 1.0
    return (1 - shrinkage) * S + shrinkage * scale * np.eye(len(S))


def adjustments(domains, *, shrinkage, target, centered) -> list[np.ndarray]:
    """Σ̂_e^{-1/2} of each domain's rows, shrunk as the options say.

    Towards the pool P it is C W̃ with C = P^{-1/2} and W̃ = ((1-ρ) C Σ̂_e C + ρ I)^{-1/2}; towards
    the diagonal D of Σ̂_e the same with D^{-1/2} in place of C.
    """
    moments = [second_moment(X, centered=centered) for X in domains]
    roots = []
    for X, S in zip(domains, moments, strict=True):
        rho, d = shrinkage, len(S)
        if shrinkage in ("ledoit-wolf", "oas"):
            estimate = ledoit_wolf if shrinkage == "ledoit-wolf" else oas
            rho = estimate(X, assume_centered=not centered)[1]
        goal = np.eye(d)
        if target == "scaled":
            goal = np.trace(S) / d * np.eye(d)
        elif target in ("pooled", "diagonal"):
            P = np.mean(moments, axis=0) if target == "pooled" else np.diag(np.diagonal(S))
            C = inverse_root(P)
            roots.append(C @ inverse_root((1 - rho) * C @ S @ C + rho * goal))
            continue
        roots.append(inverse_root((1 - rho) * S + rho * goal))
    return roots


def ridge(domains, l2, *, target, centered) -> float:
    """l2 on canonical weights: the common unit is the variance of all rows together."""
    if target == "identity":
        return l2
    own = [np.trace(second_moment(X, centered=centered)) / X.shape[1] for X in domains]
    return l2 * np.concatenate(domains).var(axis=0).mean() / np.mean(own)


def loss(task: str, f: np.ndarray, t) -> float:
    """ℓ of one row: f are its scores; t a class number, a row of probabilities, or a number."""
    if task == "regression":
        return 0.5 * float(f[0] - t) ** 2
    if task == "binary":
        f = np.array([0.0, f[0]])
    t = np.eye(len(f))[t] if np.ndim(t) == 0 else t
    return float(np.log(np.sum(np.exp(f))) - t @ f)


def uninformative(task: str):
    """What the prediction at every domain mean should be."""
    return {"classification": np.full(3, 1 / 3), "binary": np.full(2, 1 / 2), "regression": 0.0}[
        task
    ]


def lagrangian(task, domains, targets, roots, B, b, *, penalty, l2, centered_rows=False) -> float:
    """1/|E| Σ_e [1/n_e Σ_i ℓ(Bᵀ W_e x_i + b, y_i) + λ ℓ(Bᵀ W_e μ_e, 1/k)] + l2/2 ‖B‖²."""
    total = 0.0
    for X, y, W in zip(domains, targets, roots, strict=True):
        mean = X.mean(axis=0)
        origin = mean if centered_rows else 0 * mean
        rows = [loss(task, B.T @ (W.T @ (x - origin)) + b, t) for x, t in zip(X, y, strict=True)]
        total += np.mean(rows) + penalty * loss(task, B.T @ (W.T @ mean), uninformative(task))
    return total / len(domains) + 0.5 * l2 * np.sum(B**2)
