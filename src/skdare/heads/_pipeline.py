"""Pipelines that end in a head: what the head does with rows, on rows as they are recorded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from sklearn import config_context
from sklearn.pipeline import Pipeline, _name_estimators
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if

from skdare._validation import InputError, Labels
from skdare.arrays import Array
from skdare.fitting.preparation import check_preparation
from skdare.heads._adjusted import AdjustedHead
from skdare.heads._estimator import Head

if TYPE_CHECKING:
    from skdare.diagnosis import Bound, Diagnosis, ScoreInterval

Method = TypeVar("Method", bound=Callable[..., Any])


def _can_adapt(pipeline: DomainAdjusted) -> bool:
    """Whether the last step has what `adapt`, `rehearse` and `diagnose` need."""
    return isinstance(pipeline.steps[-1][1], AdjustedHead)


def _of_adjusted_heads(method: Method) -> Method:
    return available_if(_can_adapt)(method)


class DomainAdjusted(Pipeline):
    """A pipeline of transformers and a head, which adapts and diagnoses on rows as recorded.

    ``domains``, ``groups`` and ``sample_weight`` go to the head alone, and metadata routing need
    not be set up for that. Whatever leaves domains out, the search of a choosing head as much as
    `rehearse`, fits the transformers anew to the other domains, so that none of them has seen the
    domain that stands for a new one.

    Parameters
    ----------
    steps : list of (name, estimator)
        Transformers that do not look at targets, and a head.
    memory, verbose
        As of scikit-learn's ``Pipeline``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdare import DARERegressor, DomainAdjusted
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> train, new = data.domains != 3, data.X[data.domains == 3]
    >>> model = DomainAdjusted([("scale", StandardScaler()), ("head", DARERegressor())])
    >>> model = model.fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> model.adapt(new)[-1].adapted_rows_
    300
    """

    steps: list[tuple[str, Any]]
    # What fit takes besides X and y is the head's, which asks for it itself.
    __metadata_request__fit = dict.fromkeys(("domains", "sample_weight", "groups"), UNUSED)

    def fit(
        self,
        X: Any,
        y: Any = None,
        domains: Labels | None = None,
        sample_weight: Array | None = None,
        groups: Labels | None = None,
        **params: Any,
    ) -> Self:
        """Fit the transformers, and the head to what they give.

        Parameters
        ----------
        X : rows that the first step takes
        y : array of shape (n,)
        domains, sample_weight
            As of `DAREClassifier.fit`.
        groups
            As of `DAREClassifierCV.fit`, for heads that take them.
        **params
            Arguments of a step, as ``name__argument``; not where the head leaves domains out, and
            fits the steps anew.

        Returns
        -------
        self
        """
        name, head = self.steps[-1]
        if not isinstance(head, Head):
            raise InputError(
                f"the last step is {head!r}", "end with a head of skdare", argument="steps"
            )
        check_preparation(self[:-1] if len(self.steps) > 1 else None, "the pipeline")
        beside = {"domains": domains, "sample_weight": sample_weight, "groups": groups}
        beside = {key: value for key, value in beside.items() if value is not None}
        if len(self.steps) > 1 and "preparation" in head.get_params(deep=False):
            for key in ("domains", "sample_weight", "groups"):
                if f"{name}__{key}" in params:
                    beside[key] = params.pop(f"{name}__{key}")
            if params:
                raise InputError(
                    f"fit was given {next(iter(params))!r}, but {type(head).__name__} leaves "
                    "domains out, and the steps are fitted anew whenever it does",
                    "set it as a parameter of the step, not in fit",
                    argument="params",
                )
            return self._fit_choosing(X, y, beside)
        # The names of the steps say where arguments go, whether or not routing is on.
        with config_context(enable_metadata_routing=False):
            return super().fit(X, y, **{f"{name}__{key}": beside[key] for key in beside}, **params)

    def _fit_choosing(self, X: Any, y: Any, beside: dict[str, Any]) -> Self:
        """Fit a head that leaves domains out, with the steps before its own preparation."""
        name, head = self.steps[-1]
        own = head.preparation
        steps = self[:-1]
        if own is not None:
            steps = Pipeline([*steps.steps, (f"{name} preparation", own)], memory=self.memory)
        # Steps are fitted as clones, and put in the places of those that were given.
        searched = copy.copy(head).set_params(preparation=steps).fit(X, y, **beside)
        fitted = list(searched.preparation_.steps)
        fitted_own = None if own is None else fitted.pop()[1]
        head.__dict__.clear()
        head.__dict__.update(vars(searched._prepared_by(own, fitted_own)))
        self.steps = [*fitted, (name, head)]
        return self

    def __getitem__(self, ind: Any) -> Any:
        """A step, or a pipeline of some; without the head it is a plain one."""
        part = super().__getitem__(ind)
        if not isinstance(ind, slice) or isinstance(part.steps[-1][1], Head):
            return part
        return Pipeline(part.steps, memory=self.memory, verbose=self.verbose)

    def _rows(self, X: Any) -> Any:
        """Rows as the head takes them."""
        return self[:-1].transform(X) if len(self.steps) > 1 else X

    @_of_adjusted_heads
    def adapt(
        self,
        X: Any,
        y: Any = None,
        **options: Any,
    ) -> Self:
        """A new pipeline for the domain these rows come from; this one is untouched.

        Parameters
        ----------
        X : rows that the first step takes
        y : sequence of m labels, optional
            The labels of some rows.
        **options
            As of `DAREClassifier.adapt`.

        Returns
        -------
        DomainAdjusted
            Its last step is the adapted head.
        """
        name, head = self.steps[-1]
        adapted = head.adapt(self._rows(X), y, **options)
        model = copy.copy(self)
        # Copies, which a later fit of either pipeline does not change in the other.
        model.steps = [*copy.deepcopy(self.steps[:-1]), (name, adapted)]
        return model

    @_of_adjusted_heads
    def rehearse(
        self,
        X: Any,
        y: Array,
        domains: Labels | None = None,
        sample_weight: Array | None = None,
        *,
        groups: Labels | None = None,
        progress: Callable[[str], object] | None = None,
        verbose: int = 0,
    ) -> Self:
        """Hold each training domain out in turn, and keep what came of it for `diagnose`.

        The transformers are fitted anew to the other domains whenever one is held out.

        Parameters
        ----------
        X, y, domains, sample_weight
            The training rows, as given to `fit`.
        groups, progress, verbose
            As of `DAREClassifier.rehearse`.

        Returns
        -------
        self
        """
        from skdare.diagnosis import rehearse

        rehearse(
            self, X, y, domains, sample_weight, groups=groups, progress=progress, verbose=verbose
        )
        return self

    @_of_adjusted_heads
    def diagnose(self, X: Any, **options: Any) -> Diagnosis:
        """Whether this pipeline can be trusted on the domain these unlabelled rows come from.

        Parameters
        ----------
        X : rows that the first step takes
            Rows of the new domain.
        **options
            As of `DAREClassifier.diagnose`.

        Returns
        -------
        Diagnosis
        """
        from skdare.diagnosis import diagnose

        return diagnose(self, X, **options)

    @_of_adjusted_heads
    def suggest(self, X: Any, n: int, y: Any = None) -> np.ndarray:
        """Which n of these rows to label, so that the head learns most of their domain.

        Parameters
        ----------
        X : rows that the first step takes
            Rows of the new domain.
        n, y
            As of `DAREClassifier.suggest`.

        Returns
        -------
        array of shape (n,)
            Row numbers; the row that helps most is the first.
        """
        suggested: np.ndarray = self.steps[-1][1].suggest(self._rows(X), n, y)
        return suggested

    @_of_adjusted_heads
    def predict_set(self, X: Any, y: Any = None, *, coverage: float = 0.9) -> np.ndarray:
        """Sets of classes that hold the true one as often as asked, on average over new domains.

        Parameters
        ----------
        X : rows that the first step takes
        y, coverage
            As of `DAREClassifier.predict_set`.

        Returns
        -------
        boolean array of shape (n, k)
        """
        from skdare.diagnosis import predict_set

        return predict_set(self, X, y, coverage=coverage)

    @_of_adjusted_heads
    def score_interval(self, X: Any, y: Any, *, coverage: float = 0.95) -> ScoreInterval:
        """An interval for the accuracy in a new domain, of which some rows are labelled.

        Parameters
        ----------
        X : rows that the first step takes
        y, coverage
            As of `DAREClassifier.score_interval`.

        Returns
        -------
        ScoreInterval
        """
        from skdare.diagnosis import score_interval

        return score_interval(self, X, y, coverage=coverage)

    @_of_adjusted_heads
    def bound(self, X: Any, **options: Any) -> Bound:
        """The least accuracy to count on in the domain these unlabelled rows come from.

        Parameters
        ----------
        X : rows that the first step takes
            Rows of the new domain.
        **options
            As of `DAREClassifier.bound`.

        Returns
        -------
        Bound
        """
        from skdare.diagnosis import bound

        return bound(self, X, **options)

    @_of_adjusted_heads
    def calibrate(self, X: Any = None, y: Any = None) -> Self:
        """A copy with calibrated probabilities; predictions do not change.

        Parameters
        ----------
        X : rows that the first step takes, optional
        y
            As of `DAREClassifier.calibrate`.

        Returns
        -------
        DomainAdjusted
            Its last step is the calibrated head.
        """
        from skdare.diagnosis import calibrate

        calibrated: Self = calibrate(self, X, y)
        return calibrated

    def save(self, path: str | PathLike[str], *, adaptable: bool = True) -> None:
        """Write the pipeline to a safetensors file, which `skdare.load` reads; see `skdare.save`.

        Parameters
        ----------
        path : str or path
        adaptable : bool, default=True
            False leaves out what only adapting and diagnosing need.
        """
        from skdare.model_io import save

        save(self, path, adaptable=adaptable)


def make_domain_adjusted(*steps: Any, memory: Any = None, verbose: bool = False) -> DomainAdjusted:
    """A `DomainAdjusted` pipeline whose steps are named after their classes.

    Parameters
    ----------
    *steps : estimators
        Transformers, and a head at the end.
    memory, verbose
        As of scikit-learn's ``Pipeline``.

    Returns
    -------
    DomainAdjusted

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdare import DARERegressorCV, make_domain_adjusted
    >>> list(make_domain_adjusted(StandardScaler(), DARERegressorCV()).named_steps)
    ['standardscaler', 'dareregressorcv']
    """
    return DomainAdjusted(_name_estimators(steps), memory=memory, verbose=verbose)
