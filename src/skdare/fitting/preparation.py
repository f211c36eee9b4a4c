"""Preparation of rows before a head, fitted only to the rows that the head is trained on.

A scaler that was fitted to all domains has seen the one that is held out: if only that domain has
large scales, it hides the very shift that is to be measured.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin, VarianceThreshold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_array, check_is_fitted

from skdare.arrays import Array, Index, is_foreign
from skdare.errors import InputError

# Numbers of the rows that scales are known well enough from; and medians, if nothing is missing.
_CELLS = 1 << 26
_MEDIAN_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Preparation:
    """A transformer of scikit-learn, not fitted, and the rows of all domains before it."""

    transformer: Any
    rows: Any

    @classmethod
    def of(cls, preparation: Any, X: Any, *, standardizes: bool = True) -> Self:
        """As a head is given it; "auto" standardises unless the head knows scales by itself."""
        X = X if hasattr(X, "shape") else np.asarray(X)
        if len(X.shape) != 2:
            raise InputError(f"Expected 2D array, got shape {tuple(X.shape)}", "pass rows of X")
        if preparation == "auto":
            auto = AutoPreparation(standardizes=standardizes)
            return cls(auto, X.to_numpy() if hasattr(X, "columns") else X)
        return cls(preparation, X)

    def fitted_to(self, index: Sequence[Index], without: str = "") -> tuple[Any, Array]:
        """The transformer, fitted to the indexed rows, and all rows after it."""
        rows = self.rows.tocsr() if sparse.issparse(self.rows) else self.rows
        everyone = np.arange(rows.shape[0])
        chosen = np.sort(np.concatenate([everyone[i] for i in index]))
        if isinstance(self.transformer, AutoPreparation):  # its errors are about the rows
            some = chosen[:: 1 + len(chosen) * rows.shape[1] // _CELLS]
            fitted = clone(self.transformer).fit(_safe_indexing(rows, some))
            if isinstance(rows, np.memmap):
                fitted.centre_ = fitted.scale_ = None
            return fitted, fitted.transform(rows)
        try:
            fitted = clone(self.transformer).fit(_safe_indexing(rows, chosen))
            prepared = fitted.transform(rows)
        except Exception as error:
            raise InputError(f"preparation{without} failed: {error}") from error
        if prepared.shape[0] != len(everyone):
            raise InputError(
                f"preparation gave {prepared.shape[0]} rows of {len(everyone)}",
                "use steps that keep every row",
            )
        return fitted, prepared


class AutoPreparation(TransformerMixin, BaseEstimator):
    """Fill missing values by medians, and standardise.

    Medians are learnt even if nothing is missing, as new rows may have empty cells where no
    training row has any. Rows that need neither are passed on unchanged, not copied; so are sparse
    ones and those of other array libraries, and memory-mapped ones are not standardised.
    """

    def __init__(self, *, standardizes: bool = True) -> None:
        self.standardizes = standardizes

    def fit(self, X: Any, y: Any = None) -> Self:
        self.fill_ = self.centre_ = self.scale_ = None
        self.has_filled_ = False
        self.n_features_in_ = np.shape(X)[1] if np.ndim(X) == 2 else 0
        if sparse.issparse(X) or (is_foreign(X) and not hasattr(X, "columns")):
            return self
        floats = [np.float64, np.float32, np.float16]
        X = check_array(X, dtype=floats, ensure_all_finite="allow-nan")
        missing = np.isnan(X)
        self.has_filled_ = bool(missing.any())
        if self.has_filled_:
            empty = missing.all(axis=0)
            self.fill_ = np.where(empty, 0.0, np.nanmedian(np.where(empty, 0.0, X), axis=0))
            X = np.where(missing, self.fill_, X)
        else:
            some = X[:: 1 + X.size // _MEDIAN_CELLS]
            self.fill_ = np.median(some, axis=0).astype(np.float64)
        if self.standardizes:
            scales = X.std(axis=0, dtype=np.float64)
            varying = scales > np.finfo(X.dtype).eps * np.abs(X).max(axis=0)
            self.centre_ = X.mean(axis=0, dtype=np.float64)
            self.scale_ = np.where(varying, scales, 1.0)
        return self

    def transform(self, X: Any) -> Any:
        check_is_fitted(self, "n_features_in_")
        if hasattr(X, "columns"):
            X = X.to_numpy()
        if self.centre_ is None and not (self.fill_ is not None and _has_missing(X)):
            return X
        # The head refuses infinity, and names the feature.
        X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False)
        if X.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        if self.fill_ is not None:
            X = np.where(np.isnan(X), self.fill_.astype(X.dtype), X)
        if self.centre_ is not None:
            X = ((X - self.centre_) / self.scale_).astype(X.dtype)
        return X


def _has_missing(X: Any) -> bool:
    """Whether there is a NaN, found without a copy; rows outside memory are not filled."""
    if not isinstance(X, np.ndarray):
        return isinstance(X, list | tuple)
    return X.dtype.kind == "O" or bool(X.dtype.kind == "f" and X.size and np.isnan(X.min()))


def check_preparation(preparation: Any) -> None:
    """Refuse what does not transform, and steps that look at targets."""
    if preparation is None or preparation == "auto":
        return
    if isinstance(preparation, str | type) or not hasattr(preparation, "transform"):
        raise InputError(
            f"preparation is {preparation!r}",
            "pass 'auto', a transformer of scikit-learn such as StandardScaler(), or a Pipeline "
            "of them",
        )
    for step in _steps_of(preparation):
        y = inspect.signature(step.fit).parameters.get("y")
        needs = y is not None and y.default is inspect.Parameter.empty
        # Selectors look at y, but for one, and not all of their tags say so.
        selects = isinstance(step, SelectorMixin) and not isinstance(step, VarianceThreshold)
        if needs or selects or get_tags(step).target_tags.required:
            raise InputError(
                f"preparation has a {type(step).__name__}, which looks at y, and rows of a new "
                "domain have none",
                "use steps that only look at X, or do this one beforehand",
            )


def _steps_of(transformer: Any) -> Iterator[Any]:
    """The transformers within one, however they are put together."""
    if isinstance(transformer, Pipeline):
        inside = [step for _, step in transformer.steps]
    elif isinstance(transformer, FeatureUnion):
        inside = [step for _, step in transformer.transformer_list]
    elif isinstance(transformer, ColumnTransformer):
        inside = [step for _, step, _ in transformer.transformers]
    else:
        yield transformer
        return
    for step in inside:
        if step is not None and not isinstance(step, str):
            yield from _steps_of(step)
