"""The contract of every head: scikit-learn's methods, and one linear map."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_feature_names, _get_feature_names, check_is_fitted

from skdare.arrays import Array, Index, namespace, scores, threads_for
from skdare.checks import (
    ClassWeight,
    Label,
    check_choice,
    check_class_weight,
    check_count,
    check_domains,
    check_labels,
    check_names,
    check_number,
    check_numbers,
    check_rows,
    check_targets,
    check_weights,
)
from skdare.cluster import placed
from skdare.errors import note
from skdare.fitting.preparation import AutoPreparation, Preparation, check_preparation
from skdare.fitting.problem import Classes, Numbers, Problem, Targets
from skdare.heads.head_state import HeadState, Names
from skdare.solvers.lbfgs import Solution


class Head(BaseEstimator, ABC):
    """A linear classifier or regressor on fixed features.

    Its fitted attributes are views of ``state_``, which is set in one step: a fit that fails leaves
    the head as it was.
    """

    # Routing works without a global switch and without set_fit_request.
    __metadata_request__fit: ClassVar = {"domains": True}

    state_: HeadState
    # Every head has these parameters.
    preparation: Any
    fit_intercept: bool
    l2: Any
    tol: float
    max_iter: int
    # Classifiers have this one, too.
    class_weight: ClassWeight = None

    # Whether a fit without domains is most likely a mistake.
    _needs_domains = True
    # Whether it measures every feature in units of its own scale.
    _knows_scales = False

    def fit(
        self,
        X: Array,
        y: Any,
        domains: Collection[Label] | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit the head to rows of the training domains.

        Parameters
        ----------
        X : array of shape (n, d)
            NumPy, memory-mapped, CSR, a data frame, or an array of another library, on any device.
        y : array of shape (n,)
            Class labels, or numbers for a regressor.
        domains : sequence of n labels, optional
            Domain of each row. None is one domain.
        sample_weight : array of shape (n,), optional
            A weight of two is equivalent to repeating the row.

        Returns
        -------
        self
        """
        return self._fit(X, y, domains, sample_weight)

    def _fit(
        self,
        X: Array,
        y: Any,
        domains: Collection[Label] | None,
        sample_weight: Any,
        groups: Any = None,
        **options: Any,
    ) -> Self:
        with placed(X) as rows:
            problem, prepared = self._problem(rows, y, domains, sample_weight, groups)
            self._note_odd_domains(problem, domains)
            with threads_for(problem.X):
                state = self._fitted(problem, **options)
        features = _get_feature_names(X)
        names = Names(
            None if features is None else features.tolist(), _name_of(y), _name_of(domains)
        )
        solution = state.solution
        self.state_ = replace(
            state,
            preparation=prepared,
            names=names,
            domains=list(problem.labels),
            grouped=groups is not None,
            solution=None if solution is None else replace(solution, theta=np.empty(0)),
        )
        return self

    def _with_state(self, state: HeadState) -> Self:
        """A copy of this head with the state of another fit."""
        head = copy.copy(self)
        head.state_ = state
        return head

    def _problem(
        self,
        X: Array,
        y: Any,
        domains: Collection[Label] | None,
        sample_weight: Any,
        groups: Any = None,
    ) -> tuple[Problem, Any]:
        """The caller's data, checked and prepared, and the fitted preparation."""
        if self.preparation is not None:
            check_preparation(self.preparation)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_number("tol", self.tol)
        check_count("max_iter", self.max_iter)
        check_class_weight(self.class_weight)
        self._check_parameters()
        names = _get_feature_names(X)
        preparation = None
        prepared = None
        if self.preparation is not None:
            standardizes = not self._knows_scales
            preparation = Preparation.of(self.preparation, X, standardizes=standardizes)
            prepared, X = preparation.fitted_to([slice(0, preparation.rows.shape[0])])
            names = names if isinstance(prepared, AutoPreparation) else None
        X = check_rows(X, type(self).__name__, least=2, feature_names=names)
        n = X.shape[0]
        weight = check_weights(sample_weight, n)
        labels, index = check_domains(domains, weight)
        targets, T = self._encode(check_targets(y, n), weight, index)
        if isinstance(self.class_weight, Mapping) and isinstance(targets, Classes):
            check_names("class_weight", "class", self.class_weight, targets.classes.tolist())
        group = None if groups is None else check_labels("groups", groups, n)[1]
        problem = Problem(
            X, T, weight, labels, index, targets, group, preparation, self.class_weight, names
        )
        return problem, prepared

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse values of the constructor, before any work."""

    @abstractmethod
    def _encode(
        self, y: np.ndarray, weight: np.ndarray, index: Sequence[Index]
    ) -> tuple[Targets, np.ndarray]:
        """What targets mean, and y as they are fitted."""

    @abstractmethod
    def _fitted(self, problem: Problem) -> HeadState: ...

    def _note_odd_domains(self, problem: Problem, domains: Any) -> None:
        """Warn if nothing can be learnt from how domains differ."""
        if not self._needs_domains:
            return
        name = type(self).__name__
        if domains is None:
            note(f"{name} was given no domains and treats all rows as one; pass domains= to fit")
        elif len(problem.labels) == 1:
            note(
                f"all rows are of domain {problem.labels[0]!r}, and {name} cannot learn from one "
                "how domains differ; pass rows of several, or fit an ERM head"
            )
        elif isinstance(problem.targets, Classes):
            own = [np.unique(problem.T[index]) for index in problem.index]
            several = max(len(problem.T[index]) for index in problem.index) > 1
            if several and max(map(len, own)) == 1:
                note(
                    "every domain has one class only, so that classes cannot be told from "
                    "domains; pass domains that share classes"
                )

    def _warn_of_no_convergence(self, solution: Solution, what: str = "") -> None:
        if not solution.converged:
            note(
                f"{type(self).__name__}{what} {solution.status.value} (gradient "
                f"{solution.gradient_norm:.1e}, {solution.n_iter} iterations)",
                ConvergenceWarning,
            )

    @property
    def targets_(self) -> Targets:
        """Classes, or the centre and spread of numbers."""
        return self.state_.targets

    @property
    def coef_(self) -> np.ndarray:
        return self.state_.targets.coef_and_intercept(self.state_.V, self.state_.b)[0]

    @property
    def intercept_(self) -> np.ndarray | float:
        return self.state_.targets.coef_and_intercept(self.state_.V, self.state_.b)[1]

    @property
    def domains_(self) -> list[Label]:
        return self.state_.domains

    @property
    def solution_(self) -> Solution:
        """Value, gradient, iterations and status of the solver."""
        check_is_fitted(self, "state_")
        assert self.state_.solution is not None
        return self.state_.solution

    @property
    def n_iter_(self) -> int:
        return self.solution_.n_iter

    @property
    def n_features_in_(self) -> int:
        preparation = self.state_.preparation
        return len(self.state_.V) if preparation is None else preparation.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        names = self.state_.names.features
        if names is None:  # scikit-learn asks whether there is such an attribute
            raise AttributeError("the features had no names")
        return np.array(names, dtype=object)

    def predict(self, X: Array) -> Array:
        """Class labels, as a NumPy array, or numbers, in the library of X."""
        F = self._scores(X)
        return self.state_.targets.predictions(F)

    def _scores(self, X: Array) -> Array:
        """X V + b, (n, k), in float64, in the library of X."""
        return scores(self._prepared(X), self.state_.V, self.state_.b)

    def _prepared(self, X: Array) -> Array:
        """Rows, checked, as the weights are for."""
        check_is_fitted(self, "state_")
        _check_feature_names(self, X, reset=False)
        names = self.state_.names.features
        if self.state_.preparation is not None:
            X = self.state_.preparation.transform(X)
            names = names if isinstance(self.state_.preparation, AutoPreparation) else None
        d = len(self.state_.V)
        return check_rows(X, type(self).__name__, features=d, feature_names=names)

    def save(self, path: str | PathLike[str], *, adaptable: bool = True) -> None:
        """Write the head to a file, which `skdare.load` reads; see `skdare.save`.

        Parameters
        ----------
        path : str or path
        adaptable : bool, default=True
            False leaves out what only `adapt` and `diagnose` need.
        """
        from skdare.heads.head_file import save

        save(self, path, adaptable=adaptable)

    def to_onnx(self, path: str | PathLike[str] | None = None, *, adaptable: bool = False) -> Any:
        """An ONNX graph that predicts as this head does.

        Its input ``X`` is float32 of shape (n, d). A classifier gives ``label``,
        ``probabilities`` and ``scores``, the latter as ``decision_function``; a regressor gives
        ``y``. Sums inside are in float64, so that probabilities are those of ``predict_proba``
        to 1e-6 also for features far from zero. A preparation that fills, scales or clips is part
        of the graph, which then accepts NaN. Operators are those of opset 13.

        Parameters
        ----------
        path : str or path, optional
            File to write as well.
        adaptable : bool, default=False
            True: a graph with three more inputs, ``coef``, ``origin`` and ``intercept``, which
            `onnx_inputs` of an adapted head gives. One session then serves any number of domains.

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
        from skdare.export.onnx import to_onnx

        return to_onnx(self, path, adaptable=adaptable)

    def onnx_inputs(self) -> dict[str, np.ndarray]:
        """Inputs, other than ``X``, of the adaptable graph of `to_onnx` that predicts as this head.

        ``{"X": X, **head.adapt(rows).onnx_inputs()}`` is all that a session needs for the domain
        of these rows.

        Returns
        -------
        dict of float32 arrays
            ``coef`` (d, k), ``origin`` (d,) and ``intercept``, the scores at that origin.
        """
        from skdare.export.onnx import onnx_inputs

        return onnx_inputs(self)

    def to_torch(self, *, dtype: Any = None) -> Any:
        """A ``torch.nn.Linear`` with the weights of this head.

        It has an output for each class, and their softmax is ``predict_proba``; of two classes
        they are ∓ half the score. A regressor has one output. After a preparation that fills or
        clips it is the last layer of a ``torch.nn.Sequential``.

        Parameters
        ----------
        dtype : torch.dtype, optional
            Default: float32. Features that lie far from zero compared with their spread lose
            digits in it: pass ``torch.float64`` for those.

        Returns
        -------
        torch.nn.Module
        """
        from skdare.export.torch import to_torch

        return to_torch(self, dtype=dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.preparation is not None
        return tags


class ClassifierHead(ClassifierMixin, Head):
    """Methods of classifiers."""

    def _encode(
        self, y: np.ndarray, weight: np.ndarray, index: Sequence[Index]
    ) -> tuple[Targets, np.ndarray]:
        return Classes.encode(y, weight)

    @property
    def classes_(self) -> np.ndarray:
        targets = self.state_.targets
        assert isinstance(targets, Classes)
        return targets.classes

    def decision_function(self, X: Array) -> Array:
        """Scores: (n,) for two classes, else (n, k), in the library of X."""
        F = self._scores(X)
        return F[:, 0] if F.shape[1] == 1 else F

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities, (n, k), in the library of X."""
        F = self.predict_log_proba(X)
        return namespace(F).exp(F)

    def predict_log_proba(self, X: Array) -> Array:
        """Logarithms of class probabilities, in the library of X."""
        F = self._scores(X)
        xp = namespace(F)
        F = xp.concat([0.0 * F, F], axis=1) if F.shape[1] == 1 else F
        F = F - xp.max(F, axis=1, keepdims=True)
        return F - xp.log(xp.sum(xp.exp(F), axis=1, keepdims=True))


class RegressorHead(RegressorMixin, Head):
    """Methods of regressors."""

    def _encode(
        self, y: np.ndarray, weight: np.ndarray, index: Sequence[Index]
    ) -> tuple[Targets, np.ndarray]:
        return Numbers.encode(check_numbers(y), weight, index, centre=self.fit_intercept)


def _name_of(column: Any) -> str | None:
    """Name of a column of a data frame."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) else None
