"""Scores on left-out domains along the shrinkage of second moments."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from skdare._validation import InputError, Labels, check_domains, check_number
from skdare.arrays import Array
from skdare.displays._display import Display, ScoreFunction, in_percent, scores_of, targets_of
from skdare.heads import LeaveOneDomainOut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHRINKAGES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(eq=False)
class ShrinkagePathDisplay(Display):
    """Score on each training domain, left out, by how far second moments are shrunk.

    Parameters
    ----------
    shrinkages : array of shape (s,)
    domains : sequence of str
    as_is, adapted : arrays of shape (E, s)
        Scores without and with unlabelled rows of the domain left out; ``adapted`` is None for a
        head that does not adapt.
    score_name : str
    name : str, optional

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from skdare import DARERegressor
    >>> from skdare.datasets import make_latent_domains
    >>> from skdare.displays import ShrinkagePathDisplay
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> display = ShrinkagePathDisplay.from_estimator(
    ...     DARERegressor(), data.X, data.y, domains=data.domains, shrinkages=(0.1, 0.9)
    ... )
    >>> display.adapted.shape
    (4, 2)
    """

    shrinkages: np.ndarray
    domains: Sequence[str]
    as_is: np.ndarray
    adapted: np.ndarray | None
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
        shrinkages: Sequence[float] = SHRINKAGES,
        metric: ScoreFunction | None = None,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Fit copies of a head with each shrinkage, each without one domain, and score them on it.

        Parameters
        ----------
        estimator : DAREClassifier or DARERegressor
            It need not be fitted.
        X, y : training rows and their targets
        domains : sequence of n labels
        shrinkages : sequence of float in [0, 1]
        metric : callable, optional
            Of true and predicted targets. Default: accuracy, or R².
        name : str, optional
            Default: the class of the head.
        ax : matplotlib axes, optional
        """
        options = estimator.get_params(deep=False)
        if "shrinkage" not in options or "adaptation" not in options:
            raise InputError(
                f"a {type(estimator).__name__} has no one shrinkage to vary",
                "pass a DAREClassifier or a DARERegressor",
                argument="estimator",
            )
        for value in shrinkages:
            check_number("shrinkages", value, 0.0, 1.0)
        metric, score_name = scores_of(estimator, metric)
        y = targets_of(y)
        labels = check_domains(domains, len(y), np.ones(len(y))).labels
        adapts = options["adaptation"] is not None
        scores = np.empty((2, len(labels), len(shrinkages)))
        domains = np.asarray(domains)
        for e, (train, test) in enumerate(LeaveOneDomainOut().split(X, domains=domains)):
            X_train = _safe_indexing(X, train)
            X_test = _safe_indexing(X, test)
            for i, shrinkage in enumerate(shrinkages):
                head = clone(estimator).set_params(shrinkage=shrinkage)
                with warnings.catch_warnings():
                    # What every fold says again, one fit of the head says once.
                    warnings.simplefilter("ignore")
                    head.fit(X_train, y[train], domains=domains[train])
                    adapted = head.adapt(X_test) if adapts else head
                for k, model in enumerate((head, adapted)):
                    scores[k, e, i] = metric(y[test], targets_of(model.predict(X_test)))
        return cls(
            np.array(shrinkages),
            [str(label) for label in labels],
            scores[0],
            scores[1] if adapts else None,
            score_name,
            name or type(estimator).__name__,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the mean over domains, and a thin line for each of them.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: new ones.

        Returns
        -------
        self
        """
        from skdare.report._canvas import guides
        from skdare.report._pyplot import axes_or_new, house_style
        from skdare.report._svg import PALETTE

        lines = [("without rows of the domain", self.as_is, PALETTE[0])]
        if self.adapted is not None:
            lines.append(("with them", self.adapted, PALETTE[1]))
        with house_style():
            axes = axes_or_new(ax)
            for label, scores, color in lines:
                axes.plot(self.shrinkages, scores.T, color=color, linewidth=0.6, alpha=0.5)
                mean = scores.mean(axis=0)
                axes.plot(self.shrinkages, mean, "o-", color=color, markersize=4, label=label)
            axes.set_xlabel("shrinkage ρ (thin: each left-out domain; thick: mean)")
            axes.set_ylabel(self.score_name)
            in_percent(axes.yaxis, self.score_name)
            axes.set_title(self.name or "", fontsize=9, loc="left")
            guides(axes, "y")
            axes.legend(loc="best")
        self._drawn_on(axes)
        return self
