"""A small table, and plans and folds made of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from free_domains import free_domains
from skdare.bench import Plan, Settings, bench_plan
from skdare.bench._feature_set import FeatureSet
from skdare.bench._fold import Fold, Folds
from skdare.bench._heads import HEADS
from skdare.bench._trial import Trial
from skdare.datasets import DomainData

IN_PAPER = [name for name, head in HEADS.items() if head.in_paper]
CLASSIFIERS = [name for name, head in HEADS.items() if "classification" in head.tasks]
FAST = Settings(l2=0.01, patience=2, max_epochs=10, sgd_steps=20)
FAST_PAPER = replace(FAST, protocol="paper")


def table(task: str = "classification", *, n: int = 60, seed: int = 0) -> DomainData:
    """Four small domains called a to d; three classes, or numbers."""
    data = free_domains(4, n, 5, task="regression", seed=seed)
    y = data.y
    if task == "classification":
        y = np.array(["x", "y", "z"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    return DomainData(data.X, y, np.array(list("abcd"))[data.domains])


def small_plan(data: DomainData | None = None, settings: Settings = FAST, **more) -> Plan:
    """Plan of a bench on a small table, with nothing beside the heads."""
    return bench_plan(data or table(), settings=settings, **{"name": "t", "extras": [], **more})


def fold_of(data: DomainData, settings: Settings = FAST, number: int = 0, **fields) -> Fold:
    """The fold that holds out domain b."""
    folds = Folds({"given": FeatureSet.of(data)}, settings)
    return folds.fold(Trial("main", "erm", "b", number, **fields))


def noisy_table() -> DomainData:
    """A larger table with classes that no head can separate."""
    data = table(n=150)
    flipped = np.random.default_rng(3).random(600) < 0.3
    return replace(data, y=np.where(flipped, "x", data.y))


def results(records):
    """Results by key: what must not depend on when, or beside what, a trial was run."""
    return {r.key: (r.head, r.held_out, r.status, r.score) for r in records}


def poisoned(data: DomainData, *, labels: bool = False, features: bool = False) -> DomainData:
    """The same table with domain b's labels shuffled, or its features blown up."""
    held_out = data.domains == "b"
    y = data.y.copy()
    X = data.X.copy()
    if labels:
        y[held_out] = y[held_out][::-1] if y.dtype.kind == "U" else -100.0 * y[held_out]
        y[held_out] = np.roll(y[held_out], 7)
    if features:
        X[held_out] = 1e3 * np.roll(X[held_out], 1, axis=1) + 50.0
    return replace(data, X=X, y=y)
