"""A small table, and plans and folds made of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skdare.bench import (
    HEADS,
    Plan,
    Settings,
    Trial,
    bench_plan,
)
from skdare.bench._fold import Workspace
from skdare.bench._source import Source
from skdare.datasets import DomainData, make_latent_domains

PAPER = [name for name, entry in HEADS.items() if entry.in_paper]
CLASSIFIERS = [name for name, entry in HEADS.items() if "classification" in entry.tasks]
FAST = Settings(l2=0.01, patience=2, max_epochs=10, sgd_steps=20)


def table(task: str = "classification", *, n: int = 60, seed: int = 0) -> DomainData:
    """Four small domains called a to d; three classes, or numbers."""
    data = make_latent_domains(4, n, 5, task="regression", random_state=seed)
    y = data.y
    if task == "classification":
        y = np.array(["x", "y", "z"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    return DomainData(data.X, y, np.array(list("abcd"))[data.domains])


def ask(data: DomainData | None = None, settings: Settings = FAST, **more) -> Plan:
    """The plan of a bench on a small table, with nothing beside the heads."""
    return bench_plan(data or table(), settings=settings, **{"name": "t", "extras": [], **more})


def fold_of(data: DomainData, settings: Settings = FAST, number: int = 0, **more):
    """Domain b held out."""
    workspace = Workspace({"given": Source.of(data)}, settings)
    return workspace.fold(Trial("main", "erm", "b", number, **more))


def results(records):
    """What must not depend on when, or beside what, a trial was run."""
    return {r.key: (r.head, r.held_out, r.status, r.score) for r in records}


def poisoned(data: DomainData, *, labels: bool = False, features: bool = False) -> DomainData:
    """The same table with domain b's labels turned over, or its features blown up."""
    new = data.domains == "b"
    y, X = data.y.copy(), data.X.copy()
    if labels:
        y[new] = y[new][::-1] if data.y.dtype.kind == "U" else -100.0 * y[new]
        y[new] = np.roll(y[new], 7)
    if features:
        X[new] = 1e3 * np.roll(X[new], 1, axis=1) + 50.0
    return replace(data, X=X, y=y)
