"""What is done to features before any head: impute, standardise, clip, project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdare._validation import InputError, check_choice, check_number
from skdare.arrays import RowReader, chunks, rounding_unit, work_dtype
from skdare.datasets._lazy_rows import transformed

PROJECTIONS = ("random", "pca")
Steps = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Preparation:
    """Steps that are fitted to training rows alone, and applied to all rows.

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

    def fit(self, X: Any) -> Steps:
        """The steps, fitted to these rows; those on disk are read in chunks.

        Medians need all rows in memory: rows on disk cannot be imputed.
        """
        steps = self.steps()
        on_disk = isinstance(X, RowReader)
        if not on_disk:
            X = np.asarray(X, dtype=work_dtype(X))
        for _, step in steps:
            if not on_disk:
                step.fit(X)
            elif isinstance(step, StandardScaler):
                for _, chunk in chunks(X, slice(0, len(X))):
                    step.partial_fit(chunk)
            else:
                step.fit(X[:1])
            if isinstance(step, StandardScaler):
                _keep_constant_features(step, X)
            if not on_disk:
                X = step.transform(X)
        return steps

    def steps(self) -> Steps:
        """Unfitted scikit-learn transformers, each with its name."""
        steps: list[tuple[str, Any]] = []
        if self.impute is not None:
            # A feature without any value is filled with zero, so that columns stay in place.
            steps.append(("impute", SimpleImputer(strategy="median", keep_empty_features=True)))
        if self.standardize:
            steps.append(("standardize", StandardScaler()))
        if self.clip is not None:
            limits = {"a_min": -self.clip, "a_max": self.clip}
            steps.append(("clip", FunctionTransformer(np.clip, kw_args=limits)))
        return steps

    def __call__(self, X: np.ndarray, train: np.ndarray) -> np.ndarray:
        """All rows, prepared by the training ones."""
        return transformed(self.fit(X[train]), X) if self.is_fitted else X


class PreparationStep(TransformerMixin, BaseEstimator):
    """A preparation as a transformer of scikit-learn, which heads clone and fit."""

    def __init__(self, preparation: Preparation) -> None:
        self.preparation = preparation

    def fit(self, X: Any, y: Any = None) -> PreparationStep:
        """Fit its steps to rows in memory."""
        self.steps_ = self.preparation.fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Rows after the steps."""
        return transformed(self.steps_, X)


def _keep_constant_features(scaler: StandardScaler, X: Any) -> None:
    """Let a fitted scaler divide by one what varies by no more than the rounding of X's dtype.

    Divided by its standard deviation, such a feature would become noise.
    """
    constant = np.sqrt(scaler.var_) <= rounding_unit(X) * np.abs(scaler.mean_)
    scaler.scale_[constant] = 1.0


@dataclass(frozen=True)
class Projection:
    """Features replaced by fewer: a random projection, or the leading principal components."""

    kind: str
    size: int


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
