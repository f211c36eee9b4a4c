"""How freely classes may move: mixtures of every kind, on top of plain, centred, standardised rows.

Accuracy on the domain held out, of heads adapted to all of its unlabelled rows, beside the head
that is adapted in the same way without a mixture.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evidence_choice import held_out
from real_data import Fold
from skdare import DAREClassifier
from skdare.fitting.domain_fit import domain_fit_of
from skdare.fitting.mixture import Mixture
from tables import table, unique

PLAIN = {"mean_penalty": 0.0, "adjust": False}
ROWS = {
    "as they are": (PLAIN, "translation"),
    "centred": (PLAIN, "mixture"),
    "standardised": (
        {"mean_penalty": 0.0, "centered": True, "shrinkage": 1.0, "shrinkage_target": "diagonal"},
        "mixture",
    ),
}
MIXTURES = {
    f"{anchor:g} rows, shares {'estimated' if estimated else 'fixed'}": Mixture(anchor, estimated)
    for anchor in (10.0, 30.0, 100.0, float("inf"))
    for estimated in (False, True)
}


def measure(folds: Sequence[Fold]) -> list[dict]:
    """One record for each mixture in each fold of a classification set."""
    return [
        record
        for fold in held_out(folds)
        if fold.task == "classification"
        for name in ROWS
        for record in _fold(fold, name)
    ]


def _fold(fold: Fold, name: str) -> list[dict]:
    options, adaptation = ROWS[name]
    head = DAREClassifier(**options, adaptation=adaptation)
    head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    common = {"part": "mixture", "set": fold.name, "held_out": fold.held_out, "rows": name}
    scores = {"none": _score(head, None, fold)}
    scores |= {words: _score(head, mixture, fold) for words, mixture in MIXTURES.items()}
    return [common | {"mixture": words, "score": score} for words, score in scores.items()]


def _score(head: DAREClassifier, mixture: Mixture | None, fold: Fold) -> float:
    """Accuracy after adapting by this mixture; all of them start from the same fit."""
    fit = domain_fit_of(head)
    places = None if mixture is None else fit.adaptation.places
    other = copy.copy(head)
    other._domain_fit = replace(
        fit, adaptation=replace(fit.adaptation, mixture=mixture, places=places)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            adapted = other.adapt(fold.test.X)
        except ValueError:  # rows that are all the same
            adapted = other
    return float(adapted.score(fold.test.X, fold.test.y))


def report(records: Sequence[dict]) -> str:
    """Gain of each mixture over none, in hundredths."""
    sets = unique(records, "set")
    text = "## How freely classes may move\n"
    for name in ROWS:
        rows = []
        for words in MIXTURES:
            gains = [_gain(records, each, name, words) for each in sets]
            rows.append([words, *(f"{gain:+.1f}" for gain in gains), f"{np.mean(gains):+.1f}"])
        text += f"\nRows {name}, gain over no mixture:\n\n"
        text += table(["anchor", *sets, "mean"], rows)
    return text


def _gain(records: Sequence[dict], each: str, name: str, words: str) -> float:
    own = [r for r in records if r["set"] == each and r["rows"] == name]
    scores = [np.mean([r["score"] for r in own if r["mixture"] == w]) for w in (words, "none")]
    return 100 * float(scores[0] - scores[1])
