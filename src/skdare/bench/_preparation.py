"""What is done to features before any head: fill, standardise, project; by training rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare._validation import InputError, check_choice, check_number
from skdare.arrays import rounding_unit

PROJECTIONS = ("random", "pca")


@dataclass(frozen=True)
class Projection:
    """Features replaced by fewer: a random projection, or the leading principal components."""

    kind: str
    size: int


@dataclass(frozen=True)
class Preparation:
    """What is fitted on training rows and applied to all: nothing of it sees a held-out row.

    Parameters
    ----------
    impute : "median" or None
        Fill missing values by the training rows' median.
    standardize : bool
        Subtract the training rows' mean and divide by their standard deviation.
    clip : float, optional
        Then limit every value to this many standard deviations.
    """

    impute: str | None = None
    standardize: bool = False
    clip: float | None = None

    def __post_init__(self) -> None:
        check_choice("impute", self.impute, ("median", None))
        check_choice("standardize", self.standardize, (True, False))
        check_number("clip", self.clip, also=(None,))
        if self.clip is not None and not self.standardize:
            raise InputError(
                "clip counts standard deviations",
                "it needs standardize=True",
                argument="clip",
            )

    @property
    def is_fitted(self) -> bool:
        """Whether it depends on which rows are trained on."""
        return self.impute is not None or self.standardize

    def __call__(self, X: np.ndarray, train: np.ndarray) -> np.ndarray:
        """All rows, prepared by the training ones."""
        if not self.is_fitted:
            return X
        X = np.array(X, dtype=X.dtype if X.dtype == np.float64 else np.float32)
        if self.impute is not None:
            X = np.where(np.isnan(X), _medians(X[train]), X)
        if self.standardize:
            known = X[train]
            mean = known.mean(axis=0, dtype=np.float64)
            spread = known.std(axis=0, dtype=np.float64)
            # What varies by no more than rounding is constant, and would become noise.
            still = spread <= rounding_unit(X) * np.abs(mean)
            spread[still | (known.min(axis=0) == known.max(axis=0))] = 1.0
            X = ((X - mean) / spread).astype(X.dtype)
        return X if self.clip is None else np.clip(X, -self.clip, self.clip)


def _medians(X: np.ndarray) -> np.ndarray:
    """Median of each feature; zero for one that the training rows never have."""
    known = ~np.isnan(X).all(axis=0)
    medians = np.zeros(X.shape[1], dtype=X.dtype)
    medians[known] = np.nanmedian(X[:, known], axis=0)
    return medians


def project(
    X: np.ndarray, projection: Projection | None, train: np.ndarray, seed: int
) -> np.ndarray:
    """Rows in fewer features; principal components are those of the training rows."""
    if projection is None or projection.size >= X.shape[1]:
        return X
    dtype = X.dtype if X.dtype == np.float64 else np.float32
    if projection.kind == "random":
        rng = np.random.default_rng([seed, projection.size])
        P = rng.normal(size=(X.shape[1], projection.size)) / np.sqrt(projection.size)
        return X.astype(dtype) @ P.astype(dtype)
    mean = X[train].mean(axis=0, dtype=np.float64).astype(dtype)
    Z = X.astype(dtype) - mean
    _, V = np.linalg.eigh((Z[train].T @ Z[train]).astype(np.float64))
    return Z @ V[:, ::-1][:, : projection.size].astype(dtype)
