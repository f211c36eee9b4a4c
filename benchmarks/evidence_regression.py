"""What regression loses to ridge regression on all rows, step by step to the paper's form."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from real_data import Fold
from skdare import DARERegressor, ERMRegressor, ReweightedRegressor
from tables import average, percent, table, unique, worst

ERM = "ERM"
# Each step from ERM on, with one more of the paper's choices than the last.
HEADS = {
    ERM: ERMRegressor(),
    "`DARERegressor()`": DARERegressor(adaptation=None),
    "domains count the same": ReweightedRegressor(),
    "+ whitened, ρ 0.9": DARERegressor(guess="mean", adaptation=None),
    "+ rows centred": DARERegressor(mean_penalty=0.0, adaptation=None),
    "+ λ 1": DARERegressor(mean_penalty=1.0, adaptation=None),
    "`as_in_paper()`": DARERegressor.as_in_paper(adaptation=None),
}
# Heads that see the unlabelled rows of the new domain.
ADAPTED = {
    "`DARERegressor()`, adapted": DARERegressor(),
    '`adaptation="centered"`, adapted': DARERegressor(adaptation="centered"),
}


def measure(folds: Sequence[Fold]) -> list[dict]:
    """One record for each head in each fold of a regression."""
    return [record for fold in folds if fold.task == "regression" for record in _fold(fold)]


def _fold(fold: Fold) -> list[dict]:
    common = {"part": "regression", "set": fold.name, "held_out": fold.held_out}
    records = []
    for name, head in (HEADS | ADAPTED).items():
        head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
        if name in ADAPTED:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                head = head.adapt(fold.test.X)
        score = float(head.score(fold.test.X, fold.test.y))
        records.append(common | {"head": name, "score": score})
    return records


def report(records: Sequence[dict]) -> str:
    """Mean and worst of every head on every set."""
    sets = unique(records, "set")
    means = average(records, "head", "set")
    least = worst(records, "head", "set")
    rows = [
        [head, *(f"{percent(means[head, s])} / {percent(least[head, s])}" for s in sets)]
        for head in unique(records, "head")
    ]
    return "## Regression, step by step: mean / worst\n\n" + table(["head", *sets], rows)
