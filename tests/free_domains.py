"""Domains that share no eigenvectors, which `make_latent_domains` drew in earlier versions."""

from __future__ import annotations

import numpy as np

from skdare.datasets import DomainData


def free_domains(n_domains=4, n_rows=300, n_features=8, *, task="classification", seed=0):
    """``x = A_e (ε₀ + b_e)`` with a symmetric ``A_e`` of every domain's own."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=n_features) * 2.0
    span = np.linalg.qr(rng.normal(size=(n_features, 2)))[0]
    X, y, domains = [], [], []
    for domain in range(n_domains):
        U = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
        A = (U * np.exp(rng.uniform(-1, 1, n_features))) @ U.T
        b = (span @ rng.normal(size=2)) * 1.5
        latent = rng.normal(size=(n_rows, n_features)) + b
        score = latent @ beta
        if task == "classification":
            y.append((score + rng.logistic(size=n_rows) > 0).astype(int))
        else:
            y.append(score + 0.1 * rng.normal(size=n_rows))
        X.append(latent @ A)
        domains.append(np.full(n_rows, domain))
    return DomainData(np.concatenate(X), np.concatenate(y), np.concatenate(domains))
