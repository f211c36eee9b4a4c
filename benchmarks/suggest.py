"""Are suggested rows worth labelling? Domains of the real sets, each as the new one.

    python benchmarks/suggest.py scores [--data FOLDER] [--sets twin-gas,heart,…] [--domains 4]
                                        [--splits 6] [--draws 5] [--labels adapt]
                                        [--out suggest.jsonl]
    python benchmarks/suggest.py time

``scores``: half of a held-out domain is never labelled, and the head is scored on it after some
rows of the other half were: suggested ones, as many random ones, and half as many again. With
``--labels correction`` labels are not taken by ``head.adapt(X, y)`` but by a plain logistic or
ridge regression on the rows, added to the scores of ``head.adapt(X)``: what the choice of rows is
worth to a model that knows nothing of ours. A run goes on where an earlier one stopped.

``time``: of suggestions among 100,000 rows of 768 features.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from diagnose import folds, training_rows
from evidence_choice import DECIDED_ON
from real_data import LOADERS, Fold, data_root
from resumed import resumed
from skdare import DAREClassifier, DAREClassifierCV, DARERegressorCV
from skdare.objective.losses import softmax

# Labels for each class; a regression counts as five classes.
MULTIPLES = (1, 2, 5, 10, 20)
NUMBERS_AS = 5
# Random rows are given so many times as many labels.
FACTOR = 1.5
# Of more rows some are drawn, which halves of thousands hardly gain from.
MOST_ROWS = 1200
PENALTY = 0.1


class Adapted:
    """Labels by ``head.adapt(X, y)``."""

    def __init__(self, head, X: np.ndarray, y: np.ndarray) -> None:
        self.head = head
        self.X = X
        self.y = y

    def predictions(self, labelled: np.ndarray) -> np.ndarray:
        """Of all rows, after some were labelled."""
        partial = np.full(len(self.y), None)
        partial[labelled] = self.y[labelled]
        # Few random labels may be of one class.
        force = len(np.unique(self.y[labelled])) < 2
        return self.head.adapt(self.X, partial, force=force).predict(self.X)


class Corrected:
    """Labels by scores F + Z A: those of the adapted head, and a penalised regression on rows.

    The rows Z have their mean squared norm as unit and a constant column, and the penalty
    ``PENALTY / 2 ‖A‖²`` stands beside the sum of the losses.
    """

    def __init__(self, head, X: np.ndarray, y: np.ndarray) -> None:
        self.head = head
        adapted = head.adapt(X)
        rows = np.asarray(head._inner_rows(X), dtype=np.float64)
        variances = [m.variances for m in head.moments_.values() if m.varies()]
        Z = (rows - rows.mean(axis=0)) / np.sqrt(np.mean(variances))
        Z = np.column_stack([Z, np.ones(len(Z))])
        self.Z = Z / np.sqrt(np.mean(np.sum(Z * Z, axis=1)))
        self.classes = getattr(head, "classes_", None)
        if self.classes is None:
            self.F = adapted.predict(X)[:, None]
            self.y = np.asarray(y, dtype=np.float64)
            return
        F = adapted.decision_function(X)
        self.F = np.column_stack([np.zeros(len(F)), F]) if F.ndim == 1 else F
        self.y = np.array([list(self.classes).index(label) for label in y])

    def predictions(self, labelled: np.ndarray) -> np.ndarray:
        """Of all rows, after some were labelled."""
        # Coordinates of the rows in the span of those that are labelled.
        K = self.Z[labelled] @ self.Z[labelled].T
        values, vectors = np.linalg.eigh(K)
        large = values > 1e-9 * values.max()
        Z = self.Z @ (self.Z[labelled].T @ (vectors[:, large] / np.sqrt(values[large])))
        F = self.F[labelled]
        if self.classes is None:
            residuals = self.y[labelled] - F[:, 0]
            noise = max(np.mean(residuals**2), 1e-12)
            inner = Z[labelled]
            gram = inner.T @ inner / noise + PENALTY * np.eye(inner.shape[1])
            return self.F[:, 0] + Z @ np.linalg.solve(gram, inner.T @ residuals / noise)
        A = _logistic(Z[labelled], F, self.y[labelled])
        return self.classes[(self.F + Z @ A).argmax(axis=1)]


LABELS = {"adapt": Adapted, "correction": Corrected}


def _logistic(Z: np.ndarray, F: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The A that minimises the sum of cross-entropies of F + Z A, and the penalty."""
    shape = (Z.shape[1], F.shape[1])
    T = np.eye(F.shape[1])[y]

    def value_and_gradient(a: np.ndarray) -> tuple[float, np.ndarray]:
        A = a.reshape(shape)
        P = softmax(F + Z @ A)
        loss = -np.sum(np.log(np.maximum(np.sum(P * T, axis=1), 1e-300)))
        return loss + PENALTY / 2 * np.sum(A * A), (Z.T @ (P - T) + PENALTY * A).ravel()

    start = np.zeros(shape).ravel()
    options = {"maxiter": 40, "gtol": 1e-3}
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(shape)


def fitted(fold: Fold):
    """The choosing head, fitted to the other domains."""
    train = training_rows(fold)
    head = DAREClassifierCV() if fold.task == "classification" else DARERegressorCV()
    head.set_params(preparation=fold.preparation)
    return head.fit(train.X, train.y, domains=train.domains)


def measure(head, X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> dict:
    """Mean scores after suggested, random, and more random labels, by labels for each class."""
    classes = getattr(head, "classes_", None)
    k = NUMBERS_AS if classes is None else len(classes)
    known = np.arange(len(y)) if classes is None else np.flatnonzero(np.isin(y, classes))
    scores: dict[int, list[list[float]]] = {}
    for split in range(options.splits):
        rows = np.random.default_rng(split).permutation(known)[:MOST_ROWS]
        half = len(rows) // 2
        multiples = [m for m in MULTIPLES if m * k < half]
        if multiples:
            trial = Trial(LABELS[options.labels](head, X[rows], y[rows]), y[rows], half, split)
            suggested = head.suggest(X[rows[:half]], max(multiples) * k)
            for m in multiples:
                n = m * k
                random = [trial.random(size, options.draws) for size in (n, round(FACTOR * n))]
                scores.setdefault(m, []).append([trial.score(suggested[:n]), *random])
    return {m: np.mean(own, axis=0).tolist() for m, own in scores.items()}


@dataclass(frozen=True, eq=False)
class Trial:
    """A domain in two halves: rows that may be labelled, then rows to score."""

    model: Adapted | Corrected
    y: np.ndarray
    half: int
    seed: int

    def score(self, labelled: np.ndarray) -> float:
        """Accuracy, or R² with -1 for anything below, after some rows were labelled."""
        predicted = self.model.predictions(labelled)[self.half :]
        y = self.y[self.half :]
        if isinstance(self.model.head, DAREClassifierCV):
            return float(np.mean(predicted == y))
        return max(-1.0, 1.0 - float(np.mean((y - predicted) ** 2) / np.var(y)))

    def random(self, n: int, draws: int) -> float:
        """Mean score after n random labels; NaN where there is nothing to choose."""
        if n >= self.half:
            return np.nan
        orders = [
            np.random.default_rng([self.seed, i]).permutation(self.half) for i in range(draws)
        ]
        return float(np.mean([self.score(order[:n]) for order in orders]))


def table(records: Sequence[dict], title: str) -> None:
    """Print what suggested rows gain over random ones, by set and over all."""
    names = list(dict.fromkeys(record["set"] for record in records))
    print(f"\n{title}\n")
    print("| set | domains |" + "".join(f" {m}k |" for m in MULTIPLES))
    print("| --- | ---: |" + " ---: |" * len(MULTIPLES))
    gains: dict[tuple[str, int], np.ndarray] = {}
    for name in names:
        own = [record for record in records if record["set"] == name]
        for m in MULTIPLES:
            scores = [r["scores"][str(m)] for r in own if str(m) in r["scores"]]
            if scores:
                chosen, alike, more = np.array(scores).T
                gains[name, m] = np.array([_mean(chosen - alike), _mean(chosen - more)])
        cells = [_cell(gains.get((name, m))) for m in MULTIPLES]
        print(f"| {name} | {len(own)} | {' | '.join(cells)} |")
    means = []
    for m in MULTIPLES:
        own_gains = [gains[name, m] for name in names if (name, m) in gains]
        means.append(_cell(np.array([_mean(column) for column in np.array(own_gains).T])))
    print(f"| **mean** | | {' | '.join(means)} |")


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.mean(known)) if len(known) else np.nan


def _cell(gain: np.ndarray | None) -> str:
    """Gain over as many random rows and over half as many again, in hundredths."""
    if gain is None or not len(gain):
        return ""
    return " / ".join("" if np.isnan(value) else f"{100 * value:+.1f}" for value in gain)


def scores_of(args: argparse.Namespace) -> None:
    """Measure, and print tables by half."""
    root = data_root(args.data)
    held_out = (fold for name in args.sets.split(",") for fold in folds(name, root, args.domains))

    def of_fold(fold: Fold) -> list[dict]:
        record = {"set": fold.name, "held_out": str(fold.held_out), "task": fold.task}
        return [record | {"scores": measure(fitted(fold), fold.test.X, fold.test.y, args)}]

    done = resumed(args.out, held_out, of_fold)
    print(
        "\nPoints of accuracy, or hundredths of R², that suggested rows gain over as many random "
        f"ones / over {FACTOR} times as many, after so many labels a class (of a regression, "
        f"{NUMBERS_AS})"
    )
    for task in ("classification", "regression"):
        for title, chosen in (("rules chosen on", True), ("not chosen on", False)):
            records = [r for r in done if r["task"] == task and (r["set"] in DECIDED_ON) == chosen]
            if records:
                table(records, f"{task}, {title}")


def time_of(args: argparse.Namespace) -> None:
    """Print seconds for several numbers of labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 3000)
    X = rng.standard_normal((3000, 768), dtype=np.float32)
    X[np.arange(3000), y] += 3.0
    head = DAREClassifier().fit(X, y, domains=np.arange(3000) % 3)
    new = rng.standard_normal((100_000, 768), dtype=np.float32)
    print("| rows | features | suggested | seconds |")
    print("| ---: | ---: | ---: | ---: |")
    for n in (20, 200, 2000):
        start = time.perf_counter()
        head.suggest(new, n)
        print(f"| 100,000 | 768 | {n:,} | {time.perf_counter() - start:.1f} |", flush=True)


def main() -> None:
    """Read the arguments, and run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(required=True)
    scores = parts.add_parser("scores")
    scores.add_argument("--data")
    scores.add_argument("--sets", default=",".join(LOADERS))
    scores.add_argument("--domains", type=int, default=4)
    scores.add_argument("--splits", type=int, default=6)
    scores.add_argument("--draws", type=int, default=5)
    scores.add_argument("--labels", choices=LABELS, default="adapt")
    scores.add_argument("--out", default="suggest.jsonl")
    scores.set_defaults(run=scores_of)
    parts.add_parser("time").set_defaults(run=time_of)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
