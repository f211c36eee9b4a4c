"""The heads that a bench compares, and how each is fitted to training domains.

All of them see rows that are prepared in the same way, fitted to the training rows. ERM and DARE
share one ridge, with which ERM scores best on training domains held out in turn: heads that differ
in it are not comparable. What is done by hand has its own, found in the same way.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from skdare.bench.metrics import scoring_of
from skdare.data import DomainData
from skdare.errors import note
from skdare.fitting.preparation import AutoPreparation
from skdare.heads import table


@dataclass(frozen=True)
class BenchHead:
    """A row of the comparison.

    Parameters
    ----------
    label : str
        Its name in tables.
    means : str
        A description that fits after its label and a colon.
    adapts : bool
        Whether it uses the rows of the held-out domain, without their labels.
    fits : str
        The value of ``skdare fit --head`` that fits it; none for an estimator of the user.
    estimator : estimator, optional
        One that the user brings, not fitted.
    """

    label: str
    means: str
    fits: str
    adapts: bool = False
    estimator: Any = None

    @property
    def tasks(self) -> tuple[str, ...]:
        return table.HEADS[self.fits].tasks if self.fits else table.TASKS


_CV = "tries strategies on training domains held out, and takes the best"
_DARE = "whitens each domain, as in the paper"
HEADS = {
    "erm": BenchHead("ERM", "one model on all training rows", "erm"),
    "by-hand": BenchHead(
        "by hand",
        "ERM after standardising each domain by its own mean and spread",
        "by-hand",
        adapts=True,
    ),
    "dare-cv": BenchHead("DARE-CV", _CV, "dare-cv"),
    "dare-cv-adapted": BenchHead("DARE-CV", _CV, "dare-cv", adapts=True),
    "dare": BenchHead("DARE", _DARE, "dare"),
    "dare-adapted": BenchHead("DARE", _DARE, "dare", adapts=True),
    "reweighted": BenchHead(
        "reweighted", "ERM in which every domain weighs the same", "reweighted"
    ),
    "groupdro": BenchHead(
        "GroupDRO", "minimises the loss of the worst training domain", "groupdro"
    ),
    "irm": BenchHead("IRM", "penalises what is not optimal in every training domain", "irm"),
    "anchor": BenchHead("anchor", "anchor regression, with the domains as anchors", "anchor"),
}
DEFAULT_HEADS = ("erm", "by-hand", "dare-cv", "dare-cv-adapted", "dare-adapted")


def heads_of(estimator: Any, name: str) -> dict[str, BenchHead]:
    """The rows of an estimator that a user brings: two if it can adapt."""
    heads = {name: BenchHead(name, "", "", estimator=estimator)}
    if hasattr(estimator, "adapt"):
        heads[f"{name}-adapted"] = BenchHead(name, "", "", adapts=True, estimator=estimator)
    return heads


@dataclass(frozen=True)
class Fitted:
    """A fitted model, the rows of the new domain as it takes them, and its strategy and ridge."""

    model: Any
    X: Any
    strategy: str = ""
    l2: float | None = None


@dataclass(frozen=True, eq=False)
class Training:
    """Rows of the training domains, and the fits to them that several heads share.

    The labels of the held-out domain never come here, so that no head can see them.
    """

    data: DomainData
    task: str
    metric: str
    chooses: bool  # whether some head tries all strategies
    prepare: Any = field(default_factory=AutoPreparation)  # a transformer, not fitted
    models: dict[str, Any] = field(default_factory=dict)

    def fit(self, head: BenchHead, X: Any) -> Fitted:
        """A head, fitted to these rows and, if it adapts, adapted to rows X of a new domain."""
        if head.fits == "dare-cv":
            choice = self.search.choice_
            used = choice.candidates[choice.adapting if head.adapts else choice.predicting]
            return Fitted(self.search.adapt(X) if head.adapts else self.search, X, used.name)
        l2 = None
        if head.fits and head.fits != "by-hand":  # which prepares rows and finds a ridge itself
            l2 = self.ridge
            X = self.preparation.transform(X)
        name = head.fits or head.label
        if name not in self.models:
            self.models[name] = self._model(head)
        model = self.models[name]
        return Fitted(model.adapt(X) if head.adapts else model, X, l2=l2)

    def _model(self, head: BenchHead) -> Any:
        data = self.data
        if head.fits == "by-hand":
            return self._choosing("by-hand")
        if head.fits:
            kind = table.HEADS[head.fits]
            model = kind.estimator(self.task, l2=self.ridge, preparation=None)
            return model.fit(self.preparation.transform(data.X), data.y, domains=data.domains)
        columns = {"domains": data.domains, "groups": data.groups}
        taken = inspect.signature(head.estimator.fit).parameters
        labels = {name: v for name, v in columns.items() if v is not None and name in taken}
        return clone(head.estimator).fit(data.X, data.y, **labels)

    @cached_property
    def preparation(self) -> Any:
        return clone(self.prepare).fit(self.data.X)

    @cached_property
    def search(self) -> Any:
        """The head that chooses its strategy, and finds the ridge of the others."""
        strategies = None if self.chooses else ("erm",)
        return self._choosing("dare-cv", strategies=strategies)

    def _choosing(self, name: str, **options: Any) -> Any:
        """A head that holds training domains out itself, fitted."""
        data = self.data
        scoring = scoring_of(self.metric, len(np.unique(data.y)))
        if not isinstance(self.prepare, AutoPreparation):
            options["preparation"] = self.prepare
        head = table.HEADS[name].estimator(self.task, scoring=scoring, **options)
        return head.fit(data.X, data.y, domains=data.domains, groups=self._groups)

    @cached_property
    def _groups(self) -> Any:
        if self.data.groups is not None and self.data.groups_tie_all_domains:
            note("groups tie all training domains together: the choice was made without groups")
            return None
        return self.data.groups

    @cached_property
    def ridge(self) -> float:
        return self.search.choice_.best_ridge("erm")
