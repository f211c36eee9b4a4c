"""Time of the whole PACS table beside the same work as a plain loop of scikit-learn fits.

    python benchmarks/table.py FOLDER [--trials 3] [--loop-trials 1] [--jobs 2]

FOLDER holds art.npz, cartoon.npz, photo.npz and sketch.npz, as `benchmarks/prepare.py` writes them.
The table is 6 heads × 4 held-out domains × 3 splits under the default protocol, the choice of l2
by leaving training domains out included. The loop does what one would script: `LogisticRegression`
(lbfgs, its default tolerance) on copies of the features, whitened for DARE, with the domain means
as k pseudo-samples. GroupDRO is ten rounds of refits with exponentiated weights. scikit-learn has
nothing like IRM, so the bench's own time for it is added to the loop's. Both have all cores: the
bench as jobs, the loop as BLAS threads. The loop's time is that of ``--loop-trials`` splits, times
as many as the bench had.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from skdare import DAREClassifier
from skdare.bench import Settings, bench_plan, run
from skdare.datasets import DomainData, read

HEADS = ("erm", "reweighted", "groupdro", "irm", "dare", "adapted")
DOMAINS = ("art", "cartoon", "photo", "sketch")
L2, SHRINKAGE = Settings().l2_grid, DAREClassifier().shrinkage
ROUNDS, STEP = 10, 1.0


def by_bench(tables: dict[str, DomainData], trials: int, jobs: int) -> tuple[float, float, dict]:
    """Seconds of the whole run, seconds of IRM in it, and mean accuracy by head."""
    begin = time.perf_counter()
    plan = bench_plan(tables, name="pacs", trials=trials, extras=[], heads=HEADS)
    records = list(run(plan, jobs=jobs))
    seconds = time.perf_counter() - begin
    failed = [record.reason for record in records if record.status != "ok"]
    if failed:
        raise SystemExit(failed[0])
    heads = dict.fromkeys(record.head for record in records)
    means = {h: np.mean([r.score for r in records if r.head == h]) for h in heads}
    # Side by side, a trial's seconds pass on one of `jobs` cores.
    irm = sum(record.seconds for record in records if record.head == "irm") / jobs
    return seconds, irm, means


def logistic(X, y, l2: float, weight=None, intercept: bool = True) -> LogisticRegression:
    """The common ridge, in scikit-learn's unit."""
    C = 1.0 / (l2 * len(y) * X.var(axis=0).mean())
    head = LogisticRegression(C=C, max_iter=1000, fit_intercept=intercept)
    return head.fit(X, y, sample_weight=weight)


def chosen_l2(X, y, domains) -> float:
    """The strength with the best mean accuracy over training domains left out."""
    means = []
    for l2 in L2:
        left_out = [domains == e for e in np.unique(domains)]
        means.append(np.mean([logistic(X[~e], y[~e], l2).score(X[e], y[e]) for e in left_out]))
    return L2[int(np.argmax(means))]


def equal_weights(domains: np.ndarray, shares: dict) -> np.ndarray:
    """Row weights of mean one in which a domain has the given share."""
    weight = np.empty(len(domains))
    for e, share in shares.items():
        weight[domains == e] = share * len(domains) / np.sum(domains == e)
    return weight


def worst_domain(X, y, domains, l2: float) -> LogisticRegression:
    """GroupDRO: refits with weights that grow with each domain's loss."""
    shares = {e: 1.0 / len(np.unique(domains)) for e in np.unique(domains)}
    for _ in range(ROUNDS):
        head = logistic(X, y, l2, equal_weights(domains, shares))
        codes = np.searchsorted(head.classes_, y)
        losses = -head.predict_log_proba(X)[np.arange(len(y)), codes]
        grown = {e: q * np.exp(STEP * losses[domains == e].mean()) for e, q in shares.items()}
        shares = {e: q / sum(grown.values()) for e, q in grown.items()}
    return head


def whitener(X: np.ndarray) -> np.ndarray:
    """Symmetric inverse root of the shrunk second moment."""
    S = X.T.astype(np.float64) @ X / len(X)
    S = (1 - SHRINKAGE) * S + SHRINKAGE * np.trace(S) / len(S) * np.eye(len(S))
    values, vectors = np.linalg.eigh(S)
    return (vectors * values**-0.5) @ vectors.T


def adjusted(X, y, domains, l2: float, W: dict, penalty: bool) -> LogisticRegression:
    """DARE on whitened copies; the mean rows are k pseudo-samples a domain."""
    n, E = len(y), len(W)
    Z = np.concatenate([X[domains == e] @ W[e] for e in W])
    T = np.concatenate([y[domains == e] for e in W])
    weight = equal_weights(
        np.concatenate([domains[domains == e] for e in W]), dict.fromkeys(W, 1 / E)
    )
    if penalty:
        classes = np.unique(y)
        means = np.stack([X[domains == e].mean(axis=0) @ W[e] for e in W])
        Z = np.concatenate([Z, np.repeat(means, len(classes), axis=0)])
        T = np.concatenate([T, np.tile(classes, E)])
        weight = np.concatenate([weight, np.full(E * len(classes), n / (E * len(classes)))])
    return logistic(Z, T, l2, weight, intercept=not penalty)


def by_loop(tables: dict[str, DomainData], trials: int) -> tuple[float, dict]:
    """Seconds, and mean accuracy by head."""
    begin, scores = time.perf_counter(), []
    for trial in range(trials):
        for held_out, table in tables.items():
            aside = table.split
            if trial:
                aside = np.random.default_rng(trial).random(len(table.y)) < 0.2
            new = table.domains == held_out
            train = ~new & ~aside
            X, y, domains = table.X[train], table.y[train], table.domains[train]
            X_new, y_new = table.X[new], table.y[new]
            l2 = chosen_l2(X, y, domains)
            seen = np.unique(domains)
            even = equal_weights(domains, dict.fromkeys(seen, 1 / len(seen)))
            W = {e: whitener(X[domains == e]) for e in seen}
            mean, own = sum(W.values()) / len(W), whitener(table.X[new & ~aside])
            scores.append(
                {
                    "erm": logistic(X, y, l2).score(X_new, y_new),
                    "reweighted": logistic(X, y, l2, even).score(X_new, y_new),
                    "groupdro": worst_domain(X, y, domains, l2).score(X_new, y_new),
                    "dare": adjusted(X, y, domains, l2, W, True).score(X_new @ mean, y_new),
                    "adapted": adjusted(X, y, domains, l2, W, False).score(X_new @ own, y_new),
                }
            )
    means = {head: np.mean([row[head] for row in scores]) for head in scores[0]}
    return time.perf_counter() - begin, means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--loop-trials", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    tables = {name: read(given.folder / f"{name}.npz") for name in DOMAINS}
    ours, irm, means = by_bench(tables, given.trials, given.jobs)
    shown = {h: round(100 * float(m), 1) for h, m in means.items()}
    print(f"skdare bench: {ours:.0f} s", shown, flush=True)
    theirs, means = by_loop(tables, given.loop_trials)
    theirs = theirs * given.trials / given.loop_trials + irm
    shown = {h: round(100 * float(m), 1) for h, m in means.items()}
    print(f"loop, IRM as in the bench: {theirs:.0f} s", shown)
    print(f"ratio: {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
