"""What is compared: other libraries' ways with several domains, and ours, behind one interface.

Importing skada turns on scikit-learn's metadata routing for the whole process; it is turned off
again here, since nothing below needs it but skada's pipelines, which are not used: their adapters
and a LogisticRegression do the same, and the adapter need not be fitted again for every ridge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import skada
import sklearn
from pyriemann.geometry.base import invsqrtm
from pyriemann.geometry.covariance import covariances
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from real_data import Rows
from skdare import DAREClassifier, DAREClassifierCV, ERMClassifier
from skdare.datasets import DomainData, to_skada

sklearn.set_config(enable_metadata_routing=False)

RIDGES = (1e-3, 1e-2, 1e-1)
MONGE_FEATURES = 100
MONGE_NOISE = 0.1


class Method(ABC):
    """A way to predict a domain's labels from rows of others.

    ``sees`` says what is used of the new domain: nothing, or its rows without labels, either
    when the model is fitted or afterwards.
    """

    name: str
    sees: str = "nothing"
    ridges: tuple[float | None, ...] = RIDGES
    searches: bool = False

    def prepare(self, train: Rows, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The training rows and the new ones, as the model is to see them."""
        return train.X, new

    @abstractmethod
    def predict(self, l2: float | None, X: np.ndarray, train: Rows, new: np.ndarray) -> np.ndarray:
        """Labels of prepared new rows, after a fit to prepared training rows."""

    def __call__(self, l2: float | None, train: Rows, new: np.ndarray) -> np.ndarray:
        X, new = self.prepare(train, new)
        return self.predict(l2, X, train, new)


class Logistic(Method):
    """scikit-learn's logistic regression after some preparation."""

    def predict(self, l2: float | None, X: np.ndarray, train: Rows, new: np.ndarray) -> np.ndarray:
        # The same ridge in the same unit as ours: per row, and by the mean variance of a feature.
        strength = 1.0 / (len(X) * l2 * float(X.var(axis=0).mean()))
        return LogisticRegression(C=strength, max_iter=1000).fit(X, train.y).predict(new)


class Plain(Logistic):
    name = "scikit-learn, StandardScaler"

    def prepare(self, train: Rows, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scaler = StandardScaler().fit(train.X)
        return scaler.transform(train.X), scaler.transform(new)


class Centred(Logistic):
    """Every domain measured from its own mean and whitened by its own covariance."""

    name = "pyRiemann-style centring"
    sees = "rows, in use"

    def prepare(self, train: Rows, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = np.empty(train.X.shape)
        for domain in np.unique(train.domains):
            rows = train.domains == domain
            X[rows] = _recentred(train.X[rows])
        return X, _recentred(new)


def _recentred(X: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64)
    whitener = invsqrtm(covariances(X.T[None], estimator="lwf")[0])
    return (X - X.mean(axis=0)) @ whitener


class Coral(Logistic):
    name = "skada CORAL"
    sees = "rows, in fit"

    def prepare(self, train: Rows, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, sample_domain = _packed(train, new)
        adapted = skada.CORALAdapter().fit_transform(X, sample_domain=sample_domain)
        return adapted[sample_domain > 0], adapted[sample_domain < 0]


class Monge(Logistic):
    """As shipped it ends in NaN or an error where a domain's covariance is singular, or nearly.

    Its ``reg``, said to be added to the diagonal, is the threshold at which its iteration stops.
    So the map is fitted to rows with noise, which adds to the diagonal, and applied to the rows
    themselves; and beyond 200 features, where one fit takes many minutes, after PCA.
    """

    name = "skada MultiLinearMongeAlignment"
    sees = "rows, in use"

    def prepare(self, train: Rows, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, sample_domain = _packed(train, new)
        X = X.astype(np.float64)
        if X.shape[1] > 2 * MONGE_FEATURES:
            X = PCA(MONGE_FEATURES, svd_solver="full").fit(X[sample_domain > 0]).transform(X)
        noise = np.random.default_rng(0).normal(size=X.shape)
        noise *= np.sqrt(MONGE_NOISE * X.var(axis=0).mean())
        adapter = skada.MultiLinearMongeAlignmentAdapter(reg=1e-4)
        adapter.fit(X + noise, sample_domain=sample_domain)
        adapted = adapter.transform(X, sample_domain=sample_domain, allow_source=True)
        return adapted[sample_domain > 0], adapted[sample_domain < 0]


def _packed(train: Rows, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All rows, and skada's numbers of their domains."""
    X, y = np.concatenate([train.X, new]), np.concatenate([train.y, train.y[:1].repeat(len(new))])
    domains = np.concatenate([train.domains.astype(str), np.full(len(new), "new domain")])
    packed = to_skada(DomainData(X, y, domains), targets=["new domain"])
    return packed.X, packed.sample_domain


class Head(Method):
    """One of our heads."""

    def __init__(self, name: str, head: Any, *, adapts: bool = False) -> None:
        self.name, self.head, self.adapts = name, head, adapts
        self.sees = "rows, in use" if adapts else "nothing"

    def predict(self, l2: float | None, X: np.ndarray, train: Rows, new: np.ndarray) -> np.ndarray:
        head = self.fitted(l2, X, train)
        return (head.adapt(new) if self.adapts else head).predict(new)

    def fitted(self, l2: float | None, X: np.ndarray, train: Rows) -> Any:
        return self.head(l2=l2).fit(X, train.y, domains=train.domains)


class Choosing(Head):
    """A head that chooses its own options, fitted once for both of its uses."""

    ridges = (None,)
    searches = True
    _last: tuple[Rows, Any] | None = None

    def fitted(self, l2: float | None, X: np.ndarray, train: Rows) -> Any:
        if Choosing._last is None or Choosing._last[0] is not train:
            Choosing._last = train, self.head().fit(X, train.y, domains=train.domains)
        return Choosing._last[1]


def _unadapted(**options: Any) -> DAREClassifier:
    """Without the second solve, which only `adapt` needs."""
    return DAREClassifier(adaptation=None, **options)


def methods() -> list[Method]:
    """All that is compared, those that see nothing of the new domain first."""
    return [
        Plain(),
        Head("skdare ERM", ERMClassifier),
        Head("skdare DARE", _unadapted),
        Choosing("skdare DARE, CV", DAREClassifierCV),
        Coral(),
        Monge(),
        Centred(),
        Head("skdare DARE, adapted", DAREClassifier, adapts=True),
        Choosing("skdare DARE, CV, adapted", DAREClassifierCV, adapts=True),
    ]
