"""Choosing how to deal with domains by leaving training domains out: does it pay?

The whole search sees nothing of the domain held out, and prepares rows anew for every training
domain that it leaves out. `evidence_rungs` has every strategy by itself.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np

import skdare
from real_data import Fold
from tables import floored, percent, table, unique

# Of many domains, some are held out.
MAX_FOLDS = 10
# These alone give the rules; the others are reported apart.
DECIDED_ON = ("fcon", "har", "music", "pacs", "support2", "vowel", "crime", "prsa", "turbine")
CHOSEN = ("chosen", "chosen, adapted")


def measure(folds: Sequence[Fold]) -> list[dict]:
    """One record for each head in each fold."""
    return [record for fold in held_out(folds) for record in _fold(fold)]


def held_out(folds: Sequence[Fold]) -> list[Fold]:
    """The folds, or ten of them, evenly spread."""
    chosen = np.unique(np.linspace(0, len(folds) - 1, MAX_FOLDS).round().astype(int))
    return [folds[number] for number in chosen]


def _fold(fold: Fold) -> list[dict]:
    start = time.perf_counter()
    head = searched(fold)
    seconds = time.perf_counter() - start
    scores = {
        "chosen": score(head, fold),
        "chosen, adapted": score(adapted(head, fold), fold),
        "erm": score(searched(fold, ("erm",)), fold),
    }
    more = {"part": "choice", "strategy": head.best_params_["strategy"], "seconds": seconds}
    plain = "Regressor" if fold.task == "regression" else "Classifier"
    dare = getattr(skdare, f"DARE{plain}")(adaptation=None)
    fold = fold.prepared()
    scores["dare"] = score(dare.fit(fold.train.X, fold.train.y, domains=fold.train.domains), fold)
    return [about(fold) | more | {"head": name, "score": one} for name, one in scores.items()]


def about(fold: Fold) -> dict:
    """What records of a fold have in common."""
    return {"set": fold.name, "held_out": fold.held_out, "task": fold.task}


def searched(fold: Fold, strategies: Sequence[str] | None = None) -> skdare.DAREClassifierCV:
    """The choosing head, fitted to the training rows; by default among all strategies."""
    task = "Regressor" if fold.task == "regression" else "Classifier"
    head = getattr(skdare, f"DARE{task}CV")(strategies=strategies, preparation=fold.preparation)
    return head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)


def adapted(head: skdare.DAREClassifierCV, fold: Fold) -> skdare.DAREClassifierCV:
    """The head adapted to all rows of the new domain, or the head itself where these refuse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return head.adapt(fold.test.X)
        except ValueError:
            return head


def score(head: skdare.DAREClassifierCV, fold: Fold) -> float:
    """Accuracy, or R² cut at -1, on the domain held out."""
    return floored(float(head.score(fold.test.X, fold.test.y)))


def report(records: Sequence[dict]) -> str:
    """Every head on every set; then what the choice gained over ERM, in halves."""
    sets = unique(records, "set")
    columns = ("erm", "dare", *CHOSEN)
    rows = []
    for name in sets:
        taken = [r["strategy"] for r in of(records, name, "chosen")]
        most = max(unique([{"s": t} for t in taken], "s"), key=taken.count)
        scores = [summary(of(records, name, head)) for head in columns]
        seconds = np.median([r["seconds"] for r in of(records, name, "chosen")])
        rows.append(
            [name, *scores, f"{most} ({taken.count(most)} of {len(taken)})", f"{seconds:.1f}"]
        )
    text = "## Choosing by leaving out\n\n"
    text += table(["set (mean / worst)", *columns, "chosen most", "search, s"], rows)
    for task in ("classification", "regression"):
        here = [name for name in sets if of(records, name, "erm")[0]["task"] == task]
        if here:
            text += f"\nGain over ERM with its ridge chosen, {task}, in hundredths:\n\n"
            text += table(["sets", "number", *CHOSEN], _gains(records, here))
            text += "\nThe same by domain, chosen and adapted:\n\n" + _by_domain(records, here)
    return text


def _by_domain(records: Sequence[dict], sets: Sequence[str]) -> str:
    """Gain over ERM on single domains, chosen and adapted."""
    rows = []
    for name in sets:
        gains = 100 * (_scores(records, name, CHOSEN[1]) - _scores(records, name, "erm"))
        numbers = [f"{gain:+.1f}" for gain in (gains.mean(), gains.min(), gains.max())]
        counts = [f"{np.sum(sign * gains > 1)} of {len(gains)}" for sign in (-1, 1)]
        rows.append([name, *numbers, *counts])
    header = ["set", "mean", "worst", "best", "lost more than a point", "won more than a point"]
    return table(header, rows)


def _gains(records: Sequence[dict], sets: Sequence[str]) -> list[list[str]]:
    halves = {
        "decided on": [name for name in sets if name in DECIDED_ON],
        "reported": [name for name in sets if name not in DECIDED_ON],
        "all": list(sets),
    }
    rows = []
    for half, names in halves.items():
        if not names:
            continue
        row = [half, str(len(names))]
        for head in CHOSEN:
            gains = [gain(records, name, head) for name in names]
            better = sum(_worst_gain(records, name, head) > 0 for name in names)
            row.append(
                f"{np.mean(gains):+.1f}, least {min(gains):+.1f}, worst domain better on {better}"
            )
        rows.append(row)
    return rows


def gain(records: Sequence[dict], name: str, head: str) -> float:
    """Mean gain over ERM on a set, in hundredths."""
    return 100 * float(np.mean(_scores(records, name, head) - _scores(records, name, "erm")))


def _worst_gain(records: Sequence[dict], name: str, head: str) -> float:
    return float(_scores(records, name, head).min() - _scores(records, name, "erm").min())


def of(records: Sequence[dict], name: str, head: str) -> list[dict]:
    """The records of a head on a set."""
    return [r for r in records if r["set"] == name and r["head"] == head]


def _scores(records: Sequence[dict], name: str, head: str) -> np.ndarray:
    return np.array([r["score"] for r in of(records, name, head)])


def summary(records: Sequence[dict]) -> str:
    """Mean / worst over held-out domains."""
    if not records:
        return "–"
    scores = [r["score"] for r in records]
    return f"{percent(np.mean(scores))} / {percent(np.min(scores))}"
