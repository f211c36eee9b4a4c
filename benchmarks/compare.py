"""Fit time and memory against scikit-learn and against the paper as one would script it.

    python benchmarks/compare.py                      # every row of the table, one BLAS thread
    python benchmarks/compare.py --only pacs --runs 5

Every fit of a row sees the same data and the same ridge, and runs to the same objective: a
reference optimum is computed first, and each method's tolerance is tightened until its own final
objective is within 1e-6 of it, relative. Times are medians of fits at that tolerance. Memory is
the peak of one fit in a process of its own, beyond X and the libraries: as a multiple of X, and of
one float64 (d, d) matrix a domain.
"""

from __future__ import annotations

import argparse
import os
import sys

if __name__ == "__main__":
    THREADS = "1"
    for flag, value in zip(sys.argv, [*sys.argv[1:], ""], strict=True):
        THREADS = value if flag == "--threads" else THREADS
    for name in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = THREADS

import ctypes
import math
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skdare import DAREClassifier, ERMClassifier
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import inverse_sqrt

L2 = 1e-2
RHO = 0.9
GOAL = 1e-6
TOLERANCES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7)


@dataclass(frozen=True, eq=False)
class Data:
    """One row of the table."""

    name: str
    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray


def synthetic(n: int, d: int, k: int, n_domains: int) -> Data:
    """ReLU features with a decaying spectrum, a map of its own in each domain."""
    rng = np.random.default_rng(0)
    y, domains = rng.integers(k, size=n), np.sort(rng.integers(n_domains, size=n))
    rank = min(d, 4 * max(k, 32))
    centres = rng.normal(size=(k, rank)) * 0.6
    load = rng.normal(size=(rank, d)) / np.sqrt(np.arange(1, rank + 1))[:, None]
    X = np.empty((n, d), dtype=np.float32)
    for e in range(n_domains):
        rows = np.flatnonzero(domains == e)
        own = load * rng.uniform(0.6, 1.4, size=(rank, 1)) @ np.diag(rng.uniform(0.7, 1.3, d))
        latent = centres[y[rows]] + rng.normal(size=(len(rows), rank))
        block = latent @ own + 0.3 * rng.normal(size=(len(rows), d)) + 0.2 * rng.normal(size=d)
        X[rows] = np.maximum(block, 0.0)
    return Data(f"{n // 1000}k x {d}, {k} classes", X, y, domains)


def pacs(folder: Path) -> Data:
    """The three training domains of the PACS features that hold out art."""
    with np.load(folder / "pacs_finetuned" / "q0.npz") as file:
        X, domains = (file["q"] * file["s"]).astype(np.float32), file["d"]
        y = file["y"]
    seen = domains != 0
    return Data("PACS, 8k x 1280, 7 classes", X[seen], y[seen], domains[seen])


SYNTHETIC = {
    "6k": lambda: synthetic(6400, 2048, 7, 3),
    "12k": lambda: synthetic(12000, 2048, 65, 4),
    "100k": lambda: synthetic(100_000, 512, 10, 6),
    "60k": lambda: synthetic(60_000, 1024, 2, 4),
}


def peak_memory(name: str, head: str, folder: Path) -> tuple[float, float]:
    """Peak of a fit in a process of its own, beyond what it held before: in X and in (d, d)."""
    command = [sys.executable, __file__, "--memory", head, "--only", name, "--data", str(folder)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    of_x, of_matrices = result.stdout.split()
    return float(of_x), float(of_matrices)


def measure_memory(data: Data, head: str) -> None:
    """Print the peak of one fit, as multiples of X and of a float64 (d, d) matrix a domain."""
    make = {"erm": ERMClassifier, "dare": lambda: DAREClassifier(adaptation=None)}[head]
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
    before = _status("VmRSS")
    make().fit(data.X, data.y, domains=data.domains)
    extra = 1024 * (_status("VmHWM") - before)
    matrices = 8 * data.X.shape[1] ** 2 * len(np.unique(data.domains))
    print(extra / data.X.nbytes, extra / matrices)


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


@dataclass(frozen=True)
class Timing:
    """Median time of a fit that reached the goal, and its distance from the optimum."""

    seconds: float
    gap: float


def time_to_goal(
    fit: Callable[[float], Any], objective: Callable[[Any], float], best: float, runs: int
) -> Timing | None:
    """Tighten the tolerance until the objective is within the goal, then time fits at it."""
    gaps: list[float] = []
    for tol in TOLERANCES:
        gap = objective(fit(tol)) / best - 1.0
        gaps.append(gap)
        if gaps[-3:] == [gap] * 3 and gap > GOAL:
            return None  # tightening no longer changes anything
        if gap <= GOAL:
            seconds = []
            for _ in range(runs):
                begin = time.perf_counter()
                fit(tol)
                seconds.append(time.perf_counter() - begin)
            return Timing(statistics.median(seconds), gap)
    return None


def log_loss(F: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log loss of each row, in float64."""
    if F.shape[1] == 1:
        return np.logaddexp(0.0, F[:, 0]) - y * F[:, 0]
    top = F.max(axis=1, keepdims=True)
    return np.log(np.exp(F - top).sum(axis=1)) + top[:, 0] - F[np.arange(len(y)), y]


def compare_erm(data: Data, runs: int) -> dict[str, Timing | None]:
    """ERMClassifier against two solvers of LogisticRegression."""
    # Our ridge acts in units of the mean feature variance.
    scale = float(data.X.var(axis=0, dtype=np.float64).mean())
    options = {"C": 1 / (len(data.y) * L2 * scale), "max_iter": 20_000}

    def ours(tol: float) -> ERMClassifier:
        head = ERMClassifier(l2=L2, tol=tol, max_iter=20_000)
        return head.fit(data.X, data.y, domains=data.domains)

    def theirs(solver: str) -> Callable[[float], LogisticRegression]:
        return lambda tol: LogisticRegression(solver=solver, tol=tol, **options).fit(data.X, data.y)

    def objective(model: Any) -> float:
        F = data.X.astype(np.float64) @ model.coef_.T.astype(np.float64) + model.intercept_
        return float(log_loss(F, data.y).mean() + 0.5 * L2 * scale * np.sum(model.coef_**2.0))

    best = objective(ours(3e-8))
    return {
        "skdare": time_to_goal(ours, objective, best, runs),
        "lbfgs": time_to_goal(theirs("lbfgs"), objective, best, runs),
        "newton-cg": time_to_goal(theirs("newton-cg"), objective, best, runs),
    }


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """The paper's empirical Lagrangian, written out in float64 over whitened copies."""

    Z: list[np.ndarray]
    y: list[np.ndarray]
    means: list[np.ndarray]
    k: int

    @classmethod
    def of(cls, data: Data) -> Lagrangian:
        """Whiten every domain by the shrunk raw second moment."""
        Z, y, means = [], [], []
        for e in np.unique(data.domains):
            X = data.X[data.domains == e].astype(np.float64)
            S = Moments.of(X).second_moment(centered=False)
            d = len(S)
            Z.append(X @ inverse_sqrt((1 - RHO) * S + RHO * np.trace(S) / d * np.eye(d)))
            y.append(data.y[data.domains == e])
            means.append(Z[-1].mean(axis=0))
        return cls(Z, y, means, int(data.y.max()) + 1)

    def __call__(self, B: np.ndarray) -> float:
        """Value at B, less the constant that the mean rows contribute at their best."""
        value = 0.5 * L2 * float(np.sum(B * B))
        for Z, y, mean in zip(self.Z, self.y, self.means, strict=True):
            F = (mean @ B)[None, :]
            uniform = np.mean([log_loss(F, np.array([c])) for c in range(self.k)])
            value += (log_loss(Z @ B, y).mean() + uniform - math.log(self.k)) / len(self.Z)
        return value


def script(data: Data, reached: Callable[[np.ndarray], bool], line_search: str | None) -> float:
    """The paper as one would script it: whitened copies, autograd, torch's L-BFGS."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    clock = -time.perf_counter()
    Z, y, means, d = [], [], [], data.X.shape[1]
    for e in np.unique(data.domains):
        X = torch.from_numpy(data.X[data.domains == e])
        S = X.T @ X / len(X)
        S = (1 - RHO) * S + RHO * S.trace() / d * torch.eye(d)
        values, vectors = torch.linalg.eigh(S)
        Z.append(X @ (vectors * values.rsqrt() @ vectors.T))
        y.append(torch.from_numpy(data.y[data.domains == e]))
        means.append(Z[-1].mean(dim=0, keepdim=True))
    k = int(data.y.max()) + 1
    columns = 1 if k == 2 else k
    B = torch.zeros(d, columns, requires_grad=True)
    cross_entropy = torch.nn.functional.cross_entropy
    binary = torch.nn.functional.binary_cross_entropy_with_logits
    optimizer = torch.optim.LBFGS(
        [B], lr=1.0 if line_search else 0.2, history_size=100, line_search_fn=line_search
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = 0.5 * L2 * (B * B).sum()
        for Ze, ye, mean in zip(Z, y, means, strict=True):
            if columns == 1:
                part = binary((Ze @ B)[:, 0], ye.float()) + binary(
                    mean @ B, torch.full((1, 1), 0.5)
                )
            else:
                part = cross_entropy(Ze @ B, ye) + cross_entropy(
                    mean @ B, torch.full((1, k), 1 / k)
                )
            loss = loss + part / len(Z)
        loss.backward()
        return loss

    last = None
    for _ in range(100):
        optimizer.step(closure)
        clock += time.perf_counter()
        now = B.detach().numpy().astype(np.float64)
        if reached(now):
            return clock
        if last is not None and np.array_equal(now, last):
            break  # its float32 line search no longer moves
        last = now
        clock -= time.perf_counter()
    return math.nan


def compare_dare(data: Data, runs: int) -> dict[str, Timing | None]:
    """DAREClassifier against the script, with the paper's step and with a line search."""
    lagrangian = Lagrangian.of(data)
    # Our l2 is in units of the feature variance, the script's acts on canonical weights.
    squares = [np.mean(data.X[data.domains == e] ** 2) for e in np.unique(data.domains)]
    l2 = L2 * float(np.mean(squares) / data.X.var(axis=0, dtype=np.float64).mean())

    def ours(adaptation: str | None) -> Callable[[float], DAREClassifier]:
        options = {"l2": l2, "shrinkage": RHO, "centered": False, "fit_intercept": False}
        options |= {"max_iter": 20_000, "adaptation": adaptation}
        return lambda tol: DAREClassifier(tol=tol, **options).fit(
            data.X, data.y, domains=data.domains
        )

    def objective(head: DAREClassifier) -> float:
        return lagrangian(head.canonical_coef_.T)

    best = objective(ours(None)(1e-7))
    timings = {
        "skdare": time_to_goal(ours(None), objective, best, runs),
        "with adaptation": time_to_goal(ours("raw"), objective, best, runs),
    }
    for name, search in (("script", None), ("script, line search", "strong_wolfe")):
        gaps: list[float] = []

        def reached(B: np.ndarray, gaps: list[float] = gaps) -> bool:
            gaps.append(lagrangian(B) / best - 1.0)
            return gaps[-1] <= GOAL

        seconds = [script(data, reached, search) for _ in range(runs)]
        reached_goal = math.isfinite(statistics.median(seconds))
        timings[name] = Timing(statistics.median(seconds), gaps[-1]) if reached_goal else None
    return timings


def report(data: Data, timings: dict[str, Timing | None], others: tuple[str, ...]) -> str:
    """One line: our time, then each other's as a multiple of it."""
    ours = timings["skdare"]
    assert ours is not None
    cells = [f"{data.name:<28}", f"{ours.seconds:8.2f} s"]
    for name in others:
        other = timings[name]
        if other is None:
            cells.append(f"{'goal missed':>20}")
        else:
            cells.append(f"{other.seconds:9.2f} s {other.seconds / ours.seconds:6.1f} x")
    return " ".join(cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[*SYNTHETIC, "pacs"], action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--part", choices=["erm", "dare"], help="default: both")
    parser.add_argument("--memory", choices=["erm", "dare"], help=argparse.SUPPRESS)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    makers = dict(SYNTHETIC)
    if (arguments.data / "pacs_finetuned").exists():
        makers["pacs"] = lambda: pacs(arguments.data)
    if arguments.memory:
        measure_memory(makers[arguments.only[0]](), arguments.memory)
        return
    scripts = ("with adaptation", "script", "script, line search")
    for title, kind, compare, others in (
        ("ERMClassifier against LogisticRegression", "erm", compare_erm, ("lbfgs", "newton-cg")),
        ("DAREClassifier against the script", "dare", compare_dare, scripts),
    ):
        if arguments.part not in (None, kind):
            continue
        print(f"\n{title} ({arguments.threads} BLAS threads, median of {arguments.runs} runs)\n")
        head = f"{'':<28} {'skdare':>10} " + " ".join(f"{name:>20}" for name in others)
        print(head + f" {'memory / X':>11} {'/ (E d²)':>9}", flush=True)
        for name, make in makers.items():
            if not arguments.only or name in arguments.only:
                data = make()
                of_x, of_matrices = peak_memory(name, kind, arguments.data)
                line = report(data, compare(data, arguments.runs), others)
                print(f"{line} {of_x:11.2f} {of_matrices:9.1f}", flush=True)


if __name__ == "__main__":
    main()
