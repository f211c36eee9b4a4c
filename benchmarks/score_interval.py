"""Does an interval for the score in a new domain hold the score, and how wide is it?

    python benchmarks/score_interval.py [--data FOLDER] [--sets music,vowel,…] [--domains 5]
                                        [--draws 100]

Of each held-out domain of the real sets rows are drawn at random and labelled, for the choosing
head as it is and adapted. "Population": all rows are drawn from the domain with replacement, so
that its accuracy is that of the population they come from, which is what is to be covered. "Rows":
the rows are those of the domain, and their own accuracy is looked for. Between the exact interval
and the powered one stands what the powered one is without confidences. The prior of the
recalibration was chosen on the sets of `DECIDED_ON`; the others are reported apart. A simulation
comes first, in which the truth is known.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from diagnose import folds, training_rows
from evidence_choice import DECIDED_ON
from real_data import LOADERS, Fold, data_root
from skdare import DAREClassifierCV
from skdare.diagnosis._score_interval import ScoreRange, exact_interval, powered_interval

SETS = (
    *("music", "vowel", "fcon", "support2", "har", "pacs"),
    *("twin-gas", "heart", "ravdess", "wisdm", "gas", "office"),
)
LABELLED = (10, 20, 50, 100)
COVERAGE = 0.95
KINDS = ("exact", "without confidences", "powered")


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Of every row of a domain: whether the head is right, and how sure it is."""

    right: np.ndarray
    confidence: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.right)

    def taken(self, numbers: np.ndarray) -> Outcomes:
        return Outcomes(self.right[numbers], self.confidence[numbers])


def intervals(outcomes: Outcomes, labelled: np.ndarray) -> dict[str, ScoreRange]:
    """The three intervals by the labels of some rows."""
    known = np.zeros(outcomes.rows, dtype=bool)
    known[labelled] = True
    right = outcomes.right[known]
    silent = np.full(outcomes.rows, 0.5)
    return {
        "exact": exact_interval(right, COVERAGE),
        "without confidences": powered_interval(right, silent, known, COVERAGE),
        "powered": powered_interval(right, outcomes.confidence, known, COVERAGE),
    }


class Tally:
    """How often intervals held the truth, and how wide they were."""

    def __init__(self) -> None:
        self.held: dict[str, list[bool]] = defaultdict(list)
        self.widths: dict[str, list[float]] = defaultdict(list)

    def add(self, found: dict[str, ScoreRange], truth: float) -> None:
        for kind, ends in found.items():
            # Of shares that are equal but for rounding either may be the larger.
            self.held[kind].append(ends.low - 1e-9 <= truth <= ends.high + 1e-9)
            self.widths[kind].append(ends.width)

    @classmethod
    def together(cls, tallies: Sequence[Tally]) -> Tally:
        whole = cls()
        for one in tallies:
            for kind in KINDS:
                whole.held[kind] += one.held[kind]
                whole.widths[kind] += one.widths[kind]
        return whole

    def covered(self, kind: str) -> str:
        return _in_percent(self.held[kind])

    def width(self, kind: str) -> str:
        return _in_percent(self.widths[kind])


def _in_percent(values: Sequence[float]) -> str:
    return f"{100 * np.mean(values):.1f}" if values else "–"


def measured(fold: Fold) -> Iterator[Outcomes]:
    """What came of the head as it is, and adapted."""
    train = training_rows(fold)
    head = DAREClassifierCV(preparation=fold.preparation)
    head.fit(train.X, train.y, domains=train.domains)
    for one in (head, head.adapt(fold.test.X)):
        P = one.predict_proba(fold.test.X)
        right = one.classes_[P.argmax(axis=1)] == fold.test.y
        yield Outcomes(right.astype(float), P.max(axis=1))


def draw(outcomes: Outcomes, n: int, draws: int, population: Tally, rows: Tally) -> None:
    """Label n rows again and again, where a domain has twice as many."""
    if outcomes.rows < 2 * n:
        return
    rng = np.random.default_rng(n)
    truth = float(outcomes.right.mean())
    for _ in range(draws):
        anew = outcomes.taken(rng.integers(outcomes.rows, size=outcomes.rows))
        population.add(intervals(anew, np.arange(n)), truth)
        rows.add(intervals(outcomes, rng.permutation(outcomes.rows)[:n]), truth)


@dataclass(frozen=True, eq=False)
class Study:
    """What came of one set, by the number of labels."""

    name: str
    population: dict[int, Tally]
    rows: dict[int, Tally]

    @classmethod
    def of(cls, name: str, root: Path, most: int, draws: int) -> Study:
        study = cls(name, defaultdict(Tally), defaultdict(Tally))
        for fold in folds(name, root, most):
            for outcomes in measured(fold):
                for n in LABELLED:
                    draw(outcomes, n, draws, study.population[n], study.rows[n])
        return study


def real_table(studies: Sequence[Study], title: str) -> None:
    """Print coverage and width by the number of labels, then coverage by set."""
    print(f"\n{title}: how often intervals of 95 % hold the accuracy, and their width in points\n")
    print("| labels | " + " | ".join(f"{kind}: population | rows | width" for kind in KINDS) + " |")
    print("| ---: |" + " ---: |" * 9)
    for n in LABELLED:
        population = Tally.together([study.population[n] for study in studies])
        rows = Tally.together([study.rows[n] for study in studies])
        cells = [
            f"{population.covered(kind)} | {rows.covered(kind)} | {population.width(kind)}"
            for kind in KINDS
        ]
        print(f"| {n} | {' | '.join(cells)} |")
    print(f"\n{title}: coverage of the population by set, powered (exact)\n")
    print("| set | " + " | ".join(str(n) for n in LABELLED) + " |")
    print("| --- |" + " ---: |" * len(LABELLED))
    for study in studies:
        tallies = [study.population[n] for n in LABELLED]
        cells = [f"{one.covered('powered')} ({one.covered('exact')})" for one in tallies]
        print(f"| {study.name} | {' | '.join(cells)} |")


def simulated(accuracy: float, telling: float, temperature: float, rows: int, rng) -> Outcomes:
    """Rows whose log odds of being right are normal; the head's confidences are too sure of them.

    ``telling`` is the deviation of the log odds, 0 where confidences say nothing.
    """
    grid = telling * np.random.default_rng(0).standard_normal(4000)
    low, high = -20.0, 20.0
    for _ in range(50):
        centre = 0.5 * (low + high)
        low, high = (centre, high) if expit(centre + grid).mean() < accuracy else (low, centre)
    odds = centre + telling * rng.standard_normal(rows)
    right = rng.random(rows) < expit(odds)
    shown = odds if telling else centre + rng.standard_normal(rows)
    return Outcomes(right.astype(float), np.maximum(expit(shown / temperature), 0.1))


def simulation_table(draws: int) -> None:
    """Print coverage and width where the truth is known."""
    print(f"\nsimulation, 500 rows, {draws} draws: coverage and width in points\n")
    print("| accuracy | confidences | labels | " + " | ".join(f"{k} | width" for k in KINDS) + " |")
    print("| ---: | --- | ---: |" + " ---: |" * 6)
    scenes = {
        "say nothing": (0.0, 1.0),
        "calibrated": (2.0, 1.0),
        "far too sure": (2.0, 0.2),
        "tell nearly all": (8.0, 2.0),
    }
    overall: dict[int, Tally] = defaultdict(Tally)
    for accuracy in (0.6, 0.8, 0.9, 0.95):
        for words, (telling, temperature) in scenes.items():
            for n in LABELLED:
                rng = np.random.default_rng(n)
                tally = Tally()
                for _ in range(draws):
                    outcomes = simulated(accuracy, telling, temperature, 500, rng)
                    found = intervals(outcomes, np.arange(n))
                    tally.add(found, accuracy)
                    overall[n].add(found, accuracy)
                cells = " | ".join(f"{tally.covered(k)} | {tally.width(k)}" for k in KINDS)
                print(f"| {100 * accuracy:.0f} | {words} | {n} | {cells} |", flush=True)
    for n, tally in overall.items():
        cells = " | ".join(f"{tally.covered(k)} | {tally.width(k)}" for k in KINDS)
        print(f"| **all** | | {n} | {cells} |")


def main() -> None:
    """Simulate, measure, and print tables by half."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--domains", type=int, default=5)
    parser.add_argument("--draws", type=int, default=100)
    args = parser.parse_args()
    unknown = set(args.sets.split(",")) - set(LOADERS) - {""}
    if unknown:
        parser.error(f"no set is called {min(unknown)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulation_table(args.draws)
        for title, decided in (("prior chosen on", True), ("not chosen on", False)):
            names = [n for n in args.sets.split(",") if n and (n in DECIDED_ON) == decided]
            root = data_root(args.data) if names else Path()
            studies = [Study.of(name, root, args.domains, args.draws) for name in names]
            if studies:
                real_table(studies, title)


if __name__ == "__main__":
    main()
