"""What every head shares: the scikit-learn contract, and one linear map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdare._validation import (
    DomainRows,
    Labels,
    check_choice,
    check_count,
    check_domains,
    check_features,
    check_groups,
    check_number,
    check_weights,
    feature_name,
    warn,
)
from skdare.arrays import (
    Array,
    Index,
    is_foreign,
    namespace,
    products_of,
    threads_for,
    to_numpy,
)
from skdare.choosing.folds import units_of
from skdare.engines import Placement, as_rows, check_engine
from skdare.fitting.canonical_fit import CanonicalWeights
from skdare.fitting.class_weight import ClassWeight
from skdare.fitting.preparation import RowPreparation, Standardization, check_in_memory
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes, Numbers, Targets
from skdare.objective.objective import Objective
from skdare.objective.scores import linear_scores, predicted_columns, probabilities
from skdare.solvers import Solution
from skdare.whitening.cache import SharedCaches


class Head(BaseEstimator, ABC):
    """A linear head: ``fit`` leaves one matrix and one intercept.

    Subclasses say how the training problem becomes weights; the classifier and regressor classes
    below say what targets and predictions are.
    """

    # Routing works without a global switch and without set_fit_request.
    __metadata_request__fit = {"domains": True}  # noqa: RUF012

    _needs_domains = True
    # Whether it chooses by leaving domains out.
    _compares_domains = False
    # Heads that have these options say so in their constructor.
    preparation: Any = None
    class_weight: ClassWeight = None
    preparation_: Any = None
    target_name_: str
    domain_name_: str
    _had_groups = False
    _standardization: Standardization | None = None
    _targets: Targets
    _canonical: CanonicalWeights | None

    def fit(
        self,
        X: Array,
        y: Array,
        domains: Labels | None = None,
        sample_weight: Array | None = None,
    ) -> Self:
        """Fit the head to rows of the training domains.

        Parameters
        ----------
        X : array of shape (n, d)
            Features: NumPy, memory-mapped, CSR, a data frame, a dask.array, or an array-API array
            such as a torch tensor, on any device.
        y : array of shape (n,)
            Class labels, or numbers.
        domains : sequence of n labels, optional
            Where each row came from: any hashable labels. None is one domain.
        sample_weight : array of shape (n,), optional
            A weight of two is a row given twice.

        Returns
        -------
        self
        """
        return self._fit_sharing(None, X, y, domains, sample_weight)

    def _fit_sharing(
        self,
        shared: SharedCaches | None,
        X: Array,
        y: Array,
        domains: Labels | None,
        sample_weight: Array | None,
        groups: Labels | None = None,
    ) -> Self:
        before = dict(vars(self))
        try:
            with products_of(X):
                self._fit(X, y, domains, sample_weight, groups, shared)
        except BaseException:
            # A fit that fails leaves the head as it was, fitted or not.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(
        self,
        X: Array,
        y: Array,
        domains: Labels | None,
        sample_weight: Array | None,
        groups: Labels | None,
        shared: SharedCaches | None,
    ) -> None:
        self._check_options()
        with Placement(self.engine) as placement:
            X = placement.from_disk(X)
            if self.preparation is None:
                X = check_features(self, X, reset=True, min_rows=2)
            else:
                X = X if hasattr(X, "shape") else np.asarray(X)
                check_in_memory(X)
            problem = self._prepared(self._problem(X, y, domains, sample_weight, groups))
            problem = replace(problem, X=placement.from_memory(problem.X))
            # What others know of a domain holds for its rows as they are.
            sharing = self._needs_domains and problem.refitted is None
            statistics = ProblemStatistics(problem, shared if sharing else None)
            with threads_for(problem.X):
                self._solve(problem, statistics)
            self._warn_of_scales(statistics.variances(range(len(problem.index))))
            _warn_of_constant_domains(statistics)

    def _remember_names(self, target: Any, domains: Any) -> None:
        """Keep the names of targets and domains, where these columns have one, and no others."""
        for attribute, name in (("target_name_", target), ("domain_name_", domains)):
            self.__dict__.pop(attribute, None)
            if isinstance(name, str):
                setattr(self, attribute, name)

    def _prepared(self, given: Problem) -> Problem:
        """The problem with its rows prepared, by those of all domains."""
        preparation = RowPreparation(
            given, self.preparation, self.standardize, center=self.fit_intercept
        )
        prepared = preparation.fitted_to(range(len(given.index)), self)
        self.preparation_ = prepared.transformer
        self._standardization = prepared.standardization
        if self.preparation is None and not self.standardize:
            return given
        return replace(given, X=prepared.X, refitted=lambda chosen: preparation.fitted_to(chosen).X)

    def _problem(
        self,
        X: Array,
        y: Array,
        domains: Labels | None,
        sample_weight: Array | None,
        groups: Labels | None,
    ) -> Problem:
        """Checked rows, targets and weights by domain."""
        n = X.shape[0]
        self._remember_names(getattr(y, "name", None), getattr(domains, "name", None))
        y = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True)
        if len(y) != n:
            raise ValueError(f"y has {len(y)} entries but X has {n} rows")
        weight = check_weights(sample_weight, n)
        rows = check_domains(domains, n, weight)
        self.domains_ = rows.labels
        if domains is None and self._needs_domains:
            warn(
                f"{type(self).__name__} was given no domains and treats all rows as one; "
                "pass domains= to fit"
            )
        elif self._compares_domains:
            self._warn_of_few_domains(y, rows)
        if not self._needs_domains:
            rows = check_domains(None, n, weight)
        units = None
        self._had_groups = groups is not None
        if groups is not None:
            names, codes = check_groups(groups, n)
            units = units_of(rows.index, codes, rows.labels, names)
        self._targets, T = self._encode_targets(y, weight, rows.index)
        problem = Problem(X, T, weight, rows.labels, rows.index, self._targets, units)
        if self.class_weight is None:
            return problem
        problem = replace(problem, class_weight=self.class_weight)
        problem.loss_weight_among([0])  # refuses classes that there are not, before any work
        return problem

    def _warn_of_few_domains(self, y: np.ndarray, rows: DomainRows) -> None:
        """Say when nothing can be learnt from how domains differ."""
        if len(rows.labels) == 1:
            warn(
                f"all rows are of domain {rows.labels[0]!r}, and {type(self).__name__} cannot "
                "learn from one how domains differ; pass rows of several, or fit an ERM head"
            )

    @abstractmethod
    def _encode_targets(
        self, y: np.ndarray, weight: np.ndarray, index: Sequence[Index]
    ) -> tuple[Targets, np.ndarray]:
        """What targets are, and y as they are fitted."""

    @abstractmethod
    def _check_options(self) -> None:
        """Check the constructor's values."""

    @abstractmethod
    def _solve(self, problem: Problem, statistics: ProblemStatistics) -> None:
        """Set coef_, intercept_ and the other fitted attributes."""

    def _set_weights(
        self, V: np.ndarray, b: np.ndarray, solution: Solution, canonical: CanonicalWeights
    ) -> None:
        """Set what every head has after a fit, from weights on raw features."""
        self.coef_, self.intercept_ = self._on_features(V, b)
        self.solution_ = solution
        self.n_iter_ = solution.n_iter
        self._canonical = canonical
        self._warn_unless_converged(solution)

    def _on_features(self, V: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        """``coef_`` and ``intercept_`` of weights on the rows that were fitted to."""
        weights = self._targets.coef_and_intercept(V, b)
        if self._standardization is None:
            return weights
        return self._standardization.on_features(*weights)

    def _warn_of_scales(self, variances: np.ndarray) -> None:
        """Say when one feature sets the unit in which all others are penalised."""
        if not np.any(self.l2):
            return
        top = int(variances.argmax())
        share = variances[top] / variances.sum()
        if share > 0.5 and variances[top] > 25 * np.median(variances):
            warn(
                f"{feature_name(self, top)} holds {share:.0%} of the variance of all features, and "
                "l2 treats the others as small beside it; set standardize=True"
            )

    def _warn_unless_converged(self, solution: Solution, what: str = "") -> None:
        """Say what did not converge, and what to do."""
        if not solution.converged:
            warn(
                f"{type(self).__name__}{what} {solution.status.value} "
                f"(gradient {solution.gradient_norm:.1e}, tol {self.tol:g}, "
                f"{solution.n_iter} iterations)",
                ConvergenceWarning,
            )

    def _warm_start(self) -> CanonicalWeights | None:
        """Canonical weights of the last fit, where this one should start from them."""
        return self._canonical if self.warm_start and hasattr(self, "coef_") else None

    def _start(self, objective: Objective) -> np.ndarray:
        """Zero, or where the last fit ended."""
        last = self._warm_start()
        coordinates = objective.coordinates
        if last is not None and last[0].shape == (coordinates.d, coordinates.k):
            return coordinates.pack(*last)
        return np.zeros(objective.size)

    def save(self, path: str | PathLike[str], *, adaptable: bool = True) -> None:
        """Write the head to a safetensors file, which `skdare.load` reads; see `skdare.save`.

        Parameters
        ----------
        path : str or path
        adaptable : bool, default=True
            False leaves out what only adapting and diagnosing need.
        """
        from skdare.model_io import save

        save(self, path, adaptable=adaptable)

    def to_onnx(self, path: str | PathLike[str] | None = None, *, adaptable: bool = False) -> Any:
        """An ONNX graph that predicts as this head does.

        Its input ``X`` is float32 of shape (n, d). A classifier gives ``label``,
        ``probabilities`` and ``scores``, the latter as ``decision_function``; a regressor gives
        ``y``. Sums inside are in float64, so that probabilities are those of ``predict_proba``
        to 1e-6 wherever the features lie. A preparation of ``SimpleImputer``, ``StandardScaler``
        and ``FunctionTransformer(np.clip)`` is part of the graph, which then takes NaN.

        Parameters
        ----------
        path : str or path, optional
            Where to write the file, too.
        adaptable : bool, default=False
            True: a graph with three more inputs, ``whitener``, ``mean`` and ``intercept``, which
            `onnx_inputs` of an adapted head gives. One session then serves any number of domains.
            The whitener's seven digits cost some where features have very unequal units and
            ``shrinkage_target="pooled"``: standardise those.

        Returns
        -------
        onnx.ModelProto

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdare import ERMClassifier
        >>> model = ERMClassifier().fit(*load_iris(return_X_y=True)).to_onnx()
        >>> [output.name for output in model.graph.output]
        ['label', 'probabilities', 'scores']
        """
        from skdare.export import head_to_onnx

        return head_to_onnx(self, path, adaptable=adaptable)

    def to_torch(self, *, one_logit: bool = False, dtype: Any = None, device: Any = None) -> Any:
        """A ``torch.nn.Linear`` with the weights of this head.

        It has an output for each class, and their softmax is ``predict_proba``; of two classes
        they are ∓ half the score. A regressor has one output. Features that lie far from zero
        beside their spread lose digits in float32: pass ``dtype=torch.float64`` for those.

        Parameters
        ----------
        one_logit : bool, default=False
            True: one output for two classes, the score of the second.
        dtype : torch.dtype, optional
            Default: float32.
        device : torch.device or str, optional
            Default: the CPU.

        Returns
        -------
        torch.nn.Linear
        """
        from skdare.export import head_to_torch

        return head_to_torch(self, one_logit=one_logit, dtype=dtype, device=device)

    def to_sklearn(self) -> Any:
        """A fitted ``LogisticRegression`` or ``Ridge`` of scikit-learn that predicts the same.

        For tools that know scikit-learn's own classes only. Its parameters are defaults and say
        nothing of how the weights came about: fitting it again gives another model.

        Returns
        -------
        LogisticRegression or Ridge

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdare import ERMClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> head = ERMClassifier().fit(X, y)
        >>> head.to_sklearn().score(X, y) == head.score(X, y)
        True
        """
        from skdare.export import head_to_sklearn

        return head_to_sklearn(self)

    def to_frame(self) -> Any:
        """A pandas data frame of the coefficients, by name.

        Rows are the intercept and the features, columns the classes. Two classes have one column,
        which is named after the second and raises its log-odds; a regressor's is ``coefficient``.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdare import ERMClassifier
        >>> X, y = load_iris(as_frame=True, return_X_y=True)
        >>> ERMClassifier().fit(X, y).to_frame().shape
        (5, 3)
        """
        from skdare.export import head_to_frame

        return head_to_frame(self)

    def _scores(self, X: Array) -> Array:
        """X coefᵀ + intercept, (n, k), in float64, in the array library of X."""
        return linear_scores(*self._rows_and_weights(X))

    def _checked_rows(self, X: Array) -> Array:
        """Rows as ``coef_`` takes them: through the preparation, where there is one."""
        check_is_fitted(self)
        if self.preparation_ is not None:
            X = self.preparation_.transform(X)
        return check_features(self, as_rows(X), reset=False)

    def _rows_and_weights(self, X: Array) -> tuple[Array, slice, np.ndarray, Any]:
        X = self._checked_rows(X)
        return X, slice(0, X.shape[0]), np.atleast_2d(self.coef_).T, self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ClassifierHead(ClassifierMixin, Head):
    """A head whose targets are classes."""

    def _encode_targets(
        self, y: np.ndarray, weight: np.ndarray, index: Sequence[Index]
    ) -> tuple[Classes, np.ndarray]:
        targets, codes = Classes.encode(y, weight)
        self.classes_ = targets.classes
        return targets, codes

    def _warn_of_few_domains(self, y: np.ndarray, rows: DomainRows) -> None:
        """Say also when every domain has a single class, which cannot be told from the domain."""
        super()._warn_of_few_domains(y, rows)
        classes = [y[index] for index in rows.index]
        # A row of its own domain says nothing of that.
        if max(map(len, classes)) < 2 or len({own[0] for own in classes}) < 2:
            return
        if all(bool(np.all(own == own[0])) for own in classes):
            warn(
                "every domain has one class only, so that classes cannot be told from domains; "
                "pass domains that share classes"
            )

    def decision_function(self, X: Array) -> Array:
        """Scores: (n,) for two classes, else (n, k), in the array library of X."""
        F = self._scores(X)
        return F[:, 0] if F.shape[1] == 1 else F

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities, (n, k), in the array library of X."""
        return probabilities(self._scores(X))

    def predict_log_proba(self, X: Array) -> Array:
        """Logarithms of class probabilities, in the array library of X."""
        P = self.predict_proba(X)
        return namespace(P).log(P)

    def predict(self, X: Array) -> np.ndarray:
        """Class labels, a NumPy array of shape (n,)."""
        columns = predicted_columns(*self._rows_and_weights(X))
        return self.classes_[columns]


class RegressorHead(RegressorMixin, Head):
    """A head whose targets are numbers."""

    def _encode_targets(
        self, y: np.ndarray, weight: np.ndarray, index: Sequence[Index]
    ) -> tuple[Numbers, np.ndarray]:
        return Numbers.encode(y, weight, index, centre=self.fit_intercept)

    def predict(self, X: Array) -> Array:
        """Predicted numbers, (n,), in the array library of X."""
        return self._scores(X)[:, 0]


def fit_sharing(
    head: Any,
    shared: SharedCaches,
    X: Array,
    y: Array,
    domains: Any,
    sample_weight: Array | None = None,
    groups: Any = None,
) -> Any:
    """Fit a head with caches that other fits share, by domain label.

    Only for fits in which a label always stands for the same rows: the moments, spectra and
    adjustments of a domain are then computed once for all heads and all sets of training domains.
    """
    return head._fit_sharing(shared, X, y, domains, sample_weight, groups)


def check_solving_options(head: Head) -> None:
    """Check the constructor values with which every head but a searching one is solved."""
    check_number("l2", head.l2)
    check_choice("warm_start", head.warm_start, (True, False))
    check_shared_options(head)


def check_shared_options(head: Head) -> None:
    """Check the constructor values that every head has."""
    check_number("tol", head.tol)
    check_count("max_iter", head.max_iter, 1)
    check_choice("standardize", head.standardize, (True, False))
    check_choice("fit_intercept", head.fit_intercept, (True, False))
    check_engine(head.engine)


def check_solver(head: Head) -> None:
    """The solver is one that this head can use."""
    names = ["auto", "lbfgs", "trust-ncg"]
    check_choice("solver", head.solver, names + ["direct"] * is_regressor(head))


def _warn_of_constant_domains(statistics: ProblemStatistics) -> None:
    """Say which domains have rows that are all the same."""
    names = [repr(label) for label in statistics.constant_domains()]
    if names:
        more = f" (and of {len(names) - 1} more)" if len(names) > 1 else ""
        warn(
            f"the rows of domain {names[0]}{more} are all the same, and nothing can be learnt "
            "of how it varies; look at how it was recorded, or leave it out"
        )
