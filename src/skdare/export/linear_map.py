"""The form of every exported head: one matrix, one intercept, and the steps before them.

Notation: X (n, d) rows as they come, coef (m, d) weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdare.fitting.problem import Classes
from skdare.fitting.steps import Automatic, Clipped, Filled, Scaled, Steps


@dataclass(frozen=True, eq=False)
class Fill:
    """NaN becomes a value of its own for each feature."""

    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Clip:
    """Each feature between limits of its own."""

    low: np.ndarray | None
    high: np.ndarray | None


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Scores ``X coefᵀ + intercept``, with their classes.

    Scaling is part of the weights. Steps that no matrix can hold come before it, in the units of
    the raw rows. A preparation "auto" fills only if training rows had empty cells.

    Parameters
    ----------
    coef : array of shape (m, d)
        In float64. One row for each class, or a single one for two classes and for a number.
    intercept : array of shape (m,)
    classes : array of shape (k,), optional
        None: the score is the predicted number.
    steps : list of Fill and Clip
    feature_names : list of d str, optional
        As the features were named in the fit.
    head : str
        The class that the map comes from.
    origin : array of shape (d,), optional
        A point near the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.export import LinearMap
    >>> linear = LinearMap(np.array([[2.0, 4.0]]), np.array([1.0]), np.array(["ill", "well"]))
    >>> V, b = linear.by_class()
    >>> V.tolist(), b.tolist()
    ([[-1.0, -2.0], [1.0, 2.0]], [-0.5, 0.5])
    """

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray | None = None
    steps: tuple[Fill | Clip, ...] = ()
    feature_names: list[str] | None = None
    head: str = "LinearMap"
    origin: np.ndarray | None = None

    @classmethod
    def of(cls, head: Any) -> Self:
        """The map of a fitted head, its preparation included."""
        check_is_fitted(head, "state_")
        state = head.state_
        coef = np.atleast_2d(head.coef_)
        mean = np.zeros(coef.shape[1])
        scale = np.ones(coef.shape[1])
        steps: list[Fill | Clip] = []
        # Prepared features are z = (x - mean) / scale for what comes out of the steps so far.
        for step in [] if state.preparation is None else Steps.of(state.preparation).steps:
            if isinstance(step, Filled):
                steps.append(Fill(mean + scale * step.values))
            elif isinstance(step, Clipped):
                low, high = (
                    None if limit is None else mean + scale * limit
                    for limit in (step.low, step.high)
                )
                steps.append(Clip(low, high))
            elif isinstance(step, Scaled):
                mean = mean + scale * step.mean
                scale = scale * step.scale
            elif isinstance(step, Automatic):
                if step.fill is not None and step.has_filled:
                    steps.append(Fill(mean + scale * step.fill))
                if step.centre is not None and step.scale is not None:
                    mean = mean + scale * step.centre
                    scale = scale * step.scale
        coef = coef / scale
        intercept = np.atleast_1d(head.intercept_) - coef @ mean
        classes = state.targets.classes if isinstance(state.targets, Classes) else None
        names = state.names.features
        origin = mean
        if state.fit is not None:
            origin = mean + scale * np.mean([m.mean for m in state.fit.moments], axis=0)
        return cls(coef, intercept, classes, tuple(steps), names, type(head).__name__, origin)

    @property
    def is_binary(self) -> bool:
        """Whether two classes share one row of weights."""
        return self.classes is not None and len(self.classes) == 2

    def by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts with a row for each class, whose softmax is the probabilities.

        Of two classes they are ∓ half the score: their sum is zero, as that of three or more
        classes is, and halving is exact.
        """
        if not self.is_binary:
            return self.coef, self.intercept
        halves = np.array([[-0.5], [0.5]])
        return halves * self.coef, halves[:, 0] * self.intercept
