"""The learning curve of adapting: rows seen against score."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from skdare._validation import InputError, check_count
from skdare.arrays import Array
from skdare.displays._display import Display, ScoreFunction, in_percent, scores_of, targets_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


@dataclass(eq=False)
class AdaptationCurveDisplay(Display):
    """Score on a new domain after adapting to more and more of its unlabelled rows.

    Half of the rows are scored, the others are adapted to; the curve is the mean over several
    random halves, and the band reaches from the lowest to the highest.

    Parameters
    ----------
    rows : array of shape (s,)
        Numbers of rows adapted to.
    scores : array of shape (repeats, s)
    as_is : float
        The mean score without adapting.
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
    >>> from skdare.displays import AdaptationCurveDisplay
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> train, new = data.domains != 3, data.domains == 3
    >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> display = AdaptationCurveDisplay.from_estimator(head, data.X[new], data.y[new])
    >>> display.rows
    array([  5,  10,  20,  50, 100, 150])
    """

    rows: np.ndarray
    scores: np.ndarray
    as_is: float
    score_name: str
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Array,
        y: Array,
        *,
        rows: Sequence[int] | None = None,
        repeats: int = 5,
        metric: ScoreFunction | None = None,
        name: str | None = None,
        random_state: int = 0,
        ax: Axes | None = None,
    ) -> Self:
        """Adapt a fitted head, or `DomainAdjusted` pipeline, to rows of a domain that has labels.

        Parameters
        ----------
        estimator : fitted head or DomainAdjusted
            Adapting is forced where the rows speak against it, so that the curve shows what it
            would do.
        X, y : rows of one new domain, and their targets
        rows : sequence of int, optional
            Numbers of rows to adapt to. Default: 5 to half of the rows.
        repeats : int, default=5
        metric : callable, optional
            Of true and predicted targets. Default: accuracy, or R².
        name : str, optional
            Default: the class of the estimator.
        random_state : int, default=0
        ax : matplotlib axes, optional
        """
        check_count("repeats", repeats, 1)
        if not hasattr(estimator, "adapt"):
            raise InputError(
                f"a {type(estimator).__name__} cannot adapt",
                "pass a DARE head, or a DomainAdjusted pipeline",
                argument="estimator",
            )
        y = targets_of(y)
        half = len(y) // 2
        if half < 2:
            raise InputError(
                f"X has {len(y)} rows", "pass at least 4, half of which are scored", argument="X"
            )
        counts = [n for n in ROWS if n < half] + [half] if rows is None else list(rows)
        for n in counts:
            check_count("rows", n, 2)
            if n > half:
                raise InputError(
                    f"rows has {n}, and half of the rows are {half}",
                    "pass fewer, or more rows of the domain",
                    argument="rows",
                )
        metric, score_name = scores_of(estimator, metric)
        rng = np.random.default_rng(random_state)
        scores = np.empty((repeats, len(counts)))
        before = []
        for repeat in range(repeats):
            order = rng.permutation(len(y))
            test = np.sort(order[half:])
            X_test = _safe_indexing(X, test)
            before.append(metric(y[test], targets_of(estimator.predict(X_test))))
            for i, n in enumerate(counts):
                adapted = _adapted(estimator, _safe_indexing(X, np.sort(order[:n])))
                scores[repeat, i] = metric(y[test], targets_of(adapted.predict(X_test)))
        name = name or type(estimator).__name__
        as_is = float(np.mean(before))
        return cls(np.array(counts), scores, as_is, score_name, name).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve, and a line at the score without adapting.

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

        with house_style():
            axes = axes_or_new(ax)
            mean = self.scores.mean(axis=0)
            low = self.scores.min(axis=0)
            high = self.scores.max(axis=0)
            axes.fill_between(self.rows, low, high, color=PALETTE[1], alpha=0.18, linewidth=0)
            axes.plot(self.rows, mean, "o-", color=PALETTE[1], markersize=4, label="adapted")
            axes.axhline(self.as_is, color=PALETTE[0], linestyle="--", label="as it is")
            axes.set_xscale("log")
            axes.set_xticks(self.rows, [f"{n:,}" for n in self.rows], minor=False)
            axes.minorticks_off()
            axes.set_xlabel("unlabelled rows of the new domain that were seen")
            axes.set_ylabel(self.score_name)
            in_percent(axes.yaxis, self.score_name)
            axes.set_title(self.name or "", fontsize=9, loc="left")
            guides(axes, "y")
            axes.legend(loc="best")
        self._drawn_on(axes)
        return self


def _adapted(estimator: Any, rows: Any) -> Any:
    with warnings.catch_warnings():
        # Few rows warn of their class shares time and again; the curve shows what comes of it.
        warnings.simplefilter("ignore")
        return estimator.adapt(rows, force=True)
