"""Settings of a bench: all that decides its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdare.bench.heads import DEFAULT_HEADS, HEADS
from skdare.bench.metrics import METRICS
from skdare.data import DomainData
from skdare.errors import InputError, counted, listed, unknown
from skdare.fitting.preparation import AutoPreparation

# Of all rows before a head, fitted to those that are trained on, by the names of commands.
PREPARATIONS: dict[str, Callable[[], Any]] = {
    "auto": AutoPreparation,
    "standardize": lambda: make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
    "none": FunctionTransformer,
}


@dataclass(frozen=True)
class Settings:
    """How heads are compared.

    Parameters
    ----------
    heads : tuple of str
        Heads to compare; ERM is always among them. Default: erm, by-hand, dare-cv,
        dare-cv-adapted and dare-adapted.
    held_out : tuple of str
        Domains to hold out. Default: each in turn.
    metric : str
        One of scikit-learn's scorers. Default: accuracy in classification, r2 in regression.
    repeats : int
        How often each domain is held out. From 2 on, each time with another 80 % of the rows of
        the other domains, which shows how much the choice of rows matters.
    task : str
        "classification" or "regression". Default: guessed from the target.
    preparation : str
        "auto", "standardize" or "none", as in ``skdare fit``.
    """

    heads: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    metric: str = ""
    repeats: int = 1
    task: str = ""
    preparation: str = "auto"

    def resolved(self, data: DomainData, more_heads: tuple[str, ...] = ()) -> Settings:
        """The settings with defaults filled in for this table; refused if they do not fit it."""
        if data.domains is None:
            raise InputError(f"{data.name} has no column of domains", "name one with domains=")
        domains = data.domain_names
        if len(domains) < 3:
            raise InputError(
                f"there {'is' if len(domains) == 1 else 'are'} {counted(len(domains), 'domain')}: "
                f"{listed(domains)}",
                "three are needed: one to hold out, and two to learn from how they differ",
            )
        task = self.task or data.task
        if task not in METRICS:
            raise unknown("task", task, list(METRICS))
        if task == "regression" and data.y.dtype.kind not in "iuf":
            raise InputError("the target is text", "regression needs numbers")
        if len(np.unique(data.y)) < 2:
            raise InputError(f"every row has the target {data.y[0]}", "name another column")
        metric = self.metric or next(iter(METRICS[task]))
        if metric not in METRICS[task]:
            raise unknown(f"metric of {task}", metric, list(METRICS[task]))
        for head in self.heads:
            if head not in HEADS:
                raise unknown("head", head, list(HEADS))
            if task not in HEADS[head].tasks:
                usable = [name for name, each in HEADS.items() if task in each.tasks]
                raise InputError(f"head {head} is not for {task}", f"use {', '.join(usable)}")
        for domain in self.held_out:
            if domain not in domains:
                raise unknown("domain", domain, domains)
        held_out = tuple(dict.fromkeys(self.held_out)) or tuple(domains)
        if data.groups is not None:
            _refuse_groups_without_training(data, held_out)
        if self.preparation not in PREPARATIONS:
            raise unknown("preparation", self.preparation, list(PREPARATIONS))
        if self.repeats < 1:
            raise InputError(f"repeats is {self.repeats}", "give 1 or more")
        named = self.heads or (() if more_heads else DEFAULT_HEADS)
        heads = tuple(dict.fromkeys(("erm", *named, *more_heads)))
        return Settings(heads, held_out, metric, self.repeats, task, self.preparation)

    @property
    def share(self) -> float:
        """Share of the rows of each training domain that is used in one repeat."""
        return 1.0 if self.repeats == 1 else 0.8

    def decisive(self) -> dict[str, Any]:
        """Settings that a result depends on: all but which heads and domains are compared."""
        trained_on = "all" if self.repeats == 1 else "80 %"
        settings = {"task": self.task, "metric": self.metric, "training rows": trained_on}
        return settings | {"preparation": self.preparation}


def _refuse_groups_without_training(data: DomainData, held_out: tuple[str, ...]) -> None:
    """Refuse domains whose groups take every row that could be trained on."""
    names, domain = np.unique(data.domains.astype(str), return_inverse=True)
    group = np.unique(data.groups, return_inverse=True)[1]
    for e in np.searchsorted(names, held_out):
        others = group[domain != e]
        if np.isin(others, group[domain == e]).all():
            raise InputError(
                f"every row of the other domains is of a group that '{names[e]}' has, too, and "
                "none is left to train on",
                "leave out the rows of groups that are in several domains, or pass no groups",
            )
