"""Calibration by domain: how often predictions are right, by how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skdare._validation import InputError, Labels, check_count, check_domains
from skdare.arrays import Array
from skdare.displays._display import Display, in_percent, targets_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Domains that have lines of their own in colour; with more, all are grey but the worst.
MOST_LINES = 7


@dataclass(eq=False)
class DomainCalibrationDisplay(Display):
    """Accuracy against confidence, a line for each domain.

    Confidence is the probability of the predicted class. Bins hold equal numbers of rows. The
    error of a domain is the mean distance between both over its rows.

    Parameters
    ----------
    domains : sequence of str
    confidence, accuracy : sequences of arrays
        By bin, for each domain.
    errors : array of shape (E,)
        Expected calibration error of each domain.
    name : str, optional

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from skdare.displays import DomainCalibrationDisplay
    >>> display = DomainCalibrationDisplay.from_predictions(
    ...     [1, 1, 0, 1], [0.9, 0.9, 0.8, 0.8], domains=["a", "a", "b", "b"]
    ... )
    >>> display.errors.round(1)
    array([0.1, 0.5])
    """

    domains: Sequence[str]
    confidence: Sequence[np.ndarray]
    accuracy: Sequence[np.ndarray]
    errors: np.ndarray
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Array,
        y: Array,
        *,
        domains: Labels,
        n_bins: int = 8,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the calibration of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``
        X, y : rows and their classes
        domains : sequence of n labels
        n_bins : int, default=8
        name : str, optional
            Default: the class of the estimator.
        ax : matplotlib axes, optional
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"a {type(estimator).__name__} has no probabilities",
                "pass a classifier with predict_proba",
                argument="estimator",
            )
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            domains=domains,
            classes=estimator.classes_,
            n_bins=n_bins,
            name=name or type(estimator).__name__,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Array,
        y_prob: Array,
        *,
        domains: Labels,
        classes: Sequence[Any] | None = None,
        n_bins: int = 8,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the calibration of predicted probabilities.

        Parameters
        ----------
        y_true : array of shape (n,)
        y_prob : array of shape (n, k), or (n,) of the second of two classes
        domains : sequence of n labels
        classes : sequence of k labels, optional
            Of the columns. Default: those in ``y_true``, sorted.
        n_bins : int, default=8
        name : str, optional
        ax : matplotlib axes, optional
        """
        check_count("n_bins", n_bins, 1)
        y = targets_of(y_true)
        P = targets_of(y_prob).astype(np.float64)
        P = np.stack([1.0 - P, P], axis=1) if P.ndim == 1 else P
        labels = np.unique(y) if classes is None else np.asarray(classes)
        if P.shape != (len(y), len(labels)):
            raise InputError(
                f"y_prob has shape {P.shape} for {len(y)} rows of {len(labels)} classes",
                "pass a column for each class, and the classes",
                argument="y_prob",
            )
        sure = P.max(axis=1)
        right = labels[P.argmax(axis=1)] == y
        rows = check_domains(domains, len(y), np.ones(len(y)))
        confidence: list[np.ndarray] = []
        accuracy: list[np.ndarray] = []
        errors = []
        for index in rows.index:
            order = np.argsort(sure[index], kind="stable")
            bins = np.array_split(order, min(n_bins, len(order)))
            confidence.append(np.array([sure[index][some].mean() for some in bins]))
            accuracy.append(np.array([right[index][some].mean() for some in bins]))
            sizes = [len(some) for some in bins]
            errors.append(np.average(np.abs(confidence[-1] - accuracy[-1]), weights=sizes))
        names = [str(label) for label in rows.labels]
        return cls(names, confidence, accuracy, np.array(errors), name).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw a line for each domain, beside the diagonal of a calibrated classifier.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: new ones.

        Returns
        -------
        self
        """
        from skdare.report._canvas import MARKERS, guides, short
        from skdare.report._pyplot import axes_or_new, house_style
        from skdare.report._svg import INK, PALETTE

        many = len(self.domains) > MOST_LINES
        worst = int(np.argmax(self.errors))
        with house_style():
            axes = axes_or_new(ax, width=5.6, height=3.8)
            start = float(min(map(np.min, self.confidence)))
            axes.plot([start, 1], [start, 1], color=INK, linewidth=0.8, linestyle="--")
            for e, domain in enumerate(self.domains):
                hue = PALETTE[(1 + e) % len(PALETTE)] if not many else PALETTE[0]
                hue = PALETTE[2] if many and e == worst else hue
                label: str | None = (
                    f"{short(domain, 18)} (off by {100 * self.errors[e]:.0f} points)"
                )
                if many and e != worst:
                    label = None
                axes.plot(
                    self.confidence[e],
                    self.accuracy[e],
                    marker=MARKERS[e % len(MARKERS)],
                    markersize=3.5,
                    linewidth=1.0,
                    color=hue,
                    alpha=0.5 if many and e != worst else 1.0,
                    label=label,
                )
            axes.set_xlabel("confidence in the predicted class")
            axes.set_ylabel("accuracy")
            for axis in (axes.xaxis, axes.yaxis):
                in_percent(axis, "accuracy")
            axes.set_title(self.name or "", fontsize=9, loc="left")
            guides(axes, "both")
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        self._drawn_on(axes)
        return self
