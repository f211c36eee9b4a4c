"""Training domains, a new one whose rows partly have labels, and heads fitted to the former."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import skdare

ADAPTATIONS = ("raw", "centered", "covariance", "mixture", "translation")


def rows_of_a_domain(n: int, seed: int, d: int = 12, offset: float = 1.0) -> np.ndarray:
    """Rows with a covariance and a mean of their own; variances span two decades."""
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.exp(0.6 * rng.normal(size=d))
    return rng.normal(size=(n, d)) @ A.T + offset * rng.normal(size=d)


@cache
def training(task: str = "classification", k: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of four domains, their targets and domains."""
    X = np.concatenate([rows_of_a_domain(80, seed) for seed in range(4)])
    rng = np.random.default_rng(5)
    F = X @ rng.normal(size=(X.shape[1], k)) + rng.gumbel(size=(len(X), k))
    y = F[:, 0] if task == "regression" else F.argmax(axis=1)
    return X, y, np.repeat(np.arange(4), 80)


@cache
def fitted(task: str = "classification", **options: Any) -> Any:
    """A DARE head; cached, as no test changes it."""
    kind = skdare.DARERegressor if task == "regression" else skdare.DAREClassifier
    X, y, domains = training(task)
    return kind(**options).fit(X, y, domains=domains)


@cache
def new_rows(task: str = "classification", n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a new domain, and their targets."""
    X = rows_of_a_domain(n, 9)
    rng = np.random.default_rng(5)
    beta = rng.normal(size=(X.shape[1], 3))
    F = X @ beta + np.random.default_rng(6).gumbel(size=(n, 3))
    return X, F[:, 0] if task == "regression" else F.argmax(axis=1)


def partly(y: np.ndarray, known: Any, missing: Any = None) -> np.ndarray:
    """The labels of some rows; the others have none."""
    labels = np.full(len(y), missing, dtype=object)
    labels[known] = y[known]
    return labels


def moved_domains(n: int = 60, domains: int = 6, k: int = 3, d: int = 5, seed: int = 0) -> Any:
    """Domains that are moved far apart, so that centring improves accuracy."""
    rng = np.random.default_rng(seed)
    places = 3.0 * np.random.default_rng(7).normal(size=(k, d))
    labels = np.repeat(np.arange(domains), n)
    y = rng.integers(k, size=len(labels))
    X = places[y] + 6.0 * rng.normal(size=(domains, d))[labels] + rng.normal(size=(len(y), d))
    return X, y, labels


def classes_of_domains(
    k: int, seed: int = 0, domains: int = 3, n: int = 240, d: int = 6, moved: Any = 0.0, shares=None
) -> Any:
    """Gaussian classes at the same places in every domain, or moved in all of them."""
    rng = np.random.default_rng(seed)
    places = 2.5 * np.random.default_rng(100).normal(size=(k, d)) / np.sqrt(d / 2) + moved
    y = rng.choice(k, size=domains * n, p=shares)
    return places[y] + rng.normal(size=(len(y), d)), y, np.repeat(np.arange(domains), n)
