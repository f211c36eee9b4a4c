"""What a head with a preparation is: filling, scaling and clipping of features, and one matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdare.export._linear_map import LinearMap, is_nothing, steps_before


@dataclass(frozen=True, eq=False)
class Filling:
    """NaN becomes a value of its own for each feature.

    Parameters
    ----------
    values : array of shape (d,)
    """

    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Standardizing:
    """Features less ``mean``, over ``scale``.

    Parameters
    ----------
    mean, scale : arrays of shape (d,)
    """

    mean: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class Clipping:
    """Features between two limits, of which either may be None.

    Parameters
    ----------
    low, high : float, optional
    """

    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class PreparedMap:
    """Steps that no matrix can hold, in order, and the linear map after them.

    Parameters
    ----------
    steps : tuple of Filling, Standardizing and Clipping
        A scaler that nothing but the map follows is part of the map.
    linear : LinearMap

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdare import ERMClassifier
    >>> from skdare.export._prepared_map import PreparedMap
    >>> X = np.array([[1.0, 0.0], [2.0, np.nan], [3.0, 1.0], [4.0, 5.0]])
    >>> pipe = make_pipeline(SimpleImputer(), StandardScaler(), ERMClassifier())
    >>> [type(step).__name__ for step in PreparedMap.of(pipe.fit(X, [0, 0, 1, 1])).steps]
    ['Filling']
    """

    steps: tuple[Filling | Standardizing | Clipping, ...]
    linear: LinearMap

    @classmethod
    def of(cls, head: Any) -> PreparedMap:
        """The map of a fitted head, or of a pipeline of fillers, scalers and clips before one."""
        before = [step for step in steps_before(head) if not is_nothing(step)]
        folded = len(before)
        while folded and isinstance(before[folded - 1], StandardScaler):
            folded -= 1
        linear = LinearMap.after(before[folded:], head)
        steps = tuple(_step(step, linear.d) for step in before[:folded])
        names = next((s.feature_names_in_ for s in before if hasattr(s, "feature_names_in_")), None)
        if names is not None and len(names) == linear.d:
            linear = replace(linear, feature_names=names.tolist())
        return cls(steps, linear)


def _step(step: Any, d: int) -> Filling | Standardizing | Clipping:
    if isinstance(step, StandardScaler):
        mean = step.mean_ if step.with_mean else np.zeros(d)
        return Standardizing(mean, np.ones(d) if step.scale_ is None else step.scale_)
    if isinstance(step, SimpleImputer):
        return _filling(step)
    if isinstance(step, FunctionTransformer) and step.func is np.clip:
        limits = dict(step.kw_args or {})
        low = limits.pop("a_min", limits.pop("min", None))
        high = limits.pop("a_max", limits.pop("max", None))
        if not limits:
            return Clipping(low, high)
    raise ValueError(
        f"there is a {type(step).__name__} before the weights, and only SimpleImputer, "
        "StandardScaler and a FunctionTransformer of np.clip have a graph; do that step beforehand"
    )


def _filling(step: SimpleImputer) -> Filling:
    is_nan = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    values = np.asarray(step.statistics_)  # objects, where a constant is filled in
    is_number = all(isinstance(value, Real) for value in values.tolist())
    if not is_nan or step.add_indicator or not is_number:
        raise ValueError(
            "the SimpleImputer before the weights does more than filling NaN with numbers, which "
            "has no graph; do that step beforehand"
        )
    values = values.astype(np.float64)
    if np.isnan(values).any() and not step.keep_empty_features:
        raise ValueError(
            "the SimpleImputer before the weights drops features without values, which has no "
            "graph; give it keep_empty_features=True"
        )
    # An empty feature that is kept is filled with zero, whatever the statistics say.
    return Filling(np.nan_to_num(values))
