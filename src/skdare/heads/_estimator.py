"""What every head shares: validation, one linear map, and the scikit-learn contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdare._validation import (
    Labels,
    check_choice,
    check_count,
    check_domains,
    check_features,
    check_finite_targets,
    check_number,
    check_numbers,
    check_weights,
    distinct_integers,
    feature_name,
    warn,
)
from skdare.arrays import Array, is_foreign, namespace, products_of, to_numpy
from skdare.engines import Placing, as_rows, check_engine
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import Statistics
from skdare.heads._exporting import Exporting
from skdare.objective.losses import LOGISTIC, SOFTMAX, SQUARED
from skdare.objective.objective import Block, Objective
from skdare.objective.scores import linear_scores, predicted_columns, probabilities
from skdare.solvers import Solution
from skdare.whitening.domain_statistics import Shared


class Head(Exporting, BaseEstimator, ABC):
    """A linear head: ``fit`` leaves one matrix and one intercept.

    Subclasses set how the training problem becomes weights (`_solve`); the classifier and
    regressor classes below set what targets and predictions are.
    """

    # Routing works without a global switch and without set_fit_request.
    __metadata_request__fit = {"domains": True}  # noqa: RUF012

    _needs_domains = True

    def fit(
        self,
        X: Array,
        y: Array,
        domains: Labels | None = None,
        sample_weight: Array | None = None,
    ) -> Self:
        """Fit the head.

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
        shared: Shared | None,
        X: Array,
        y: Array,
        domains: Labels | None,
        sample_weight: Array | None = None,
    ) -> Self:
        before = dict(self.__dict__)
        try:
            with products_of(X):
                self._fit(X, y, domains, sample_weight, shared)
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
        shared: Shared | None,
    ) -> None:
        self._check_options()
        with Placing(self.engine) as place:
            X = check_features(self, place.where_they_lie(X), reset=True, min_rows=2)
            self._fit_rows(place.handed_over(X), y, domains, sample_weight, shared)

    def _fit_rows(
        self,
        X: Array,
        y: Array,
        domains: Labels | None,
        sample_weight: Array | None,
        shared: Shared | None,
    ) -> None:
        n = X.shape[0]
        y = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True)
        if len(y) != n:
            raise ValueError(f"y has {len(y)} entries but X has {n} rows")
        weight = check_weights(sample_weight, n)
        rows = check_domains(domains, n, weight)
        labels = rows.labels
        if domains is None and self._needs_domains:
            warn(
                f"{type(self).__name__} was given no domains and treats all rows as one; "
                "pass domains= to fit"
            )
        if not self._needs_domains:
            rows = check_domains(None, n, weight)
        problem = self._encode_targets(
            y, Problem(X, y, weight, rows.labels, rows.index, SQUARED, 1)
        )
        self._check_problem(problem)
        statistics = Statistics(problem, shared if self._needs_domains else None)
        self._solve(problem, statistics)
        self._warn_of_scales(statistics.variances(range(len(problem.index))))
        self._warn_of_constant_domains(statistics)
        self.domains_ = labels
        for name in ("adapted_rows_", "adapted_mean_"):
            self.__dict__.pop(name, None)

    @staticmethod
    def _warn_of_constant_domains(statistics: Statistics) -> None:
        """Say which domains have rows that are all the same."""
        names = [repr(label) for label in statistics.constant_domains()]
        if names:
            more = f" (and of {len(names) - 1} more)" if len(names) > 1 else ""
            warn(
                f"the rows of domain {names[0]}{more} are all the same, and nothing can be learnt "
                "of how it varies; look at how it was recorded, or leave it out"
            )

    def _warn_of_scales(self, variances: np.ndarray) -> None:
        """Say when one feature sets the unit in which all others are penalised."""
        top = int(variances.argmax())
        share = variances[top] / variances.sum()
        if share > 0.5 and variances[top] > 25 * np.median(variances):
            warn(
                f"{feature_name(self, top)} holds {share:.0%} of the variance of all features, and "
                "l2 treats the others as small beside it; standardise the features first "
                "(StandardScaler)"
            )

    @abstractmethod
    def _solve(self, problem: Problem, statistics: Statistics) -> None:
        """Set coef_, intercept_ and the other fitted attributes."""

    @abstractmethod
    def _encode_targets(self, y: np.ndarray, problem: Problem) -> Problem:
        """The problem with its targets, loss and number of columns."""

    @abstractmethod
    def _set_weights(self, V: np.ndarray, b: np.ndarray) -> None:
        """Set coef_ and intercept_ from the weights on raw features, in the caller's units."""

    def _check_options(self) -> None:
        """Check constructor values that every head has."""
        check_number("l2", self.l2)
        check_number("tol", self.tol)
        check_count("max_iter", self.max_iter, 1)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_choice("warm_start", self.warm_start, (True, False))
        check_engine(self.engine)

    def _check_problem(self, problem: Problem) -> None:
        """Check what depends on the data; nothing by default."""

    def _objective(
        self, blocks: Sequence[Block], problem: Problem, origin: np.ndarray
    ) -> Objective:
        """The objective of these blocks with this head's ridge and intercept."""
        shape = (problem.d, problem.k, self.l2, self.fit_intercept)
        return Objective(blocks, problem.loss, *shape, origin=origin)

    def _start(self, objective: Objective) -> np.ndarray:
        """Zero, or where the last fit ended."""
        last = self._last_weights()
        if last is not None and last[0].shape == (objective.d, objective.k):
            return objective.pack(*last)
        return np.zeros(objective.size)

    def _last_weights(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Canonical weights of the last fit, where this one should start from them."""
        return getattr(self, "_canonical", None) if self.warm_start else None

    def _warn(self, solution: Solution, what: str = "") -> None:
        """Say what did not converge, and what to do."""
        if not solution.converged:
            warn(
                f"{type(self).__name__}{what} {solution.status.value} "
                f"(gradient {solution.gradient_norm:.1e}, tol {self.tol:g}, "
                f"{solution.n_iter} iterations)",
                ConvergenceWarning,
            )

    def save(self, path: str | PathLike[str], *, adaptable: bool = True) -> None:
        """Write the head to a safetensors file, which `skdare.load` reads; see `skdare.save`.

        Parameters
        ----------
        path : str or path
        adaptable : bool, default=True
            False leaves out what only adapting and diagnosing need.
        """
        from skdare.model_io.save import save

        save(self, path, adaptable=adaptable)

    def _scores(self, X: Array) -> Array:
        """X coefᵀ + intercept, (n, k), in float64, in the array library of X."""
        return linear_scores(*self._rows_and_weights(X))

    def _rows_and_weights(self, X: Array) -> tuple[Array, slice, np.ndarray, Any]:
        check_is_fitted(self)
        X = check_features(self, as_rows(X), reset=False)
        return X, slice(0, X.shape[0]), np.atleast_2d(self.coef_).T, self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def fit_sharing(
    head: Any, shared: Shared, X: Array, y: Array, domains: Any, sample_weight: Array | None = None
) -> Any:
    """Fit a head with statistics that other fits share, by domain label.

    Only for fits in which a label always stands for the same rows: the moments, spectra and
    adjustments of a domain are then computed once for all heads and all sets of training domains.
    """
    return head._fit_sharing(shared, X, y, domains, sample_weight)


def check_solver(head: Head) -> None:
    """The solver is one that this head can use."""
    names = ["auto", "lbfgs", "trust-ncg"]
    check_choice("solver", head.solver, names + ["direct"] * isinstance(head, RegressorMixin))


class ClassifierHead(ClassifierMixin, Head):
    """Targets are classes; two classes share one column of weights, as in scikit-learn."""

    def _encode_targets(self, y: np.ndarray, problem: Problem) -> Problem:
        if y.dtype.kind in "iu":
            self.classes_, codes = distinct_integers(y)
        else:
            check_finite_targets(y)
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
        k = len(self.classes_)
        present = np.flatnonzero(np.bincount(codes, problem.weight > 0, k))
        if len(present) < 2:
            raise ValueError(
                f"y has one class, {self.classes_[present[0]]}, among the rows of positive weight, "
                "and a classifier needs at least 2 classes"
            )
        loss = LOGISTIC if k == 2 else SOFTMAX
        return problem.with_targets(codes, loss, 1 if k == 2 else k)

    def _set_weights(self, V: np.ndarray, b: np.ndarray) -> None:
        self.coef_ = np.ascontiguousarray(V.T)
        self.intercept_ = b.copy()

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
    """Targets are numbers, standardised inside the fit so that tol and l2 have no units."""

    def _encode_targets(self, y: np.ndarray, problem: Problem) -> Problem:
        y = np.asarray(y, dtype=np.float64)
        check_numbers(y)
        centre = 0.0
        if self.fit_intercept:
            # Every domain counts the same, whatever its size.
            means = [np.average(y[i], weights=problem.weight[i]) for i in problem.index]
            centre = float(np.mean(means))
        weight = problem.weight / problem.weight.sum()
        spread = float(np.sqrt(weight @ (y - centre) ** 2)) or 1.0
        self._centre, self._spread = centre, spread
        return problem.with_targets((y - centre) / spread, SQUARED, 1)

    def _set_weights(self, V: np.ndarray, b: np.ndarray) -> None:
        self.coef_ = V[:, 0] * self._spread
        self.intercept_ = float(b[0]) * self._spread + self._centre

    def predict(self, X: Array) -> Array:
        """Predicted numbers, (n,), in the array library of X."""
        return self._scores(X)[:, 0]
