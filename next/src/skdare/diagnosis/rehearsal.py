"""What held-out training domains showed: scores unadapted, adapted, and with few labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from skdare.adapting.adapter import Adapter, NewWeights
from skdare.arrays import Array, length, scores, take, to_numpy
from skdare.errors import InputError, counted
from skdare.fitting.domain_fit import DomainFit, Weights
from skdare.fitting.hold_out import HeldOut
from skdare.fitting.problem import (
    Classes,
    ClassWeight,
    Label,
    Numbers,
    Problem,
    Targets,
    predicted_numbers,
)

# Unlabelled rows to adapt to, besides all that a domain has, and labels to adapt with.
TRIED_ROWS = (25, 100, 400, 1600)
TRIED_LABELS = (20, 50, 200)
# A fit to labels takes as long as dozens of adapted scores. Of more domains some are labelled,
# evenly spread, and training counts as this many labels: to find out how many is worth less than a
# point on most sets, and takes ten times as long.
_MOST_LABELLED = 4
_PRIOR_LABELS = 30.0
# Held-out domains that score above this were hardly unseen.
SATURATED = 0.95


@dataclass(frozen=True)
class Scale:
    """What predictions are worth: 1 is perfect, ``guessing`` is what one gets without features."""

    metric: Literal["accuracy", "balanced_accuracy", "r2"]
    guessing: float

    @classmethod
    def of(cls, problem: Problem, *, balanced: bool) -> Self:
        if isinstance(problem.targets, Numbers):
            return cls("r2", 0.0)
        k = len(problem.targets.classes)
        if balanced:
            return cls("balanced_accuracy", 1.0 / k)
        counts = np.sum([np.bincount(problem.T[i], minlength=k) for i in problem.index], axis=0)
        return cls("accuracy", float(counts.max() / counts.sum()))

    @property
    def least(self) -> float:
        """Of a domain of little variance R² has no bound; less than this counts as this."""
        return -1.0 if self.metric == "r2" else 0.0

    def score(self, predicted: np.ndarray, T: np.ndarray) -> float:
        if self.metric != "r2":
            return self._mean(predicted == T, T)
        variance = float(np.var(T))
        error = float(np.mean((predicted - T) ** 2))
        if not variance > 0:
            return 1.0 if error == 0 else self.least
        return max(1.0 - error / variance, self.least)

    def disagreement(self, unadapted: np.ndarray, adapted: np.ndarray) -> float:
        """Share of the rows that are predicted differently; of numbers, the mean squared difference
        over the variance of the training targets, which are standardised."""
        if self.metric == "r2":
            return float(np.mean((unadapted - adapted) ** 2))
        return self._mean(unadapted != adapted, adapted)

    def both_right(self, a: np.ndarray, b: np.ndarray, T: np.ndarray) -> float | None:
        """Share of the rows that both predict right; no number is just right."""
        return None if self.metric == "r2" else self._mean((a == T) & (b == T), T)

    def _mean(self, holds: np.ndarray, codes: np.ndarray) -> float:
        if self.metric == "accuracy":
            return float(holds.mean())
        return float(np.mean([holds[codes == one].mean() for one in np.unique(codes)]))

    @property
    def words(self) -> str:
        return "R²" if self.metric == "r2" else self.metric.replace("_", " ")

    def written(self, score: float) -> str:
        """With a space before the sign at which no line ends."""
        return f"{score:.2f}" if self.metric == "r2" else f"{100 * score:.0f}\u00a0%"

    def differences(self, scores: Iterable[float]) -> str:
        """With their signs, and the unit once."""
        if self.metric == "r2":
            return ", ".join(f"{score:+.2f}" for score in scores)
        return ", ".join(f"{100 * score:+.0f}" for score in scores) + " points"


@dataclass(frozen=True)
class Curve:
    """Scores by a number of rows or of labels."""

    numbers: list[int]
    scores: list[float]

    def at(self, n: float) -> float:
        """The score at n, linear in its logarithm; beyond the ends, that of the end."""
        return float(np.interp(np.log(n), np.log(self.numbers), self.scores))


@dataclass(frozen=True)
class Rehearsed:
    """One training domain, held out, and the scores of models that were fitted without it."""

    domain: Label
    rows: int
    unadapted: float
    adapted: Curve | None = None  # by how many of its rows; the last is all of them
    labelled: Curve | None = None  # on its other rows, by how many of its labels
    disagreement: float | None = None  # of the unadapted and the adapted model
    both_right: float | None = None

    @property
    def adapted_by_all(self) -> float:
        """Unadapted, where nothing adapts."""
        return self.unadapted if self.adapted is None else self.adapted.scores[-1]


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What holding each training domain out showed."""

    scale: Scale
    domains: list[Rehearsed]

    @property
    def saturated(self) -> bool:
        """Whether held-out domains score as on features that were trained on them."""
        unadapted = np.mean([one.unadapted for one in self.domains])
        return self.scale.metric != "r2" and bool(unadapted > SATURATED)

    def __str__(self) -> str:
        lines = [f"{self.scale.words} of {counted(len(self.domains), 'held-out domain')}"]
        width = max(len(str(one.domain)) for one in self.domains)
        for one in self.domains:
            line = f"  {one.domain!s:<{width}}  unadapted {self.scale.written(one.unadapted):>5}"
            if one.adapted is not None:
                line += f", adapted {self.scale.written(one.adapted_by_all):>5}"
            if one.labelled is not None:
                n = one.labelled.numbers[-1]
                line += f", with {n} labels {self.scale.written(one.labelled.scores[-1]):>5}"
            lines.append(line)
        return "\n".join(lines)


@dataclass(eq=False)
class FoldHead:
    """A model that was fitted without a fold, as an adapter sees heads."""

    targets_: Targets
    domain_fit_: DomainFit
    class_weight: ClassWeight
    weights: Weights

    def _prepared(self, X: Array) -> Array:
        return X

    def _with_weights(self, new: NewWeights) -> Self:
        return replace(self, weights=(new.V, new.b))

    def adapted(self, X: Array, y: np.ndarray | None = None) -> Self:
        return Adapter(self, prior_labels=_PRIOR_LABELS).partial_fit(X, y).head_

    def predictions(self, X: Array) -> np.ndarray:
        return predictions(self.targets_, X, self.weights)


def rehearse(folds: Iterable[tuple[HeldOut, DomainFit]], scale: Scale) -> Rehearsal:
    """Score, on each held-out domain, what was fitted without it, unadapted and adapted to it."""
    rehearsed: dict[int, Rehearsed] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say of a held-out domain, scores say better
        for held, fit in folds:
            problem = held.problem
            large = [e for e, i in enumerate(problem.index) if length(i) >= 2 * TRIED_LABELS[0]]
            labelled = large[:: -(-len(large) // _MOST_LABELLED) or 1]
            weights = fit.unseen.raw_weights()
            head = FoldHead(problem.targets, fit, problem.class_weight, weights)
            for e in held.domains:
                rehearsed[e] = _rehearsed(problem, e, head, scale, labels=e in labelled)
    if not rehearsed:
        raise InputError(
            "no training domain can be held out: without it the others have a single class, or "
            "rows that are all the same",
            "give rows of more domains",
        )
    return Rehearsal(scale, [rehearsed[e] for e in sorted(rehearsed)])


def _rehearsed(
    problem: Problem, e: int, head: FoldHead, scale: Scale, *, labels: bool
) -> Rehearsed:
    X = take(problem.X, problem.index[e])
    T = problem.T[problem.index[e]]
    n = len(T)
    fit = head.domain_fit_
    order = np.random.default_rng(0).permutation(n)
    unadapted = head.predictions(X)
    one = Rehearsed(problem.labels[e], n, scale.score(unadapted, T))
    if n < 2:
        return one
    if fit.adaptation is not None:
        numbers = [*(m for m in TRIED_ROWS if m < n), n]
        by_rows = []
        with suppress(InputError):  # to rows that do not differ nobody can adapt
            for m in numbers:
                adapted = head.adapted(take(X, np.sort(order[:m]))).predictions(X)
                by_rows.append(scale.score(adapted, T))
        if len(by_rows) < len(numbers):
            return one
        one = replace(
            one,
            adapted=Curve(numbers, by_rows),
            disagreement=scale.disagreement(unadapted, adapted),
            both_right=scale.both_right(unadapted, adapted, T),
        )
    # Of half of the rows at most: labels are for the sake of the others.
    tried = [m for m in TRIED_LABELS if labels and 2 * m <= n]
    if not tried or (fit.adaptation is None and fit.declined is None):
        return one
    with_labels = []
    for m in tried:
        some = np.full(n, None, dtype=object)
        some[order[:m]] = problem.targets.decode(T[order[:m]])
        rest = np.sort(order[m:])
        predicted = head.adapted(X, some).predictions(take(X, rest))
        with_labels.append(scale.score(predicted, T[rest]))
    return replace(one, labelled=Curve(tried, with_labels))


def predictions(targets: Targets, X: Array, weights: Weights) -> np.ndarray:
    """Class numbers, or standardised numbers."""
    F = to_numpy(scores(X, *weights))
    return predicted_numbers(F) if isinstance(targets, Classes) else F[:, 0]
