"""Time of a search beside the same grid in scikit-learn.

    python benchmarks/search.py --data DIR                       # sets that take seconds
    python benchmarks/search.py --data DIR --sets har pacs
    python benchmarks/search.py --busy                           # no data needed

The grid is the ridges of plain logistic or ridge regression, every domain left out in turn:
`GridSearchCV(LeaveOneGroupOut)` beside ``DARE…CV(strategies=("erm",), cv=E)``, both with the
final fit. Then the whole ladder, as by default. One BLAS thread; both in one process, in turn;
medians of ``--runs``, in seconds of the processor, which others on the machine change little.

``--busy`` is about those others: scikit-learn's digits in blocks as domains, two BLAS threads, and
other processes that keep all processors busy. Small problems take one thread of their own accord;
beside them, the same with the threads that are set. Seconds of the clock, for that is what waiting
takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

if __name__ == "__main__":
    for name in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = "1"

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
from threadpoolctl import threadpool_limits

import skdare
from real_data import LOADERS, data_root, standardized_folds
from skdare.arrays import blas_threads
from tables import table

L2 = (1e-3, 1e-2, 1e-1)
QUICK = ("vowel", "ravdess", "twin-gas", "music", "gas", "wisdm", "turbine")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the data sets (default: $SKDARE_DATA)")
    parser.add_argument("--sets", nargs="+", choices=LOADERS, default=list(QUICK))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--busy", action="store_true", help="beside other processes, on digits")
    parser.add_argument("--blocks", type=int, nargs="+", default=[5, 13], help="with --busy")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.busy:
        header = ["domains", "threads as set", "one thread", "ratio", "same choice"]
        print(table(header, [beside_others(blocks) for blocks in options.blocks]))
        return
    rows = []
    for name in options.sets:
        rows.append(measure(name, options))
        print(f"{name} done", flush=True)
    header = ["set", "rows x features, domains", "a fit", "GridSearchCV", "same grid", "ratio"]
    print(table([*header, "whole ladder", "in fits"], rows))


def measure(name: str, options: argparse.Namespace) -> list[str]:
    """One row: seconds of each, on the training rows of the first fold."""
    fold = standardized_folds(name, data_root(options.data))[0]
    X, y, domains = fold.train.X, fold.train.y, fold.train.domains
    E = len(np.unique(domains))
    task = "Regressor" if fold.task == "regression" else "Classifier"
    estimator, grid = _scikit_learn(fold.task, len(y))
    search = GridSearchCV(estimator, grid, cv=LeaveOneGroupOut())
    plain = getattr(skdare, f"ERM{task}")(tol=1e-4)
    same = getattr(skdare, f"DARE{task}CV")(strategies=("erm",), l2=L2, cv=max(2, E))
    ladder = getattr(skdare, f"DARE{task}CV")(l2=L2)
    runs = {
        "fit": lambda: plain.fit(X, y),
        "theirs": lambda: search.fit(X, y, groups=domains),
        "same": lambda: same.fit(X, y, domains=domains),
        "ladder": lambda: ladder.fit(X, y, domains=domains),
    }
    times: dict[str, list[float]] = {key: [] for key in runs}
    for _ in range(options.runs):
        for key, run in runs.items():
            times[key].append(_seconds(run))
    fit, theirs, ours, whole = (float(np.median(times[key])) for key in runs)
    return [
        name,
        f"{X.shape[0]} x {X.shape[1]}, {E}",
        f"{fit:.2f}",
        f"{theirs:.2f}",
        f"{ours:.2f}",
        f"{theirs / ours:.1f}",
        f"{whole:.2f}",
        f"{whole / fit:.0f}",
    ]


def beside_others(blocks: int) -> list[str]:
    """One row: seconds of a search with the threads that are set, and with one."""
    X, y = load_digits(return_X_y=True)
    domains = np.arange(len(y)) * blocks // len(y)
    seconds = {}
    choices = set()
    with _busy_processors(), threadpool_limits(2, user_api="blas"):
        for name, shared in (("set", 0), ("one", blas_threads._SHARED)):
            head = skdare.DAREClassifierCV(l2=L2)
            start = time.perf_counter()
            with patch.object(blas_threads, "_SHARED", shared):
                head.fit(X, y, domains=domains)
            seconds[name] = time.perf_counter() - start
            choices.add(head.choice_)
    return [
        str(blocks),
        f"{seconds['set']:.1f}",
        f"{seconds['one']:.1f}",
        f"{seconds['set'] / seconds['one']:.1f}",
        "yes" if len(choices) == 1 else "no",
    ]


@contextmanager
def _busy_processors() -> Iterator[None]:
    """As many processes as processors that do nothing but run."""
    command = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _scikit_learn(task: str, n: int) -> tuple[object, dict[str, list[float]]]:
    """The estimator with its defaults, and the same ridges in its units."""
    if task == "regression":
        return Ridge(), {"alpha": [l2 * n for l2 in L2]}
    return LogisticRegression(max_iter=1000), {"C": [1.0 / (l2 * n) for l2 in L2]}


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
