"""Heads with a canonical space: they guess for an unseen domain, and adapt to a new one."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import replace
from html import escape
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skdare._safe_text import counted
from skdare._validation import Labels, warn
from skdare.adapting import Adapter, Fleet
from skdare.adapting.resuming import resume
from skdare.adapting.suggestion import suggest
from skdare.arrays import Array, in_background, like, threads_for
from skdare.arrays.passes import RowPart
from skdare.fitting.canonical_fit import (
    CanonicalFit,
    CanonicalWeights,
    fit_canonical,
    raw_weights,
)
from skdare.fitting.domain_fit import Adaptation, DomainFit, domain_fit_of
from skdare.fitting.formulation import Formulation
from skdare.fitting.guard import AdaptationGuard
from skdare.fitting.mixture import ClassSums, Mixture
from skdare.fitting.problem import Problem
from skdare.fitting.solver_options import SolverOptions
from skdare.fitting.starting_point import StartingPoint
from skdare.fitting.statistics import ProblemStatistics
from skdare.heads._estimator import Head
from skdare.whitening.adjustment import Adjustment, on_host
from skdare.whitening.guess import GuessRule, guess_adjustment, guess_shares
from skdare.whitening.moments import Moments, warn_of_outliers
from skdare.whitening.prior import Trust

if TYPE_CHECKING:
    from skdare.diagnosis import Bound, Diagnosis, Rehearsal, ScoreInterval

# Share of variance in the second moment below which the offset rules: an offset of three standard
# deviations has 0.1, and costs six points of training accuracy on unit-variance features; the
# PACS features, with no harm seen, have 0.3 to 0.4.
OFFSET = 0.1


class AdjustedHead(Head):
    """A head with a canonical space.

    What it knows of its training domains, and of the domain that its weights are for, is one
    `DomainFit`; adapting gives a copy with another one. It is None in a head that was saved with
    ``adaptable=False``.
    """

    _domain_fit: DomainFit | None

    @property
    def _balances_classes(self) -> bool:
        """Whether every class counts the same to whoever fits this head."""
        return False

    @property
    def moments_(self) -> Mapping[Hashable, Moments]:
        """Moments by training domain."""
        return domain_fit_of(self).moments

    @property
    def adjustments_(self) -> Mapping[Hashable, Adjustment]:
        """Adjustments by training domain."""
        return domain_fit_of(self).adjustments

    @property
    def adjustment_(self) -> Adjustment:
        """The adjustment in use: the guess for an unseen domain, or that of the one adapted to."""
        return domain_fit_of(self).adjustment

    @property
    def canonical_coef_(self) -> np.ndarray:
        """The weights on whitened features."""
        return domain_fit_of(self).B.T

    def _fit_domains(
        self,
        problem: Problem,
        statistics: ProblemStatistics,
        formulation: Formulation,
        adapting: Formulation | None,
        guess: GuessRule,
        *,
        mixture: Mixture | None = None,
        separations: np.ndarray | None = None,
        start: CanonicalWeights | None = None,
        adapting_start: CanonicalWeights | None = None,
        declined: str | None = None,
    ) -> None:
        """Solve for unseen domains, and for the ones to adapt to, and keep the result."""
        domains = range(len(problem.index))
        labels = list(problem.labels)
        options = SolverOptions.of_head(self)
        moments = [statistics.moments(e) for e in domains]
        statistics.unit(domains)  # refuses constant features before any solve
        adjustments = statistics.adjustments(domains, formulation.whitening)
        host_copies = in_background(
            lambda: ([m.to_numpy() for m in moments], on_host(adjustments)), problem.X
        )
        fit = fit_canonical(
            problem,
            statistics,
            domains,
            formulation,
            options,
            start=start,
            adjustments=adjustments,
        )
        W = guess_adjustment(guess, adjustments, labels, moments, formulation.whitening)
        V, b = fit.raw_weights_for_unseen(
            W,
            [statistics.domain_mean(e) for e in domains],
            guess_shares(guess, labels),
            intercept=self.fit_intercept,
        )
        shares = problem.targets.class_shares(
            [RowPart(problem.X, problem.index[e], (problem.domain_weight(e),)) for e in domains],
            (like(V, problem.X), b),
        )
        adaptation = None
        if adapting is not None:
            adapting_fit = self._fit_adaptation(
                problem, statistics, adapting, fit, adapting_start or fit.weights
            )
        sums = None
        if mixture is not None or separations is not None:
            sums = ClassSums.of_problem(problem, [statistics.domain_mean(e) for e in domains])
        host_moments, host_adjustments = host_copies()
        if adapting is not None:
            adaptation = Adaptation.of(adapting_fit, host_moments, mixture, sums)
        guard = None
        if sums is not None and separations is not None:
            estimated = mixture is not None and mixture.estimate_shares
            guard = AdaptationGuard.of_domains(
                sums, host_moments, separations, shares_fixed=not estimated
            )
        self._domain_fit = DomainFit(
            whitening=formulation.whitening,
            moments=dict(zip(labels, host_moments, strict=True)),
            adjustments=dict(zip(labels, host_adjustments, strict=True)),
            B=fit.B,
            adjustment=W.to_numpy(),
            guess_rule=guess,
            adaptation=adaptation,
            declined=declined,
            guard=guard,
            class_shares=shares,
        )
        self.adapted_rows_: int | None = None
        self.declined_: str | None = None
        self.labelled_rows_: int | None = None
        self._labelled_digests: list[str] = []
        self.temperature_ = 1.0
        self.rehearsal_: Rehearsal | None = None
        self._fitted_params = self.get_params()
        warn_of_outliers(self._domain_fit.moments)
        _warn_of_offset(host_moments, formulation, adapting)
        self._set_weights(V, b, fit.solution, fit.weights)

    def _uncalibrated(self) -> Self:
        """The same head with its scores as they were fitted, which all else goes by."""
        if self.temperature_ == 1.0:
            return self
        head = copy.copy(self)
        head.coef_ = self.coef_ * self.temperature_
        head.intercept_ = self.intercept_ * self.temperature_
        head.temperature_ = 1.0
        return head

    def _inner(self) -> Self:
        """The same head on rows as it was fitted to them: prepared and standardised."""
        if self.preparation_ is None and self._standardization is None:
            return self
        head = copy.copy(self)
        head.preparation_ = None
        if self._standardization is not None:
            on_standardized = self._standardization.on_standardized
            head._standardization = None
            head.coef_, head.intercept_ = on_standardized(self.coef_, self.intercept_)
            fit = self._domain_fit
            if fit is not None and fit.unadapted is not None:
                head._domain_fit = replace(fit, unadapted=on_standardized(*fit.unadapted))
        return head

    def _inner_rows(self, X: Array) -> Array:
        """Rows as `_inner` takes them."""
        X = self._checked_rows(self._without_names(X))
        return X if self._standardization is None else self._standardization.rows(X)

    def _without_names(self, X: Array) -> Array:
        """Say when rows look like those that a pipeline takes, and its last step does not."""
        named = hasattr(X, "columns") and hasattr(X, "to_numpy")
        if not named or self.preparation_ is not None or hasattr(self, "feature_names_in_"):
            return X
        warn(
            f"X has column names, and this {type(self).__name__} was fitted to rows without; if it "
            "is the last step of a pipeline, these rows must go through the other steps: make it a "
            "DomainAdjusted, and call its methods. Else pass X as an array"
        )
        return X.to_numpy()

    def _fit_adaptation(
        self,
        problem: Problem,
        statistics: ProblemStatistics,
        formulation: Formulation,
        fit: CanonicalFit,
        start: CanonicalWeights,
    ) -> CanonicalFit:
        """The fit that adapting uses, beside that for unseen domains."""
        same = formulation.whitening == fit.formulation.whitening
        result = fit_canonical(
            problem,
            statistics,
            range(len(problem.index)),
            formulation,
            SolverOptions.of_head(self),
            start=start,
            adjustments=fit.adjustments if same else None,
        )
        self._warn_unless_converged(result.solution, " (the fit that adapt uses)")
        return result

    def _adapted(
        self,
        adjustment: Adjustment,
        weights: CanonicalWeights,
        mean: np.ndarray,
        trust: Trust,
        rows: int,
        beside: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Self:
        """A copy with the weights for a new domain.

        Parameters
        ----------
        adjustment : Adjustment
            Blended with the guess as far as the rows are trusted.
        weights : CanonicalWeights
        mean : array of shape (d,)
            Of the rows seen.
        trust : Trust
            How much they count beside the training domains' averages.
        rows : int
            How many rows were seen.
        beside : V and b, optional
            What few rows are blended with. Default: the head as it was before.
        """
        fit = domain_fit_of(self)
        adaptation = fit.adaptation
        assert adaptation is not None
        V, b = raw_weights(weights, adjustment, adaptation.shift(mean, trust))
        before = self._unadapted
        head = copy.copy(self)
        head._domain_fit = fit.adapted(weights[0], adjustment, mean, before)
        coef, intercept = self._on_features(V, b)
        rest = before if beside is None else self._on_features(*beside)
        head.coef_ = trust.head * coef + (1.0 - trust.head) * rest[0]
        head.intercept_ = trust.head * intercept + (1.0 - trust.head) * rest[1]
        head.solution_ = adaptation.solution
        head.adapted_rows_ = rows
        head.declined_ = None
        return head

    @property
    def _unadapted(self) -> tuple[np.ndarray, Any]:
        """``coef_`` and ``intercept_`` before any adapting."""
        return domain_fit_of(self).unadapted or (self.coef_, self.intercept_)

    @property
    @abstractmethod
    def _ridge(self) -> float:
        """The l2 that the head was fitted with."""

    def _starting_point(self) -> StartingPoint:
        """Where labels find this head as it was before any adapting."""
        weights = self._unadapted
        if self._standardization is not None:
            weights = self._standardization.on_standardized(*weights)
        V, b = self._targets.fitted_weights(*weights)
        return StartingPoint.as_it_is(
            domain_fit_of(self), V, b, self._ridge, intercept=self.fit_intercept
        )

    def adapt(
        self,
        X: Array,
        y: Any = None,
        *,
        prior_rows: float | None = None,
        min_rows: int = 2,
        force: bool = False,
        prior_labels: float | None = None,
        new_classes: bool = False,
    ) -> Self:
        """A new head for the domain these rows come from; this one is untouched.

        Parameters
        ----------
        X : array of shape (m, d)
        y : sequence of m labels, optional
            The labels of some rows, and for the others None, NaN or, where there are classes, -1.
            Without labels, a head adapts by the rows alone.
        prior_rows, min_rows, force, prior_labels, new_classes
            See `adapter`.

        Returns
        -------
        head of the same class
            Its ``adapted_rows_`` says by how many rows it was adapted, and ``labelled_rows_`` by
            how many labels. Where the rows speak against adapting, ``declined_`` says why; without
            labels it then predicts as this one.

        Examples
        --------
        >>> import numpy as np
        >>> from skdare import DAREClassifier
        >>> from skdare.datasets import make_latent_domains
        >>> data = make_latent_domains(random_state=0)
        >>> new = data.domains == 3
        >>> head = DAREClassifier().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
        >>> y = np.where(np.arange(new.sum()) < 20, data.y[new], -1)  # twenty rows have a label
        >>> head.adapt(data.X[new], y).labelled_rows_
        20
        """
        adapter = self.adapter(
            prior_rows=prior_rows,
            min_rows=min_rows,
            force=force,
            prior_labels=prior_labels,
            new_classes=new_classes,
        )
        if force and y is None:
            adapter._check_can_be_forced()
        with threads_for(X):
            adapter.partial_fit(X, y)
            adapter._check_labels()
            return adapter.head_

    def adapter(
        self,
        *,
        prior_rows: float | None = None,
        min_rows: int = 2,
        half_life: float | None = None,
        staleness: float = 0.0,
        force: bool = False,
        prior_labels: float | None = None,
        new_classes: bool = False,
    ) -> Adapter:
        """An object that takes the rows of a new domain in chunks, with labels or without.

        Parameters
        ----------
        prior_rows : float, optional
            The training domains' averages count as this many rows of the new domain; 0 is a hard
            switch to the new domain's own moments. Default: by how much the training domains
            differ beside what a row says of one, for the mean and for the adjustment; fewer than
            about 20 rows are then also blended with this head as it is.
        min_rows : int, default=2
            Rows below which it refuses to give a head.
        half_life : float, optional
            Rows after which a row counts half, for a domain that drifts. Default: never.
        staleness : float in [0, 0.1], default=0.0
            How far scores may be, relative, from those of all rows seen, so that the inverse root
            need not be computed for every head.
        force : bool, default=False
            True: adapt even where the rows speak against it, and take labels that contradict each
            other or are all of one class. A choosing head that found no way of adapting worth its
            while has none to force.
        prior_labels : float, optional
            What the training domains count as beside labels of the new one, in labels; 0 is a fit
            to these alone. Default: by how well labels predict each other.
        new_classes : bool, default=False
            True: labels may name classes that this head was not fitted to. The head they make
            predicts these, too, and only predicts: adapt the one that it came from again.

        Returns
        -------
        Adapter
        """
        return Adapter(
            self,
            prior_rows=prior_rows,
            min_rows=min_rows,
            half_life=half_life,
            staleness=staleness,
            force=force,
            prior_labels=prior_labels,
            new_classes=new_classes,
        )

    def fleet(
        self,
        *,
        rank: int = 16,
        prior_rows: float | None = None,
        min_rows: int = 2,
        half_life: float | None = None,
    ) -> Fleet:
        """An object that takes the unlabelled rows of many devices, each a domain of its own.

        Parameters
        ----------
        rank : int, default=16
            How many directions of a device's scatter are kept.
        prior_rows, min_rows, half_life
            As of `adapter`, for each device.

        Returns
        -------
        Fleet
        """
        return Fleet(self, rank=rank, prior_rows=prior_rows, min_rows=min_rows, half_life=half_life)

    def resume(self, path: str | PathLike[str]) -> Adapter | Fleet:
        """The adapter or fleet that ``save`` wrote to a file, to go on from there.

        Parameters
        ----------
        path : str or path
            Written with this head; any other file is refused.

        Returns
        -------
        Adapter or Fleet
        """
        return resume(self, path)

    def onnx_inputs(self) -> dict[str, np.ndarray]:
        """What the adaptable graph of `to_onnx` is given beside ``X`` to predict as this head.

        ``{"X": X, **head.adapt(rows).onnx_inputs()}`` is all that a session needs for the domain
        of these rows. A head that was not adapted has such inputs, too, for a domain without rows.

        Returns
        -------
        dict of float32 arrays
            ``whitener`` (d, d), ``mean`` (d,) and ``intercept``, the scores at that mean.

        Examples
        --------
        >>> from skdare import DARERegressor
        >>> from skdare.datasets import make_latent_domains
        >>> data = make_latent_domains(task="regression", random_state=0)
        >>> train, new = data.domains != 3, data.X[data.domains == 3]
        >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
        >>> {name: array.shape for name, array in head.adapt(new).onnx_inputs().items()}
        {'whitener': (8, 8), 'mean': (8,), 'intercept': (1,)}
        """
        from skdare.export import onnx_inputs

        return onnx_inputs(self)

    def rehearse(
        self,
        X: Array,
        y: Array,
        domains: Labels | None = None,
        sample_weight: Array | None = None,
        *,
        groups: Labels | None = None,
        progress: Callable[[str], object] | None = None,
        verbose: int = 0,
    ) -> Self:
        """Hold each training domain out in turn, and keep what came of it for `diagnose`.

        For every domain a copy of this head is fitted to the others, used on it as it is, after
        adapting by several numbers of its rows, and after adapting with several numbers of its
        labels. Scores of domains are kept, in ``rehearsal_``, and of a
        classifier also the scores and classes of up to 4,000 left-out rows, for `bound` and
        `predict_set`; the head predicts as before.

        Parameters
        ----------
        X, y, domains, sample_weight
            The training rows, as given to `fit`.
        groups : sequence of n labels, optional
            The patient, song or specimen that each row is of. Its rows are never on both sides:
            domains that share one are not trained on when either is held out, and groups are set
            aside whole.
        progress : callable, optional
            Called with the name of each domain before it is held out.
        verbose : int, default=0
            1 prints a line now and then.

        Returns
        -------
        self
        """
        from skdare.diagnosis import rehearse

        rehearse(
            self, X, y, domains, sample_weight, groups=groups, progress=progress, verbose=verbose
        )
        return self

    def diagnose(
        self, X: Array, *, label_cost: float = 0.05, acceptable: float | None = None
    ) -> Diagnosis:
        """Whether this head can be trusted on the domain these unlabelled rows come from.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows of the new domain.
        label_cost : float, default=0.05
            What a score must rise for labels to be worth collecting.
        acceptable : float, optional
            The score below which predictions are worth nothing. Default: half way from guessing
            to what one is used to.

        Returns
        -------
        Diagnosis
            Print it, or see ``findings`` and ``recommendation``. What a shift costs is only said
            after `rehearse`; until then those findings have the level "unknown".
        """
        from skdare.diagnosis import diagnose

        return diagnose(self, X, label_cost=label_cost, acceptable=acceptable)

    def suggest(self, X: Array, n: int, y: Any = None) -> np.ndarray:
        """Which n of these rows to label, so that this head learns most of their domain.

        Labels help where many rows lie that the head is unsure of: each row suggested lies near as
        many of them as it can that no row before it is near to. Every class that the head predicts
        has a row among the first ones. Predictions are those of ``adapt(X)``, unless this head is
        an adapted one already.

        The same rows always give the same answer, in whatever order they are, and fewer rows are
        the first of more. Of more than 3,000 rows, or twice n if that is more, some are looked at,
        evenly spread; which ones then depends on their order.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows of the new domain.
        n : int
            How many to label.
        y : sequence of m labels, optional
            Those that are known already: None, NaN, or of classes -1, where a row has none. Rows
            that have one are not suggested, and rows near them come later.

        Returns
        -------
        array of shape (n,)
            Row numbers; the row that helps most is the first.

        Examples
        --------
        >>> from skdare import DAREClassifier
        >>> from skdare.datasets import make_latent_domains
        >>> data = make_latent_domains(random_state=0)
        >>> train, new = data.domains != 3, data.X[data.domains == 3]
        >>> head = DAREClassifier().fit(data.X[train], data.y[train], domains=data.domains[train])
        >>> head.suggest(new, 10).shape
        (10,)
        """
        return suggest(self, X, n, y)

    def predict_set(self, X: Array, y: Any = None, *, coverage: float = 0.9) -> np.ndarray:
        """Sets of classes that hold the true one as often as asked, on average over new domains.

        How sure to be is learnt from `rehearse`, in which each training domain was new to a head
        fitted to the others, not from rows of domains that the head knows. Every domain counts the
        same, and a new one as the worst of them. So the share of rows whose set has the true class
        is as asked on average over domains that are to the training domains as those are to each
        other; in a single one it may be far higher or lower, and few training domains say little
        of what is to come. For a domain unlike any of them nothing is promised: see `diagnose`. Nor
        where features were fine-tuned on the training domains, so that none of these was new.

        An adapted head has sets of its own, by domains that were adapted to with all their rows and
        no labels; one adapted to very few rows is right less often.

        With labels of some rows the sets go by these alone, and hold the true class as often as
        asked in this very domain, like the others or not. They must be of rows drawn at random, and
        no fit nor adaptation may have used them.

        Parameters
        ----------
        X : array of shape (n, d)
        y : sequence of n labels, optional
            None, NaN or -1 where a row has none; at least 9 labels for a coverage of 0.9, 19 for
            0.95. No rehearsal is needed then.
        coverage : float in [0.5, 0.99], default=0.9

        Returns
        -------
        boolean array of shape (n, k)
            Which classes are in the set of each row, in the order of ``classes_``. The predicted
            class always is.

        Examples
        --------
        >>> from skdare import DAREClassifier
        >>> from skdare.datasets import make_latent_domains
        >>> data = make_latent_domains(6, 200, shift=0.5, random_state=0)
        >>> train = data.domains != 5
        >>> X, y, domains = data.X[train], data.y[train], data.domains[train]
        >>> head = DAREClassifier().fit(X, y, domains=domains).rehearse(X, y, domains=domains)
        >>> head.predict_set(data.X[~train]).shape
        (200, 2)
        """
        from skdare.diagnosis import predict_set

        return predict_set(self, X, y, coverage=coverage)

    def score_interval(self, X: Array, y: Any, *, coverage: float = 0.95) -> ScoreInterval:
        """An interval for the accuracy in a new domain, of which some rows are labelled.

        The labelled rows must be drawn at random from those of X: of rows that were picked, such as
        the hardest, no interval holds. Nor may the head have been fitted or adapted with their
        labels. What is covered is the accuracy in the domain that the rows of X were drawn from,
        which rows to come are of, too; that of the rows of X themselves is covered a little more
        often, the more so the more of them are labelled.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows of the new domain, labelled or not.
        y : sequence of m labels
            None, NaN or -1 where a row has none.
        coverage : float in [0.5, 0.999], default=0.95
            How often such intervals are to hold the accuracy.

        Returns
        -------
        ScoreInterval
            Print it, or see ``exact``, by the labels alone, and ``powered``, narrower by what the
            head's confidences on all rows say; with fewer than 10 labels, or where all or none of
            them are right, both are the same.

        Examples
        --------
        >>> from skdare import DAREClassifier
        >>> from skdare.datasets import make_latent_domains
        >>> data = make_latent_domains(random_state=0)
        >>> train = data.domains != 3
        >>> head = DAREClassifier().fit(data.X[train], data.y[train], domains=data.domains[train])
        >>> X, y = data.X[~train], data.y[~train].astype(object)
        >>> y[30:] = None
        >>> interval = head.score_interval(X, y)
        >>> interval.powered.width < interval.exact.width
        True
        """
        from skdare.diagnosis import score_interval

        return score_interval(self, X, y, coverage=coverage)

    def bound(self, X: Array, *, confidence: float = 0.95) -> Bound:
        """The least accuracy to count on in the domain these unlabelled rows come from.

        Of this head as it predicts: as it is, or adapted, ``head.adapt(X).bound(X)``. It goes by
        `rehearse`, in which each training domain was new to a head fitted to the others.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows of the new domain, 20 or more.
        confidence : float, default=0.95
            How often the bound may be relied on, over draws of rows.

        Returns
        -------
        Bound
            Print it, or see ``least``.
        """
        from skdare.diagnosis import bound

        return bound(self, X, confidence=confidence)

    def calibrate(self, X: Array | None = None, y: Any = None) -> Self:
        """A copy with calibrated probabilities; predictions do not change.

        A head is often surer in a new domain than it should be, or less sure. Its scores are
        divided by one number, ``temperature_`` of the copy. With some labels it is the one that
        suits the new domain, as far as they tell. Without, it is the number which suited the
        domains that `rehearse` left out, for heads as they are or adapted, as this one: that mends
        what is far too sure, and can make worse what was right.

        Adapt first, and calibrate last: a head that is adapted again has its scores as fitted.
        Class shares that differ from those in training are not corrected for.

        Parameters
        ----------
        X : array of shape (m, d), optional
            Rows of the new domain, if some are labelled.
        y : sequence of m labels, optional
            None, NaN or -1 where a row has none. The labelled rows must be drawn at random, and
            the head may not have been fitted or adapted with them.

        Returns
        -------
        head of the same class

        Examples
        --------
        >>> from skdare import DAREClassifier
        >>> from skdare.datasets import make_latent_domains
        >>> data = make_latent_domains(random_state=0)
        >>> train = data.domains != 3
        >>> head = DAREClassifier().fit(data.X[train], data.y[train], domains=data.domains[train])
        >>> X, y = data.X[~train], data.y[~train].astype(object)
        >>> y[30:] = None
        >>> calibrated = head.calibrate(X, y)
        >>> bool((calibrated.predict(X) == head.predict(X)).all())
        True
        """
        from skdare.diagnosis import calibrate

        calibrated: Self = calibrate(self, X, y)
        return calibrated

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, and below it what there is to say of a fitted head."""
        return super()._repr_html_inner() + self._html_below()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += self._html_below()
        return bundle

    def _html_below(self) -> str:
        """Whether the head was adapted, and by how many rows."""
        text = ""
        rows = getattr(self, "adapted_rows_", None)
        if rows is not None:
            labels = getattr(self, "labelled_rows_", None)
            labelled = f", {labels} of them labelled" if labels else ""
            text = f"Adapted to {counted(rows, 'row')} of a new domain{labelled}."
        elif getattr(self, "declined_", None) is not None:
            labels = getattr(self, "labelled_rows_", None)
            how = f"goes by {counted(labels, 'label')} alone" if labels else "predicts as before"
            text = f"Adapting was declined, and it {how}: {self.declined_}"
        return f'<p class="skdare-adapted">{escape(text)}</p>' if text else ""

    @abstractmethod
    def _rehearsal_copy(self) -> Self:
        """An unfitted head with the same options, for fits without one of the domains."""

    @abstractmethod
    def _retrainer(self, start: CanonicalWeights | None = None) -> Any:
        """An unfitted head that neither adjusts nor adapts, for rows that have labels.

        Parameters
        ----------
        start : weights and intercept on its rows, optional
            Where its fit may start.
        """


def _warn_of_offset(
    moments: Collection[Moments], formulation: Formulation, adaptation: Formulation | None
) -> None:
    """Say when the features' offset rules what knows an origin: the raw moment, the penalty."""
    whitenings = [one.whitening for one in (formulation, adaptation) if one is not None]
    moments = [m for m in moments if m.varies()]
    if not moments:
        return
    if any(whitening.adjust and not whitening.centered for whitening in whitenings):
        pairs = [(m.scale(), m.scale(centered=False)) for m in moments]
        varied = float(np.mean([within / whole for within, whole in pairs]))
        effect = "whitening by the raw second moment sees little else"
    elif formulation.means.mean_penalty != 0:
        # Means that differ are what the penalty is for; one that all domains share is not.
        means = np.stack([m.mean for m in moments])
        variance = np.mean([m.scale() for m in moments]) + np.mean(means.var(axis=0))
        varied = float(variance / (variance + np.mean(means.mean(axis=0) ** 2)))
        effect = "mean_penalty gives up whatever lies along it"
    else:
        return
    if varied < OFFSET:
        warn(
            f"the features vary little beside their mean ({varied:.1%} of their second moment), "
            f"and {effect}; set standardize=True, or centered=True, "
            "mean_penalty=0 and adaptation='centered'"
        )
