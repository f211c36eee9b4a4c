"""Every strategy of the choosing head by itself, adapted, its ridge chosen by leaving domains out.

The best of them in hindsight is what no choice among them can exceed.
"""

from __future__ import annotations

from collections.abc import Sequence

from evidence_choice import about, adapted, gain, held_out, of, score, searched, summary
from real_data import Fold
from skdare.choosing.strategies import BY_DEFAULT, STRATEGIES
from tables import table, unique


def measure(folds: Sequence[Fold]) -> list[dict]:
    """One record for each strategy in each fold."""
    return [
        about(fold) | {"part": "rungs", "head": name, "score": score(_by_itself(name, fold), fold)}
        for fold in held_out(folds)
        for name in BY_DEFAULT
        # Numbers have no classes that could move.
        if fold.task == "classification" or STRATEGIES[name].mixture is None
    ]


def _by_itself(strategy: str, fold: Fold):
    head = searched(fold, (strategy,))
    return adapted(head, fold) if STRATEGIES[strategy].adapts else head


def report(records: Sequence[dict]) -> str:
    """Every strategy on every set, and the gain of the best of them over ERM."""
    sets = unique(records, "set")
    rows = []
    for name in sets:
        gains = [gain(records, name, head) for head in BY_DEFAULT if of(records, name, head)]
        scores = [summary(of(records, name, head)) for head in BY_DEFAULT]
        rows.append([name, *scores, f"{max(0.0, *gains):+.1f}"])
    header = ["set (mean / worst)", *BY_DEFAULT, "best in hindsight"]
    return f"## Every strategy by itself\n\n{table(header, rows)}"
