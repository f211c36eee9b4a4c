"""Steps of a preparation that files and graphs can hold: fill, scale, clip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skdare.errors import InputError
from skdare.fitting.preparation import AutoPreparation

_KNOWN = "preparation='auto', SimpleImputer, StandardScaler and FunctionTransformer(np.clip)"


@dataclass(frozen=True, eq=False)
class Filled:
    """NaN becomes a value of its own for each feature: a SimpleImputer."""

    values: Annotated[np.ndarray, "d"]
    strategy: Literal["mean", "median"]
    names: list[str] | None

    @classmethod
    def of(cls, step: SimpleImputer) -> Filled:
        is_nan = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
        fills = step.strategy in ("mean", "median") and is_nan and not step.add_indicator
        values = np.asarray(step.statistics_, dtype=np.float64) if fills else np.array([np.nan])
        if step.keep_empty_features:  # an empty feature is filled with zero
            values = np.nan_to_num(values)
        if np.isnan(values).any():
            raise InputError(
                "the SimpleImputer of this head does more than fill NaN by means or medians, or "
                "drops features without values",
                "use keep_empty_features=True, or do that step beforehand",
            )
        return cls(values, step.strategy, _names_of(step))

    def transformer(self) -> SimpleImputer:
        # Fitted to one row of the values to fill in, which are then its means and its medians.
        step = SimpleImputer(strategy=self.strategy, keep_empty_features=True)
        return _named(step.fit(self.values[None, :]), self.names)


@dataclass(frozen=True, eq=False)
class Scaled:
    """Less the means, over the scales: a StandardScaler."""

    mean: Annotated[np.ndarray, "d"]
    scale: Annotated[np.ndarray, "d"]
    var: Annotated[np.ndarray, "d"]
    n: Annotated[np.ndarray, "s"]  # rows seen, of all or of each feature
    with_mean: bool
    with_std: bool
    names: list[str] | None

    @classmethod
    def of(cls, step: StandardScaler) -> Scaled:
        d = step.n_features_in_
        mean = step.mean_ if step.with_mean else np.zeros(d)
        scale = step.scale_ if step.with_std else np.ones(d)
        var = step.var_ if step.var_ is not None else np.ones(d)
        n = np.atleast_1d(step.n_samples_seen_).astype(np.float64)
        return cls(mean, scale, var, n, step.with_mean, step.with_std, _names_of(step))

    def transformer(self) -> StandardScaler:
        step = StandardScaler(with_mean=self.with_mean, with_std=self.with_std)
        step.mean_ = self.mean
        step.scale_ = self.scale if self.with_std else None
        step.var_ = self.var if self.with_std else None
        step.n_samples_seen_ = int(self.n[0]) if len(self.n) == 1 else self.n.astype(np.int64)
        step.n_features_in_ = len(self.mean)
        return _named(step, self.names)


@dataclass(frozen=True)
class Clipped:
    """Between two limits: a FunctionTransformer of np.clip."""

    features: int
    low: float | None
    high: float | None

    @classmethod
    def of(cls, step: FunctionTransformer) -> Clipped:
        limits = dict(step.kw_args or {})
        low = limits.pop("a_min", limits.pop("min", None))
        high = limits.pop("a_max", limits.pop("max", None))
        if step.func is not np.clip or step.inverse_func is not None or limits:
            raise InputError(
                "the FunctionTransformer of this head is not np.clip between two limits",
                "do that step beforehand",
            )
        low, high = (None if limit is None else float(limit) for limit in (low, high))
        return cls(int(step.n_features_in_), low, high)

    def transformer(self) -> FunctionTransformer:
        limits = {"a_min": self.low, "a_max": self.high}
        step = FunctionTransformer(np.clip, kw_args=limits, feature_names_out="one-to-one")
        step.n_features_in_ = self.features
        return step


@dataclass(frozen=True, eq=False)
class Automatic:
    """Filled and scaled as far as the rows needed it: preparation="auto"."""

    features: int
    has_filled: bool  # whether a training row had an empty cell
    fill: Annotated[np.ndarray, "d"] | None
    centre: Annotated[np.ndarray, "d"] | None
    scale: Annotated[np.ndarray, "d"] | None

    @classmethod
    def of(cls, step: AutoPreparation) -> Automatic:
        fill, centre, scale = (
            None if part is None else np.asarray(part, np.float64)
            for part in (step.fill_, step.centre_, step.scale_)
        )
        return cls(int(step.n_features_in_), step.has_filled_, fill, centre, scale)

    def transformer(self) -> AutoPreparation:
        step = AutoPreparation()
        step.n_features_in_ = self.features
        step.has_filled_ = self.has_filled
        step.fill_ = self.fill
        step.centre_ = self.centre
        step.scale_ = self.scale
        return step


Step = Filled | Scaled | Clipped | Automatic

_STEPS: dict[type, Any] = {
    SimpleImputer: Filled,
    StandardScaler: Scaled,
    FunctionTransformer: Clipped,
    AutoPreparation: Automatic,
}
STEP_NAMES = {kind.__name__: step.__name__ for step, kind in _STEPS.items()}
"""What users call each step."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of a pipeline, in order, or a single one."""

    steps: list[Step]
    names: list[str] | None  # None: a single one

    @classmethod
    def of(cls, transformer: Any) -> Steps:
        """The steps of a fitted transformer."""
        if not isinstance(transformer, Pipeline):
            return cls([_step(transformer)], None)
        named = [(name, step) for name, step in transformer.steps if not _is_nothing(step)]
        return cls([_step(step) for _, step in named], [name for name, _ in named])

    def transformer(self) -> Any:
        steps = [step.transformer() for step in self.steps]
        if self.names is None:
            return steps[0]
        return Pipeline(list(zip(self.names, steps, strict=True)))


def _step(transformer: Any) -> Step:
    kind = _STEPS.get(type(transformer))
    if kind is None:
        raise InputError(
            f"the preparation has a {type(transformer).__name__}, which a file or a "
            "graph cannot hold",
            f"use {_KNOWN}, or prepare the rows beforehand",
        )
    check_is_fitted(transformer, "n_features_in_")
    return kind.of(transformer)


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def _names_of(step: Any) -> list[str] | None:
    names = getattr(step, "feature_names_in_", None)
    return None if names is None else names.tolist()


def _named(step: Any, names: list[str] | None) -> Any:
    if names is not None:
        step.feature_names_in_ = np.array(names, dtype=object)
    return step
