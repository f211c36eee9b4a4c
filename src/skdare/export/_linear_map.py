"""What every exported head is: one matrix, one intercept, and the names of rows and columns.

Notation: V (k, d) weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from skdare.heads._estimator import ClassifierHead, Head


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Scores ``X coefᵀ + intercept``, and what they are scores of.

    Parameters
    ----------
    coef : array of shape (m, d)
        In float64. One row for each class, or a single one for two classes and for a number.
    intercept : array of shape (m,)
    classes : array of shape (k,), optional
        None: the score is the predicted number.
    feature_names : sequence of d str, optional
        As the features were named where the head was fitted.
    head : str
        The class that the map comes from.

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
    feature_names: Sequence[str] | None = None
    head: str = "LinearMap"

    @classmethod
    def of(cls, head: Any) -> LinearMap:
        """The map of a fitted head, or of a pipeline that standardises before one."""
        return cls.after(steps_before(head), head)

    @classmethod
    def after(cls, steps: Sequence[Any], head: Any) -> LinearMap:
        """The map of a fitted head, or of one at the end of a pipeline, with these steps in it."""
        last = _last_step(head)
        names = getattr(last, "feature_names_in_", None)  # scikit-learn sets it where X had names
        linear = cls(
            np.atleast_2d(np.asarray(last.coef_, dtype=np.float64)),
            np.atleast_1d(np.asarray(last.intercept_, dtype=np.float64)),
            last.classes_ if isinstance(last, ClassifierHead) else None,
            None if names is None else names.tolist(),
            type(last).__name__,
        )
        for step in reversed(steps):
            linear = linear._after(step)
        return linear

    def _after(self, step: Any) -> LinearMap:
        """The same scores from features as they are before a step."""
        if is_nothing(step):
            return self
        if not isinstance(step, StandardScaler):
            raise ValueError(
                f"there is a {type(step).__name__} before the weights, and only a "
                "StandardScaler can be made part of them; do that step beforehand"
            )
        # ((x - m) / s) v + b = x (v / s) + (b - m (v / s))
        coef = self.coef if step.scale_ is None else self.coef / step.scale_
        mean = step.mean_ if step.with_mean else np.zeros(self.d)
        names = getattr(step, "feature_names_in_", None)
        return replace(
            self,
            coef=coef,
            intercept=self.intercept - coef @ mean,
            feature_names=self.feature_names if names is None else names.tolist(),
        )

    @property
    def d(self) -> int:
        """Number of features that the map takes."""
        return int(self.coef.shape[1])

    @property
    def is_binary(self) -> bool:
        """Whether two classes share one row of weights."""
        return self.classes is not None and len(self.classes) == 2

    @property
    def names(self) -> list[str]:
        """Names of the features: those of the fit, else x0, x1, … as in scikit-learn."""
        if self.feature_names is None:
            return [f"x{j}" for j in range(self.d)]
        return list(self.feature_names)

    def by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts with a row for each class, whose softmax is the probabilities.

        Of two classes they are ∓ half the score: their sum is zero, as that of three or more
        classes is, and halving is exact.
        """
        if not self.is_binary:
            return self.coef, self.intercept
        halves = np.array([[-0.5], [0.5]])
        return halves * self.coef, halves[:, 0] * self.intercept

    def reordered(self, order: Sequence[int]) -> LinearMap:
        """The same map with the classes in another order."""
        if self.classes is None or list(order) == list(range(len(self.classes))):
            return self
        classes = self.classes[list(order)]
        if self.is_binary:
            return replace(self, coef=-self.coef, intercept=-self.intercept, classes=classes)
        coef = self.coef[list(order)]
        intercept = self.intercept[list(order)]
        return replace(self, coef=coef, intercept=intercept, classes=classes)


def steps_before(head: Any) -> list[Any]:
    """What rows go through before a fitted head: steps of a pipeline, and its own preparation."""
    last = _last_step(head)
    steps = [step for _, step in head.steps[:-1]] if isinstance(head, Pipeline) else []
    return _flat([*steps, last.preparation_])


def _flat(steps: Sequence[Any]) -> list[Any]:
    """Steps, with those of a pipeline among them in its place."""
    parts = (
        _flat([inner for _, inner in step.steps]) if isinstance(step, Pipeline) else [step]
        for step in steps
    )
    return [step for part in parts for step in part]


def is_nothing(step: Any) -> bool:
    """Whether a step of a pipeline is left out."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def _last_step(head: Any) -> Head:
    last = head.steps[-1][1] if isinstance(head, Pipeline) else head
    if not isinstance(last, Head):
        raise TypeError(
            f"head is a {type(last).__name__}; pass a fitted head of skdare, such as "
            "DAREClassifier().fit(X, y, domains=domains)"
        )
    check_is_fitted(last)
    return last
