"""Adaptation that fits again for every new domain, beside heads that do not: accuracy and cost.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/uda.py
        [--data FOLDER] [--sets pacs,heart,…] [--domains 3] [--out uda.jsonl]

``pip install skada`` beside skdare adds LinOT and JDOT. Of each set up to three domains are held
out, and every method sees the same rows of the others, prepared by them, and those of the new
domain without labels. Ridge and then option of a method are chosen by leaving out up to three
training domains, and are also tried at their defaults. Time is the processor's with one
thread. Our own rules were chosen on the sets of `DECIDED_ON`; the others are reported apart. A run
goes on where an earlier one stopped.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from evidence_choice import DECIDED_ON
from real_data import LOADERS, Fold, data_root
from resumed import resumed
from tables import average, percent, table, unique
from uda_methods import ERM, Method, Training, available

SETS = (
    "fcon",
    "har",
    "music",
    "pacs",
    "support2",
    "vowel",
    "gas",
    "heart",
    "office",
    "ravdess",
    "twin-gas",
    "wisdm",
)
# The default first.
RIDGES = (1e-2, 1e-3, 1e-1)
LEFT_OUT = 3
# One call of it takes half a minute there, and a choice four.
NOT_CHOSEN = (("pacs", "JDOT (skada)"),)
DEFAULT = "default"
CHOSEN = "chosen"
BEST_RIVAL = "of these, the best by leaving out"
SERVED = 100
TRACED = "pacs"
PACKAGES = ("scikit-learn", "skada", "POT", "numpy")
# Quicker than this, the median of three calls counts; slower, one call is enough.
SOON = 1.0
MB = 1e6


@dataclass(frozen=True)
class Cost:
    """What a call gave, its seconds, and the most memory that it held besides."""

    result: Any
    seconds: float
    memory: float


def cost_of(call: Callable[[], Any]) -> Cost:
    """Run a call for its memory, and again for its time, which tracing of memory makes longer."""
    tracemalloc.start()
    result, traced = timed(call)
    _, memory = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    repeats = 3 if traced < SOON else 1
    seconds = statistics.median(timed(call)[1] for _ in range(repeats))
    return Cost(result, seconds, memory)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and how many seconds of the processor it took."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


@dataclass(frozen=True, eq=False)
class Place:
    """A domain held out, its rows as stored and prepared, and what methods learnt of the others."""

    stored: Fold
    prepared: Fold
    learnt: dict = field(default_factory=dict)

    @classmethod
    def of(cls, fold: Fold) -> Place:
        """With rows prepared by the training rows."""
        return cls(fold, fold.prepared())

    def rows(self, method: Method) -> Fold:
        """The rows that a method takes."""
        return self.stored if method.prepares else self.prepared

    def learn(self, method: Method, l2: float) -> tuple[Any, float]:
        """What a method learns, and in how many seconds.

        Methods that learn the same share it, and so do ridges that are used in `serve` only.
        """
        key = method.learn, None if method.keeps_rows else l2
        if key not in self.learnt:
            fold = self.rows(method)
            train = fold.train
            training = Training(train.X, train.y, train.domains, l2, fold.preparation)
            self.learnt[key] = timed(lambda: method.learn(training))
        state, seconds = self.learnt[key]
        return (replace(state, l2=l2) if method.keeps_rows else state), seconds

    def score(self, method: Method, labels: np.ndarray) -> float:
        """The share of right labels."""
        return float(np.mean(labels == self.rows(method).test.y))


@dataclass(frozen=True)
class Choice:
    """A ridge and an option, how well they did on domains left out, and the seconds it took."""

    l2: float
    option: Any
    rehearsed: float | None = None
    seconds: float = 0.0


def choose(method: Method, places: Sequence[Place]) -> Choice:
    """Ridge and option of most accuracy on training domains left out; of equals the default.

    The ridge first, with the default option, and then the option.
    """
    learnt_for = RIDGES[:1] if method.keeps_rows else RIDGES
    seconds = sum(place.learn(method, l2)[1] for place in places for l2 in learnt_for)
    best = best_of([Choice(l2, method.options[0]) for l2 in RIDGES], method, places)
    seconds += best.seconds
    others = [replace(best, option=option) for option in method.options[1:]]
    if others:
        other = best_of(others, method, places)
        seconds += other.seconds
        best = other if other.rehearsed > best.rehearsed else best
    return replace(best, seconds=seconds)


def best_of(choices: Sequence[Choice], method: Method, places: Sequence[Place]) -> Choice:
    """The best of some choices, with its score and the seconds of all, learning not counted."""
    scores = np.zeros((len(places), len(choices)))
    seconds = 0.0
    for i, place in enumerate(places):
        for j, choice in enumerate(choices):
            state, _ = place.learn(method, choice.l2)
            labels, taken = timed(lambda s=state, p=place, c=choice: serve(method, s, p, c))
            seconds += taken
            scores[i, j] = place.score(method, labels)
    means = scores.mean(axis=0)
    best = int(means.argmax())
    return replace(choices[best], rehearsed=float(means[best]), seconds=seconds)


def serve(method: Method, state: Any, place: Place, choice: Choice) -> np.ndarray:
    """Labels of the domain held out."""
    return method.serve(state, place.rows(method).test.X, choice.option)


def measure(fold: Fold) -> Iterator[dict]:
    """A record for each method, with its options by default and chosen."""
    place = Place.of(fold)
    inner = [Place.of(left_out) for left_out in training_folds(fold)]
    for method in available():
        default = Choice(RIDGES[0], method.options[0])
        # Our choosing heads choose within `learn`, and have no other default.
        fixed = method.prepares or (fold.name, method.name) in NOT_CHOSEN
        chosen = default if fixed else choose(method, inner)
        versions = {CHOSEN: chosen} if method.prepares else {CHOSEN: chosen, DEFAULT: default}
        costs: dict[tuple, Cost] = {}
        for name, choice in versions.items():
            state, learning = place.learn(method, choice.l2)
            key = choice.l2, choice.option
            if key not in costs:
                costs[key] = cost_of(lambda m=method, s=state, c=choice: serve(m, s, place, c))
            cost = costs[key]
            yield {
                "set": fold.name,
                "held_out": fold.held_out,
                "method": method.name,
                "version": name,
                "l2": choice.l2,
                "option": choice.option,
                "keeps_rows": method.keeps_rows,
                "ours": method.ours,
                "rehearsed": choice.rehearsed,
                "score": place.score(method, cost.result),
                "choosing": choice.seconds,
                "learning": learning,
                "serving": cost.seconds,
                "memory": cost.memory / MB,
                "kept": len(pickle.dumps(state)) / MB,
                "shape": [*fold.train.X.shape, len(fold.test.y)],
            }


def training_folds(fold: Fold) -> list[Fold]:
    """Folds in which a training domain is the new one; of many domains three, evenly spread."""
    train = fold.train
    labels = np.unique(train.domains)
    numbers = np.unique(np.linspace(0, len(labels) - 1, LEFT_OUT).round().astype(int))
    kept = [train.domains != labels[number] for number in numbers]
    return [replace(fold, train=train[rows], test=train[~rows]) for rows in kept]


def held_out_folds(name: str, root: Path, most: int) -> list[Fold]:
    """Folds of a set, of many domains some; all but PACS' features are standardised."""
    sets = [
        replace(data, standardize=data.standardize is not False) for data in LOADERS[name](root)
    ]
    pairs = [(data, domain) for data in sets for domain in data.held_out or np.unique(data.domains)]
    numbers = np.unique(np.linspace(0, len(pairs) - 1, most).round().astype(int))
    return [data.fold(domain) for data, domain in (pairs[number] for number in numbers)]


def with_best_rival(records: Sequence[dict]) -> list[dict]:
    """Records of chosen options, and of the rival that did best on the domains left out.

    That is what choosing between others' methods would come to: its choice costs that of all.
    """
    chosen = [r for r in records if r["version"] == CHOSEN]
    rivals: dict[tuple, list[dict]] = {}
    for record in chosen:
        if record["rehearsed"] is not None and not record["ours"]:
            rivals.setdefault((record["set"], record["held_out"]), []).append(record)
    best = [
        max(group, key=lambda r: r["rehearsed"])
        | {
            "method": BEST_RIVAL,
            "choosing": sum(r["choosing"] for r in group),
            "keeps_rows": any(r["keeps_rows"] for r in group),
        }
        for group in rivals.values()
    ]
    first = [r for r in chosen if not r["ours"]]
    return [*first, *best, *(r for r in chosen if r["ours"])]


def accuracy(chosen: Sequence[dict]) -> str:
    """Mean accuracy on each set, over sets, and domains won and lost against ERM."""
    means = average(chosen, "method", "set")
    sets = unique(chosen, "set")
    erm = {(r["set"], r["held_out"]): r["score"] for r in chosen if r["method"] == ERM}
    rows = []
    for method in unique(chosen, "method"):
        scores = [means[method, name] for name in sets]
        gaps = [r["score"] - erm[r["set"], r["held_out"]] for r in chosen if r["method"] == method]
        won, lost = (sum(sign * gap > 0.01 for gap in gaps) for sign in (1, -1))
        cells = [percent(score) for score in (*scores, np.mean(scores))]
        rows.append([method, *cells, f"{won} / {lost} of {len(gaps)}"])
    return table(["method", *sets, "mean", "won / lost"], rows)


def defaults(records: Sequence[dict]) -> str:
    """Mean over sets by half, with options at their defaults and chosen."""
    rows = []
    for method in unique(records, "method"):
        cells = []
        for decided in (True, False):
            for name in (DEFAULT, CHOSEN):
                part = [
                    r
                    for r in records
                    if (r["method"], r["version"], r["set"] in DECIDED_ON)
                    == (method, name, decided)
                ]
                by_set = average(part, "set")
                cells.append(percent(np.mean(list(by_set.values()))) if by_set else "–")
        rows.append([method, *cells])
    halves = [f"{half}, {name}" for half in ("chosen on", "reported") for name in (DEFAULT, CHOSEN)]
    return table(["method", *halves], rows)


def hundredth(records: Sequence[dict]) -> str:
    """Seconds until a hundred domains are served, all that is done once included."""
    sets = unique(records, "set")
    whole = [r | {"total": once(r) + SERVED * r["serving"]} for r in records]
    totals = average(whole, "method", "set", value="total")
    rows = []
    for method in unique(records, "method"):
        keeps = next(r["keeps_rows"] for r in records if r["method"] == method)
        cells = [figure(totals[method, name]) for name in sets]
        rows.append([method, "yes" if keeps else "no", *cells])
    return table(["method", "keeps training rows", *sets], rows)


def once(record: dict) -> float:
    """Seconds of all that is done before the first new domain."""
    return record["choosing"] + record["learning"]


def trace(records: Sequence[dict]) -> str:
    """What a new domain costs on one set."""
    rows = []
    for method in unique(records, "method"):
        own = [r for r in records if r["method"] == method]
        mean = {
            key: float(np.mean([r[key] for r in own]))
            for key in ("choosing", "learning", "serving", "memory", "kept")
        }
        rows.append(
            [
                method,
                figure(mean["choosing"]),
                figure(mean["learning"]),
                figure(1000 * mean["serving"]),
                figure(mean["memory"]),
                figure(mean["kept"]),
                figure(once(mean) + mean["serving"]),
                figure(once(mean) + SERVED * mean["serving"]),
            ]
        )
    header = ["method", "choice, s", "fit, s", "a new domain, ms", "memory, MB", "kept, MB"]
    return table([*header, "1 domain, s", f"{SERVED} domains, s"], rows)


def figure(value: float) -> str:
    """A number as tables show it, with thousands apart."""
    digits = 0 if value >= 10 else 1 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def report(records: Sequence[dict]) -> None:
    """Print all tables."""
    print("With " + ", ".join(versions()) + "; one thread.\n")
    chosen = with_best_rival(records)
    for title, decided in (("our rules were chosen on", True), ("are only reported", False)):
        half = [r for r in chosen if (r["set"] in DECIDED_ON) == decided]
        if half:
            print(f"## Accuracy (%) on the sets that {title}\n\n{accuracy(half)}")
    print(f"## Mean accuracy (%) by default and chosen\n\n{defaults(records)}")
    print(f"## Seconds until {SERVED} new domains are served\n\n{hundredth(chosen)}")
    traced = [r for r in chosen if r["set"] == TRACED]
    if traced:
        n, d, new = np.mean([r["shape"] for r in traced], axis=0)
        print(f"## A new domain of {new:,.0f} rows on {TRACED}, {n:,.0f} × {d:,.0f}\n")
        print(trace(traced))


def versions() -> list[str]:
    """Packages and their versions, as far as they are installed."""
    named = []
    for package in PACKAGES:
        try:
            named.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return named


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--domains", type=int, default=3)
    parser.add_argument("--out", default="uda.jsonl")
    args = parser.parse_args()
    names = args.sets.split(",")
    if not set(names) <= set(SETS):
        parser.error(f"--sets takes some of {','.join(SETS)}, the sets with classes")
    root = data_root(args.data)
    held_out = (fold for name in names for fold in held_out_folds(name, root, args.domains))
    done = resumed(args.out, held_out, measure)
    report(sorted(done, key=lambda record: SETS.index(record["set"])))


if __name__ == "__main__":
    main()
