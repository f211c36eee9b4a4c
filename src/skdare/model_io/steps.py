"""Steps before a head in a pipeline that is saved: filling, scaling and clipping of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skdare.persist import (
    ANY_NUMBER,
    FLAG,
    TEXT,
    VALUES,
    ArrayOf,
    FieldError,
    HeaderArrays,
    Nullable,
    ObjectOf,
    ReadContext,
)


class _Filled:
    """What a fitted SimpleImputer knows."""

    def __init__(self, strategy: str, statistics: np.ndarray, names: np.ndarray | None) -> None:
        self.strategy = strategy
        self.statistics = statistics
        self.names = names

    @classmethod
    def of(cls, step: SimpleImputer) -> _Filled:
        is_nan = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
        if step.strategy not in ("mean", "median") or step.add_indicator or not is_nan:
            raise FieldError(
                "a SimpleImputer can be saved with strategy='mean' or 'median', without "
                "indicators, and where missing values are NaN"
            )
        if not step.keep_empty_features and np.isnan(step.statistics_).any():
            raise FieldError("a SimpleImputer that drops features without values cannot be saved")
        return cls(step.strategy, step.statistics_, getattr(step, "feature_names_in_", None))

    def step(self) -> SimpleImputer:
        # Fitted to one row of the values to fill in, which are then its means and its medians.
        step = SimpleImputer(strategy=self.strategy, keep_empty_features=True)
        return _named(step.fit(self.statistics[None, :]), self.names)


class _Scaled:
    """What a fitted StandardScaler knows."""

    def __init__(
        self,
        mean: np.ndarray | None,
        var: np.ndarray | None,
        scale: np.ndarray | None,
        seen: np.ndarray,
        names: np.ndarray | None,
        with_mean: bool,
        with_std: bool,
    ) -> None:
        self.mean = mean
        self.var = var
        self.scale = scale
        self.seen = seen
        self.names = names
        self.with_mean = with_mean
        self.with_std = with_std

    @classmethod
    def of(cls, step: StandardScaler) -> _Scaled:
        names = getattr(step, "feature_names_in_", None)
        return cls(
            step.mean_,
            step.var_,
            step.scale_,
            np.atleast_1d(step.n_samples_seen_),
            names,
            bool(step.with_mean),
            bool(step.with_std),
        )

    def step(self) -> StandardScaler:
        step = StandardScaler(with_mean=self.with_mean, with_std=self.with_std)
        d = next(len(a) for a in (self.mean, self.var, self.scale) if a is not None)
        step.mean_ = self.mean
        step.var_ = self.var
        step.scale_ = self.scale
        step.n_samples_seen_ = self.seen[0] if len(self.seen) == 1 else self.seen
        step.n_features_in_ = d
        return _named(step, self.names)


class _Clipped:
    """The limits of a FunctionTransformer of np.clip."""

    def __init__(self, low: float | None, high: float | None) -> None:
        self.low = low
        self.high = high

    @classmethod
    def of(cls, step: FunctionTransformer) -> _Clipped:
        limits = dict(step.kw_args or {})
        names = {"a_min": "low", "min": "low", "a_max": "high", "max": "high"}
        is_clip = step.func is np.clip and step.inverse_func is None
        if not is_clip or not set(limits) <= set(names):
            raise FieldError("of FunctionTransformers only np.clip with two limits can be saved")
        return cls(**{"low": None, "high": None, **{names[k]: v for k, v in limits.items()}})

    def step(self) -> FunctionTransformer:
        limits = {"a_min": self.low, "a_max": self.high}
        return FunctionTransformer(np.clip, kw_args=limits, feature_names_out="one-to-one")


def _named(step: Any, names: np.ndarray | None) -> Any:
    if names is not None:
        step.feature_names_in_ = names
    return step


def _scales(got: Mapping[str, Any]) -> bool:
    """Whether a scaler has what it subtracts and divides by, and knows how many features it has."""
    mean = got["mean"] is not None
    scale = got["scale"] is not None
    return (mean or scale) and mean >= got["with_mean"] and scale >= got["with_std"]


_NAMES = Nullable(VALUES)
_OUTPUTS = (None, "default", "pandas", "polars")
_STEPS: dict[str, tuple[type, Any, ObjectOf]] = {
    "SimpleImputer": (
        SimpleImputer,
        _Filled,
        ObjectOf(_Filled, {"strategy": TEXT, "statistics": ArrayOf("d"), "names": _NAMES}),
    ),
    "StandardScaler": (
        StandardScaler,
        _Scaled,
        ObjectOf(
            _Scaled,
            {
                **dict.fromkeys(("mean", "var", "scale"), Nullable(ArrayOf("d"))),
                "seen": ArrayOf("s"),
                "names": _NAMES,
                "with_mean": FLAG,
                "with_std": FLAG,
            },
            is_valid=_scales,
        ),
    ),
    "FunctionTransformer": (
        FunctionTransformer,
        _Clipped,
        ObjectOf(_Clipped, {"low": Nullable(ANY_NUMBER), "high": Nullable(ANY_NUMBER)}),
    ),
}


def described_step(name: str, step: Any, arrays: HeaderArrays) -> dict[str, Any]:
    """A step as part of a header."""
    for kind, (step_class, state_class, record) in _STEPS.items():
        if type(step) is step_class:
            if step_class is not FunctionTransformer:
                check_is_fitted(step)
            node = record.write(state_class.of(step), arrays, f"steps.{name}")
            return {"name": name, "class": kind, "state": node, "output": _output(step)}
    raise TypeError(
        f"step {name!r} is a {type(step).__name__}, which cannot be saved; use "
        f"{', '.join(_STEPS)}, or save the head alone"
    )


def _output(step: Any) -> str | None:
    """What `set_output` was told, if it was."""
    output: str | None = getattr(step, "_sklearn_output_config", {}).get("transform")
    return output


def restored_step(node: Any, arrays: Mapping[str, np.ndarray], d: int) -> tuple[str, Any]:
    """The step that a header describes."""
    match node:
        case {"name": str(name), "class": str(kind), "state": dict(state)} if kind in _STEPS:
            saved = ReadContext(arrays, {"d": d}, f"step {name}")
            step = _STEPS[kind][2].read(state, saved).step()
            output = Nullable(TEXT).read(node.get("output"), saved.inside("output"))
            if output not in _OUTPUTS:
                raise FieldError(f"step {name} has the output {output!r}")
            return name, step if output is None else step.set_output(transform=output)
    raise FieldError("it has a step that this skdare does not know")
