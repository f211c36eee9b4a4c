"""Do sets of classes hold the true class as often as asked in a new domain, and how large are they?

    python benchmarks/prediction_sets.py [--data FOLDER] [--sets music,vowel,…] [--domains 5]

For each held-out domain of the real sets the choosing head is fitted to the others and rehearsed,
and gives sets at 0.9 for the new rows, as it is and adapted to them. Beside them stand those of
plain split conformal prediction, by the same probabilities: the head is fitted to four fifths of
the training rows of each domain, and the threshold is that of the others, pooled. "20 labels" are
sets by as many labelled rows of the new domain, drawn at random, for its other rows, where it has
40; the mean of ten draws. Rules were chosen on the sets of `DECIDED_ON`; the others are reported
apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagnose import training_rows
from halves import run
from real_data import Fold, Rows
from score_interval import SETS
from skdare import DAREClassifierCV

COVERAGE = 0.9
KINDS = ("split", "rehearsed", "adapted", "20 labels")
LABELLED = 20
DRAWS = 10


def measure(fold: Fold) -> dict:
    """Coverage and mean size of the sets for one held-out domain."""
    train = training_rows(fold)
    new = fold.test
    head = DAREClassifierCV(preparation=fold.preparation)
    head.fit(train.X, train.y, domains=train.domains)
    head.rehearse(train.X, train.y, domains=train.domains)
    sets = {
        "split": _split_sets(fold, train),
        "rehearsed": head.predict_set(new.X, coverage=COVERAGE),
        "adapted": head.adapt(new.X).predict_set(new.X, coverage=COVERAGE),
    }
    results = {kind: _result(one, new.y, head.classes_) for kind, one in sets.items()}
    if len(new.y) >= 2 * LABELLED:
        results["20 labels"] = np.mean(
            [_by_labels(head, new, seed) for seed in range(DRAWS)], axis=0
        )
    return {
        "set": fold.name,
        "held_out": fold.held_out,
        "rows": len(new.y),
        "domains": len(np.unique(train.domains)),
        "classes": len(head.classes_),
        "results": results,
    }


def _result(included: np.ndarray, y: np.ndarray, classes: np.ndarray) -> tuple[float, float]:
    """Share of rows whose set has the true class, and mean size of a set."""
    covered = (included & (y[:, None] == classes)).any(axis=1)
    return float(covered.mean()), float(included.sum(axis=1).mean())


def _by_labels(head: DAREClassifierCV, new: Rows, seed: int) -> tuple[float, float]:
    """The result on the other rows, where some are labelled."""
    y = new.y.astype(object)
    rest = np.random.default_rng(seed).permutation(len(y))[LABELLED:]
    y[rest] = None
    included = head.predict_set(new.X, y, coverage=COVERAGE)
    return _result(included[rest], new.y[rest], head.classes_)


def _split_sets(fold: Fold, train: Rows) -> np.ndarray:
    """Sets of split conformal prediction, whose calibration rows are of the training domains."""
    rng = np.random.default_rng(0)
    aside = np.zeros(len(train.y), dtype=bool)
    for domain in np.unique(train.domains):
        own = rng.permutation(np.flatnonzero(train.domains == domain))
        aside[own[: len(own) // 5]] = True
    head = DAREClassifierCV(preparation=fold.preparation)
    head.fit(train.X[~aside], train.y[~aside], domains=train.domains[~aside])
    P = head.predict_proba(train.X[aside])
    truth = train.y[aside, None] == head.classes_
    scores = np.sort(1.0 - np.where(truth, P, 0.0).sum(axis=1))
    rank = min(int(np.ceil(COVERAGE * (len(scores) + 1))), len(scores))
    P = head.predict_proba(fold.test.X)
    included = scores[rank - 1] >= 1.0 - P
    included[np.arange(len(P)), P.argmax(axis=1)] = True
    return included


def table(records: Sequence[dict], title: str) -> None:
    """Print coverage and size by held-out domain, by set, and over all."""
    print(
        f"\n{title}: share of rows whose set of 90 % has the true class, and mean size of a set\n"
    )
    print(
        "| set | held out | rows | training domains | classes | split: covered | size "
        "| rehearsed: covered | size | adapted: covered | size | 20 labels: covered | size |"
    )
    print("| --- | --- |" + " ---: |" * 11)
    names = list(dict.fromkeys(record["set"] for record in records))
    for name in names:
        own = [record for record in records if record["set"] == name]
        for record in own:
            about = [record[key] for key in ("set", "held_out", "rows", "domains", "classes")]
            print(f"| {' | '.join(map(str, about))} | {_cells([record])} |")
        print(f"| **{name}** | mean of {len(own)} | | | | {_cells(own)} |")
    print(f"| **all** | mean of {len(records)} | | | | {_cells(records)} |")


def _cells(records: Sequence[dict]) -> str:
    cells = []
    for kind in KINDS:
        results = [record["results"][kind] for record in records if kind in record["results"]]
        if results:
            covered, size = np.mean(results, axis=0)
            cells.append(f"{100 * covered:.0f} % | {size:.2f}")
        else:
            cells.append(" | ")
    return " | ".join(cells)


if __name__ == "__main__":
    run(__doc__.splitlines()[0], measure, table, SETS, chosen="rules", domains=5)
