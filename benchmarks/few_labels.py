"""What some labels of a new domain are worth, and what taking them costs.

    python benchmarks/few_labels.py [--data FOLDER] [--sets heart,office,…] [--domains 6]
                                    [--draws 2] [--out few_labels.jsonl]

For each held-out domain the choosing head is fitted to the others. Some rows of the new domain are
labelled at random, as many of each class (at most half of a class), and the rest is scored: after
adapting without labels, with them, by a plain head on the labels alone, and by one on these and the
training rows. Of numbers, ten times as many rows are labelled. The constants of `labelled_fit` were
chosen on the sets of `DECIDED_ON`; the others are reported apart. A run goes on where an earlier
one stopped.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from diagnose import folds, training_rows
from evidence_choice import DECIDED_ON
from real_data import LOADERS, Fold, Rows, data_root
from resumed import resumed
from skdare import DAREClassifierCV, DARERegressorCV
from skdare._safe_text import typographic

EACH = (1, 5, 10, 20)
LABELLED = "adapt, labels"
SIMPLE = ("adapt", "labels alone", "retrained")
COLUMNS = ("as it is", *SIMPLE, LABELLED)


def measure(fold: Fold, draws: int) -> Iterator[dict]:
    """One record for each number of labels and draw of them."""
    train = training_rows(fold)
    new = fold.test
    head = DAREClassifierCV() if fold.task == "classification" else DARERegressorCV()
    head.set_params(preparation=fold.preparation)
    head.fit(train.X, train.y, domains=train.domains)
    adapted = head.adapt(new.X)
    _, plain_seconds = timed(lambda: head._retrainer().fit(train.X, train.y, domains=train.domains))
    for each in EACH:
        for draw in range(draws):
            some = labelled_rows(head, new.y, each, np.random.default_rng(draw))
            rest = np.setdiff1d(np.arange(len(new.y)), some)
            y = np.full(len(new.y), None, dtype=object)
            y[some] = new.y[some]
            # Where a domain has one class, its labels are taken all the same.
            force = len(np.unique(new.y[some])) < 2
            with_labels, seconds = timed(lambda y=y, force=force: head.adapt(new.X, y, force=force))
            heads = {
                "as it is": head,
                "adapt": adapted,
                LABELLED: with_labels,
                "labels alone": fitted(head, [new[some]]),
                "retrained": fitted(head, [train, new[some]]),
            }
            yield {
                "set": fold.name,
                "held_out": fold.held_out,
                "task": fold.task,
                "each": each,
                "draw": draw,
                "labels": len(some),
                "scores": {name: score(one, new[rest]) for name, one in heads.items()},
                "plain_fits": seconds / plain_seconds,
            }


def timed(call) -> tuple[Any, float]:
    """What a call returns, and how many seconds it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def labelled_rows(head, y: np.ndarray, each: int, rng: np.random.Generator) -> np.ndarray:
    """Row numbers: as many of each class that the head knows, and at most half of it."""
    classes = getattr(head, "classes_", None)
    if classes is None:
        return rng.permutation(len(y))[: min(10 * each, len(y) // 2)]
    chosen = []
    for label in np.intersect1d(classes, y):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen.append(rows[: min(each, len(rows) // 2)])
    return np.concatenate(chosen)


def fitted(head, parts: Sequence[Rows]) -> Any:
    """A plain head in which every domain has the same weight; None for rows of one class."""
    X, y, domains = (
        np.concatenate([getattr(part, name).astype(kind) for part in parts])
        for name, kind in (("X", float), ("y", parts[0].y.dtype), ("domains", str))
    )
    if hasattr(head, "classes_") and len(np.unique(y)) < 2:
        return None
    return head._retrainer().fit(X, y, domains=domains)


def score(head, rows: Rows) -> float:
    """Accuracy or R² on rows; of no head, that of nothing learnt."""
    return float("nan") if head is None else float(head.score(rows.X, rows.y))


def table(records: Sequence[dict], title: str) -> None:
    """Print means over draws and domains by set, and over sets, for each number of labels."""
    names = list(dict.fromkeys(record["set"] for record in records))
    by_class = records[0]["task"] == "classification"
    for each in EACH:
        labels = f"{each} a class" if by_class else f"{10 * each} in all"
        print(f"\n{title}: labels, {labels}\n")
        print("| set | " + " | ".join(COLUMNS) + " | gain | fits |")
        print("| --- |" + " ---: |" * (len(COLUMNS) + 2))
        rows = [_means([r for r in records if r["set"] == n and r["each"] == each]) for n in names]
        for name, row in zip(names, rows, strict=True):
            print(_line(name, row))
        if len(names) > 1:
            mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            print(_line("**mean**", mean))


def _means(records: Sequence[dict]) -> dict[str, float]:
    means = {
        name: 100 * float(np.nanmean([record["scores"][name] for record in records]))
        for name in COLUMNS
    }
    means["beside"] = means[LABELLED] - max(means[simple] for simple in SIMPLE)
    return means | {"plain_fits": float(np.median([r["plain_fits"] for r in records]))}


def _line(name: str, row: dict[str, float]) -> str:
    cells = [f"{row[column]:.1f}" for column in COLUMNS]
    cells += [f"{row['beside']:+.1f}", f"{row['plain_fits']:.1f}"]
    return f"| {name} | {' | '.join(typographic(cell) for cell in cells)} |"


def main() -> None:
    """Measure, and print tables by half."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join(LOADERS))
    parser.add_argument("--domains", type=int, default=6)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--out", default="few_labels.jsonl")
    args = parser.parse_args()
    root = data_root(args.data)
    held_out = (fold for name in args.sets.split(",") for fold in folds(name, root, args.domains))
    done = resumed(args.out, held_out, lambda fold: measure(fold, args.draws))
    for task in ("classification", "regression"):
        for title, chosen in (("constants chosen on", True), ("not chosen on", False)):
            records = [r for r in done if r["task"] == task and (r["set"] in DECIDED_ON) == chosen]
            if records:
                table(records, f"{task}, {title}")


if __name__ == "__main__":
    main()
