"""Does a bound hold, and how far is it from the truth? Domains of the real sets, each as the new.

    python benchmarks/bound.py [--data FOLDER] [--sets music,vowel,…] [--domains 10]
                               [--out bound.jsonl]

For each held-out domain the choosing head is fitted to the others and rehearsed, and its bound on
the new rows, as it is and adapted, is compared with what their labels say. A bound that is always
zero holds always, and misses by the whole accuracy. Rules were chosen on the sets of `DECIDED_ON`;
the others are reported apart. A run goes on where an earlier one stopped.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

import numpy as np

from diagnose import folds, training_rows
from evidence_choice import DECIDED_ON
from real_data import LOADERS, Fold, data_root
from resumed import resumed
from skdare import DAREClassifierCV
from skdare.diagnosis import MIN_ROWS

WAYS = ("as it is", "adapted")


def measure(fold: Fold) -> Iterator[dict]:
    """Bound one fold, as it is and adapted, then look at its labels."""
    train = training_rows(fold)
    new = fold.test
    started = time.perf_counter()
    head = DAREClassifierCV(preparation=fold.preparation)
    head.fit(train.X, train.y, domains=train.domains)
    fitted = time.perf_counter()
    head.rehearse(train.X, train.y, domains=train.domains)
    adapted = head.adapt(new.X)
    for way, one in zip(WAYS, (head, adapted), strict=True):
        if way == "adapted" and adapted.adapted_rows_ is None:
            continue
        start = time.perf_counter()
        bound = one.bound(new.X)
        yield {
            "set": fold.name,
            "held_out": fold.held_out,
            "way": way,
            "accuracy": one.score(new.X, new.y),
            "bound": bound.to_dict(),
            "seconds": time.perf_counter() - start,
            "fit_seconds": fitted - started,
        }


def table(records: Sequence[dict], title: str) -> None:
    """Print how often bounds held and what they missed by, by set and over all."""
    print(f"\n{title}\n")
    print(
        "| set | head | domains | accuracy | bound holds | bound | below the truth | zero "
        "| always zero: below | by confidence: error | by agreement: error |"
    )
    print("| --- | --- |" + " ---: |" * 9)
    names = list(dict.fromkeys(record["set"] for record in records))
    for way in WAYS:
        of_way = [record for record in records if record["way"] == way]
        for name in names:
            some = [record for record in of_way if record["set"] == name]
            if some:
                print(_row(name, way, some))
        print(_row("**all**", way, of_way))
    broken = [record for record in records if record["bound"]["least"] > record["accuracy"]]
    for record in broken:
        least = 100 * record["bound"]["least"]
        print(
            f"\n{record['set']}, {record['held_out']}, {record['way']}: accuracy "
            f"{100 * record['accuracy']:.1f}, and the bound said {least:.1f}"
        )
    share = np.sum([r["seconds"] for r in records]) / np.sum([r["fit_seconds"] for r in records])
    print(f"\na bound took {share:.2f} of the time of a fit")


def _row(name: str, way: str, records: Sequence[dict]) -> str:
    accuracy = np.array([record["accuracy"] for record in records])
    least = np.array([record["bound"]["least"] for record in records])
    cells = [name, way, str(len(records)), f"{100 * accuracy.mean():.1f}"]
    cells += [
        f"{np.mean(least <= accuracy):.0%}".replace("%", " %"),
        f"{100 * least.mean():.1f}",
        f"{100 * np.mean(accuracy - least):.1f}",
        f"{np.mean(least == 0):.0%}".replace("%", " %"),
        f"{100 * accuracy.mean():.1f}",
    ]
    for estimate in ("by_confidence", "by_agreement"):
        misses = [abs(record["bound"][estimate] - record["accuracy"]) for record in records]
        cells.append(f"{100 * np.mean(misses):.1f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, and print tables by half."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join(LOADERS))
    parser.add_argument("--domains", type=int, default=10)
    parser.add_argument("--out", default="bound.jsonl")
    args = parser.parse_args()
    root = data_root(args.data)
    held_out = (
        fold
        for name in args.sets.split(",")
        for fold in folds(name, root, args.domains)
        if fold.task == "classification" and len(fold.test.y) >= MIN_ROWS
    )
    done = resumed(args.out, held_out, measure)
    for title, chosen in (("rules chosen on", True), ("not chosen on", False)):
        records = [record for record in done if (record["set"] in DECIDED_ON) == chosen]
        if records:
            table(records, title)


if __name__ == "__main__":
    main()
