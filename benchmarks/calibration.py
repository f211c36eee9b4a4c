"""How good are the probabilities of a head in a new domain, as they are and calibrated?

    python benchmarks/calibration.py [--data FOLDER] [--sets music,vowel,…] [--domains 4]

For each held-out domain the choosing head is fitted to the others and rehearsed, and used as it is
and adapted to the new rows. Beside its own probabilities stand those calibrated by the rehearsal,
and by labels of 10, 20 and 50 random rows (at most half of the domain; means of five draws), scored
on the other rows. "Shares" are the rehearsal's, with the class shares that an expectation
maximisation (Saerens et al. 2002) finds in the new domain. Log loss in nats, and the expected
calibration error of the predicted class over ten bins. A head that has not seen a class of the new
domain is scored on the rows of the others. The strength of the prior was chosen on the sets of
`DECIDED_ON`; the others are reported apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import log_loss

from diagnose import training_rows
from halves import run
from real_data import Fold
from score_interval import SETS
from skdare import DAREClassifierCV

LABELS = (10, 20, 50)
KINDS = ("own", "rehearsed", "shares", *(f"{n} labels" for n in LABELS))
DRAWS = 5


def measure(fold: Fold) -> dict:
    """Log loss and calibration error for one held-out domain."""
    train = training_rows(fold)
    head = DAREClassifierCV(preparation=fold.preparation)
    head.fit(train.X, train.y, domains=train.domains)
    head.rehearse(train.X, train.y, domains=train.domains)
    known = np.isin(fold.test.y, head.classes_)
    X = fold.test.X[known]
    y = fold.test.y[known]
    adapted = head.adapt(X)
    shares = np.array([np.mean(train.y == label) for label in head.classes_])
    return {
        "set": fold.name,
        "held_out": fold.held_out,
        "as it is": _results(head, X, y, shares),
        "adapted": _results(adapted, X, y, shares),
    }


def _results(head, X: np.ndarray, y: np.ndarray, shares: np.ndarray) -> dict:
    """Results by the kind of probabilities."""
    rehearsed = head.calibrate().predict_proba(X)
    results = {
        "own": quality(head.predict_proba(X), y, head.classes_),
        "rehearsed": quality(rehearsed, y, head.classes_),
        "shares": quality(with_new_shares(rehearsed, shares), y, head.classes_),
    }
    for n in LABELS:
        if 2 * n <= len(y):
            draws = [_by_labels(head, X, y, n, seed) for seed in range(DRAWS)]
            results[f"{n} labels"] = tuple(np.mean(draws, axis=0))
    return results


def _by_labels(head, X: np.ndarray, y: np.ndarray, n: int, seed: int) -> tuple[float, float]:
    """Quality on the other rows, where some are labelled."""
    some = y.astype(object)
    rest = np.random.default_rng(seed).permutation(len(y))[n:]
    some[rest] = None
    P = head.calibrate(X, some).predict_proba(X[rest])
    return quality(P, y[rest], head.classes_)


def quality(P: np.ndarray, y: np.ndarray, classes: np.ndarray) -> tuple[float, float]:
    """Log loss, and expected calibration error over ten bins."""
    P = np.clip(P, 1e-15, None)
    P = P / P.sum(axis=1, keepdims=True)
    confidence = P.max(axis=1)
    off = confidence - (classes[P.argmax(axis=1)] == y)
    bins = np.minimum((10 * confidence).astype(int), 9)
    error = np.abs(np.bincount(bins, off, minlength=10)).sum() / len(y)
    return float(log_loss(y, P, labels=classes)), float(error)


def with_new_shares(P: np.ndarray, shares: np.ndarray, steps: int = 100) -> np.ndarray:
    """Probabilities under the class shares that make the new rows most likely."""
    new = shares
    for _ in range(steps):
        corrected = P * (new / shares)
        corrected /= corrected.sum(axis=1, keepdims=True)
        new = corrected.mean(axis=0)
    return corrected


def table(records: Sequence[dict], title: str) -> None:
    """Print means over held-out domains by set, and over sets."""
    names = list(dict.fromkeys(record["set"] for record in records))
    for state in ("as it is", "adapted"):
        print(f"\n{title}, {state}: log loss / calibration error in percent\n")
        print("| set | " + " | ".join(KINDS) + " |")
        print("| --- |" + " ---: |" * len(KINDS))
        rows = [_means([r[state] for r in records if r["set"] == name]) for name in names]
        for name, row in zip(names, rows, strict=True):
            print(f"| {name} | {' | '.join(_cell(row.get(kind)) for kind in KINDS)} |")
        # Sets whose domains are too small for a number of labels would make means incomparable.
        common = [kind for kind in KINDS if all(kind in row for row in rows)]
        mean = {kind: tuple(np.mean([row[kind] for row in rows], axis=0)) for kind in common}
        print(f"| **mean** | {' | '.join(_cell(mean.get(kind)) for kind in KINDS)} |")


def _means(results: Sequence[dict]) -> dict:
    """Means over the domains that have a kind, where all of them have."""
    common = [kind for kind in KINDS if all(kind in one for one in results)]
    return {kind: tuple(np.mean([one[kind] for one in results], axis=0)) for kind in common}


def _cell(result: tuple[float, float] | None) -> str:
    return "" if result is None else f"{result[0]:.3f} / {100 * result[1]:.0f}"


if __name__ == "__main__":
    run(__doc__.splitlines()[0], measure, table, SETS, chosen="prior", domains=4)
