"""Scores of held-out training domains: unadapted, adapted, and with a few labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdare.adapting.new_domain import NewDomain
from skdare.arrays import Array, length, take
from skdare.checks import Label
from skdare.errors import InputError, counted
from skdare.fitting.domain_fit import CanonicalFit, DomainFit
from skdare.fitting.hold_out import HeldOut
from skdare.fitting.score import Metric, predictions

# Numbers of unlabelled rows to adapt to, next to all rows of a domain, and of labels.
TRIED_ROWS = (25, 100, 400, 1600)
TRIED_LABELS = (20, 50, 200)
# A fit to labels takes as long as dozens of adapted scores. Of more domains some are labelled,
# evenly spread, and training counts as this many labels: to find out how many is worth less than a
# point on most sets, and takes ten times as long.
_MOST_LABELLED = 4
_PRIOR_LABELS = 30.0
# How far a fit to labels is solved.
_TOL = 1e-3
_MAX_ITER = 60
# Held-out domains that score above this were hardly unseen.
SATURATED = 0.95


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
        """The unadapted score if nothing adapts."""
        return self.unadapted if self.adapted is None else self.adapted.scores[-1]


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Scores of the training domains, each held out in turn."""

    metric: Metric
    domains: list[Rehearsed]

    @property
    def saturated(self) -> bool:
        """Whether held-out domains score as on features that were trained on them."""
        unadapted = np.mean([scores.unadapted for scores in self.domains])
        return self.metric.name != "r2" and bool(unadapted > SATURATED)

    def __str__(self) -> str:
        written = self.metric.written
        lines = [f"{self.metric.words} of {counted(len(self.domains), 'held-out domain')}"]
        width = max(len(str(scores.domain)) for scores in self.domains)
        for scores in self.domains:
            line = f"  {scores.domain!s:<{width}}  unadapted {written(scores.unadapted):>5}"
            if scores.adapted is not None:
                line += f", adapted {written(scores.adapted_by_all):>5}"
            if scores.labelled is not None:
                n = scores.labelled.numbers[-1]
                line += f", with {n} labels {written(scores.labelled.scores[-1]):>5}"
            lines.append(line)
        return "\n".join(lines)


def rehearse(fits: Iterable[tuple[HeldOut, DomainFit]], metric: Metric) -> Rehearsal:
    """Score, on each held-out domain, a fit to the others, unadapted and adapted."""
    rehearsed: dict[int, Rehearsed] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the scores will show
        for held, fit in fits:
            index = held.problem.index
            large = [e for e, rows in enumerate(index) if length(rows) >= 2 * TRIED_LABELS[0]]
            labelled = large[:: -(-len(large) // _MOST_LABELLED) or 1]
            for e in held.domains:
                rehearsed[e] = _rehearsed(held, e, fit, metric, labels=e in labelled)
    if not rehearsed:
        raise InputError(
            "no training domain can be held out: without it the others have a single class, or "
            "rows that are all the same",
            "give rows of more domains",
        )
    return Rehearsal(metric, [rehearsed[e] for e in sorted(rehearsed)])


def _rehearsed(held: HeldOut, e: int, fit: DomainFit, metric: Metric, *, labels: bool) -> Rehearsed:
    problem = held.problem
    targets = problem.targets
    X = take(problem.X, problem.index[e])
    T = problem.T[problem.index[e]]
    n = len(T)
    order = np.random.default_rng(0).permutation(n)

    def adapted_to(rows: Array, y: Any = None) -> tuple[np.ndarray, np.ndarray]:
        new = NewDomain(fit, targets, problem.class_weight, prior_labels=_PRIOR_LABELS)
        weights = new.add(rows, y).weights()
        return weights.V, weights.b

    unadapted = predictions(targets, X, fit.unseen.raw_weights())
    result = Rehearsed(problem.labels[e], n, metric.score(T, unadapted))
    if n < 2:
        return result
    if fit.adaptation is not None:
        numbers = [*(m for m in TRIED_ROWS if m < n), n]
        by_rows = []
        with suppress(InputError):  # to rows that do not differ nothing can adapt
            for m in numbers:
                weights = adapted_to(take(X, np.sort(order[:m])))
                adapted = predictions(targets, X, weights)
                by_rows.append(metric.score(T, adapted))
        if len(by_rows) < len(numbers):
            return result
        result = replace(
            result,
            adapted=Curve(numbers, by_rows),
            disagreement=metric.disagreement(unadapted, adapted),
            both_right=metric.both_right(T, unadapted, adapted),
        )
    # Of at most half of the rows: labels are for the sake of the others.
    tried = [m for m in TRIED_LABELS if labels and 2 * m <= n]
    if not tried or (fit.adaptation is None and fit.declined is None):
        return result
    with_labels = []
    for m in tried:
        y = np.full(n, None, dtype=object)
        y[order[:m]] = targets.decode(T[order[:m]])
        rest = np.sort(order[m:])
        predicted = predictions(targets, take(X, rest), adapted_to(X, y))
        with_labels.append(metric.score(T[rest], predicted))
    return replace(result, labelled=Curve(tried, with_labels))


def for_rehearsal(fit: DomainFit) -> DomainFit:
    """The same fit, from which a fit to labels is solved roughly: dozens of them are rehearsed."""

    def roughly(canonical: CanonicalFit) -> CanonicalFit:
        how = canonical.formulation
        how = replace(how, tol=max(how.tol, _TOL), max_iter=min(how.max_iter, _MAX_ITER))
        return replace(canonical, formulation=how)

    adaptation = fit.adaptation
    if adaptation is not None:
        adaptation = replace(adaptation, fit=roughly(adaptation.fit))
    return replace(fit, unseen=roughly(fit.unseen), adaptation=adaptation)
