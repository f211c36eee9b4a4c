"""One measurement by this source tree, and the same by another one in the same run.

A benchmark that calls `measured` runs itself in a process for each source tree (`--beside SRC`,
the `src` folder of another checkout), and prints ratios: times of different runs do not compare.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1] / "src"


def arguments(doc: str) -> argparse.ArgumentParser:
    """Options that every benchmark has."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--beside", type=Path, help="src folder of another checkout, to compare")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", default="1", help="of BLAS")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser


def measured(script: str, case: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What a child process measures of a case, for this source tree and the other one."""
    results = []
    for source in filter(None, (HERE, options.beside)):
        environment = os.environ | {"PYTHONPATH": str(Path(source).resolve())}
        for library in ("OPENBLAS", "OMP", "MKL"):
            environment[f"{library}_NUM_THREADS"] = options.threads
        command = [sys.executable, script, "--child", case, "--runs", str(options.runs)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{case} failed with {source}\n{done.stderr}")
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return results


def best(
    action: Callable[[], Any], runs: int, clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """The shortest of some runs, after one that does not count, and what it returned."""
    action()
    times = []
    for _ in range(runs):
        start = clock()
        result = action()
        times.append(clock() - start)
    return min(times), result


def made(n: int, d: int, k: int, n_domains: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rectified features with a decaying spectrum; every domain scales and moves them."""
    rng = np.random.default_rng(0)
    y, domains = rng.integers(k, size=n), np.sort(rng.integers(n_domains, size=n))
    rank = min(d, 128)
    centres = 0.6 * rng.normal(size=(k, rank))
    load = rng.normal(size=(rank, d)) / np.sqrt(np.arange(1, rank + 1))[:, None]
    X = np.empty((n, d), dtype=np.float32)
    for e in range(n_domains):
        rows = np.flatnonzero(domains == e)
        own = load * rng.uniform(0.6, 1.4, size=(rank, 1)) * rng.uniform(0.7, 1.3, size=d)
        latent = centres[y[rows]] + rng.normal(size=(len(rows), rank))
        X[rows] = np.maximum(latent @ own + 0.3 * rng.normal(size=(len(rows), d)), 0.0)
    return X, y, domains


def ratio(other: float | None, ours: float | None) -> str:
    """Above one: ours is quicker."""
    return "missed" if other is None or ours is None else f"{other / ours:.2f} ×"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
