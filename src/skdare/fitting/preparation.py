"""What is done to features before a head sees them, fitted to the rows it is trained on alone.

A scaler that was fitted to all training domains has seen the one that is left out: where that
domain alone has large scales, it hides the very shift that is to be rehearsed. So whatever leaves
domains out fits its preparation anew to the others.

Notation: X (n, d) rows, m (d,) mean, s (d,) scale of each feature, V (k, d) weights.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags

from skdare._validation import InputError, check_features
from skdare.arrays import Array, Index, RowReader, is_foreign, is_sparse, like
from skdare.arrays.passes import SpreadRows
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics

# They select by y, and their tags and signatures do not say so.
_SELECTORS = (
    *(GenericUnivariateSelect, SelectFdr, SelectFpr, SelectFromModel, SelectFwe),
    *(SelectKBest, SelectPercentile, SequentialFeatureSelector),
)


@dataclass(frozen=True, eq=False)
class Standardization:
    """Features less their mean, over their standard deviation; a constant one is not divided.

    Parameters
    ----------
    mean, scale : arrays of shape (d,)
    """

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(
        cls, statistics: ProblemStatistics, chosen: Sequence[int], *, center: bool = True
    ) -> Standardization:
        """That of all rows of the chosen domains; sparse rows keep their zeros, and their mean."""
        mean = statistics.row_mean(chosen)
        scale = statistics.variances(chosen) ** 0.5
        if is_sparse(statistics.problem.X) or not center:
            mean = np.zeros_like(mean)
        return cls(mean, np.where(scale > 0, scale, 1.0))

    def rows(self, X: Array) -> Array:
        """X, standardised; rows on disk as they are read."""
        if isinstance(X, SpreadRows):
            raise InputError(
                "standardize is True, and the rows lie with workers",
                "standardise them there, or use engine='local'",
                argument="standardize",
            )
        if isinstance(X, RowReader | np.memmap):
            return _StandardizedRows(X, self)
        return self.in_memory(X)

    def in_memory(self, X: Array) -> Array:
        """Rows in memory, standardised."""
        if sparse.issparse(X) and self.mean.any():
            X = X.toarray()  # of a head that was fitted to dense rows, whose zeros do not stay
        if sparse.issparse(X):
            X = X.astype(like(self.scale, X).dtype)
            X.data /= self.scale.astype(X.dtype)[X.indices]
            return X
        return (like(X, X) - like(self.mean, X)) / like(self.scale, X)

    def on_features(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        """Weights on the features themselves that score as these do on standardised ones."""
        coef = coef / self.scale
        return coef, intercept - coef @ self.mean

    def on_standardized(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        """Weights on standardised features that score as these do on the features themselves."""
        return coef * self.scale, intercept + coef @ self.mean


class _StandardizedRows(RowReader):
    """Rows on disk that are standardised as they are read."""

    def __init__(self, X: RowReader | np.memmap, standardization: Standardization) -> None:
        self.source = X
        self.standardization = standardization
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.is_sparse = is_sparse(X)
        self.dtype = like(standardization.scale, X).dtype

    def ascending(self, index: Index) -> Array:
        """Some rows in ascending order, standardised."""
        source = self.source
        rows = source.ascending(index) if isinstance(source, RowReader) else source[index]
        return self.standardization.in_memory(rows)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows that were prepared, and what prepares others in the same way.

    Parameters
    ----------
    X : array of shape (n, d)
    transformer : fitted transformer, optional
    standardization : Standardization, optional
    """

    X: Array
    transformer: Any = None
    standardization: Standardization | None = None


@dataclass(frozen=True, eq=False)
class RowPreparation:
    """How the rows of a problem are prepared, by whatever domains.

    Parameters
    ----------
    problem : Problem
        Its rows as they were given: only a transformer may see what is not a checked array.
    transformer : unfitted transformer, optional
    standardize : bool
        Whether features are divided by their standard deviation, after the transformer if any.
    center : bool
        Whether their mean is subtracted before. A head without an intercept would have one then.
    """

    problem: Problem
    transformer: Any = None
    standardize: bool = False
    _fitted: dict[tuple[int, ...], Any] = field(default_factory=dict, init=False, repr=False)
    center: bool = True

    def fitted_to(self, chosen: Sequence[int], estimator: Any = None) -> Prepared:
        """All rows, prepared by those of the chosen domains.

        ``estimator`` is told the number and the names of the features, as scikit-learn's are.
        """
        if self.transformer is None:
            if not self.standardize:
                return Prepared(self.problem.X)
            standardization = self._standardization(self._statistics, chosen)
            return Prepared(standardization.rows(self.problem.X), None, standardization)
        transformer, Z = self._transformed(chosen)
        X = check_features(estimator or BaseEstimator(), Z, reset=True, min_rows=2)
        if not self.standardize:
            return Prepared(X, transformer)
        statistics = ProblemStatistics(replace(self.problem, X=X))
        standardization = self._standardization(statistics, chosen)
        return Prepared(standardization.rows(X), transformer, standardization)

    def _standardization(
        self, statistics: ProblemStatistics, chosen: Sequence[int]
    ) -> Standardization:
        return Standardization.of(statistics, chosen, center=self.center)

    @cached_property
    def _statistics(self) -> ProblemStatistics:
        return ProblemStatistics(self.problem)

    def _transformed(self, chosen: Sequence[int]) -> tuple[Any, Any]:
        X = self.problem.X
        everyone = np.arange(len(self.problem.T))
        numbers = np.sort(np.concatenate([everyone[self.problem.index[e]] for e in chosen]))
        try:
            if tuple(chosen) not in self._fitted:  # a random one would differ the next time
                # Also where these are all rows: fit_transform may do otherwise than transform.
                rows = _safe_indexing(X, numbers)
                self._fitted[tuple(chosen)] = clone(self.transformer).fit(rows)
            transformer = self._fitted[tuple(chosen)]
            Z = transformer.transform(X)
        except Exception as error:
            left_out = set(range(len(self.problem.index))) - set(chosen)
            names = ", ".join(repr(self.problem.labels[e]) for e in sorted(left_out))
            where = f", fitted without domain {names}," if left_out else ""
            raise InputError(
                f"preparation{where} failed: {type(error).__name__}: {error}",
                argument="preparation",
            ) from error
        if np.shape(Z)[0] != len(everyone):
            raise InputError(
                f"preparation gave {np.shape(Z)[0]} rows of {len(everyone)}",
                "use steps that keep every row",
                argument="preparation",
            )
        return transformer, Z


def check_preparation(preparation: Any, argument: str = "preparation") -> None:
    """Refuse what does not transform, and steps that look at targets."""
    if preparation is None:
        return
    if isinstance(preparation, type) or not all(
        hasattr(preparation, name) for name in ("fit", "transform")
    ):
        raise InputError(
            f"{argument} is {preparation!r}",
            "pass a transformer of scikit-learn, such as StandardScaler(), or a Pipeline of them",
            argument=argument,
        )
    for step in _steps_of(preparation):
        if _looks_at_targets(step):
            raise InputError(
                f"{argument} has a {type(step).__name__}, which looks at y: rows of a new domain "
                "have none, and what it picks would be judged on labels it has seen",
                "use steps that look at X alone, or do this one beforehand",
                argument=argument,
            )


def check_in_memory(X: Any) -> None:
    """Refuse rows that a transformer of scikit-learn cannot take."""
    if isinstance(X, RowReader) or is_foreign(X):
        raise InputError(
            f"preparation is given a {type(X).__name__}, and transforms NumPy arrays, sparse "
            "matrices and data frames",
            "pass X as one of these, or prepare it beforehand",
            argument="preparation",
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


def _looks_at_targets(step: Any) -> bool:
    if isinstance(step, _SELECTORS):
        return True
    y = inspect.signature(step.fit).parameters.get("y")
    if y is not None and y.default is inspect.Parameter.empty:
        return True
    return isinstance(step, BaseEstimator) and bool(get_tags(step).target_tags.required)
