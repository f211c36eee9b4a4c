"""The score by domain, with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skdare._validation import Labels, check_domains
from skdare.arrays import Array
from skdare.displays._display import (
    Display,
    ScoreFunction,
    in_percent,
    metric_of,
    scores_of,
    targets_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Draws of a bootstrap: the ends of a 95 % interval are then known to a tenth of its width.
DRAWS = 200


@dataclass(eq=False)
class DomainScoreDisplay(Display):
    """Score by domain, each with the 95 % interval of a bootstrap over its rows.

    Parameters
    ----------
    domains : sequence of str
    scores, low, high : arrays of shape (E,)
        The score of each domain, and the ends of its interval; NaN for one that has no score, as
        one row has no R².
    score_name : str
    name : str, optional
        Of the estimator, for a legend.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from skdare.displays import DomainScoreDisplay
    >>> y, predicted = [0, 1, 1, 0], [0, 1, 0, 0]
    >>> display = DomainScoreDisplay.from_predictions(y, predicted, domains=["a", "a", "b", "b"])
    >>> display.scores
    array([1. , 0.5])
    """

    domains: Sequence[str]
    scores: np.ndarray
    low: np.ndarray
    high: np.ndarray
    score_name: str
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Array,
        y: Array,
        *,
        domains: Labels,
        metric: ScoreFunction | None = None,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the scores of a fitted estimator.

        Parameters
        ----------
        estimator : fitted classifier or regressor
        X, y : rows and their targets
        domains : sequence of n labels
        metric : callable, optional
            Of true and predicted targets. Default: accuracy, or R².
        name : str, optional
            Default: the class of the estimator.
        ax : matplotlib axes, optional
        """
        metric, score_name = scores_of(estimator, metric)
        display = cls._of(
            y,
            estimator.predict(X),
            domains,
            metric,
            score_name,
            name or type(estimator).__name__,
        )
        return display.plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Array,
        y_pred: Array,
        *,
        domains: Labels,
        metric: ScoreFunction | None = None,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the scores of predictions.

        Parameters
        ----------
        y_true, y_pred : arrays of shape (n,)
        domains : sequence of n labels
        metric : callable, optional
            Of true and predicted targets. Default: accuracy of classes, R² of numbers that are not
            whole.
        name : str, optional
        ax : matplotlib axes, optional
        """
        y = targets_of(y_true)
        of_numbers = y.dtype.kind == "f" and bool(np.any(y != np.floor(y)))
        metric, score_name = metric_of(metric, of_numbers=of_numbers)
        return cls._of(y, y_pred, domains, metric, score_name, name).plot(ax)

    @classmethod
    def _of(
        cls,
        y: Any,
        predicted: Any,
        domains: Labels,
        metric: ScoreFunction,
        score: str,
        name: str | None,
    ) -> Self:
        y = targets_of(y)
        predicted = targets_of(predicted)
        rows = check_domains(domains, len(y), np.ones(len(y)))
        rng = np.random.default_rng(0)
        scores = []
        ends = []
        for index in rows.index:
            own = y[index]
            guessed = predicted[index]
            draws = rng.integers(len(own), size=(DRAWS, len(own)))
            with warnings.catch_warnings():
                # A domain or a draw may lack a class, or have one row, of which there is no R².
                warnings.simplefilter("ignore")
                scores.append(float(metric(own, guessed)))
                drawn = [metric(own[some], guessed[some]) for some in draws]
            known = np.asarray(drawn)[np.isfinite(drawn)]
            ends.append(np.quantile(known, [0.025, 0.975]) if len(known) else [np.nan, np.nan])
        low, high = np.transpose(ends)
        labels = [str(label) for label in rows.labels]
        return cls(labels, np.array(scores), low, high, score, name)

    def plot(self, ax: Axes | None = None, *, color: str | None = None) -> Self:
        """Draw a dot and an interval for each domain, and a line at their mean.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: new ones. Displays of the same domains may share them.
        color : str, optional

        Returns
        -------
        self
        """
        from skdare.report._canvas import guides, short
        from skdare.report._pyplot import axes_or_new, house_style
        from skdare.report._svg import PALETTE

        with house_style():
            axes = axes_or_new(ax, height=1.0 + 0.26 * len(self.domains))
            count = len(axes.containers)  # of displays that were drawn before
            color = color or PALETTE[(1 + count) % len(PALETTE)]
            place = -np.arange(len(self.domains), dtype=float) - 0.22 * count
            half = np.maximum(np.stack([self.scores - self.low, self.high - self.scores]), 0.0)
            look: dict[str, Any] = {"color": color, "markersize": 4.5, "elinewidth": 1.2}
            axes.errorbar(self.scores, place, xerr=half, fmt="o", label=self.name, **look)
            known = self.scores[np.isfinite(self.scores)]
            if len(known):
                axes.axvline(float(known.mean()), color=color, linewidth=0.8, linestyle="--")
            axes.set_yticks(-np.arange(len(self.domains)), [short(d, 24) for d in self.domains])
            axes.tick_params(axis="y", length=0)
            axes.set_ylim(float(place[-1]) - 0.5, 0.5)
            axes.set_xlabel(f"{self.score_name} (95 % interval; dashed: mean over domains)")
            in_percent(axes.xaxis, self.score_name)
            guides(axes, "x")
            if self.name is not None:
                axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)
        self._drawn_on(axes)
        return self
