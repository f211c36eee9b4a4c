"""What the adjusted heads share: a canonical space, a guess for the unseen, and adaptation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from skdare._validation import (
    Labels,
    check_domains,
    check_features,
    check_finite_targets,
    check_weights,
    warn,
)
from skdare.adapting.adaptation import Adaptation, check_kept, warn_of_outliers
from skdare.arrays import Array, in_background, is_foreign, like, to_numpy
from skdare.arrays.passes import Part, route
from skdare.diagnosis import Diagnosis, Rehearsal
from skdare.diagnosis._diagnose import Diagnosing
from skdare.diagnosis._recommendation import LABEL_COST
from skdare.diagnosis._rehearsing import Copies, Rehearsing
from skdare.diagnosis._training import TrainingDomains
from skdare.engines import Placing, as_rows
from skdare.fitting.domain_fit import fit_adjusted, weights_for_unseen
from skdare.fitting.plan import FROM_MEAN, Form, Plan
from skdare.fitting.predictions import ClassWeights
from skdare.fitting.problem import Problem
from skdare.fitting.solver import Solving
from skdare.fitting.statistics import Statistics
from skdare.heads._adapting import Adapting
from skdare.heads._estimator import ClassifierHead, fit_sharing
from skdare.whitening.adjustment import on_host
from skdare.whitening.guess import guess_adjustment, guess_shares
from skdare.whitening.moments import Moments

# Share of variance in the second moment below which the offset rules: an offset of three standard
# deviations has 0.1, and costs six points of training accuracy on unit-variance features; the
# PACS features, with no harm seen, have 0.3 to 0.4.
OFFSET = 0.1


class Adjusted(Adapting):
    """A head with a canonical space: it guesses for an unseen domain, and adapts to a new one."""

    def _invariant(self, mean_penalty: float | str) -> Form:
        """Ask for invariance to the means; the paper's regression objective also centres rows.

        A classifier that whitens by covariances and has no penalty knows of no origin: what its
        features are measured from must not matter, and with one W_e for each domain it would.
        """
        if not isinstance(self, ClassifierHead):
            return Form(centered=True, mean_penalty=mean_penalty, subtract=False)
        if mean_penalty == 0 and self.centered and self.fit_intercept:
            return FROM_MEAN
        return Form(centered=False, mean_penalty=mean_penalty, subtract=False)

    def _install(
        self,
        problem: Problem,
        statistics: Statistics,
        plan: Plan,
        adaptation: Plan | None,
        guess: str | Mapping[Any, float],
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Solve the plan, and the one that `adapt` uses, and set the fitted attributes."""
        labels, domains = list(problem.labels), range(len(problem.index))
        moments, solving = [statistics.moments(e) for e in domains], Solving.of_head(self)
        statistics.unit(domains)  # refuses constant features before any solve
        adjustments = statistics.adjustments(domains, plan.whitening)
        kept = in_background(
            lambda: ([m.to_numpy() for m in moments], on_host(adjustments)),
            problem.X,
        )
        data = (problem, statistics, domains)
        fitted = fit_adjusted(*data, plan, solving, start=start, adjustments=adjustments)
        W = guess_adjustment(guess, fitted.adjustments, labels, moments, plan.whitening)
        means, shares = [statistics.domain_mean(e) for e in domains], guess_shares(guess, labels)
        unseen = (fitted, plan, W, means, shares)
        self._set_weights(*weights_for_unseen(*unseen, intercept=self.fit_intercept))
        self._canonical, self.canonical_coef_ = fitted.start, fitted.B.T
        self.solution_, self.n_iter_ = fitted.solution, fitted.solution.n_iter
        self.adjustment_, self._whitening = W.to_numpy(), plan.whitening
        if isinstance(self, ClassifierHead):
            self._set_shares(problem)
        self.rehearsal_: Rehearsal | None = None
        self._training: TrainingDomains | None = None
        self._fitted_with = self.get_params()
        self.adaptation_ = None
        if adaptation is not None:
            known = fitted.adjustments if adaptation.whitening == plan.whitening else None
            own = fit_adjusted(*data, adaptation, solving, start=fitted.start, adjustments=known)
            self.adaptation_ = Adaptation.of(adaptation, own)
            self._warn(own.solution, " (the fit that adapt uses)")
        known_moments, known_adjustments = kept()
        self.moments_ = dict(zip(labels, known_moments, strict=True))
        self.adjustments_ = dict(zip(labels, known_adjustments, strict=True))
        warn_of_outliers(self.moments_)
        _warn_of_offset(self.moments_.values(), plan, adaptation)
        self._warn(fitted.solution)

    def _set_shares(self, problem: Problem) -> None:
        """Shares of the classes this head predicts in training, and how far domains stray."""
        V, b = like(np.atleast_2d(self.coef_).T, problem.X), self.intercept_
        domains = range(len(problem.index))
        parts = [Part(problem.X, problem.index[e], (problem.domain_weight(e),)) for e in domains]
        visit = ClassWeights(len(self.classes_))
        shares = list(route(parts).run(visit, [(V, b)] * len(parts)))
        self.predicted_shares_ = np.sum(shares, axis=0) / np.sum(shares)
        distances = [0.5 * np.abs(s / s.sum() - self.predicted_shares_).sum() for s in shares]
        self.predicted_share_range_ = float(max(distances))

    @abstractmethod
    def _retrainer(self) -> Self:
        """An unfitted head that neither adjusts nor adapts, for rows that have labels."""

    def rehearse(
        self,
        X: Array,
        y: Array,
        domains: Labels | None = None,
        sample_weight: Array | None = None,
        *,
        progress: Callable[[str], object] | None = None,
    ) -> Self:
        """Hold each training domain out in turn, and keep what came of it for `diagnose`.

        For every domain a copy of this head is fitted to the others, used on it as it is, after
        adapting by several numbers of its rows, and after retraining with several numbers of its
        labels: up to four fits a domain. Only scores are kept, in ``rehearsal_``; the head
        predicts as before.

        Parameters
        ----------
        X, y, domains, sample_weight
            The training rows, as given to `fit`.
        progress : callable, optional
            Called with the name of each domain before it is held out.

        Returns
        -------
        self
        """
        self._check_diagnosable()
        if self.get_params() != self._fitted_with:
            raise ValueError("parameters were changed since fit; fit again, then rehearse")
        with Placing(self.engine) as place:
            X = check_features(self, place.where_they_lie(X), reset=False)
            self._rehearse(place.handed_over(X), y, domains, sample_weight, progress)
        return self

    def _rehearse(
        self,
        X: Array,
        y: Array,
        domains: Labels | None,
        sample_weight: Array | None,
        progress: Callable[[str], object] | None,
    ) -> None:
        y = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True)
        self._check_rehearsed(y, X.shape[0])
        weight = check_weights(sample_weight, len(y))
        rows = check_domains(domains, len(y), weight)
        training = self.training_domains()
        if set(rows.labels) != set(training.labels):
            raise ValueError(
                f"these rows have the domains {_listed(rows.labels)}, and the head was fitted to "
                f"{_listed(training.labels)}; pass the training rows"
            )
        if len(rows.labels) < 2:
            raise ValueError("rehearsing holds a domain out, and there is 1; it needs at least 2")
        place = dict(zip(rows.labels, rows.index, strict=True))
        numbers = [np.arange(len(y))[place[label]] for label in training.labels]
        classes = getattr(self, "classes_", None)
        copies = Copies(self._copy, self._retrainer, fit_sharing)
        given = (training, X, y, weight, numbers, classes, progress)
        self.rehearsal_ = Rehearsing(copies, *given)()

    def diagnose(
        self, X: Array, *, label_cost: float = LABEL_COST, acceptable: float | None = None
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
        self._check_diagnosable()
        X = check_features(self, as_rows(X), reset=False)
        training = self.training_domains()
        return Diagnosing(self, X, training, self.rehearsal_)(label_cost, acceptable)

    def _check_diagnosable(self) -> None:
        check_is_fitted(self)
        check_kept(self)
        if hasattr(self, "adapted_rows_"):
            raise ValueError("this head was adapted; diagnose the head that it came from")

    def _check_rehearsed(self, y: np.ndarray, rows: int) -> None:
        """The checks that fit makes of targets, and that they are those of this head."""
        if len(y) != rows:
            raise ValueError(f"y has {len(y)} entries but X has {rows} rows; give one a row")
        check_finite_targets(y)
        if isinstance(self, ClassifierHead):
            unknown = np.setdiff1d(y, self.classes_)
            if len(unknown):
                raise ValueError(
                    f"y has the class {unknown[0]!r}, which the head was not fitted to; pass the "
                    "training rows"
                )
        elif not np.var(y) > 0:
            raise ValueError("y is the same in every row; there is nothing to rehearse")

    def _copy(self) -> Self:
        """An unfitted head with the same options; a guess cannot name a domain that is away."""
        head = clone(self)
        if isinstance(getattr(head, "guess", None), Mapping):
            head.set_params(guess="mean")
        return head

    def training_domains(self) -> TrainingDomains:
        """What is known of the training domains, computed once after a fit."""
        if self._training is None:
            labels = list(self.adjustments_)
            B = np.asarray(self.canonical_coef_.T, dtype=np.float64)
            truth, adaptation = B, self.adaptation_
            if adaptation is not None and adaptation.plan.whitening == self._whitening:
                truth = np.asarray(adaptation.fitted.B, dtype=np.float64)
            self._training = TrainingDomains(
                labels,
                [self.moments_[label] for label in labels],
                [self.adjustments_[label] for label in labels],
                getattr(self, "guess", "mean"),
                B,
                truth,
                self._whitening,
            )
        return self._training


def _listed(labels: Iterable[Hashable]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


def _warn_of_offset(moments: Collection[Moments], plan: Plan, adaptation: Plan | None) -> None:
    """Say when the features' offset rules what knows an origin: the raw moment, the penalty."""
    whitenings = [one.whitening for one in (plan, adaptation) if one is not None]
    moments = [m for m in moments if m.varies()]
    if not moments:
        return
    if any(whitening.adjust and not whitening.centered for whitening in whitenings):
        pairs = [(m.scale(), m.scale(centered=False)) for m in moments]
        varied = float(np.mean([within / whole for within, whole in pairs]))
        effect = "whitening by the raw second moment sees little else"
    elif plan.form.mean_penalty != 0:
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
            f"and {effect}; standardise the features first (StandardScaler), or set centered=True, "
            "mean_penalty=0 and adaptation='centered'"
        )
