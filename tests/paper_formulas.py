"""The paper's formulas written naively, row by row, in float64: what the heads must equal."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression


def second_moment(X: np.ndarray, *, centered: bool) -> np.ndarray:
    """1/n Σ (x - c)(x - c)ᵀ about the mean or the origin."""
    Z = X - X.mean(axis=0) if centered else X
    return sum(np.outer(z, z) for z in Z) / len(Z)


def inverse_root(S: np.ndarray) -> np.ndarray:
    """Symmetric inverse square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(S)
    return vectors @ np.diag(values**-0.5) @ vectors.T


def adjustments(
    domains: list[np.ndarray], *, shrinkage: float, shrinkage_target: str, centered: bool
) -> list[np.ndarray]:
    """((1-ρ) Σ_e + ρ T)^{-1/2} with T = I or (tr Σ_e / d) I.

    Towards the diagonal D of Σ_e it is C ((1-ρ) C Σ_e C + ρ I)^{-1/2} with C = D^{-1/2}, where the
    average of the domains' diagonals counts as one row of each.
    """
    roots = []
    moments = [second_moment(X, centered=centered) for X in domains]
    usual = np.median([np.diagonal(S) for S in moments], axis=0)
    for X, S in zip(domains, moments, strict=True):
        n, d = X.shape
        C = np.eye(d)
        if shrinkage_target == "diagonal":
            C = np.diag(((n * np.diagonal(S) + usual) / (n + 1)) ** -0.5)
        goal = np.trace(S) / d if shrinkage_target == "scaled" else 1.0
        roots.append(C @ inverse_root((1 - shrinkage) * C @ S @ C + shrinkage * goal * np.eye(d)))
    return roots


def ridge(domains: list[np.ndarray], l2: float, *, shrinkage_target: str, centered: bool) -> float:
    """l2 on canonical weights, in the unit of the features where the target has one.

    That is the variance of all rows together.
    """
    if shrinkage_target != "scaled":
        return l2
    own = [np.trace(second_moment(X, centered=centered)) / X.shape[1] for X in domains]
    return l2 * np.concatenate(domains).var(axis=0).mean() / np.mean(own)


def loss(task: str, f: np.ndarray, t: float) -> float:
    """ℓ of one row: f are its scores; t a class number, a row of probabilities, or a number."""
    if task == "regression":
        return 0.5 * float(f[0] - t) ** 2
    if task == "binary":
        f = np.array([0.0, f[0]])
    t = np.eye(len(f))[t] if np.ndim(t) == 0 else t
    return float(np.log(np.sum(np.exp(f))) - t @ f)


def uninformative(task: str) -> np.ndarray | float:
    """What the prediction at every domain mean should be."""
    if task == "regression":
        return 0.0
    k = 2 if task == "binary" else 3
    return np.full(k, 1 / k)


def lagrangian(
    task: str, domains, targets, roots, B, b, *, penalty: float, l2: float, centered_rows: bool
) -> float:
    """1/|E| Σ_e [1/n_e Σ_i ℓ(Bᵀ W_e x_i + b, y_i) + λ ℓ(Bᵀ W_e μ_e, 1/k)] + l2/2 ‖B‖²."""
    total = 0.0
    for X, y, W in zip(domains, targets, roots, strict=True):
        mean = X.mean(axis=0)
        origin = mean if centered_rows else 0 * mean
        rows = [loss(task, B.T @ (W.T @ (x - origin)) + b, t) for x, t in zip(X, y, strict=True)]
        total += np.mean(rows) + penalty * loss(task, B.T @ (W.T @ mean), uninformative(task))
    return total / len(domains) + 0.5 * l2 * np.sum(B**2)


def logistic_regression(rows, targets, weight, l2: float, *, intercept: bool):
    """scikit-learn's minimum of Σ w_i ℓ_i + l2/2 ‖B‖², as weights (k, d) and intercept (k,)."""
    model = LogisticRegression(C=1.0 / l2, fit_intercept=intercept, tol=1e-12, max_iter=10_000)
    model.fit(rows, targets, sample_weight=weight)
    return model.coef_, model.intercept_
