"""How much a shrunk second moment still whitens: the default beside no whitening at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evidence_choice import MAX_FOLDS
from real_data import Fold
from skdare import DAREClassifier
from tables import percent, table, unique

SHRINKAGES = (0.1, 0.5, 0.9)


def measure(folds: Sequence[Fold]) -> list[dict]:
    """One record for each shrinkage in each fold of a classification, ten folds at most."""
    chosen = np.unique(np.linspace(0, len(folds) - 1, MAX_FOLDS).round().astype(int))
    few = [folds[number] for number in chosen]
    return [record for fold in few if fold.task == "classification" for record in _fold(fold)]


def _fold(fold: Fold) -> list[dict]:
    train = fold.train
    plain = DAREClassifier(adjust=False, adaptation=None)
    unwhitened = plain.fit(train.X, train.y, domains=train.domains).predict(fold.test.X)
    records = []
    for shrinkage in SHRINKAGES:
        head = DAREClassifier(shrinkage=shrinkage, adaptation=None)
        head.fit(train.X, train.y, domains=train.domains)
        alike = np.mean(head.predict(fold.test.X) == unwhitened)
        conditions = [_condition(W.dense()) for W in head.adjustments_.values()]
        record = {"part": "whitening", "set": fold.name, "shrinkage": shrinkage}
        records.append(record | {"alike": float(alike), "condition": float(np.median(conditions))})
    return records


def _condition(W: np.ndarray) -> float:
    values = np.linalg.eigvalsh(W)
    return float(values[-1] / values[0])


def report(records: Sequence[dict]) -> str:
    """Condition numbers, and rows predicted as without whitening."""
    header = ["set"]
    for shrinkage in SHRINKAGES:
        header += [f"ρ {shrinkage}: condition", f"ρ {shrinkage}: as without, %"]
    rows = []
    for name in unique(records, "set"):
        row = [name]
        for shrinkage in SHRINKAGES:
            here = [r for r in records if (r["set"], r["shrinkage"]) == (name, shrinkage)]
            row.append(f"{np.median([r['condition'] for r in here]):.1f}")
            row.append(percent(np.mean([r["alike"] for r in here])))
        rows.append(row)
    return "## How much is whitened\n\n" + table(header, rows)
