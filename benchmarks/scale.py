"""Fits on more rows than memory, beside the same fit on rows that fit.

    python benchmarks/scale.py out-of-core [--gigabytes 20] [--limit 4] [--folder FOLDER]
    python benchmarks/scale.py curves [--figure FILE.svg]

``curves``: processor time and memory of a DARE and an ERM head, in memory, as rows, features,
classes and domains grow one at a time, and the power of each that they grow with at the end.

``out-of-core``: writes a feature store of so many gigabytes of float32 (kept in FOLDER, and taken
up if it is there), then fits a DARE head to it in a process whose data may not exceed the limit
(``RLIMIT_DATA``: what it allocates, not the pages of files that it maps), and to the first
gigabyte of it in memory. Times are for each row and evaluation of the objective; memory is what
the process held of its own at most.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import clone

from skdare import DAREClassifier, ERMClassifier
from skdare.datasets import StoreWriter, open_table

FEATURES, CLASSES, DOMAINS, BLOCK = 1024, 10, 4, 16_384
GIGABYTE = 10**9


def write(path: Path, gigabytes: float) -> None:
    """Domains that stretch the same latents, one after the other."""
    if (path / "manifest.json").exists():
        return
    rng = np.random.default_rng(0)
    B = 3.0 * rng.normal(size=(FEATURES, CLASSES)) / np.sqrt(FEATURES)
    blocks = round(gigabytes * GIGABYTE / (4 * FEATURES * BLOCK * DOMAINS))
    with StoreWriter(path, features=FEATURES, dtype="float32", rows_per_shard=8 * BLOCK) as writer:
        for domain in range(DOMAINS):
            stretch = np.exp(rng.uniform(-0.5, 0.5, FEATURES)).astype(np.float32)
            for _ in range(blocks):
                latents = rng.standard_normal((BLOCK, FEATURES), dtype=np.float32)
                noise = rng.gumbel(size=(BLOCK, CLASSES))
                labels = (latents @ B.astype(np.float32) + noise).argmax(axis=1)
                writer.append(latents * stretch, labels, np.full(BLOCK, f"domain {domain}"))


def held() -> int:
    """Bytes of this process's own, without mapped files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return 1024 * int(line.split()[1])
    raise OSError("/proc/self/status has no RssAnon; this needs Linux")


class Peak:
    """The most that was held, looked at every 20 ms."""

    def __init__(self) -> None:
        self.most, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.most = max(self.most, held())

    def end(self) -> int:
        """Stop looking."""
        self._ended.set()
        self._thread.join()
        return self.most


def fit(path: Path, rows: int | None, limit: float | None) -> dict[str, float]:
    """One fit: on all rows where they lie, or on the first rows of every domain in memory."""
    table = open_table(path)
    X, y, domains = table.X, table.y, table.domains
    if rows is not None:
        starts = [int(np.argmax(domains == domain)) for domain in np.unique(domains)]
        parts = [slice(start, start + rows // len(starts)) for start in starts]
        X = np.concatenate([np.array(table.X[part]) for part in parts])
        y, domains = (np.concatenate([v[part] for part in parts]) for v in (y, domains))
    if limit is not None:
        size = int(limit * GIGABYTE)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    peak, begin = Peak(), time.perf_counter()
    head = DAREClassifier(adaptation=None).fit(X, y, domains=domains)
    took = time.perf_counter() - begin
    evaluations = head.solution_.n_evaluations
    return {
        "rows": len(y),
        "seconds": took,
        "evaluations": evaluations,
        "per row": 1e9 * took / (len(y) * evaluations),
        "held": peak.end() / GIGABYTE,
    }


@dataclass(frozen=True)
class Shape:
    """The size of a problem."""

    rows: int = 40_000
    features: int = 256
    classes: int = 10
    domains: int = 4

    def data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Domains that stretch the same latents, in float32."""
        rng = np.random.default_rng(0)
        n, d, k, E = self.rows, self.features, self.classes, self.domains
        B = (3.0 * rng.normal(size=(d, k)) / np.sqrt(d)).astype(np.float32)
        X = rng.standard_normal((n, d), dtype=np.float32)
        y, domains = np.empty(n, np.int64), np.arange(n) * E // n
        stretch = np.exp(rng.uniform(-0.5, 0.5, (E, d))).astype(np.float32)
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            scores = X[rows] @ B
            y[rows] = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
            X[rows] *= stretch[domains[rows]]
        return X, y, domains


AXES = {
    "rows": [20_000, 40_000, 80_000, 160_000, 320_000],
    "features": [64, 128, 256, 512, 1024, 2048],
    "classes": [2, 5, 10, 30, 100, 300],
    "domains": [2, 4, 8, 16, 32],
}
HEADS = {"DARE": DAREClassifier(adaptation=None, tol=1e-4), "ERM": ERMClassifier(tol=1e-4)}


def fit_shape(head: str, shape: Shape) -> dict[str, float]:
    """Processor seconds and evaluations of a fit, and the most that one more allocates at once."""
    small = Shape(rows=2000, features=16, classes=3).data()
    HEADS[head].fit(small[0], small[1], domains=small[2])
    X, y, domains = shape.data()
    begin = time.process_time()
    fitted = HEADS[head].fit(X, y, domains=domains)
    took, evaluations = time.process_time() - begin, fitted.solution_.n_evaluations
    del fitted
    tracemalloc.start()
    clone(HEADS[head]).fit(X, y, domains=domains)
    peak = tracemalloc.get_traced_memory()[1]
    return {"seconds": took, "evaluations": evaluations, "megabytes": peak / 1e6}


def curves(figure: str | None) -> None:
    """Print a table for each axis, and draw them."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    titles = [f"{name}: s | evaluations | ms each | MB beside X" for name in HEADS]
    for axis, values in AXES.items():
        print(f"\n| {axis} | " + " | ".join(titles) + " |")
        print("| ---: |" + " ---: |" * 4 * len(HEADS))
        for value in values:
            cells = [f"{value:,}"]
            for name in HEADS:
                r = child("shape", "--head", name, "--axis", axis, "--value", str(value))
                found.setdefault((axis, name), []).append(r)
                cells += [f"{r['seconds']:.2f}", f"{r['evaluations']}"]
                cells += [f"{1e3 * r['seconds'] / r['evaluations']:.1f}", f"{r['megabytes']:.0f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
        powers = [power(values, found[axis, name]) for name in HEADS]
        print("\n" + "; ".join(f"{n}: {p}" for n, p in zip(HEADS, powers, strict=True)))
    if figure is not None:
        draw(found, figure)


def power(values: list[int], runs: list[dict[str, float]]) -> str:
    """The power with which time and memory grow, from the last three sizes."""
    logs = [np.log([max(r[key], 1.0e-3) for r in runs[-3:]]) for key in ("seconds", "megabytes")]
    time_power, memory_power = (np.polyfit(np.log(values[-3:]), log, 1)[0] for log in logs)
    return f"time grows with the power {time_power:.1f}, memory {memory_power:.1f}"


def draw(found: dict[tuple[str, str], list[dict[str, float]]], figure: str) -> None:
    """Time above, memory below, one column an axis."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    plt.rcParams["svg.hashsalt"] = "scale"
    shown = {"seconds": "processor seconds", "megabytes": "MB beside X"}
    fig, axes = plt.subplots(2, len(AXES), figsize=(11, 5), sharex="col", sharey="row")
    for column, (axis, values) in enumerate(AXES.items()):
        for ax, key in zip(axes[:, column], shown, strict=True):
            for name in HEADS:
                ax.plot(values, [r[key] for r in found[axis, name]], "o-", ms=4, label=name)
            ax.set(xscale="log", yscale="log")
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.set_xticks(values[::2], [f"{value:,}" for value in values[::2]])
            ax.grid(alpha=0.3)
        axes[1, column].set_xlabel(axis)
    for ax, label in zip(axes[:, 0], shown.values(), strict=True):
        ax.set_ylabel(label)
    axes[0, 0].legend(frameon=False)
    fig.tight_layout()
    fig.savefig(figure, metadata={"Date": None})


def child(*arguments: str) -> dict[str, float]:
    """A fit in a process of its own."""
    run = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["out-of-core", "curves", "fit", "shape"])
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--folder", default="scale")
    parser.add_argument("--figure")
    parser.add_argument("--head")
    parser.add_argument("--axis")
    parser.add_argument("--value", type=int)
    args = parser.parse_args()
    if args.part == "curves":
        curves(args.figure)
        return
    if args.part == "shape":
        print(json.dumps(fit_shape(args.head, Shape(**{args.axis: args.value}))))
        return
    path = Path(args.folder) / f"{args.gigabytes:g} GB"
    if args.part == "fit":
        print(json.dumps(fit(path, args.rows, args.limit)))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, args.gigabytes)
    shared = ["--folder", args.folder, "--gigabytes", str(args.gigabytes)]
    small = str(GIGABYTE // (4 * FEATURES))
    results = {
        "1 GB in memory": child("fit", *shared, "--rows", small),
        f"{args.gigabytes:g} GB, at most {args.limit or 4:g} GB": child(
            "fit", *shared, "--limit", str(args.limit or 4)
        ),
    }
    print("| | rows | seconds | evaluations | ns a row and evaluation | GB held |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, r in results.items():
        print(
            f"| {name} | {r['rows']:,} | {r['seconds']:.1f} | {r['evaluations']} | "
            f"{r['per row']:,.0f} | {r['held']:.2f} |"
        )
    first, second = results.values()
    print(f"\n{second['per row'] / first['per row']:.2f} × the time of rows that fit")


if __name__ == "__main__":
    main()
