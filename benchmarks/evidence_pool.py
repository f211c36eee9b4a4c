"""Shrinkage towards the pool of all training domains, beside the scaled identity and ERM."""

from __future__ import annotations

from collections.abc import Iterator

from evidence_defaults import HEADS, MOMENTS
from real_data import Fold
from tables import average, percent, table, unique, worst

SHRINKAGES = (0.1, 0.5, 0.9)


def candidates(task: str) -> Iterator[tuple[str, object]]:
    """Every head in the comparison, with its name in the table."""
    erm, _, dare = HEADS[task]
    yield "ERM", erm()
    for centered in (False, True):
        for target in ("scaled", "pooled"):
            for shrinkage in SHRINKAGES:
                options = {"shrinkage": shrinkage, "shrinkage_target": target}
                head = dare(centered=centered, adaptation=None, **options)
                yield f"{MOMENTS[centered]}, {target}, ρ {shrinkage}", head


def measure(folds: list[Fold]) -> list[dict]:
    """The held-out score of every candidate on every fold."""
    records = []
    for fold in folds:
        for name, head in candidates(fold.task):
            head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
            score = head.score(fold.test.X, fold.test.y)
            record = {"part": "pool", "set": fold.name, "held_out": fold.held_out}
            records.append(record | {"head": name, "score": score})
    return records


def report(records: list[dict]) -> str:
    """Markdown: mean and worst held-out score of every candidate on every set."""
    means, least = average(records, "head", "set"), worst(records, "head", "set")
    sets = unique(records, "set")
    rows = [
        [head, *(f"{percent(means[head, s])} / {percent(least[head, s])}" for s in sets)]
        for head in unique(records, "head")
    ]
    return "## Held-out score, mean / worst domain\n\n" + table(["head", *sets], rows)
