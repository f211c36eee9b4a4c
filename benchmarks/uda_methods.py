"""Ways to serve a new domain on frozen features: what is learnt once, and what is done for each.

Every way has two functions. ``learn`` sees training rows alone and runs once. ``serve`` sees what
was learnt and the unlabelled rows of one new domain, and gives their labels; methods that fit
again for every domain do so there. skada is needed by its methods alone; importing it turns on
scikit-learn's metadata routing for the whole process, and `available` turns that off again.

Notation: X training rows, Z rows of a new domain, V eigenvectors of a covariance, R probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import sklearn
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GroupKFold

from skdare import DAREClassifier, DAREClassifierCV

LEDOIT_WOLF = "Ledoit-Wolf"
EVERY_ROW = -1
EVERY_COMPONENT = -1
JDOT_ROWS = 2000
JDOT_ROUNDS = 5
CONFUSION_FOLDS = 3
# A step of the shares that changes no label.
SHARES_TOLERANCE = 1e-6
SHARES_ROUNDS = 1000


@dataclass(frozen=True, eq=False)
class Training:
    """Rows of the training domains, the ridge for all who take one, and what prepares rows.

    ``preparation`` is None where the rows are prepared already.
    """

    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    l2: float
    preparation: BaseEstimator | None = None


@dataclass(frozen=True)
class Method:
    """A way to label the rows of a new domain.

    Parameters
    ----------
    name : str
    learn : function of a Training
    serve : function of what was learnt, new rows and an option, to labels
    options : sequence
        Values of what there is to choose, the default first.
    keeps_rows : bool
        Whether the training rows must be kept to serve: it fits again there, and the ridge,
        ``l2`` of what was learnt, is used there only.
    ours : bool
    prepares : bool
        Whether it takes rows as they are stored, and prepares them itself.
    """

    name: str
    learn: Callable[[Training], Any]
    serve: Callable[[Any, np.ndarray, Any], np.ndarray]
    options: Sequence[Any] = (None,)
    keeps_rows: bool = False
    ours: bool = False
    prepares: bool = False


class FiniteLogistic(LogisticRegression):
    """scikit-learn's head, whose logarithms of probabilities are finite.

    Its own are of rounded probabilities: minus infinity on rows far away, where JDOT's costs are
    then not numbers, and its plan is empty.
    """

    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        """By the scores."""
        return log_softmax(class_scores(self, X), axis=1)


def logistic(X: np.ndarray, l2: float) -> FiniteLogistic:
    """A head with our ridge: per row, in units of the features' mean variance."""
    return FiniteLogistic(C=1.0 / (len(X) * l2 * float(X.var(axis=0).mean())), max_iter=1000)


def class_scores(head: FiniteLogistic, Z: np.ndarray) -> np.ndarray:
    """A column of scores for each class, also where there are two."""
    scores = head.decision_function(Z)
    return scores if scores.ndim == 2 else np.stack([-scores / 2, scores / 2], axis=1)


def learn_erm(training: Training) -> FiniteLogistic:
    """Logistic regression on all training rows."""
    return logistic(training.X, training.l2).fit(training.X, training.y)


def serve_as_it_is(head: Any, Z: np.ndarray, option: None) -> np.ndarray:
    """What the head predicts."""
    return head.predict(Z)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Mean of rows, and their covariance by eigenvalues and eigenvectors (columns).

    ``ledoit_wolf`` is the shrinkage that Ledoit and Wolf would have.
    """

    mean: np.ndarray
    eigenvalues: np.ndarray
    V: np.ndarray
    ledoit_wolf: float

    @classmethod
    def of(cls, X: np.ndarray) -> Spectrum:
        """From rows, in float64."""
        X = X.astype(np.float64)
        mean = X.mean(axis=0)
        eigenvalues, V = np.linalg.eigh((X - mean).T @ (X - mean) / len(X))
        return cls(mean, eigenvalues.clip(0.0), V, float(ledoit_wolf_shrinkage(X)))

    def power(self, exponent: float, shrinkage: float | str) -> np.ndarray:
        """A power of the covariance, shrunk towards its mean variance times the identity."""
        rho = self.ledoit_wolf if shrinkage == LEDOIT_WOLF else float(shrinkage)
        values = (1.0 - rho) * self.eigenvalues + rho * self.eigenvalues.mean()
        return (self.V * values**exponent) @ self.V.T

    def directions(self, n: int) -> np.ndarray:
        """The n directions of most variance as columns."""
        return self.V[:, ::-1][:, :n]


@dataclass(frozen=True, eq=False)
class SpectrumAndRows:
    """Training rows from their mean, and their covariance, for a method that fits again."""

    spectrum: Spectrum
    X: np.ndarray
    y: np.ndarray
    l2: float


def learn_spectrum(training: Training) -> SpectrumAndRows:
    """All that CORAL and subspace alignment can know before they see a new domain."""
    spectrum = Spectrum.of(training.X)
    return SpectrumAndRows(spectrum, training.X - spectrum.mean, training.y, training.l2)


def serve_coral(source: SpectrumAndRows, Z: np.ndarray, shrinkage: float | str) -> np.ndarray:
    """Give the training rows the new domain's covariance and fit again (Sun and others, 2016)."""
    target = Spectrum.of(Z)
    return _fitted_again(
        source, source.X @ recolouring(source.spectrum, target, shrinkage), Z - target.mean
    )


def recolouring(source: Spectrum, target: Spectrum, shrinkage: float | str) -> np.ndarray:
    """The matrix that whitens rows of one covariance and gives them the other."""
    return source.power(-0.5, shrinkage) @ target.power(0.5, shrinkage)


def serve_subspace(source: SpectrumAndRows, Z: np.ndarray, components: int) -> np.ndarray:
    """Turn principal directions into the new domain's and fit again (Fernando and others, 2013)."""
    target = Spectrum.of(Z)
    most = min(Z.shape[1], len(Z) - 1)
    n = most if components == EVERY_COMPONENT else min(components, most)
    P = source.spectrum.directions(n)
    Q = target.directions(n)
    return _fitted_again(source, source.X @ (P @ (P.T @ Q)), (Z - target.mean) @ Q)


def _fitted_again(source: SpectrumAndRows, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return logistic(X, source.l2).fit(X, source.y).predict(Z)


def learn_rows(training: Training) -> Training:
    """Nothing: the rows themselves."""
    return training


def serve_linear_transport(training: Training, Z: np.ndarray, reg: float) -> np.ndarray:
    """Move the training rows by skada's linear transport map between Gaussians and fit again."""
    from skada import LinearOTMappingAdapter

    rows, sample_domain = _packed(training.X, Z)
    moved = LinearOTMappingAdapter(reg=reg).fit_transform(rows, sample_domain=sample_domain)
    X = moved[sample_domain > 0]
    return logistic(X, training.l2).fit(X, training.y).predict(Z)


def learn_some_rows(training: Training) -> Training:
    """At most 2,000 training rows at random, for a plan between all pairs of rows."""
    n = len(training.y)
    kept = np.random.default_rng(0).permutation(n)[:JDOT_ROWS]
    return Training(training.X[kept], training.y[kept], training.domains[kept], training.l2)


def serve_joint_transport(training: Training, Z: np.ndarray, alpha: float) -> np.ndarray:
    """Fit to labels that skada's joint transport plan brings (Courty and others, 2017)."""
    from skada import JDOTClassifier

    rows, sample_domain = _packed(training.X, Z)
    classes, numbers = np.unique(training.y, return_inverse=True)
    y = np.concatenate([numbers, np.full(len(Z), -1)])
    head = JDOTClassifier(logistic(Z, training.l2), alpha=alpha, n_iter_max=JDOT_ROUNDS)
    head.fit(rows, y, sample_domain=sample_domain)
    return classes[head.predict(rows[sample_domain < 0])]


def _packed(X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All rows, and 1 for training and -2 for new ones, as skada numbers domains."""
    sample_domain = np.concatenate([np.full(len(X), 1), np.full(len(Z), -2)])
    return np.concatenate([X, Z]).astype(np.float64), sample_domain


def serve_t3a(head: FiniteLogistic, Z: np.ndarray, most: int) -> np.ndarray:
    """Prototypes from the rows of each class that the head is surest of (Iwasawa, Matsuo, 2021).

    The head's weights are the first supports. Each support has the class that the head gives it,
    and of each class the ``most`` of least entropy are kept. A class is then the mean direction of
    its supports. All new rows are supports before the first is labelled, as at a stream's end.
    """
    weights = class_weights(head)
    supports = np.concatenate([weights, Z])
    log_R = head.predict_log_proba(supports)
    entropies = -(np.exp(log_R) * log_R).sum(axis=1)
    given = log_R.argmax(axis=1)
    directions = _unit(supports)
    prototypes = np.zeros_like(weights)
    for number in range(len(weights)):
        rows = np.flatnonzero(given == number)
        if most != EVERY_ROW:
            rows = rows[np.argsort(entropies[rows], kind="stable")[:most]]
        prototypes[number] = directions[rows].sum(axis=0)
    return head.classes_[(Z @ _unit(prototypes).T).argmax(axis=1)]


def class_weights(head: FiniteLogistic) -> np.ndarray:
    """A row of weights for each class, also where there are two."""
    return head.coef_ if len(head.coef_) > 1 else np.concatenate([-head.coef_, head.coef_]) / 2


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length one; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True, eq=False)
class HeadAndShares:
    """A head, the shares of its classes, and how rows of unseen domains are taken for others.

    ``confusion[i, j]`` is the share of rows of class j that are called i, times class j's share.
    """

    head: FiniteLogistic
    shares: np.ndarray
    confusion: np.ndarray | None = None


def learn_shares(training: Training) -> HeadAndShares:
    """ERM, and how common each class is in training."""
    _, counts = np.unique(training.y, return_counts=True)
    return HeadAndShares(learn_erm(training), counts / counts.sum())


def learn_confusion(training: Training) -> HeadAndShares:
    """The same, and what heads fitted without a domain call its rows."""
    plain = learn_shares(training)
    folds = GroupKFold(min(CONFUSION_FOLDS, len(np.unique(training.domains))))
    called = np.empty_like(training.y)
    for kept, left_out in folds.split(training.X, training.y, training.domains):
        head = logistic(training.X[kept], training.l2).fit(training.X[kept], training.y[kept])
        called[left_out] = head.predict(training.X[left_out])
    counts = confusion_matrix(called, training.y, labels=plain.head.classes_)
    return HeadAndShares(plain.head, plain.shares, counts / counts.sum())


def serve_em(learnt: HeadAndShares, Z: np.ndarray, option: None) -> np.ndarray:
    """Class shares of most likelihood, and labels by them (Saerens and others, 2002)."""
    R = np.exp(learnt.head.predict_log_proba(Z))
    ratios = likeliest_ratios(R, learnt.shares)
    return learnt.head.classes_[(R * ratios).argmax(axis=1)]


def likeliest_ratios(R: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """New class shares over the old ones, by the EM algorithm."""
    new = shares
    for _ in range(SHARES_ROUNDS):
        joint = R * (new / shares)
        before = new
        new = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(new - before).max() < SHARES_TOLERANCE:
            break
    return new / shares


def serve_bbse(learnt: HeadAndShares, Z: np.ndarray, option: None) -> np.ndarray:
    """Class shares that explain predicted ones, and labels by them (Lipton and others, 2018)."""
    R = np.exp(learnt.head.predict_log_proba(Z))
    called = np.bincount(R.argmax(axis=1), minlength=R.shape[1]) / len(Z)
    ratios = confused_ratios(learnt.confusion, called)
    return learnt.head.classes_[(R * ratios).argmax(axis=1)]


def confused_ratios(confusion: np.ndarray, called: np.ndarray) -> np.ndarray:
    """New class shares over the old ones, from shares of predicted classes; none below zero."""
    return np.linalg.lstsq(confusion, called)[0].clip(0.0)


def learn_choosing(training: Training) -> DAREClassifierCV:
    """Our choosing head, its whole search included."""
    head = DAREClassifierCV(preparation=training.preparation)
    return head.fit(training.X, training.y, domains=training.domains)


def learn_paper(training: Training) -> DAREClassifier:
    """DARE as in the paper, but with the ridge of the others: without one it has no minimum."""
    head = DAREClassifier.as_in_paper(l2=training.l2)
    return head.fit(training.X, training.y, domains=training.domains)


def serve_adapted(head: Any, Z: np.ndarray, option: None) -> np.ndarray:
    """Our head adapted to the new rows, which declines where these speak against it."""
    return head.adapt(Z).predict(Z)


def serve_adapted_as_in_paper(head: DAREClassifier, Z: np.ndarray, option: None) -> np.ndarray:
    """The whitener of the new rows alone, in place of the training domains' average."""
    return head.adapt(Z, prior_rows=0).predict(Z)


ERM = "ERM"
METHODS = (
    Method(ERM, learn_erm, serve_as_it_is),
    Method("CORAL", learn_spectrum, serve_coral, (LEDOIT_WOLF, 0.5, 0.9), keeps_rows=True),
    Method(
        "subspace alignment",
        learn_spectrum,
        serve_subspace,
        (EVERY_COMPONENT, 5, 20, 80),
        keeps_rows=True,
    ),
    Method("LinOT (skada)", learn_rows, serve_linear_transport, (1.0, 0.1), keeps_rows=True),
    Method("JDOT (skada)", learn_some_rows, serve_joint_transport, (0.5,), keeps_rows=True),
    Method("T3A", learn_erm, serve_t3a, (100, 1, 5, 20, 50, EVERY_ROW)),
    Method("label shift, EM", learn_shares, serve_em),
    Method("label shift, BBSE", learn_confusion, serve_bbse),
    Method("DARE of the paper", learn_paper, serve_as_it_is, ours=True),
    Method("DARE of the paper, adapted", learn_paper, serve_adapted_as_in_paper, ours=True),
    Method("DAREClassifierCV", learn_choosing, serve_as_it_is, ours=True, prepares=True),
    Method("DAREClassifierCV, adapted", learn_choosing, serve_adapted, ours=True, prepares=True),
)


def available() -> list[Method]:
    """All methods, without skada's where it is not installed."""
    if find_spec("skada") is None:
        return [method for method in METHODS if "skada" not in method.name]
    # Once, that no method's time or memory counts it.
    import skada  # noqa: F401

    sklearn.set_config(enable_metadata_routing=False)
    return list(METHODS)
