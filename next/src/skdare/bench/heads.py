"""The heads that a bench compares: one function each, from a held-out domain to a fitted model.

All of them prepare rows in the same way, fitted to the training rows: missing values are filled,
and features standardised where their scales are very different. ERM and DARE share one ridge, with
which ERM scores best on training domains held out in turn: heads that differ in it are not
comparable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

import skdare as estimators
from skdare.bench.metrics import scoring_of
from skdare.data import DomainData
from skdare.errors import note
from skdare.fitting.preparation import AutoPreparation

_BOTH = ("classification", "regression")


@dataclass(frozen=True, eq=False)
class Fold:
    """A held-out domain and the rows of the others, with the search that several heads share."""

    train: DomainData
    test: DomainData
    task: str
    metric: str
    searches: bool  # whether a head chooses among all strategies

    def estimator(self, family: str, **options: Any) -> Any:
        """An estimator of the package for this task, not fitted."""
        kind = "Regressor" if self.task == "regression" else "Classifier"
        return getattr(estimators, family.format(kind))(**options)

    @cached_property
    def search(self) -> Any:
        """The head that chooses its strategy, which serves unadapted and adapted."""
        train = self.train
        head = self.estimator(
            "DARE{}CV",
            strategies=None if self.searches else ("erm",),
            scoring=scoring_of(self.metric, len(np.unique(train.y))),
        )
        groups = train.groups
        if groups is not None and train.groups_tie_all_domains:
            note("groups tie all training domains together: the choice was made without groups")
            groups = None
        return head.fit(train.X, train.y, domains=train.domains, groups=groups)

    @cached_property
    def ridge(self) -> float:
        """The strongest of the ridges with which ERM scores best on training domains."""
        results = self.search.cv_results_
        tried = [
            (score, params["l2"])
            for params, score in zip(results["params"], results["mean_test_score"], strict=True)
            if params["strategy"] == "erm"
        ]
        return float(max(tried)[1])


@dataclass(frozen=True)
class Fitted:
    """A fitted model, the rows it is scored on, and what is worth recording."""

    model: Any
    X: Any
    strategy: str = ""
    l2: float | None = None


def erm(fold: Fold) -> Fitted:
    head = fold.estimator("ERM{}", l2=fold.ridge, preparation="auto")
    return Fitted(head.fit(fold.train.X, fold.train.y), fold.test.X, l2=fold.ridge)


def by_hand(fold: Fold) -> Fitted:
    """ERM after what people do in three lines: standardise each domain by its own rows."""
    prepare = AutoPreparation().fit(fold.train.X)
    X = prepare.transform(fold.train.X)
    X = X.toarray() if scipy.sparse.issparse(X) else np.array(X, dtype=np.float64)
    for domain in np.unique(fold.train.domains):
        inside = fold.train.domains == domain
        X[inside] = _standardized(X[inside])
    head = fold.estimator("ERM{}", l2=fold.ridge).fit(X, fold.train.y)
    test = prepare.transform(fold.test.X)
    return Fitted(head, _standardized(test.toarray() if scipy.sparse.issparse(test) else test))


def _standardized(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0, dtype=np.float64)
    return (X - X.mean(axis=0, dtype=np.float64)) / np.where(spread > 0, spread, 1.0)


def chosen(fold: Fold) -> Fitted:
    """The choosing head, unadapted."""
    results = fold.search.cv_results_
    number = int(results["used_by_predict"].argmax())
    return Fitted(fold.search, fold.test.X, results["params"][number]["strategy"])


def chosen_adapted(fold: Fold) -> Fitted:
    """The choosing head, adapted to the rows of the held-out domain."""
    head = fold.search.adapt(fold.test.X)
    if not fold.search.adapts_:
        return Fitted(head, fold.test.X, chosen(fold).strategy)
    return Fitted(head, fold.test.X, fold.search.best_params_["strategy"])


def dare(fold: Fold) -> Fitted:
    """DARE as in the paper, unadapted."""
    head = fold.estimator(
        "DARE{}", l2=fold.ridge, mean_penalty=1.0, adaptation=None, preparation="auto"
    )
    head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    return Fitted(head, fold.test.X, l2=fold.ridge)


def dare_adapted(fold: Fold) -> Fitted:
    """DARE, adapted: that solution has no penalty on means, so one solve serves."""
    penalty = 0.0 if fold.task == "classification" else None
    head = fold.estimator("DARE{}", l2=fold.ridge, mean_penalty=penalty, preparation="auto")
    head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    return Fitted(head.adapt(fold.test.X), fold.test.X, l2=fold.ridge)


def baseline(family: str, fold: Fold) -> Fitted:
    head = fold.estimator(family, l2=fold.ridge, preparation="auto")
    head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    return Fitted(head, fold.test.X, l2=fold.ridge)


def own(estimator: Any, adapts: bool, fold: Fold) -> Fitted:
    """An estimator that a user brings, given the labels that it takes."""
    beside = {"domains": fold.train.domains, "groups": fold.train.groups}
    taken = inspect.signature(estimator.fit).parameters
    labels = {name: v for name, v in beside.items() if v is not None and name in taken}
    model = clone(estimator).fit(fold.train.X, fold.train.y, **labels)
    return Fitted(model.adapt(fold.test.X) if adapts else model, fold.test.X)


@dataclass(frozen=True)
class BenchHead:
    """A row of the comparison.

    Parameters
    ----------
    label : str
        What tables call it.
    means : str
        What it is, in words that fit after its label and a colon.
    fit : function from Fold to Fitted
    adapts : bool
        Whether it uses the rows of the held-out domain, without their labels.
    fits : str
        What ``skdare fit`` takes to fit it: the value of ``--head``.
    tasks : tuple of str
    """

    label: str
    means: str
    fit: Callable[[Fold], Fitted]
    adapts: bool = False
    fits: str = "dare-cv"
    tasks: tuple[str, ...] = _BOTH


_CV = "tries ways to treat domains on training domains held out, and takes the best"
_DARE = "whitens each domain, as in the paper"
HEADS = {
    "erm": BenchHead("ERM", "one model on all training rows", erm, fits="erm"),
    "by-hand": BenchHead(
        "by hand",
        "ERM after standardising each domain by its own mean and spread",
        by_hand,
        adapts=True,
        fits="by-hand",
    ),
    "dare-cv": BenchHead("DARE-CV", _CV, chosen),
    "dare-cv-adapted": BenchHead("DARE-CV", _CV, chosen_adapted, adapts=True),
    "dare": BenchHead("DARE", _DARE, dare, fits="dare"),
    "dare-adapted": BenchHead("DARE", _DARE, dare_adapted, adapts=True, fits="dare"),
    "reweighted": BenchHead(
        "reweighted",
        "ERM in which every domain weighs the same",
        partial(baseline, "Reweighted{}"),
        fits="reweighted",
        tasks=_BOTH[:1],
    ),
    "groupdro": BenchHead(
        "GroupDRO",
        "minimises the loss of the worst training domain",
        partial(baseline, "GroupDRO{}"),
        fits="groupdro",
        tasks=_BOTH[:1],
    ),
    "irm": BenchHead(
        "IRM",
        "penalises what is not optimal in every training domain",
        partial(baseline, "IRM{}"),
        fits="irm",
        tasks=_BOTH[:1],
    ),
    "anchor": BenchHead(
        "anchor",
        "anchor regression, with the domains as anchors",
        partial(baseline, "Anchor{}"),
        fits="anchor",
        tasks=_BOTH[1:],
    ),
}
DEFAULT_HEADS = ("erm", "by-hand", "dare-cv", "dare-cv-adapted", "dare-adapted")
_CHOOSING = ("dare-cv", "dare-cv-adapted")


def chooses(heads: Sequence[str]) -> bool:
    """Whether one of these heads tries all strategies."""
    return any(head in _CHOOSING for head in heads)


def heads_of(estimator: Any, name: str) -> dict[str, BenchHead]:
    """The rows of an estimator that a user brings: two if it can adapt."""
    heads = {name: BenchHead(name, "", partial(own, estimator, False), fits="")}
    if hasattr(estimator, "adapt"):
        fit = partial(own, estimator, True)
        heads[f"{name}-adapted"] = BenchHead(name, "", fit, adapts=True, fits="")
    return heads
