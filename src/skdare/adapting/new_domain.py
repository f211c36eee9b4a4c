"""Rows of one new domain, in any chunks, some perhaps labelled, and the weights that they give.

The way of a row: `NewDomain.add` hands it to the `Stream`, which adds it to the moments of the
domain and, where they are needed, to a sample of rows and to the labelled ones. Then, for all rows
so far, `NewDomain.weights`

1. makes W and m of the moments, and blends them with the averages of the training domains, which
   count for less the more rows there are (`DomainFit.adapted`, `skdare.whitening.prior`);
2. if classes may move, looks for them in the sample (`skdare.fitting.mixture`);
3. goes back to the unadapted weights if the safety check objects (`skdare.fitting.safety_check`);
4. fits to labels, if there are any (`skdare.adapting.labels`);
5. blends what it has with the unadapted weights: of few rows these count more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdare.adapting.labels import Labelled, StartingPoint
from skdare.adapting.partial_labels import PartialLabels
from skdare.adapting.stream import Stream
from skdare.arrays import Array, scores, threads_for
from skdare.checks import ClassWeight, check_choice, check_number
from skdare.errors import InputError, counted, listed, note
from skdare.fitting.domain_fit import Adaptation, DomainFit, Weights
from skdare.fitting.mixture import MOST_ROWS, ClassSums, Sample
from skdare.fitting.problem import Classes, Numbers, Targets, class_factors, predicted_numbers
from skdare.fitting.safety_check import has_outliers, objection_to_mean
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments

# Thresholds of the safety check are far wider than what these many rows leave open.
_MOST_CHECKED = 1024
# If the adapted weights count less than this in the blend with the unadapted ones, little can go
# wrong.
_CHECKED = 0.8
# If they count more than this, the unadapted ones need no labels.
_ALL_BUT_ADAPTED = 0.99
# Numbers this many standard deviations away are in another unit, or mistyped.
_FAR = 20.0


@dataclass(frozen=True)
class Adapted:
    """What a head was adapted with."""

    rows: int
    labelled_rows: int = 0
    declined: str | None = None  # why it was not adapted


@dataclass(frozen=True, eq=False)
class NewWeights:
    """Weights for a new domain."""

    targets: Targets  # with new classes, if there are any
    V: np.ndarray
    b: np.ndarray
    adjustment: Adjustment  # blended with the average as far as the rows are trusted
    adapted: Adapted


@dataclass(frozen=True)
class Options:
    prior_rows: float | None = None
    half_life: float | None = None
    force: bool = False
    prior_labels: float | None = None
    new_classes: bool = False

    def check(self) -> None:
        for name in ("prior_rows", "prior_labels"):
            check_number(name, getattr(self, name), also=(None,))
        check_number("half_life", self.half_life, low=1e-9, also=(None,))
        for name in ("force", "new_classes"):
            check_choice(name, getattr(self, name), (True, False))


class NewDomain:
    """Rows of one new domain, prepared, in any chunks, and the weights that they give."""

    def __init__(
        self, fit: DomainFit, targets: Targets, class_weight: ClassWeight = None, **options: Any
    ) -> None:
        self.fit = fit
        self.targets = targets
        self.class_weight = class_weight
        self.options = Options(**options)
        self.options.check()
        self._classes = targets.classes if isinstance(targets, Classes) else None
        if self.options.new_classes and self._classes is None:
            raise InputError("new_classes is set, and a regressor has no classes", "leave it out")
        most = 0
        if fit.adaptation is not None and fit.adaptation.mixture is not None:
            most = MOST_ROWS
        elif fit.safety_check is not None:
            most = _MOST_CHECKED
        self.stream = Stream(len(fit.unseen.B), self.options.half_life, most, self._classes)
        self._unadapted = fit.unseen.raw_weights()

    def add(self, X: Array, y: Any = None) -> Self:
        """Take more rows, some perhaps labelled."""
        m = X.shape[0]
        stream = self.stream
        labels = None
        if y is not None:
            takes_new = self.options.new_classes
            labels = PartialLabels.of(y, m, stream.classes, takes_new=takes_new)
        with threads_for(X):
            stream.add(X, labels)
        stream.forget_labels()
        return self

    def weights(self) -> NewWeights:
        """Weights for the new domain, by all rows so far."""
        if self.stream.n_seen < 2:
            raise InputError(
                "adapting needs at least 2 rows of the new domain, and there "
                f"{'is' if self.stream.n_seen == 1 else 'are'} {self.stream.n_seen}",
                "give more rows",
            )
        self._note_unused_labels()
        with threads_for(self._unadapted[0]):
            if self.fit.adaptation is None:
                assert self.fit.declined is not None
                hint = "fit with strategies=('standardize',) to adapt all the same"
                return self._not_adapted(self.fit.declined, hint)
            return self._adapted(self.fit.adaptation)

    def _adapted(self, adaptation: Adaptation) -> NewWeights:
        moments = self._moments(adaptation)
        trust = adaptation.trust(moments.n, self.options.prior_rows)
        sample = self.stream.sample()
        if sample is not None and self._takes_labels and self._classes is not None:
            codes = self.stream.codes_of_sample(len(self._classes))
            sample = replace(sample, codes=codes)
        adapted = self.fit.adapted(moments, trust, sample)
        V, b = adapted.raw_weights()
        if not self.options.force and trust.head >= _CHECKED:
            objection = self._objection(sample, moments, V, b)
            if objection is not None:
                return self._not_adapted(objection, "set force=True to adapt all the same")
        rest = self._unadapted
        if self._takes_labels:
            V, b = self._with_labels(StartingPoint.adapted(self.fit, adaptation, adapted))
            if trust.head < _ALL_BUT_ADAPTED or self._has_new_classes:
                rest = self._with_labels(StartingPoint.unadapted(self.fit))
        if trust.head < 1.0:
            V = trust.head * V + (1.0 - trust.head) * rest[0]
            b = trust.head * b + (1.0 - trust.head) * rest[1]
        return self._new_weights(V, b, adapted.adjustment)

    def _moments(self, adaptation: Adaptation) -> Moments:
        """Moments of all rows so far, refused if they cannot be adapted to."""
        moments = self.stream.sum_up()
        assert moments is not None
        whitening = adaptation.fit.formulation.whitening
        if not moments.trace > 0 or not whitening.can_adjust(moments):
            raise InputError(
                "these rows are all the same, as from a stuck sensor",
                "adapting needs rows that differ",
            )
        if has_outliers(moments):
            note(
                "one or two of the new rows hold most of their variance, and decide how the others "
                "are adjusted; look for outliers, or clip the features"
            )
        return moments

    def _objection(
        self, sample: Sample | None, moments: Moments, V: np.ndarray, b: np.ndarray
    ) -> str | None:
        """Objection of the safety check to these weights for the rows, if any."""
        if self.fit.mean_error is not None:
            V0, b0 = self._unadapted
            moved = moments.mean @ (V - V0) + b - b0
            return objection_to_mean(float(np.abs(moved).max()), self.fit.mean_error)
        check = self.fit.safety_check
        if check is None or sample is None or self._classes is None:
            return None
        own = sample.moments
        k = len(self._classes)
        numbers = predicted_numbers(scores(sample.X, V, b))
        everyone = slice(0, len(numbers))
        sums = ClassSums.of_rows(sample.X, everyone, numbers, sample.weight, own.mean, k)
        return check.objection(sums, own)

    def _not_adapted(self, reason: str, hint: str) -> NewWeights:
        """The unadapted weights; labels still change them."""
        guess = self.fit.unseen.adjustment
        if self._takes_labels:
            weights = self._with_labels(StartingPoint.unadapted(self.fit))
            return self._new_weights(*weights, guess, declined=reason)
        note(
            f"adapting was declined, and this head predicts as before: {reason.rstrip('.')}; {hint}"
        )
        return self._new_weights(*self._unadapted, guess, declined=reason)

    def _new_weights(
        self, V: np.ndarray, b: np.ndarray, adjustment: Adjustment, declined: str | None = None
    ) -> NewWeights:
        stream = self.stream
        targets = self.targets
        adapted = Adapted(stream.n_seen, declined=declined)
        if self._takes_labels:
            assert stream.labels is not None
            adapted = Adapted(stream.n_seen, len(stream.labels), declined)
            if self._has_new_classes:
                assert stream.classes is not None
                order = np.argsort(stream.classes)
                targets = Classes(stream.classes[order])
                V = V[:, order]
                b = b[order]
        return NewWeights(targets, V, b, adjustment, adapted)

    @property
    def _takes_labels(self) -> bool:
        """Whether there are labels of more than one class: a stream may go on without."""
        labels = self.stream.labels
        if labels is None or not len(labels):
            return False
        differ = bool(np.any(labels.T[0] != labels.T))
        return self._classes is None or self.options.force or differ

    @property
    def _has_new_classes(self) -> bool:
        classes = self.stream.classes
        known = self._classes
        return classes is not None and known is not None and len(classes) > len(known)

    def _with_labels(self, start: StartingPoint) -> Weights:
        stream = self.stream
        labels = stream.labels
        assert labels is not None
        weight = stream.label_weights()
        targets = self.targets
        if isinstance(targets, Numbers):
            T = (labels.T - targets.centre) / targets.spread
        else:
            assert stream.classes is not None
            targets = Classes(stream.classes)
            T = labels.T.astype(np.intp)
            if self.class_weight is not None:
                factors = class_factors(self.class_weight, stream.classes, T, weight)[T]
                weight = weight * factors * (weight.sum() / (weight @ factors))
        labelled = Labelled(labels.X, T, weight)
        prior = self.options.prior_labels
        try:
            return start.with_labels(labelled, targets.loss, targets.columns, prior)
        except FloatingPointError as error:
            raise InputError(
                f"no fit to the labelled rows: {error}", "look for extreme values among them"
            ) from error

    def _note_unused_labels(self) -> None:
        stream = self.stream
        if self._takes_labels:
            return
        if stream.labels is not None and len(stream.labels):
            note("all labels so far are of one class, and are not taken until there is another")
        if self._has_new_classes:
            assert self._classes is not None
            assert stream.classes is not None
            new = stream.classes[len(self._classes) :].tolist()
            note(
                f"no labelled rows remain for the new classes {listed(new)}; they are not predicted"
            )

    def check_labels(self) -> None:
        """Refuse labels that are most likely a mistake, unless they are taken by force."""
        labels = self.stream.labels
        if self.options.force or labels is None or not len(labels):
            return
        targets = self.targets
        if isinstance(targets, Numbers):
            away = np.abs(labels.T - targets.centre) / targets.spread
            furthest = int(away.argmax())
            if away[furthest] > _FAR:
                raise InputError(
                    f"row {labels.numbers[furthest]:.0f} has the label {labels.T[furthest]:g}, "
                    f"{away[furthest]:,.0f} standard deviations from the mean in training",
                    "correct it, or set force=True if it is meant",
                )
            return
        assert self.stream.classes is not None
        classes = self.stream.classes.tolist()
        codes = labels.T.astype(np.intp)
        _, first, which = np.unique(labels.X, axis=0, return_index=True, return_inverse=True)
        like = first[which.ravel()]  # the first row that is the same
        different = np.flatnonzero(codes[like] != codes)
        if len(different):
            one = different[0]
            other = like[one]
            raise InputError(
                f"rows {labels.numbers[other]:.0f} and {labels.numbers[one]:.0f} are the same and "
                f"are labelled {classes[codes[other]]!r} and {classes[codes[one]]!r}",
                "correct one of them, or set force=True if rows of both classes can look alike",
            )
        present = np.unique(codes)
        if len(present) == 1:
            raise InputError(
                f"there {'is' if len(codes) == 1 else 'are'} {counted(len(codes), 'label')}, all "
                f"of class {classes[present[0]]!r}",
                "label rows of another class too, or set force=True",
            )
        absent = [name for code, name in enumerate(classes) if code not in present]
        if absent:
            note(
                f"no labelled row is of class {listed(absent)}; labels of the other classes are "
                "little evidence of where these lie"
            )
