"""Rows of a few domains, heads fitted to them, and comparisons of the heads."""

from __future__ import annotations

from functools import cache

import numpy as np

from skdare import DAREClassifier

FORMS = ["raw", "centered", "covariance"]


def rows_of_a_domain(n, seed, d=24, offset=1.0):
    """Rows with a covariance and a mean of their own; variances span two decades."""
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.exp(0.6 * rng.normal(size=d))
    return rng.normal(size=(n, d)) @ A.T + offset * rng.normal(size=d)


@cache
def fit(**options):
    """A head for four classes, fitted to three domains of 24 features; cached."""
    X = np.concatenate([rows_of_a_domain(150, seed) for seed in range(3)])
    rng = np.random.default_rng(5)
    scores = X @ rng.normal(size=(X.shape[1], 4)) + rng.gumbel(size=(len(X), 4))
    return DAREClassifier(**options).fit(
        X, scores.argmax(axis=1), domains=np.repeat([0, 1, 2], 150)
    )


def assert_same_bits(head, expected):
    np.testing.assert_array_equal(head.coef_, expected.coef_)
    np.testing.assert_array_equal(head.intercept_, expected.intercept_)
