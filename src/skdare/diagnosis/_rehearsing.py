"""The dress rehearsal: copies of a head, each fitted without one training domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, column_or_1d

from skdare._logger import Progress, tell
from skdare._validation import (
    DomainRows,
    InputError,
    Labels,
    check_count,
    check_domains,
    check_features,
    check_finite_targets,
    check_groups,
    check_weights,
    warn,
)
from skdare.arrays import Array, compact, is_foreign, take, to_numpy
from skdare.choosing.folds import units_of
from skdare.diagnosis._left_out_scores import LeftOutScores, rows_of_each
from skdare.diagnosis._nonconformity import nonconformity, quantiles_of
from skdare.diagnosis._rehearsal import Rehearsal, Rehearsed
from skdare.diagnosis._score_scale import (
    AccuracyScale,
    BalancedAccuracyScale,
    R2Scale,
    Reading,
    ScoreScale,
    read,
)
from skdare.diagnosis._training import TrainingDomains
from skdare.engines import Placement
from skdare.fitting.domain_fit import domain_fit_of
from skdare.fitting.preparation import check_in_memory, check_preparation
from skdare.heads import fit_sharing
from skdare.heads._adjusted import AdjustedHead
from skdare.objective.scores import probabilities
from skdare.whitening.adjustment import adjustment_error
from skdare.whitening.cache import DomainCache, SharedCaches
from skdare.whitening.moments import Moments
from skdare.whitening.whitening import RowsAlike

# Unlabelled rows to adapt by, beside all that a domain has.
TRIED_ROWS = (25, 100, 400, 1600, 6400)
# Labelled rows to adapt with: this many for each class, or for a regression ten times this many.
LABELLED = (5, 20, 50)


def rehearse(
    model: Any,
    X: Array,
    y: Array,
    domains: Labels | None = None,
    sample_weight: Array | None = None,
    *,
    groups: Labels | None = None,
    progress: Callable[[str], object] | None = None,
    verbose: int = 0,
) -> Rehearsal:
    """Hold each training domain of a fitted head out in turn; see `DAREClassifier.rehearse`.

    What came of it is kept in the head, for `diagnose`.

    Parameters
    ----------
    model : fitted head, or Pipeline that ends in one
        The steps before the head are fitted anew to the other domains whenever one is held out.
    X, y, domains, sample_weight
        The training rows, as given to ``fit``.
    groups : sequence of n labels, optional
        The patient, song or specimen that each row is of, whose rows are never on both sides.
    progress : callable, optional
        Called with the name of each domain before it is held out.
    verbose : int, default=0
        1 prints a line now and then.

    Returns
    -------
    Rehearsal
    """
    check_count("verbose", verbose, 0)
    steps, head = steps_and_head(model)
    check_diagnosable(head)
    if head.get_params() != head._fitted_params:
        raise ValueError("parameters were changed since fit; fit again, then rehearse")
    if groups is None and head._had_groups:
        raise InputError(
            "groups is None, and fit was given groups: their rows would be on both sides",
            "pass the same groups to rehearse",
            argument="groups",
        )
    counted = Progress("rehearsing", len(head.domains_), shown=verbose > 0)
    with Placement(head.engine) as placement:
        if steps is None and head.preparation_ is None:
            X = placement.from_disk(head._without_names(X))
            X = check_features(head, X, reset=False)
            X = placement.from_memory(X)
        else:
            X = X if hasattr(X, "shape") else np.asarray(X)
            check_in_memory(X)
        y = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True)
        _check_targets(head, y, X.shape[0])
        weight = check_weights(sample_weight, len(y))
        training = TrainingDomains.of(head)
        numbers = _rows_by_domain(check_domains(domains, len(y), weight), training, len(y))
        together = None if groups is None else _Groups.of(groups, len(y), numbers, training)
        rehearsing = Rehearsing(
            head, training, X, y, weight, numbers, progress, steps, together, counted.done
        )
        rehearsal = rehearsing()
    head.rehearsal_ = rehearsal
    count = len(rehearsal.domains)
    tell(f"rehearsed on {count} domains in {counted.seconds:.0f} s", shown=verbose > 0)
    return rehearsal


def steps_and_head(model: Any) -> tuple[Pipeline | None, Any]:
    """The steps of a pipeline before its head, if any, none of which looks at targets; the head."""
    head = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(head, AdjustedHead):
        raise TypeError(
            f"a {type(head).__name__} keeps nothing of its training domains; pass a fitted DARE "
            "head, or a Pipeline that ends in one"
        )
    if head is model or len(model.steps) == 1:
        return None, head
    steps = model[:-1]
    check_preparation(steps, "the pipeline")
    return steps, head


def check_diagnosable(head: Any) -> None:
    """The head is fitted, knows its training domains, and was not adapted."""
    domain_fit_of(head)
    if head.adapted_rows_ is not None:
        raise ValueError("this head was adapted; diagnose the head that it came from")


def _check_targets(head: Any, y: np.ndarray, rows: int) -> None:
    """The checks that fit makes of targets, and that they are those of this head."""
    if len(y) != rows:
        raise ValueError(f"y has {len(y)} entries but X has {rows} rows; give one a row")
    check_finite_targets(y)
    if is_regressor(head):
        if not np.var(y) > 0:
            raise ValueError("y is the same in every row; there is nothing to rehearse")
        return
    unknown = np.setdiff1d(y, head.classes_)
    if len(unknown):
        raise ValueError(
            f"y has the class {unknown[0]!r}, which the head was not fitted to; pass the "
            "training rows"
        )


def _rows_by_domain(rows: DomainRows, training: TrainingDomains, n: int) -> list[np.ndarray]:
    """Row numbers of each training domain."""
    if set(rows.labels) != set(training.labels):
        raise ValueError(
            f"these rows have the domains {_listed(rows.labels)}, and the head was fitted to "
            f"{_listed(training.labels)}; pass the training rows"
        )
    if len(rows.labels) < 2:
        raise ValueError("rehearsing holds a domain out, and there is 1; it needs at least 2")
    index = dict(zip(rows.labels, rows.index, strict=True))
    return [np.arange(n)[index[label]] for label in training.labels]


def _listed(labels: Iterable[Hashable]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


@dataclass(frozen=True, eq=False)
class Rehearsing:
    """Runs the rehearsal of one head on its training rows.

    Parameters
    ----------
    head : fitted head
        Copies of it are fitted.
    training : TrainingDomains
        Of the head itself, for the errors of its adjustments.
    X : array of shape (n, d)
    y, weight : arrays of shape (n,)
    numbers : sequence of arrays
        Rows of each domain of ``training``, in its order.
    progress : callable, optional
        Called with the name of each domain before it is held out.
    steps : Pipeline, optional
        What rows go through before the head: fitted as the head was, and cloned.
    groups : _Groups, optional
        Rows that are never on both sides.
    done : callable
        Called with the name of each domain once it was held out.
    """

    head: Any
    training: TrainingDomains
    X: Array
    y: np.ndarray
    weight: np.ndarray
    numbers: Sequence[np.ndarray]
    progress: Callable[[str], object] | None = None
    steps: Pipeline | None = None
    groups: _Groups | None = None
    done: Callable[[str], object] = str
    # Of the rows that are trained on, which are the same whoever is held out.
    _shared: SharedCaches = field(default_factory=dict)
    # Of each domain that was held out, where there are classes.
    _left_out: list[LeftOutScores] = field(default_factory=list)

    @property
    def classes(self) -> np.ndarray | None:
        """Classes of the head; None for a regression."""
        return None if is_regressor(self.head) else self.head.classes_

    def __call__(self) -> Rehearsal:
        """Hold every domain out in turn."""
        with warnings.catch_warnings(record=True) as heard:
            # What they say of a domain, the diagnosis says better.
            warnings.simplefilter("always")
            domains = tuple(self._rehearsed())
        missed = sum(issubclass(one.category, ConvergenceWarning) for one in heard)
        if missed:
            warn(
                f"{missed} fits of the rehearsal did not converge; raise max_iter, or what "
                "diagnose says of scores is rough",
                ConvergenceWarning,
            )
        if not domains:
            raise ValueError(
                "without any one of the domains the others have a single class, or rows that are "
                "all the same; rehearse with domains that have several"
            )
        return Rehearsal(domains, self.task, LeftOutScores.joined(self._left_out))

    @cached_property
    def task(self) -> ScoreScale:
        """What a prediction is worth."""
        if self.classes is None:
            return R2Scale(float(np.var(self.y)))
        if self.head._balances_classes:
            return BalancedAccuracyScale(1.0 / len(self.classes))
        _, counts = np.unique(self.y, return_counts=True)
        return AccuracyScale(float(counts.max() / len(self.y)))

    def _rehearsed(self) -> Iterator[Rehearsed]:
        for e in range(len(self.numbers)):
            tied = [e] if self.groups is None else self.groups.unit_of(e)
            others = [o for o in range(len(self.numbers)) if o not in tied]
            left = np.concatenate([self.y[self.numbers[o]] for o in others])
            if self.classes is None or len(np.unique(left)) > 1:
                if self.progress is not None:
                    self.progress(self.training.names[e])
                with suppress(RowsAlike):  # without this domain no feature varies
                    yield self._one(e, others)
                self.done(self.training.names[e])

    def _one(self, e: int, others: Sequence[int]) -> Rehearsed:
        fold = self._fold(others)
        head, X = fold.fitted(self.head._rehearsal_copy())
        rows = take(X, compact(self.numbers[e]))
        y = self.y[self.numbers[e]]
        reading = read(head, rows)
        adapted = self._adapted(head, rows, y, reading)
        if self.classes is not None:
            codes = np.searchsorted(self.classes, self.y)
            known = np.unique(np.concatenate([codes[self.numbers[o]] for o in others]))
            most = rows_of_each(len(self.numbers))
            own = codes[self.numbers[e]]
            self._left_out.append(LeftOutScores.of_domain(head, rows, own, known, most))
        as_first = X is self.X
        moments = self.training.moments[e] if as_first else Moments.of(rows).to_numpy()
        return Rehearsed(
            self.training.names[e],
            len(y),
            self.task.score(reading.values, y),
            adapted.disagreement,
            adapted.both_right,
            adapted.scores,
            self._labelled(head, rows, y),
            self._errors(e, rows if as_first else self._rows_of_head(e)),
            TrainingDomains.of(head).shift(moments).at_least,
            _nonconformity(head, reading, y),
            adapted.nonconformity,
        )

    def _fold(self, others: Sequence[int]) -> _Fold:
        """The rows that the others' are trained with, prepared by them alone."""
        # Rows that are left out have no weight, so that X is neither copied nor loaded.
        weight = np.zeros(len(self.y))
        for o in others:
            weight[self.numbers[o]] = self.weight[self.numbers[o]]
        X = self.X
        shared = self._shared
        if self.steps is not None:
            steps = clone(self.steps).fit(_safe_indexing(X, np.flatnonzero(weight)))
            X = steps.transform(X)
            shared = {}
        codes = None if self.groups is None else self.groups.codes_among(others)
        return _Fold(X, self.y, weight, self._domains, shared, codes)

    def _rows_of_head(self, e: int) -> Array:
        """Rows of a domain as the head itself sees them."""
        rows = _safe_indexing(self.X, self.numbers[e])
        return self.head._inner_rows(rows if self.steps is None else self.steps.transform(rows))

    @cached_property
    def _domains(self) -> np.ndarray:
        """The number of each row's domain."""
        domains = np.zeros(len(self.y), dtype=int)
        for e, rows in enumerate(self.numbers):
            domains[rows] = e
        return domains

    def _adapted(self, head: Any, rows: Array, y: np.ndarray, reading: Reading) -> AdaptedScores:
        """Scores after adapting by some rows and by all."""
        scores: dict[int, float] = {}
        before = reading.values
        # A head that does not adapt agrees with itself.
        both_right = self.task.both_right(before, before, y)
        if domain_fit_of(head).adaptation is None or len(y) < 2:
            return AdaptedScores(scores, None, both_right)
        by_all = None
        for some in self._samples(len(y)):
            with suppress(RowsAlike):  # to rows that do not differ nobody can adapt
                by_all = read(head.adapt(take(rows, some)), rows)
                scores[len(some)] = self.task.score(by_all.values, y)
        if by_all is None or len(y) not in scores:
            return AdaptedScores(scores, None, both_right)
        both_right = self.task.both_right(before, by_all.values, y)
        disagreement = self.task.disagreement(before, by_all.values)
        return AdaptedScores(scores, disagreement, both_right, _nonconformity(head, by_all, y))

    @staticmethod
    def _samples(n: int) -> Iterator[np.ndarray]:
        """Some of the rows, more each time, and all at the end."""
        order = np.random.default_rng(0).permutation(n)
        for count in [*(count for count in TRIED_ROWS if count < n), n]:
            yield np.sort(order[:count])

    def _labelled(self, head: Any, rows: Array, y: np.ndarray) -> dict[int, float]:
        """Scores on the other rows of a domain after adapting with some of its labels."""
        scores: dict[int, float] = {}
        fit = domain_fit_of(head)
        if fit.adaptation is None and fit.declined is None:
            return scores
        order = np.random.default_rng(0).permutation(len(y))
        for each in LABELLED:
            n = each * (10 if self.classes is None else len(self.classes))
            if 2 * n > len(order):
                break
            labels = np.full(len(y), None, dtype=object)
            labels[order[:n]] = y[order[:n]]
            rest = np.sort(order[n:])
            with suppress(RowsAlike):
                adapted = head.adapter().partial_fit(rows, labels).head_
                scores[n] = self.task.score(read(adapted, rows, rest).values, y[rest])
        return scores

    def _errors(self, e: int, rows: Array) -> Mapping[int, float]:
        """Errors of the others' guess for a domain, by how many of its rows are known."""
        others = self.training.without(e)
        if not others.whitening.adjust or rows.shape[0] < 2:
            return {}
        errors = {}
        for some in self._samples(rows.shape[0]):
            with suppress(RowsAlike):
                adjustment = own_adjustment(others, rows, some)
                errors[len(some)] = adjustment_error(others.guess, adjustment)
        return errors


def _nonconformity(head: Any, reading: Reading, y: np.ndarray) -> np.ndarray | None:
    """What is kept of a held-out domain for sets of classes; None of numbers."""
    if is_regressor(head):
        return None
    # Copies of a head know its classes, also those that only the held-out domain has.
    return quantiles_of(
        nonconformity(probabilities(reading.scores), np.searchsorted(head.classes_, y))
    )


@dataclass(frozen=True)
class AdaptedScores:
    """What adapting to a held-out domain did.

    Parameters
    ----------
    scores : mapping from a number of rows to the score after adapting by them
    disagreement : float, optional
        With the head as it was, once adapted to all rows.
    both_right : float, optional
        Share of the rows that both predict rightly.
    nonconformity : array of shape (201,), optional
        Of the head adapted to all rows; of classes only.
    """

    scores: Mapping[int, float]
    disagreement: float | None
    both_right: float | None
    nonconformity: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows that belong together, by number, and the domains that share some.

    Parameters
    ----------
    codes : array of shape (n,)
    units : list of lists of domain numbers
    """

    codes: np.ndarray
    units: Sequence[Sequence[int]]

    @classmethod
    def of(
        cls, groups: Labels, n: int, numbers: Sequence[np.ndarray], training: TrainingDomains
    ) -> _Groups:
        """From one label a row; refused where no domain can be held out without its groups."""
        names, codes = check_groups(groups, n)
        return cls(codes, units_of(numbers, codes, training.labels, names))

    def unit_of(self, e: int) -> Sequence[int]:
        """The domains that cannot be held out one without the other, of which this is one."""
        return next(unit for unit in self.units if e in unit)

    def codes_among(self, others: Sequence[int]) -> np.ndarray | None:
        """The codes, where these domains are of several units, and a search can leave one out."""
        several = sum(bool(set(unit) & set(others)) for unit in self.units) > 1
        return self.codes if several else None


@dataclass(frozen=True, eq=False)
class _Fold:
    """What copies of a head are trained with where one domain is held out.

    Parameters
    ----------
    X : array of shape (n, d)
    y, weight, domains : arrays of shape (n,)
        Rows that are not trained on have no weight.
    shared : caches by domain
    groups : array of shape (n,), optional
        For a head that itself leaves domains out.
    """

    X: Array
    y: np.ndarray
    weight: np.ndarray
    domains: np.ndarray
    shared: SharedCaches
    groups: np.ndarray | None = None

    def fitted(self, head: Any) -> tuple[Any, Array]:
        """The head fitted, and rows as it sees them, both behind its own preparation."""
        head = fit_sharing(
            head, self.shared, self.X, self.y, self.domains, self.weight, self.groups
        )
        inner = head._inner()
        return (head, self.X) if inner is head else (inner, head._inner_rows(self.X))


def own_adjustment(training: TrainingDomains, rows: Array, numbers: np.ndarray) -> Any:
    """The adjustment of some rows of a domain that is not one of these."""
    statistics = DomainCache(rows, compact(numbers), np.ones(len(numbers)))
    return statistics.adjustment(training.whitening, training.common_like(rows)).to_numpy()
