"""Choosing among ERM, adjusting and adapting by leaving training domains out: does it pay?

Every strategy is searched on its own inside the training domains; the record keeps the scores of
its best candidate there and on the domain held out, so that any rule for choosing between
strategies can be applied afterwards.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

import skdare
from real_data import Fold
from skdare.fitting.search import ADAPTING, STRATEGIES, Candidate, choose
from tables import floored, percent, table, unique

# Searching leaves every other domain out inside every fold: of many domains, some will do.
MAX_FOLDS = 8
STEADY = tuple(name for name in STRATEGIES if name not in ADAPTING)


def measure(folds: Sequence[Fold]) -> list[dict]:
    """One record for each strategy in each fold."""
    chosen = np.unique(np.linspace(0, len(folds) - 1, MAX_FOLDS).round().astype(int))
    return [record for number in chosen for record in _fold(folds[number])]


def _fold(fold: Fold) -> list[dict]:
    task = "Regressor" if fold.task == "regression" else "Classifier"
    train = (fold.train.X, fold.train.y)
    test = (fold.test.X, fold.test.y)
    common = {"part": "choice", "set": fold.name, "held_out": fold.held_out}
    erm = getattr(skdare, f"ERM{task}")().fit(*train)
    dare = getattr(skdare, f"DARE{task}")(adaptation=None)
    dare.fit(*train, domains=fold.train.domains)
    records = [
        common | {"strategy": "plain erm", "score": float(erm.score(*test)), "inner": []},
        common | {"strategy": "plain dare", "score": float(dare.score(*test)), "inner": []},
    ]
    for strategy in STRATEGIES:
        head = getattr(skdare, f"DARE{task}CV")(strategies=(strategy,))
        head.fit(*train, domains=fold.train.domains)
        results = head.cv_results_
        best = int(np.argmax(results["mean_score"]))
        inner = [float(results[f"score_{label}"][best]) for label in head.domains_]
        options = {name: results[name][best] for name in ("l2", "shrinkage")}
        if strategy in ADAPTING:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                head = head.adapt(fold.test.X)
        record = {"strategy": strategy, "score": float(head.score(*test)), "inner": inner}
        records.append(common | record | {k: float(v) for k, v in options.items()})
    return records


def pick(records: Sequence[dict], names: Sequence[str], errors: float) -> dict:
    """What `DAREClassifierCV` would choose among these strategies with so many standard errors."""
    chosen = [next(r for r in records if r["strategy"] == name) for name in names]
    plans = [Candidate(r["strategy"], None) for r in chosen]
    return chosen[choose(plans, np.array([r["inner"] for r in chosen]), errors)]


def report(records: Sequence[dict]) -> str:
    """Each strategy by itself, then what each rule would have chosen."""
    sets = unique(records, "set")
    columns = ("plain erm", "plain dare", *STRATEGIES)
    rows = [[name, *(_summary(_of(records, name, s)) for s in columns)] for name in sets]
    text = "## Choosing by leaving out\n\n" + table(["set (mean / worst)", *columns], rows)
    for title, names in (("without adapting", STEADY), ("with adapting", STRATEGIES)):
        errors = (0.0, 1.0, 1.5, 2.0)
        rows = []
        for name in sets:
            row = [name, _summary(_of(records, name, "plain erm"))]
            for e in errors:
                row.append(_summary([pick(fold, names, e) for fold in _folds(records, name)]))
            rows.append(row)
        header = ["set", "plain erm", *(f"{e:g} standard errors" for e in errors)]
        text += f"\nThe simplest strategy within so many standard errors, {title}:\n\n"
        text += table(header, rows)
    return text


def _of(records: Sequence[dict], name: str, strategy: str) -> list[dict]:
    return [r for r in records if r["set"] == name and r["strategy"] == strategy]


def _folds(records: Sequence[dict], name: str) -> list[list[dict]]:
    chosen = [r for r in records if r["set"] == name]
    return [[r for r in chosen if r["held_out"] == h] for h in unique(chosen, "held_out")]


def _summary(records: Sequence[dict]) -> str:
    scores = [floored(r["score"]) for r in records]
    return f"{percent(np.mean(scores))} / {percent(np.min(scores))}"
