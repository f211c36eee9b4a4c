"""Heads that keep the moments of their training domains, and adapt to a new one."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skdare.adapting.new_domain import NewDomain, NewWeights
from skdare.adapting.stream_file import load_stream
from skdare.arrays import Array, is_foreign, threads_for
from skdare.checks import Label
from skdare.choosing.rule import Choice
from skdare.diagnosis.diagnosis import Diagnosis, diagnose
from skdare.diagnosis.rehearsal import Rehearsal, for_rehearsal, rehearse
from skdare.errors import InputError, counted, listed, note
from skdare.fitting.domain_fit import DomainFit, Formulations, fit_domains, moments_by_domain
from skdare.fitting.hold_out import HeldOut, hold_out
from skdare.fitting.problem import Problem
from skdare.fitting.score import Metric
from skdare.heads.adapter import Adapter
from skdare.heads.base import Head
from skdare.heads.data_notes import note_odd_features, note_odd_moments
from skdare.heads.head_state import HeadState
from skdare.progress import tracked
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments, mean_variance

# Numbers of the rows that are rehearsed with.
_CELLS = 1 << 26


class AdaptableHead(Head):
    @property
    def domain_fit_(self) -> DomainFit:
        """Moments, adjustments and fits of the training domains."""
        check_is_fitted(self, "state_")
        if self.state_.fit is None:
            raise NotFittedError(
                f"this {type(self).__name__} only predicts, as it was saved with adaptable=False "
                "or took labels of new classes; use the head that it was made from"
            )
        return self.state_.fit

    @property
    def moments_(self) -> dict[Label, Moments]:
        return dict(zip(self.domains_, self.domain_fit_.moments, strict=True))

    @property
    def adjustments_(self) -> dict[Label, Adjustment]:
        return dict(zip(self.domains_, self.domain_fit_.adjustments, strict=True))

    @property
    def adjustment_(self) -> Adjustment:
        """The adjustment in use: the average, or that of the domain adapted to."""
        return self.state_.adjustment or self.domain_fit_.unseen.adjustment

    @property
    def adapted_rows_(self) -> int | None:
        """Number of rows of a new domain that the head was adapted to."""
        adapted = self.state_.adapted
        return None if adapted is None or adapted.declined is not None else adapted.rows

    @property
    def labelled_rows_(self) -> int | None:
        """Number of labels of a new domain that `adapt` used."""
        adapted = self.state_.adapted
        return None if adapted is None else adapted.labelled_rows or None

    @property
    def declined_(self) -> str | None:
        """Reason why `adapt` left the predictions unadapted."""
        adapted = self.state_.adapted
        return None if adapted is None else adapted.declined

    def _state_of(
        self, problem: Problem, fit: DomainFit, choice: Choice | None = None
    ) -> HeadState:
        """State after a fit, with warnings about odd data and unfinished solvers."""
        unseen = fit.unseen
        adaptation = fit.adaptation
        # In units of its own scale, no feature is small beside another.
        has_own_scales = unseen.formulation.whitening.target == "diagonal"
        note_odd_features(problem, fit.moments, 0.0 if has_own_scales else unseen.formulation.l2)
        adapting = None if adaptation is None else adaptation.fit.formulation
        note_odd_moments(problem, fit.moments, unseen.formulation, adapting)
        fits = [(unseen, "")]
        if adaptation is not None:
            fits.append((adaptation.fit, " (the fit that adapt uses)"))
        for one, what in fits:
            if one.solution is not None:
                self._warn_of_no_convergence(one.solution, what)
        V, b = fit.unseen.raw_weights()
        return HeadState(problem.targets, V, b, fit, choice, solution=unseen.solution)

    def adapt(
        self,
        X: Array,
        y: Any = None,
        *,
        prior_rows: float | None = None,
        force: bool = False,
        prior_labels: float | None = None,
        new_classes: bool = False,
    ) -> Self:
        """A new head for the domain these rows come from; this one is untouched.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows of the new domain.
        y : sequence of m labels, optional
            Labels of some rows; None, NaN or, for a classifier, -1 for the others. Without labels,
            a head adapts to the rows only.
        prior_rows, force, prior_labels, new_classes
            See `Adapter`.

        Returns
        -------
        head of the same class
            With the number of rows in ``adapted_rows_``, and of labels in ``labelled_rows_``. If
            the safety check objects, ``declined_`` has the reason, and without labels the new head
            predicts as this one.

        Examples
        --------
        >>> import numpy as np
        >>> from skdare import DAREClassifier
        >>> from skdare.data import make_latent_domains
        >>> data = make_latent_domains(random_state=0)
        >>> new = data.domains == 3
        >>> head = DAREClassifier().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
        >>> y = np.where(np.arange(new.sum()) < 20, data.y[new], -1)  # twenty rows have a label
        >>> head.adapt(data.X[new], y).labelled_rows_
        20
        """
        adapter = self.adapter(
            prior_rows=prior_rows, force=force, prior_labels=prior_labels, new_classes=new_classes
        )
        adapter.partial_fit(X, y).check_labels()
        return adapter.head_

    def adapter(self, **options: Any) -> Adapter[Self]:
        """Incremental adapter for a new domain; see `Adapter` for the options."""
        fit = self.domain_fit_
        if fit.adaptation is None and fit.declined is None:
            raise InputError(
                f"this {type(self).__name__} cannot adapt, as it was fitted with adaptation=None",
                "set adaptation='raw' or 'centered' and fit again",
            )
        if self.labelled_rows_ is not None:
            note(
                f"this head was adapted with {counted(self.labelled_rows_, 'label')}, which "
                "adapting it again does not use; pass them too, with the rows that they are of"
            )
        return Adapter(self, NewDomain(fit, self.targets_, self.class_weight, **options))

    def resume(self, path: str | PathLike[str]) -> Adapter[Self]:
        """The adapter that ``save`` wrote to a file, to go on from there.

        Parameters
        ----------
        path : str or path
            Written with this head; any other file is refused.

        Returns
        -------
        Adapter
        """
        fit = self.domain_fit_
        return Adapter(self, load_stream(fit, self.targets_, self.class_weight, path))

    @property
    def rehearsal_(self) -> Rehearsal | None:
        """Scores on held-out training domains, if `rehearse` was called."""
        check_is_fitted(self, "state_")
        return self.state_.rehearsal

    def rehearse(
        self,
        X: Array,
        y: Any,
        domains: Collection[Label] | None = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
    ) -> Rehearsal:
        """Leave-one-domain-out cross-validation of this head, adapted and unadapted.

        For each one, this head is fitted to the others, and scored on the one held out: unadapted,
        adapted to few and to all of its rows, and with some labels. After a search, each domain
        is held out from what the scores on the others alone would have chosen. The head keeps the
        scores, which `diagnose` needs, and no rows.

        Parameters
        ----------
        X, y, domains, sample_weight
            The training rows, as given to ``fit``.
        groups : sequence of n labels, optional
            The patient, song or specimen that each row is of. Domains that share one are held out
            together.

        Returns
        -------
        Rehearsal
        """
        self._check_unadapted()
        if groups is None and self.state_.grouped:
            raise InputError(
                f"this {type(self).__name__} was fitted with groups, and domains that share one "
                "must be held out together",
                "pass the same groups",
            )
        problem, _ = self._problem(X, y, domains, sample_weight, groups)
        if problem.labels != self.domains_:
            raise InputError(
                f"these rows are of the domains {listed(problem.labels)}, and this "
                f"{type(self).__name__} was fitted to {listed(self.domains_)}",
                "pass the training rows",
            )
        sizes = [problem.weight[index].sum() for index in problem.index]
        same = np.allclose(sizes, [m.n for m in self.domain_fit_.moments])
        if not same or problem.X.shape[1] != len(self.state_.V):
            raise InputError(
                f"these {counted(len(problem.T), 'row')} of "
                f"{counted(problem.X.shape[1], 'feature')} are not those that this "
                f"{type(self).__name__} was fitted to",
                "pass the training rows",
            )
        with threads_for(problem.X):
            rehearsal = self._rehearsed(problem, self.state_)
        self.state_ = replace(self.state_, rehearsal=rehearsal)
        return rehearsal

    def _rehearsed(self, problem: Problem, state: HeadState) -> Rehearsal:
        """Scores on each domain of what a fit to the others gives."""
        if len(problem.labels) < 2:
            raise InputError(
                "rehearsing holds a domain out, and there is one", "fit to rows of several domains"
            )
        balanced = self.class_weight == "balanced"
        scoring = getattr(self, "scoring", None)
        balanced = balanced or scoring in ("balanced_accuracy", "f1_macro")
        return rehearse(self._without_each(problem, state), Metric.of(problem, balanced=balanced))

    def _without_each(
        self, problem: Problem, state: HeadState
    ) -> Iterator[tuple[HeldOut, DomainFit]]:
        """Each domain held out, and this head fitted without it, to rows as they are prepared."""
        assert state.fit is not None
        some = problem.thinned(_CELLS)
        for e in tracked(range(len(some.index)), "rehearsing"):
            held = hold_out(some, [e])
            if not held.can_be_learnt:
                continue
            rest = held.rest
            if some is problem and held.problem.X is problem.X and not is_foreign(problem.X):
                moments = held.among_others(state.fit.moments)  # on the host
            else:
                moments = moments_by_domain(rest)
            if not mean_variance(moments) > 0:
                continue
            formulations, declined = self._formulations_without(e, rest, state.choice)
            # From zero: a start at the weights of all domains would know the one held out.
            fit = for_rehearsal(fit_domains(rest, formulations, moments))
            yield held, replace(fit, declined=declined)

    def diagnose(self, X: Array) -> Diagnosis:
        """What to expect of this head on the domain that these rows come from.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows of the new domain, without labels.

        Returns
        -------
        Diagnosis
            Whether to use this head unadapted or adapted, the scores to expect, and warnings.

        Examples
        --------
        >>> from skdare import DAREClassifierCV
        >>> from skdare.data import make_latent_domains
        >>> data = make_latent_domains(random_state=0)
        >>> X, y, domains = data.X, data.y, data.domains
        >>> new = domains == 3
        >>> head = DAREClassifierCV().fit(X[~new], y[~new], domains[~new], rehearse=True)
        >>> diagnosis = head.diagnose(X[new])
        >>> diagnosis.use, diagnosis.rows
        ('unadapted', 300)
        """
        self._check_unadapted()
        fit = self.domain_fit_
        rehearsal = self.rehearsal_
        if rehearsal is None:
            raise InputError(
                "no training domain was held out yet, so that no score can be forecast",
                "call rehearse with the training rows, or fit a choosing head with rehearse=True",
            )
        adapted = None
        if fit.adaptation is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what the diagnosis reports
                adapted = self.adapter().partial_fit(X).new_domain.weights()
        chosen_by = None if self.state_.choice is None else self.state_.choice.metric
        return diagnose(self._prepared(X), self.targets_, fit, rehearsal, adapted, chosen_by)

    def _check_unadapted(self) -> None:
        check_is_fitted(self, "state_")
        if self.state_.adapted is not None:
            raise InputError(
                f"this {type(self).__name__} was adapted", "use the head that it was made from"
            )

    @abstractmethod
    def _formulations_without(
        self, e: int, rest: Problem, choice: Choice | None
    ) -> tuple[Formulations, str | None]:
        """What this head solves if domain e is held out, and why it does not adapt, if so."""

    def _with_weights(self, new: NewWeights) -> Self:
        """A copy with weights for a new domain; one with new classes only predicts."""
        state = replace(
            self.state_,
            targets=new.targets,
            V=new.V,
            b=new.b,
            adapted=new.adapted,
            adjustment=new.adjustment,
        )
        if new.targets is not self.state_.targets:
            state = replace(state, fit=None, rehearsal=None)
        return self._with_state(state)
