"""scikit-learn's own baselines, and methods of others that adapt, as estimators with ``adapt``.

Each of these is ERM with the ridge that scores best on training domains held out in turn, on
features that are filled and standardised by all training rows.

Notation: C_s, C_t (d, d) covariances of training rows and of new rows, m_s, m_t their means.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

RIDGES = (1e-3, 1e-2, 1e-1)
SHRINKAGE = 0.1  # of covariances, towards the identity: features are standardised


class Rival(BaseEstimator):
    """ERM on standardised features; what a method does to new rows is its ``adapt``."""

    classifies = True

    def fit(self, X: np.ndarray, y: np.ndarray, domains: np.ndarray) -> Self:
        self.prepare_ = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(X)
        rows = self.prepare_.transform(X)
        name, kind = "alpha", Ridge()
        values = [len(X) * l2 for l2 in RIDGES]
        if self.classifies:
            name, kind = "C", LogisticRegression(max_iter=1000)
            values = [1.0 / value for value in values]
        search = GridSearchCV(kind, {name: values}, cv=LeaveOneGroupOut())
        self.model_ = search.fit(rows, y, groups=domains).best_estimator_
        self.rows_ = rows
        self.y_ = y
        if self.classifies:
            self.classes_ = self.model_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(self._moved(self.prepare_.transform(X)))

    def _moved(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def adapt(self, X: np.ndarray) -> Self:
        adapted = copy(self)
        adapted._see(self.prepare_.transform(X))
        return adapted


class Transport(Rival):
    """LinOT (Flamary and others, 2019): new rows are moved by the map between Gaussians.

    x → m_s + A (x − m_t),    A = C_t^{-1/2} (C_t^{1/2} C_s C_t^{1/2})^{1/2} C_t^{-1/2}
    """

    def _see(self, new: np.ndarray) -> None:
        source = covariance(self.rows_)
        root = power(covariance(new), 0.5)
        inverse = power(covariance(new), -0.5)
        self.matrix_ = inverse @ power(root @ source @ root, 0.5) @ inverse
        self.means_ = self.rows_.mean(axis=0), new.mean(axis=0)

    def _moved(self, rows: np.ndarray) -> np.ndarray:
        if not hasattr(self, "matrix_"):
            return rows
        to, start = self.means_
        return to + (rows - start) @ self.matrix_


class Coral(Rival):
    """CORAL (Sun and others, 2016): training rows get the new covariance, and ERM is refitted.

    Both sides are centred, as its authors' features are.
    """

    def _see(self, new: np.ndarray) -> None:
        recolour = power(covariance(self.rows_), -0.5) @ power(covariance(new), 0.5)
        self.mean_ = new.mean(axis=0)
        rows = (self.rows_ - self.rows_.mean(axis=0)) @ recolour
        self.model_ = type(self.model_)(**self.model_.get_params()).fit(rows, self.y_)

    def _moved(self, rows: np.ndarray) -> np.ndarray:
        return rows - self.mean_ if hasattr(self, "mean_") else rows


class T3A(Rival, ClassifierMixin):
    """T3A (Iwasawa and Matsuo, 2021): a class is the mean direction of its surest new rows."""

    surest = 100

    def _see(self, new: np.ndarray) -> None:
        weights = self.model_.coef_
        if len(weights) == 1:
            weights = np.concatenate([-weights, weights]) / 2.0
        supports = np.concatenate([weights, new])
        shares = self.model_.predict_proba(supports)
        entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1)
        labels = shares.argmax(axis=1)
        directions = unit(supports)
        prototypes = np.zeros_like(weights)
        for number in range(len(weights)):
            rows = np.flatnonzero(labels == number)
            rows = rows[np.argsort(entropy[rows], kind="stable")[: self.surest]]
            prototypes[number] = directions[rows].sum(axis=0)
        self.prototypes_ = unit(prototypes)

    def predict(self, X: np.ndarray) -> np.ndarray:
        if not hasattr(self, "prototypes_"):
            return super().predict(X)
        rows = self.prepare_.transform(X)
        return self.classes_[(rows @ self.prototypes_.T).argmax(axis=1)]


class LinOT(Transport, ClassifierMixin):
    pass


class LinOTRegressor(Transport, RegressorMixin):
    classifies = False


class CORAL(Coral, ClassifierMixin):
    pass


class CORALRegressor(Coral, RegressorMixin):
    classifies = False


class Sklearn(BaseEstimator, ClassifierMixin):
    """LogisticRegressionCV on standardised features: its ridge is chosen by rows held out."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.model_ = self._steps().fit(X, y)
        self.classes_ = getattr(self.model_, "classes_", None)
        return self

    def _steps(self) -> Any:
        head = LogisticRegressionCV(Cs=np.logspace(-3, 2, 6), max_iter=1000)
        return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), head)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


class SklearnRegressor(RegressorMixin, Sklearn):
    """RidgeCV likewise."""

    def _steps(self) -> Any:
        head = RidgeCV(np.logspace(-3, 4, 15))
        return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), head)


def rivals(task: str) -> list[Any]:
    """One estimator of each method."""
    if task == "regression":
        return [SklearnRegressor(), LinOTRegressor(), CORALRegressor()]
    return [Sklearn(), LinOT(), CORAL(), T3A()]


def covariance(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    return (1.0 - SHRINKAGE) * centred.T @ centred / len(rows) + SHRINKAGE * np.eye(rows.shape[1])


def power(C: np.ndarray, exponent: float) -> np.ndarray:
    values, V = linalg.eigh(C)
    return (V * np.maximum(values, 1e-12) ** exponent) @ V.T


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
