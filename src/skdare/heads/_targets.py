"""What targets and predictions are: classes, or numbers."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from skdare._array import Array, namespace
from skdare._validation import check_finite_targets, check_numbers, distinct_integers
from skdare.heads._base import Head
from skdare.heads._problem import Problem
from skdare.losses import LOGISTIC, SOFTMAX, SQUARED
from skdare.objective import predicted_columns


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


def probabilities(F: Array) -> Array:
    """Class probabilities, (n, k), from scores; one column of scores is that of two classes."""
    xp = namespace(F)
    if F.shape[1] == 1:
        F = xp.concat([xp.zeros_like(F), F], axis=1)
    return SOFTMAX.curvature(F)


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
