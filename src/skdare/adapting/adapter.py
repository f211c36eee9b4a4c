"""The rows of one new domain, as a stream, some perhaps labelled, and the head that they make."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from skdare._logger import tell
from skdare._safe_text import counted
from skdare._validation import InputError, check_choice, check_count, check_number, warn
from skdare.adapting import row_sample
from skdare.adapting.label_shift import PredictedClasses, n_classes
from skdare.adapting.row_sample import RowSample
from skdare.adapting.stale_root import MAX_STALENESS, StaleRoot
from skdare.adapting.stream_file import StreamFile, head_digest
from skdare.adapting.stream_labels import StreamLabels
from skdare.adapting.stream_moments import NUMBERS, SHAPES, Forgetting, StreamMoments
from skdare.arrays import Array
from skdare.arrays.passes import RowPart
from skdare.fitting.canonical_fit import CanonicalWeights, raw_weights
from skdare.fitting.class_weight import class_factors
from skdare.fitting.domain_fit import Adaptation, DomainFit, domain_fit_of
from skdare.fitting.mixture import sums_by_class
from skdare.fitting.solver_options import SolverOptions
from skdare.fitting.starting_point import StartingPoint
from skdare.fitting.targets import Classes
from skdare.objective.scores import predicted_columns
from skdare.persist import INTEGER, NUMBER, VALUES, HeaderArrays, ReadContext
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments, warn_of_outliers
from skdare.whitening.prior import Trust
from skdare.whitening.roots.eigen import Spectrum
from skdare.whitening.whitening import RowsAlike

# What a file has beside the moments: k classes.
_ROOT = {"root_values": "d", "root_vectors": "dd"}
_LABELS = {"labelled": "ld", "labels": "l", "label_numbers": "l"}
_SHAPES = SHAPES | _ROOT | _LABELS | {"counts": "k", "sample": "sd"}
_NUMBERS = NUMBERS | {
    **dict.fromkeys(("n_seen", "n_refreshes", "n_labels"), INTEGER),
    **dict.fromkeys(("squares", "root_scale", "root_rho"), NUMBER),
}


# Where the adapted head counts less than this beside the unadapted one, little can go wrong.
_GUARDED = 0.8
# Where it counts more than this, the unadapted one needs no labels.
_ALL_BUT_ADAPTED = 0.99
# Numbers this many standard deviations away are in another unit, or mistyped.
_FAR = 20.0


class Adapter:
    """Takes the rows of a new domain, in any chunks, and gives the adapted head.

    Rows need no labels; some may have one.

    Parameters
    ----------
    head : fitted DARE head
        Never modified.
    prior_rows : float, optional
        The training domains' averages count as this many rows of the new domain; 0 is a hard
        switch. Default: what they are worth by how much domains differ, for the mean and for the
        adjustment; fewer than about 20 rows are then also blended with the head as it is.
    min_rows : int, default=2
        Rows below which ``head_`` refuses.
    half_life : float, optional
        Rows after which a row counts half, for a domain that drifts; the rows seen then count as
        about 1.44 times as many. Default: every row counts the same.
    staleness : float in [0, 0.1], default=0.0
        How far scores may be from those of the moments seen so far, relative: ``head_`` keeps its
        inverse root, whose cost is d³, until ``‖F - F'‖ > staleness ‖F‖`` for the scores F of
        the rows seen (Frobenius norm, intercept apart), to first order in what changed. The
        share of the averaged guess and the subtracted mean are always those of all rows. 0: a
        new root for every ``head_``.
    force : bool, default=False
        True: adapt even where the rows or their labels speak against it.
    prior_labels : float, optional
        What the training domains count as beside labels of the new one, in labels; 0 is a fit to
        these alone. Default: by how well labels predict each other.
    new_classes : bool, default=False
        True: labels may name classes that the head was not fitted to, and ``head_`` then predicts
        these, too. It only predicts: to go on, give this adapter more rows.

    Attributes
    ----------
    head_ : adapted head, a new object made from all rows seen so far
    n_seen_ : int
    n_refreshes_ : int
        Inverse roots computed so far.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare import DARERegressor
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> train, new = data.domains != 3, data.X[data.domains == 3]
    >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> adapter = head.adapter()
    >>> for chunk in np.array_split(new, 5):
    ...     adapter = adapter.partial_fit(chunk)
    >>> adapter.n_seen_
    300
    >>> bool(np.allclose(adapter.head_.coef_, head.adapt(new).coef_))
    True
    """

    def __init__(
        self,
        head: Any,
        *,
        prior_rows: float | None = None,
        min_rows: int = 2,
        half_life: float | None = None,
        staleness: float = 0.0,
        force: bool = False,
        prior_labels: float | None = None,
        new_classes: bool = False,
    ) -> None:
        check_choice("force", force, (True, False))
        check_choice("new_classes", new_classes, (True, False))
        check_number("prior_labels", prior_labels, also=(None,))
        check_number("prior_rows", prior_rows, also=(None,))
        check_count("min_rows", min_rows, 2)
        forgetting = Forgetting(half_life)
        check_number("staleness", staleness, 0.0, MAX_STALENESS)
        check_adaptable(head)
        head = head._uncalibrated()
        self._head = head
        fit = domain_fit_of(head)
        self._declined = fit.declined
        self._force = bool(force)
        if staleness and self._declined is None and self._prepared.guess.common is not None:
            raise ValueError(
                "staleness needs shrinkage towards a multiple of the identity, and this head "
                "shrinks towards the pooled second moment; leave staleness at 0"
            )
        if staleness and self._declined is None and self._prepared.mixture is not None:
            raise ValueError(
                "staleness bounds what a stale root changes, and this head adapts by a mixture, "
                "which may change more; leave staleness at 0"
            )
        self._prior_rows = prior_rows
        self._min_rows = min_rows
        self._staleness = staleness
        self._stream = StreamMoments(head.n_features_in_, forgetting)
        self._classes = PredictedClasses(head._inner(), forgetting)
        self._guard = fit.guard
        self._sample: RowSample | None = None
        if self._declined is None and (self._prepared.mixture or self._guard):
            most = row_sample.FOR_A_MIXTURE if self._prepared.mixture else row_sample.FOR_A_GUARD
            self._sample = RowSample(head.n_features_in_, forgetting, most)
        if head.labelled_rows_ is not None:
            warn(
                f"this head was adapted with {counted(head.labelled_rows_, 'label')}, which "
                "adapting it again does not take; pass them too, with the rows that they are of"
            )
        self._prior_labels = prior_labels
        self._labels = StreamLabels(
            head.n_features_in_, getattr(head, "classes_", None), forgetting
        )
        if new_classes:
            self.take_new_classes()
        self._root: StaleRoot | None = None
        self.n_seen_ = 0
        self.n_refreshes_ = 0

    def __repr__(self) -> str:
        return f"Adapter({type(self._head).__name__}, {counted(self.n_seen_, 'row')} seen)"

    def take_new_classes(self) -> Self:
        """Let labels from now on name classes that the head was not fitted to.

        Returns
        -------
        self
        """
        if self._labels.classes is None:
            raise InputError(
                f"new_classes is set, and a {type(self._head).__name__} predicts numbers",
                "leave it out",
                argument="new_classes",
            )
        self._labels.takes_new_classes = True
        return self

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Take more rows of the new domain.

        Parameters
        ----------
        X : array of shape (m, d)
        y : sequence of m labels, optional
            As of ``head.adapt``.

        Returns
        -------
        self
        """
        X = self._head._inner_rows(X)
        if y is not None:
            self._labels.add(X, self._labels.read(y, X.shape[0]), self.n_seen_)
        self.n_seen_ += X.shape[0]
        self._labels.forget(self.n_seen_)
        if self._declined is None:
            self._stream.add(X)
            self._classes.add(X)
            if self._sample is not None:
                self._sample.add(X)
        return self

    @property
    def head_(self) -> Any:
        """The head for the rows seen so far; the head it came from is untouched."""
        if self.n_seen_ < self._min_rows:
            raise ValueError(
                f"adapting needs at least {counted(self._min_rows, 'row')} of the new domain, "
                f"and there {'is' if self.n_seen_ == 1 else 'are'} {self.n_seen_}; give more rows"
            )
        if not self._takes_labels and len(self._labels):
            warn("all labels so far are of one class, and are not taken until there is another")
        if not self._takes_labels and self._labels.has_added_classes:
            named = ", ".join(map(repr, self._labels.added_classes.tolist()))
            warn(f"no label teaches the new classes ({named}) any more, and they are not predicted")
        if self._declined is not None:
            return self._not_adapted(
                self._declined,
                f"adapting changed nothing. {self._declined.rstrip('.')}; to adapt all the same, "
                "fit with strategies=('standardize',)",
            )
        moments = self._stream.moments()
        if self.n_seen_ > 1 and not moments.varies():
            raise RowsAlike(
                "these rows are all the same, as from a stuck sensor; adapting needs rows that "
                "differ"
            )
        trust = self._prepared.trust(moments.n, self._prior_rows)
        adjustment = self._prepared.blended(self._adjustment(moments, trust), trust)
        weights = self._weights(adjustment, moments, trust)
        objection = self._objection(adjustment, weights, moments, trust)
        if objection is not None:
            return self._not_adapted(
                objection,
                f"adapting was declined, and this head predicts as before: {objection}; to adapt "
                "all the same, set force=True",
            )
        beside = None
        if self._takes_labels:
            shift = self._prepared.shift(moments.mean, trust)
            fit = domain_fit_of(self._head)
            start = StartingPoint.adapted(fit, self._prepared, weights, adjustment, shift)
            weights = self._with_labels(start)
            if trust.head < _ALL_BUT_ADAPTED or self._labels.has_added_classes:
                beside = self._labelled_as_it_is()
        head = self._head._adapted(adjustment, weights, moments.mean, trust, self.n_seen_, beside)
        self._note_labels(head)
        warn_of_outliers({"(new)": moments})
        if not self._takes_labels:
            self._classes.warn_of_shift()
        return head

    def _check_labels(self) -> None:
        """Refuse labels that are most likely a mistake, unless they are taken by force."""
        if self._force or not len(self._labels):
            return
        self._labels.check()
        if n_classes(self._head):
            return
        T = self._head._targets.fitted_targets(self._labels.codes)
        furthest = int(np.abs(T).argmax())
        if abs(T[furthest]) > _FAR:
            raise InputError(
                f"row {self._labels.numbers[furthest]} has the label "
                f"{self._labels.codes[furthest]:g}, {abs(T[furthest]):,.0f} standard deviations "
                "from the mean in training",
                "correct it, or set force=True if it is meant",
                argument="y",
            )

    def _check_can_be_forced(self) -> None:
        """Refuse to force a head that has learnt no way of adapting."""
        if self._force and self._declined is not None:
            raise InputError(
                f"force is set, and this head has learnt no way of adapting. {self._declined}",
                "fit with strategies=('standardize',), which always adapts",
                argument="force",
            )

    @property
    def _takes_labels(self) -> bool:
        """Whether the head takes labels: a stream may go on without those of a single class."""
        return len(self._labels) > 0 and (self._force or not self._labels.are_of_one_class)

    def _not_adapted(self, reason: str, message: str) -> Any:
        """A copy of the head that says why it was not adapted; labels still change it."""
        head = copy.copy(self._head)
        head.declined_ = reason
        if self._takes_labels:
            tell(f"only labels count, as adapting to rows without them was declined: {reason}")
            fit = domain_fit_of(self._head)
            head._domain_fit = replace(fit, unadapted=self._head._unadapted)
            head.coef_, head.intercept_ = self._head._on_features(*self._labelled_as_it_is())
            self._note_labels(head)
            return head
        self._check_can_be_forced()
        warn(message)
        tell(f"adapting to {counted(self.n_seen_, 'row')} was declined: {reason}")
        return head

    def _note_labels(self, head: Any) -> None:
        """Say in a head which labels it took: it must not be measured by them."""
        taken = self._takes_labels
        head.labelled_rows_ = len(self._labels) if taken else None
        head._labelled_digests = self._labels.digests if taken else []
        if taken and self._labels.has_added_classes:
            self._name_classes(head)

    def _name_classes(self, head: Any) -> None:
        """Give a head the new classes; what it knows of its training domains lacks them."""
        classes = self._labels.classes
        assert classes is not None
        order = np.argsort(classes)
        head.classes_ = classes[order]
        head._targets = Classes(head.classes_)
        head.coef_ = head.coef_[order]
        head.intercept_ = head.intercept_[order]
        head._canonical = None
        head._domain_fit = None
        head.rehearsal_ = None

    def _weights(self, adjustment: Adjustment, moments: Moments, trust: Trust) -> CanonicalWeights:
        """Canonical weights by the rows alone; a mixture takes the classes of labelled ones."""
        codes = None
        if self._sample is not None and self._takes_labels:
            codes = self._labels.codes_of(self._sample.numbers)
        return self._prepared.weights(adjustment, moments, trust, self._sample, codes)

    def _labelled_as_it_is(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights on raw features of the head before adapting, after it took the labels."""
        start = self._head._starting_point()
        return start.raw_weights(self._with_labels(start))

    def _with_labels(self, start: StartingPoint) -> CanonicalWeights:
        """Canonical weights of a head after it took the labels."""
        labels = self._labels
        targets = self._head._targets if labels.classes is None else Classes(labels.classes)
        T = targets.fitted_targets(labels.codes)
        weight = labels.weight(self.n_seen_)
        if labels.classes is not None and self._head.class_weight is not None:
            factors = class_factors(self._head.class_weight, labels.classes, T, weight)[T]
            weight = weight * factors * (weight.sum() / (weight @ factors))
        options = SolverOptions.of_head(self._head)
        return start.with_labels(labels.X, T, weight, targets, options, self._prior_labels)

    def _objection(
        self, adjustment: Adjustment, weights: CanonicalWeights, moments: Moments, trust: Trust
    ) -> str | None:
        """What the rows seen have against these weights for them, if anything."""
        if self._force or self._guard is None or self._sample is None or trust.head < _GUARDED:
            return None
        X, weight = self._sample.weighted_rows()
        V, b = raw_weights(weights, adjustment, self._prepared.shift(moments.mean, trust))
        part = RowPart(X, slice(0, len(X)), (weight,))
        numbers = predicted_columns(X, part.index, V, b)
        own = Moments.of(X, None, weight)
        sums = sums_by_class(part, numbers, own.mean, n_classes(self._head))
        return self._guard.objection(sums, own)

    @property
    def _prepared(self) -> Adaptation:
        fit: DomainFit = self._head._domain_fit  # the last one; checked when the stream began
        assert fit.adaptation is not None
        return fit.adaptation

    def _adjustment(self, moments: Moments, trust: Trust) -> Adjustment:
        """The adjustment by the rows seen: the last one, while its scores are near enough."""
        adaptation = self._prepared
        last = self._root
        if last is not None and last.serves(moments, trust, self._staleness):
            return last.adjustment
        self._root = None
        spectrum = adaptation.spectrum(moments)
        adjustment = adaptation.adjustment(moments, spectrum)
        self.n_refreshes_ += 1
        if self._staleness and spectrum is not None:
            rho = adaptation.whitening.strength(moments)
            root = StaleRoot(adaptation, spectrum, rho, adjustment)
            self._root = root if root.is_bounded else None
        return adjustment

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state of the stream to a file, which ``head.resume`` goes on from.

        The file is replaced in one step, and holds no code. The head itself is not in it.

        Parameters
        ----------
        path : str or path
        """
        numbers, arrays = self._stream.state()
        arrays["counts"] = self._classes.counts
        if self._root is not None:
            spectrum = self._root.spectrum
            arrays |= {"root_values": spectrum.values, "root_vectors": spectrum.vectors}
            numbers |= {"root_scale": spectrum.scale, "root_rho": self._root.rho}
        if self._sample is not None:
            arrays["sample"] = self._sample.weighted_rows()[0]
        if len(self._labels):
            arrays["labelled"] = self._labels.X
            arrays["labels"] = self._labels.codes.astype(np.float64)
            arrays["label_numbers"] = self._labels.numbers.astype(np.float64)
        options = {
            "prior_rows": self._prior_rows,
            "min_rows": int(self._min_rows),
            "half_life": self._stream.forgetting.half_life,
            "staleness": float(self._staleness),
            "force": self._force,
            "prior_labels": self._prior_labels,
            "new_classes": self._labels.takes_new_classes,
        }
        numbers["squares"] = float(self._classes.squares)
        numbers |= {"n_seen": self.n_seen_, "n_refreshes": self.n_refreshes_}
        numbers["n_labels"] = len(self._labels)
        header: dict[str, Any] = {
            "digest": head_digest(self._head),
            "options": options,
            "numbers": numbers,
        }
        if self._labels.has_added_classes:
            added = self._labels.added_classes
            header["added_classes"] = VALUES.write(added, HeaderArrays(), "added_classes")
        StreamFile("adapter", header, arrays).write(path, partial(self._from_file, self._head))

    @classmethod
    def _from_file(cls, head: Any, file: StreamFile) -> Adapter:
        """The adapter that a file holds."""
        sizes = {"d": head.n_features_in_, "k": n_classes(head)}
        numbers = file.numbers(_NUMBERS)
        arrays = file.checked(_SHAPES, sizes)
        adapter = cls(head, **file.header["options"])
        adapter.n_seen_ = numbers["n_seen"]
        adapter.n_refreshes_ = numbers["n_refreshes"]
        adapter._stream.restore(numbers, arrays)
        adapter._classes.restore(arrays["counts"], numbers["squares"], numbers["n_rows"])
        if adapter._sample is not None:
            adapter._sample.restore(arrays["sample"], numbers["n_rows"])
        if "added_classes" in file.header:
            added = VALUES.read(file.header["added_classes"], ReadContext({}, {}))
            adapter._labels.add_classes(added.tolist())
        if "labelled" in arrays:
            adapter._labels.restore(arrays["labelled"], arrays["labels"], arrays["label_numbers"])
        if "root_values" in arrays:
            spectrum = Spectrum(
                arrays["root_values"], arrays["root_vectors"], numbers["root_scale"]
            )
            adapter._root = StaleRoot(adapter._prepared, spectrum, numbers["root_rho"])
        return adapter


def check_adaptable(head: Any) -> None:
    """The head is fitted, and was fitted so that it can adapt."""
    if not hasattr(head, "solution_"):
        raise NotFittedError(
            f"this {type(head).__name__} is not fitted yet; call fit before adapt or adapter"
        )
    fit = domain_fit_of(head)
    if fit.adaptation is None and fit.declined is None:
        raise ValueError(
            f"this {type(head).__name__} cannot adapt, as it was fitted without a way of adapting; "
            "set adaptation='centered' or 'raw' and fit again"
        )
