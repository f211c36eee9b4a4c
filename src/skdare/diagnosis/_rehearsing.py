"""The dress rehearsal: copies of a head, each fitted without one training domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skdare._validation import warn
from skdare.arrays import Array, compact, take
from skdare.diagnosis._rehearsal import Rehearsal, Rehearsed
from skdare.diagnosis._task import Classes, Numbers, Reading, Task, read
from skdare.diagnosis._training import TrainingDomains
from skdare.whitening.adjustment import adjustment_error
from skdare.whitening.domain_statistics import DomainStatistics, Shared
from skdare.whitening.whitening import RowsAlike

# Share of the rows of every other domain that a rehearsal does not train on: what one is used to
# is read there. Two rows of a domain are always left, for its covariance.
ASIDE = 0.2
# Unlabelled rows to adapt by, beside all that a domain has.
TRIED_ROWS = (25, 100, 400, 1600, 6400)
# Labelled rows to retrain by: so many a class, or for a regression so many tens.
LABELLED = (5, 20, 50)


@dataclass(frozen=True)
class Copies:
    """How copies of a head are made and fitted.

    Parameters
    ----------
    same : callable
        An unfitted head with the same options.
    plain : callable
        One that neither adjusts nor adapts: what one would retrain with where there are labels.
    fit : callable
        Called with head, statistics to share, X, y, domains and weights.
    """

    same: Callable[[], Any]
    plain: Callable[[], Any]
    fit: Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Rehearsing:
    """Runs the rehearsal of one head on its training rows.

    Parameters
    ----------
    copies : Copies
    training : TrainingDomains
        Of the head itself, for the errors of its adjustments.
    X : array of shape (n, d)
    y, weight : arrays of shape (n,)
    numbers : sequence of arrays
        Rows of each domain of ``training``, in its order.
    classes : array, optional
        Of the head; None for a regression.
    progress : callable, optional
        Called with the name of each domain before it is held out.
    """

    copies: Copies
    training: TrainingDomains
    X: Array
    y: np.ndarray
    weight: np.ndarray
    numbers: Sequence[np.ndarray]
    classes: np.ndarray | None
    progress: Callable[[str], object] | None = None
    # Of the rows that are trained on, which are the same whoever is held out.
    _shared: Shared = field(default_factory=dict)

    def __call__(self) -> Rehearsal:
        """Hold every domain out in turn."""
        with warnings.catch_warnings(record=True) as heard:
            # What they say of a domain, the diagnosis says better.
            warnings.simplefilter("always")
            found = tuple(self._rehearsed())
        missed = sum(issubclass(one.category, ConvergenceWarning) for one in heard)
        if missed:
            warn(
                f"{missed} fits of the rehearsal did not converge; raise max_iter, or what "
                "diagnose says of scores is rough",
                ConvergenceWarning,
            )
        if not found:
            raise ValueError(
                "without any one of the domains the others have a single class, or rows that are "
                "all the same; rehearse with domains that have several"
            )
        return Rehearsal(found, self.task)

    @cached_property
    def task(self) -> Task:
        """What a prediction is worth."""
        if self.classes is None:
            return Numbers(float(np.var(self.y)))
        _, counts = np.unique(self.y, return_counts=True)
        return Classes(float(counts.max() / len(self.y)))

    @cached_property
    def _aside(self) -> list[np.ndarray]:
        """Which rows of each domain are not trained on."""
        rng = np.random.default_rng(0)
        found = []
        for rows in self.numbers:
            count = max(min(round(ASIDE * len(rows)), len(rows) - 2), 0)
            found.append(np.isin(np.arange(len(rows)), rng.permutation(len(rows))[:count]))
        return found

    def _rehearsed(self) -> Iterator[Rehearsed]:
        for e in range(len(self.numbers)):
            others = [o for o in range(len(self.numbers)) if o != e]
            left = np.concatenate([self.y[self._train(o)] for o in others])
            if self.classes is None or len(np.unique(left)) > 1:
                if self.progress is not None:
                    self.progress(self.training.names[e])
                with suppress(RowsAlike):  # without this domain no feature varies
                    yield self._one(e, others)

    def _train(self, e: int) -> np.ndarray:
        return self.numbers[e][~self._aside[e]]

    def _one(self, e: int, others: Sequence[int]) -> Rehearsed:
        head = self._fit(self.copies.same(), others)
        aside = np.sort(np.concatenate([self.numbers[o][self._aside[o]] for o in others]))
        if not len(aside):
            raise ValueError(
                "the domains have too few rows to set any aside; rehearsing needs 3 in some domain"
            )
        usual = read(head, self.X, aside)
        rows, y = take(self.X, compact(self.numbers[e])), self.y[self.numbers[e]]
        found = read(head, rows)
        adapted, disagreement = self._adapted(head, rows, y, found)
        return Rehearsed(
            self.training.names[e],
            len(y),
            self.task.score(usual.values, self.y[aside]),
            self.task.score(found.values, y),
            found.confidence,
            usual.confidence,
            disagreement,
            adapted,
            self._retrained(e, others),
            self._errors(e, rows),
            head.training_domains().shift(self.training.moments[e]).at_least,
        )

    def _fit(self, head: Any, others: Sequence[int], labelled: np.ndarray | None = None) -> Any:
        """On rows of others that are not set aside, and on labelled ones of the held-out domain."""
        # Rows that are left out have no weight, so that X is neither copied nor loaded.
        weight, domains, shared = np.zeros(len(self.y)), self._domains, self._shared
        for o in others:
            weight[self._train(o)] = self.weight[self._train(o)]
        if labelled is not None:
            weight[labelled], domains = self.weight[labelled], domains.copy()
            # These rows differ from fit to fit, so what is known of them is not shared.
            domains[labelled], shared = len(self.numbers), dict(shared)
        return self.copies.fit(head, shared, self.X, self.y, domains, weight)

    @cached_property
    def _domains(self) -> np.ndarray:
        """The number of each row's domain."""
        domains = np.zeros(len(self.y), dtype=int)
        for e, rows in enumerate(self.numbers):
            domains[rows] = e
        return domains

    def _adapted(
        self, head: Any, rows: Array, y: np.ndarray, found: Reading
    ) -> tuple[dict[int, float], float | None]:
        """Scores after adapting, and the disagreement where all rows were used."""
        scores: dict[int, float] = {}
        disagreement = None
        if head.adaptation_ is None or len(y) < 2:
            return scores, disagreement
        for some in self._samples(len(y)):
            with suppress(RowsAlike):  # to rows that do not differ nobody can adapt
                values = read(head.adapt(take(rows, some)), rows).values
                scores[len(some)] = self.task.score(values, y)
                disagreement = self.task.disagreement(found.values, values)
        return scores, disagreement if len(y) in scores else None

    @staticmethod
    def _samples(n: int) -> Iterator[np.ndarray]:
        """Some of the rows, more each time, and all at the end."""
        order = np.random.default_rng(0).permutation(n)
        for count in [*(count for count in TRIED_ROWS if count < n), n]:
            yield np.sort(order[:count])

    def _retrained(self, e: int, others: Sequence[int]) -> dict[int, float]:
        """Scores on the other rows of a domain after retraining with some of its labels."""
        scores: dict[int, float] = {}
        order = np.random.default_rng(0).permutation(self.numbers[e])
        for each in LABELLED:
            n = each * (10 if self.classes is None else len(self.classes))
            if 2 * n > len(order):
                break
            head = self._fit(self.copies.plain(), others, np.sort(order[:n]))
            rest = np.sort(order[n:])
            values = read(head, self.X, rest).values
            scores[n] = self.task.score(values, self.y[rest])
        return scores

    def _errors(self, e: int, rows: Array) -> Mapping[int, float]:
        """Of the others' guess for a domain, by how many of its rows are known."""
        others = self.training.without(e)
        if not others.whitening.adjust or rows.shape[0] < 2:
            return {}
        errors = {}
        for some in self._samples(rows.shape[0]):
            with suppress(RowsAlike):
                own = own_adjustment(others, rows, some)
                errors[len(some)] = adjustment_error(others.guess, own)
        return errors


def own_adjustment(training: TrainingDomains, rows: Array, numbers: np.ndarray) -> Any:
    """The adjustment of some rows of a domain that is not one of these."""
    statistics = DomainStatistics(rows, compact(numbers), np.ones(len(numbers)))
    return statistics.adjustment(training.whitening, training.common_like(rows)).to_numpy()
