"""Fits to many small domains: time and memory as their number grows, and what pooling is worth.

    python benchmarks/domains.py size [--domains 100 1000 10000]
    python benchmarks/domains.py accuracy [--domains 1000]

``size`` fits heads to domains of 100 rows with 512 float32 features and 10 classes, each in a
process of its own; memory is what the process held at most beyond what it held before the fit.
``accuracy`` draws such domains, and others with 64 features, from a model in which every domain
stretches some directions in its own way, and scores heads on 100 domains not trained on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scale import GIGABYTE, Peak, held
from skdare import DAREClassifier, ERMClassifier, LabelShiftWarning

ROWS, FEATURES, CLASSES = 100, 512, 10
STRETCHED, HELD_OUT = 20, 100
HEADS = {
    "ERM": ERMClassifier(),
    "scaled": DAREClassifier(adaptation=None),
    "pooled": DAREClassifier(shrinkage_target="pooled", adaptation=None),
    "pooled, with adaptation": DAREClassifier(shrinkage_target="pooled"),
}


@dataclass(frozen=True, eq=False)
class Model:
    """Latents z, labels that depend on them, and rows ``(z + U (s_e - 1) Uᵀ z) A``.

    A is the same everywhere and makes a decaying spectrum; s_e stretches ``STRETCHED`` directions
    U by factors from 1/4 to 4, in each domain by its own.
    """

    A: np.ndarray
    U: np.ndarray
    B: np.ndarray

    @classmethod
    def drawn(cls, features: int = FEATURES, *, correlated: bool = True) -> Model:
        """With a decaying spectrum, or with features of equal variance."""
        rng = np.random.default_rng(0)
        turn = np.linalg.qr(rng.normal(size=(features, features)))[0]
        A = turn * (np.arange(1, features + 1) ** -0.5 if correlated else 1.0)
        U = np.linalg.qr(rng.normal(size=(features, STRETCHED)))[0]
        # Half of what the labels depend on lies in the stretched directions.
        B = rng.normal(size=(features, CLASSES)) / features**0.5
        B += U @ rng.normal(size=(STRETCHED, CLASSES)) / STRETCHED**0.5
        return cls(*(part.astype(np.float32) for part in (A, U, 2.0 * B)))

    def rows(self, domains: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X, y and domains, one domain after the other."""
        rng = np.random.default_rng(seed)
        features = len(self.A)
        X = np.empty((domains * ROWS, features), dtype=np.float32)
        y = np.empty(len(X), dtype=np.int64)
        for e in range(domains):
            place = slice(e * ROWS, (e + 1) * ROWS)
            z = rng.standard_normal((ROWS, features), dtype=np.float32)
            y[place] = (z @ self.B + rng.gumbel(size=(ROWS, CLASSES))).argmax(axis=1)
            s = np.exp(rng.uniform(-1.4, 1.4, STRETCHED)).astype(np.float32)
            X[place] = (z + ((z @ self.U) * (s - 1.0)) @ self.U.T) @ self.A
        return X, y, np.repeat(np.arange(domains), ROWS)


def fit(name: str, domains: int) -> dict[str, float]:
    """One fit in this process."""
    X, y, labels = Model.drawn().rows(domains, 1)
    before, peak, begin = held(), Peak(), time.perf_counter()
    head = HEADS[name].fit(X, y, domains=labels)
    took = time.perf_counter() - begin
    most = (peak.end() - before) / X.nbytes
    return {"seconds": took, "evaluations": head.solution_.n_evaluations, "memory": most}


def child(name: str, domains: int) -> dict[str, float]:
    """A fit in a process of its own."""
    run = [sys.executable, __file__, "fit", "--head", name, "--domains", str(domains)]
    return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


def size(counts: list[int]) -> None:
    """Print time and memory by number of domains."""
    print("| domains | X | head | seconds | / ERM | evaluations | memory / X |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for domains in counts:
        bytes_of_x, erm = 4 * domains * ROWS * FEATURES, 0.0
        for name in HEADS:
            r = child(name, domains)
            erm = erm or r["seconds"]
            print(
                f"| {domains:,} | {bytes_of_x / GIGABYTE:.2f} GB | {name} | {r['seconds']:.1f} | "
                f"{r['seconds'] / erm:.1f} × | {r['evaluations']} | {r['memory']:.2f} |",
                flush=True,
            )


def candidates() -> Iterator[tuple[str, object]]:
    """Heads to compare."""
    yield "ERM", ERMClassifier()
    for target in ("scaled", "pooled"):
        for shrinkage in (0.1, 0.3, 0.5, 0.7, 0.9):
            head = DAREClassifier(shrinkage=shrinkage, shrinkage_target=target)
            yield f"{target}, ρ {shrinkage}", head


def accuracy(domains: int) -> None:
    """Print mean accuracy on new domains, as they are and adapted by their 100 rows."""
    warnings.simplefilter("ignore", LabelShiftWarning)
    cases = {
        f"{d} features, {'a decaying spectrum' if c else 'equal variances'}": Model.drawn(
            d, correlated=c
        )
        for d in (FEATURES, 64)
        for c in (True, False)
    }
    data = {
        name: (model.rows(domains, 1), model.rows(HELD_OUT, 2)) for name, model in cases.items()
    }
    print("Accuracy on new domains / after adapt\n\n| head | " + " | ".join(data) + " |")
    print("| --- |" + " ---: |" * len(data))
    for name, head in candidates():
        cells = [
            _scored(head.fit(X, y, domains=labels), *new) for (X, y, labels), new in data.values()
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _scored(head, X: np.ndarray, y: np.ndarray, domains: np.ndarray) -> str:
    """Mean over domains."""
    parts = [domains == e for e in range(HELD_OUT)]
    as_is = np.mean([head.score(X[part], y[part]) for part in parts])
    if not hasattr(head, "adapt"):
        return f"{as_is:.3f}"
    adapted = np.mean([head.adapt(X[part]).score(X[part], y[part]) for part in parts])
    return f"{as_is:.3f} / {adapted:.3f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["size", "accuracy", "fit"])
    parser.add_argument("--domains", type=int, nargs="+")
    parser.add_argument("--head", choices=HEADS)
    args = parser.parse_args()
    if args.part == "fit":
        print(json.dumps(fit(args.head, args.domains[0])))
    elif args.part == "size":
        size(args.domains or [100, 1000, 10_000])
    else:
        accuracy((args.domains or [1000])[0])


if __name__ == "__main__":
    main()
