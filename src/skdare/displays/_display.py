"""What all displays share: the axes they draw on, and the score they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import r2_score

from skdare._validation import InputError
from skdare.arrays import is_foreign, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ScoreFunction = Callable[[np.ndarray, np.ndarray], float]


class Display:
    """A picture that keeps the axes it was last drawn on."""

    ax_: Axes | tuple[Axes, ...]
    figure_: Figure

    def _drawn_on(self, *axes: Axes) -> None:
        figure: Any = axes[0].figure
        self.ax_ = axes if len(axes) > 1 else axes[0]
        self.figure_ = figure


def _accuracy(y: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.mean(y == predicted))


def metric_of(metric: ScoreFunction | None, *, of_numbers: bool) -> tuple[ScoreFunction, str]:
    """The function that scores, and what to call it."""
    if metric is not None and not callable(metric):
        raise InputError(
            f"metric is {metric!r}",
            "pass a function of true and predicted targets, such as sklearn.metrics.f1_score",
            argument="metric",
        )
    if metric is None:
        return (r2_score, "R²") if of_numbers else (_accuracy, "accuracy")
    name = getattr(metric, "__name__", "score")
    return metric, name.removesuffix("_score").replace("_", " ")


def scores_of(estimator: Any, metric: ScoreFunction | None) -> tuple[ScoreFunction, str]:
    """`metric_of` for the targets of an estimator."""
    return metric_of(metric, of_numbers=bool(is_regressor(estimator)))


def targets_of(y: Any) -> np.ndarray:
    """Targets as a NumPy array."""
    return np.asarray(to_numpy(y) if is_foreign(y) else y)


def in_percent(axis: Any, name: str) -> None:
    """Ticks of an axis as percentages where the score is an accuracy."""
    if "accuracy" in name:
        axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
