"""Pictures of heads and domains, made and drawn as scikit-learn's displays are.

A display is made by ``from_estimator`` or ``from_predictions``, which draws it, keeps the numbers
that it shows, and is drawn again by ``plot``, on other axes for instance.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing

from skdare.arrays import Array, to_numpy
from skdare.checks import Label, check_count, check_domains, check_number
from skdare.errors import InputError, unknown
from skdare.heads.split import LeaveOneDomainOut
from skdare.whitening.adjustment import Adjustment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "AdaptationCurveDisplay",
    "DomainCalibrationDisplay",
    "DomainPairDisplay",
    "DomainScoreDisplay",
    "ShrinkagePathDisplay",
]

Metric = Callable[[np.ndarray, np.ndarray], float]

# Okabe and Ito's colours, which differ without red and green, too.
_GREY = "#6b6b6b"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_MARKERS = "osD^vPX"
_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


class Display(ABC):
    """Draws itself on given or new axes, and keeps them as ``ax_`` and ``figure_``."""

    panels: ClassVar[int] = 1
    ax_: Axes | Sequence[Axes]
    figure_: Figure

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture on these axes (two for two panels), or on new ones."""
        import matplotlib.pyplot as plt

        with plt.rc_context(_STYLE):
            if ax is None:
                _, ax = plt.subplots(1, self.panels, figsize=self._size(), layout="constrained")
            self._draw(ax)
        self.ax_ = ax
        self.figure_ = np.ravel(ax)[0].figure
        return self

    def _size(self) -> tuple[float, float]:
        return 5.4, 3.6

    @abstractmethod
    def _draw(self, ax: Any) -> None: ...


def _metric(given: Metric | None, *, of_numbers: bool) -> tuple[Metric, str]:
    """The function that scores, and what to call it."""
    if given is None:
        return (r2_score, "R²") if of_numbers else (accuracy_score, "accuracy")
    if not callable(given):
        raise InputError(
            f"metric is {given!r}",
            "pass a function of true and predicted targets, such as sklearn.metrics.f1_score",
        )
    name = getattr(given, "__name__", "score")
    return given, name.removesuffix("_score").replace("_", " ")


def _in_percent(axis: Any, score_name: str) -> None:
    if "accuracy" in score_name:
        axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


@dataclass(eq=False)
class DomainScoreDisplay(Display):
    """Score on each domain, with the 95 % interval of a bootstrap over its rows.

    Parameters
    ----------
    domains : sequence of str
    scores, low, high : array of shape (E,)
        NaN for a domain without a score: a single row has no R².
    score_name : str
    name : str, optional
        What is scored, for a legend.

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
        cls, estimator: Any, X: Array, y: Any, *, domains: Collection[Label],
        metric: Metric | None = None, name: str | None = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the scores of a fitted classifier or regressor.

        Parameters
        ----------
        estimator : fitted estimator
        X, y, domains : rows, their targets, and where each came from
        metric : function of true and predicted targets, optional
            Default: accuracy, or R².
        name : str, optional
            Default: the class of the estimator.
        ax : matplotlib axes, optional
        """
        metric, score_name = _metric(metric, of_numbers=is_regressor(estimator))
        predicted = to_numpy(estimator.predict(X))
        name = name or type(estimator).__name__
        return cls._of(to_numpy(y), predicted, domains, metric, score_name, name).plot(ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, domains: Collection[Label],
        metric: Metric | None = None, name: str | None = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the scores of predictions: R² by default of numbers that are not all whole."""
        y = to_numpy(y_true)
        of_numbers = y.dtype.kind == "f" and bool(np.any(y != np.floor(y)))
        metric, score_name = _metric(metric, of_numbers=of_numbers)
        return cls._of(y, to_numpy(y_pred), domains, metric, score_name, name).plot(ax)

    @classmethod
    def _of(
        cls, y: np.ndarray, predicted: np.ndarray, domains: Collection[Label], metric: Metric,
        score_name: str, name: str | None,
    ) -> Self:  # fmt: skip
        labels, index = check_domains(domains, np.ones(len(y)))
        rng = np.random.default_rng(0)
        scores = np.empty((len(labels), 3))
        for e, rows in enumerate(index):
            own, guessed = y[rows], predicted[rows]
            draws = rng.integers(len(own), size=(200, len(own)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a draw may lack a class, and one row has no R²
                drawn = np.array([metric(own[some], guessed[some]) for some in draws])
                scores[e, 0] = metric(own, guessed)
            drawn = drawn[np.isfinite(drawn)]
            scores[e, 1:] = np.quantile(drawn, [0.025, 0.975]) if len(drawn) else np.nan
        score, low, high = scores.T
        return cls(list(map(str, labels)), score, low, high, score_name, name)

    def _size(self) -> tuple[float, float]:
        return 5.4, 1.0 + 0.27 * len(self.domains)

    def _draw(self, ax: Axes) -> None:
        before = len(ax.containers)  # displays of the same domains may share axes
        colour = _COLOURS[before % len(_COLOURS)]
        place = -np.arange(len(self.domains)) - 0.22 * before
        reach = np.maximum([self.scores - self.low, self.high - self.scores], 0.0)
        ax.errorbar(self.scores, place, xerr=reach, fmt="o", color=colour, label=self.name)
        if np.isfinite(self.scores).any():
            ax.axvline(float(np.nanmean(self.scores)), color=colour, linewidth=0.8, linestyle="--")
        ax.set_yticks(-np.arange(len(self.domains)), [_short(name) for name in self.domains])
        ax.set_ylim(float(place[-1]) - 0.5, 0.5)
        ax.set_xlabel(f"{self.score_name} (95 % interval; dashed: mean over domains)")
        _in_percent(ax.xaxis, self.score_name)
        ax.grid(visible=False, axis="y")
        if self.name is not None:
            ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)


@dataclass(eq=False)
class DomainCalibrationDisplay(Display):
    """Accuracy by confidence, a line for each domain.

    Confidence is the probability of the predicted class. Bins hold equal numbers of rows.

    Parameters
    ----------
    domains : sequence of str
    confidence, accuracy : sequence of arrays
        By bin, for each domain.
    errors : array of shape (E,)
        Mean distance between both over the rows of a domain.
    name : str, optional

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
        cls, estimator: Any, X: Array, y: Any, *, domains: Collection[Label], n_bins: int = 8,
        name: str | None = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the calibration of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``
        X, y, domains : rows, their classes, and where each came from
        n_bins : int, default=8
        name : str, optional
            Default: the class of the estimator.
        ax : matplotlib axes, optional
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"a {type(estimator).__name__} has no probabilities",
                "pass a classifier with predict_proba",
            )
        P = estimator.predict_proba(X)
        name = name or type(estimator).__name__
        known = {"domains": domains, "classes": estimator.classes_}
        return cls.from_predictions(y, P, **known, n_bins=n_bins, name=name, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, domains: Collection[Label],
        classes: Sequence[Any] | None = None, n_bins: int = 8, name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the calibration of probabilities, (n, k), or (n,) of the second of two classes."""
        check_count("n_bins", n_bins)
        y, P = to_numpy(y_true), to_numpy(y_prob).astype(np.float64)
        P = np.stack([1.0 - P, P], axis=1) if P.ndim == 1 else P
        columns = np.unique(y) if classes is None else np.asarray(classes)
        if P.shape != (len(y), len(columns)):
            raise InputError(
                f"y_prob has shape {P.shape} for {len(y)} rows of {len(columns)} classes",
                "pass a column for each class, and the classes",
            )
        sure = P.max(axis=1)
        right = columns[P.argmax(axis=1)] == y
        labels, index = check_domains(domains, np.ones(len(y)))
        confidence, accuracy, errors = [], [], []
        for rows in index:
            order = np.argsort(sure[rows], kind="stable")
            bins = np.array_split(order, min(n_bins, len(order)))
            confidence.append(np.array([sure[rows][some].mean() for some in bins]))
            accuracy.append(np.array([right[rows][some].mean() for some in bins]))
            off = np.abs(confidence[-1] - accuracy[-1])
            errors.append(np.average(off, weights=[len(some) for some in bins]))
        return cls(list(map(str, labels)), confidence, accuracy, np.array(errors), name).plot(ax)

    def _draw(self, ax: Axes) -> None:
        start = min(float(sure.min()) for sure in self.confidence)
        ax.plot([start, 1.0], [start, 1.0], color=_GREY, linewidth=0.8, linestyle="--")
        # With more domains than colours all are grey but the worst.
        many = len(self.domains) > len(_COLOURS)
        for e, domain in enumerate(self.domains):
            look: dict[str, Any] = {"color": _GREY, "alpha": 0.4}
            if not many or e == self.errors.argmax():
                off = f"{_short(domain, 18)} (off by {100 * self.errors[e]:.0f} points)"
                look = {"color": _COLOURS[e % len(_COLOURS)], "label": off}
            marker = _MARKERS[e % len(_MARKERS)]
            ax.plot(self.confidence[e], self.accuracy[e], f"{marker}-", markersize=4, **look)
        ax.set_xlabel("confidence in the predicted class")
        ax.set_ylabel("accuracy")
        _in_percent(ax.xaxis, "accuracy")
        _in_percent(ax.yaxis, "accuracy")
        ax.set_title(self.name or "")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


@dataclass(eq=False)
class AdaptationCurveDisplay(Display):
    """Score on a new domain after adapting to more and more of its unlabelled rows.

    Half of the rows are scored, the others adapted to. The line is the mean over several random
    halves, and the band reaches from the lowest to the highest.

    Parameters
    ----------
    rows : array of shape (s,)
        Numbers of rows adapted to.
    scores : array of shape (repeats, s)
    unadapted : float
        Mean score without adapting.
    score_name : str
    name : str, optional

    Examples
    --------
    >>> from skdare import DARERegressor
    >>> from skdare.data import make_latent_domains
    >>> from skdare.displays import AdaptationCurveDisplay
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> train, new = data.domains != 3, data.domains == 3
    >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> AdaptationCurveDisplay.from_estimator(head, data.X[new], data.y[new]).rows
    array([  5,  10,  20,  50, 100, 150])
    """

    rows: np.ndarray
    scores: np.ndarray
    unadapted: float
    score_name: str
    name: str | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Array, y: Any, *, rows: Sequence[int] | None = None,
        repeats: int = 5, metric: Metric | None = None, name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Adapt a fitted head to rows of a new domain that has labels.

        Parameters
        ----------
        estimator : fitted head that adapts
            It adapts even if the safety check fails, to show the effect.
        X, y : rows of one new domain, and their targets
        rows : sequence of int, optional
            Numbers of rows to adapt to. Default: 5 to half of the rows.
        repeats : int, default=5
        metric, name, ax
            As in `DomainScoreDisplay.from_estimator`.
        """
        if not hasattr(estimator, "adapt") or not getattr(estimator, "adapts_", True):
            raise InputError(
                f"this {type(estimator).__name__} does not adapt", "pass a DARE head that does"
            )
        check_count("repeats", repeats)
        y = to_numpy(y)
        half = len(y) // 2
        if half < 2:
            raise InputError(f"X has {len(y)} rows", "pass at least 4, half of which are scored")
        steps = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
        counts = [n for n in steps if n < half] + [half] if rows is None else list(rows)
        for n in counts:
            check_number("rows", n, 2, half)
        metric, score_name = _metric(metric, of_numbers=is_regressor(estimator))
        rng = np.random.default_rng(0)
        scores = np.empty((repeats, 1 + len(counts)))
        for repeat in range(repeats):
            order = rng.permutation(len(y))
            test = np.sort(order[half:])
            heads = [estimator]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few rows are warned of time and again
                for n in counts:
                    some = _safe_indexing(X, np.sort(order[:n]))
                    heads.append(estimator.adapt(some, force=True))
            X_test = _safe_indexing(X, test)
            scores[repeat] = [metric(y[test], to_numpy(head.predict(X_test))) for head in heads]
        name = name or type(estimator).__name__
        unadapted = float(scores[:, 0].mean())
        return cls(np.array(counts), scores[:, 1:], unadapted, score_name, name).plot(ax)

    def _draw(self, ax: Axes) -> None:
        low, high = self.scores.min(axis=0), self.scores.max(axis=0)
        ax.fill_between(self.rows, low, high, color=_COLOURS[0], alpha=0.18, linewidth=0)
        ax.plot(self.rows, self.scores.mean(axis=0), "o-", color=_COLOURS[0], label="adapted")
        ax.axhline(self.unadapted, color=_GREY, linestyle="--", label="unadapted")
        ax.set_xscale("log")
        ax.set_xticks(self.rows, [f"{n:,}" for n in self.rows])
        ax.minorticks_off()
        ax.set_xlabel("unlabelled rows of the new domain that were seen")
        ax.set_ylabel(self.score_name)
        _in_percent(ax.yaxis, self.score_name)
        ax.set_title(self.name or "")
        ax.legend()


@dataclass(eq=False)
class ShrinkagePathDisplay(Display):
    """Score on each training domain, held out, by how far second moments are shrunk.

    Parameters
    ----------
    shrinkages : array of shape (s,)
    domains : sequence of str
    unadapted, adapted : array of shape (E, s)
        ``adapted`` is None for a head that does not adapt.
    score_name : str
    name : str, optional

    Examples
    --------
    >>> from skdare import DARERegressor
    >>> from skdare.data import make_latent_domains
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
    unadapted: np.ndarray
    adapted: np.ndarray | None
    score_name: str
    name: str | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Array, y: Any, *, domains: Collection[Label],
        shrinkages: Sequence[float] = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0),
        metric: Metric | None = None, name: str | None = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Fit copies of a head with each shrinkage, each without one domain, and score them on it.

        Parameters
        ----------
        estimator : DAREClassifier or DARERegressor
            It need not be fitted.
        X, y, domains : training rows, their targets, and where each came from
        shrinkages : sequence of float in [0, 1]
        metric, name, ax
            As in `DomainScoreDisplay.from_estimator`.
        """
        options = estimator.get_params(deep=False)
        if "shrinkage" not in options or "adaptation" not in options:
            raise InputError(
                f"a {type(estimator).__name__} has no one shrinkage to vary",
                "pass a DAREClassifier or a DARERegressor",
            )
        for value in shrinkages:
            check_number("shrinkages", value, 0.0, 1.0)
        metric, score_name = _metric(metric, of_numbers=is_regressor(estimator))
        y, where = to_numpy(y), to_numpy(domains)
        splits = list(LeaveOneDomainOut().split(X, domains=where))
        adapts = options["adaptation"] is not None
        scores = np.empty((2, len(splits), len(shrinkages)))
        for e, (train, test) in enumerate(splits):
            X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
            for i, shrinkage in enumerate(shrinkages):
                head = clone(estimator).set_params(shrinkage=shrinkage)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the same in every fold
                    head.fit(X_train, y[train], domains=where[train])
                    heads = [head, head.adapt(X_test) if adapts else head]
                scores[:, e, i] = [metric(y[test], to_numpy(h.predict(X_test))) for h in heads]
        name = name or type(estimator).__name__
        adapted = scores[1] if adapts else None
        names = [str(where[test[0]]) for _, test in splits]
        return cls(np.array(shrinkages), names, scores[0], adapted, score_name, name).plot(ax)

    def _draw(self, ax: Axes) -> None:
        lines = [("unadapted", self.unadapted, _GREY), ("adapted", self.adapted, _COLOURS[0])]
        for label, scores, colour in lines:
            if scores is not None:
                ax.plot(self.shrinkages, scores.T, color=colour, linewidth=0.6, alpha=0.5)
                ax.plot(self.shrinkages, scores.mean(axis=0), "o-", color=colour, label=label)
        ax.set_xlabel("shrinkage (thin: each held-out domain; thick: mean)")
        ax.set_ylabel(self.score_name)
        _in_percent(ax.yaxis, self.score_name)
        ax.set_title(self.name or "")
        ax.legend()


@dataclass(eq=False)
class DomainPairDisplay(Display):
    """Two training domains as ellipses, before and after the adjustment that adapting makes.

    Each panel is the plane in which the two differ most: the direction between their means, or, if
    these are the same, that in which their covariances differ most; and the next such direction.
    Ellipses are at two standard deviations.

    Parameters
    ----------
    domains : pair of str
    before, after : pair of (mean (2,), covariance (2, 2))

    Examples
    --------
    >>> from skdare import DAREClassifier
    >>> from skdare.data import make_latent_domains
    >>> from skdare.displays import DomainPairDisplay
    >>> data = make_latent_domains(random_state=0)
    >>> head = DAREClassifier().fit(data.X, data.y, domains=data.domains)
    >>> DomainPairDisplay.from_estimator(head, 0, 1).domains
    ('0', '1')
    """

    domains: tuple[str, str]
    before: Sequence[tuple[np.ndarray, np.ndarray]]
    after: Sequence[tuple[np.ndarray, np.ndarray]]

    panels: ClassVar[int] = 2

    @classmethod
    def from_estimator(cls, estimator: Any, first: Label, second: Label, *, ax: Any = None) -> Self:
        """Draw two training domains of a fitted head, as its preparation leaves their rows.

        Parameters
        ----------
        estimator : fitted DARE head
        first, second : labels of training domains
        ax : pair of matplotlib axes, optional
        """
        if not hasattr(estimator, "domain_fit_"):
            raise InputError(
                f"a {type(estimator).__name__} keeps nothing of its training domains",
                "pass a fitted DARE head",
            )
        fit = estimator.domain_fit_
        used = (fit.adaptation.fit if fit.adaptation is not None else fit.unseen).formulation
        usual = used.whitening.usual(fit.moments)
        adjustments = [Adjustment(1.0)] * len(fit.labels)
        for label in (first, second):
            if label not in fit.labels:
                raise unknown("training domain", label, fit.labels)
            e = fit.labels.index(label)
            if used.whitening.adjusts:
                adjustments[e] = used.whitening.root(fit.moments[e], usual, np.float64)
        adjustments = used.whitening.shifted(adjustments, fit.moments)
        before, after = [], []
        for e in (fit.labels.index(first), fit.labels.index(second)):
            mean, C = fit.moments[e].mean, fit.moments[e].second_moment(centered=True)
            before.append((mean, C))
            W = adjustments[e]
            after.append((W.rows(mean[None, :])[0], W.back(W.back(C).T)))
        planes = [_where_they_differ(*pair) for pair in (before, after)]
        return cls((str(first), str(second)), *planes).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.0, 3.6

    def _draw(self, axes: Sequence[Axes]) -> None:
        angles = np.linspace(0.0, 2.0 * np.pi, 200)
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        panels = {"before": self.before, "after adjustment": self.after}
        for ax, (title, pair) in zip(axes, panels.items(), strict=True):
            for name, (mean, C), colour in zip(self.domains, pair, _COLOURS, strict=False):
                values, vectors = np.linalg.eigh(C)
                x, y = (mean + 2.0 * circle @ (vectors * np.maximum(values, 0.0) ** 0.5).T).T
                ax.fill(x, y, color=colour, alpha=0.12, linewidth=0)
                ax.plot(x, y, color=colour)
                ax.plot(*mean, "o", color=colour, label=_short(name))
            same = np.allclose(pair[0][0], pair[1][0])
            ax.set_aspect("equal", adjustable="datalim")
            ax.set_title(title)
            ax.set_xlabel("where covariances differ most" if same else "between the means")
            ax.set_ylabel("and second most" if same else "where covariances differ most")
        axes[0].legend()


def _where_they_differ(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Both domains in the plane in which they differ most, with their middle at the origin."""

    def largest(S: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(S)
        return vectors[:, np.abs(values).argmax()]

    spread = other[1] - one[1]
    first = other[0] - one[0]
    if np.linalg.norm(first) <= 1e-9 * np.trace(one[1] + other[1]) ** 0.5:  # both centred
        first = largest(spread)
    first = first / np.linalg.norm(first)
    rest = np.eye(len(first)) - np.outer(first, first)
    second = largest(rest @ spread @ rest)
    second = second - first * (first @ second)
    second = second / max(float(np.linalg.norm(second)), np.finfo(float).tiny)
    Q = np.stack([first, second], axis=1)
    middle = 0.5 * (one[0] + other[0])
    return [(Q.T @ (mean - middle), Q.T @ C @ Q) for mean, C in (one, other)]
