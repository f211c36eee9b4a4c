"""Fits on more rows than memory, beside the same fit on rows that fit.

    python benchmarks/scale.py out-of-core [--gigabytes 20] [--limit 4] [--folder FOLDER]

Writes a feature store of so many gigabytes of float32 (kept in FOLDER, and taken up if it is
there), then fits a DARE head to it in a process whose data may not exceed the limit
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
from pathlib import Path

import numpy as np

from skdare import DAREClassifier
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


def child(*arguments: str) -> dict[str, float]:
    """A fit in a process of its own."""
    run = [sys.executable, __file__, "fit", *arguments]
    return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["out-of-core", "fit"])
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--folder", default="scale")
    args = parser.parse_args()
    path = Path(args.folder) / f"{args.gigabytes:g} GB"
    if args.part == "fit":
        print(json.dumps(fit(path, args.rows, args.limit)))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, args.gigabytes)
    shared = ["--folder", args.folder, "--gigabytes", str(args.gigabytes)]
    small = str(GIGABYTE // (4 * FEATURES))
    results = {
        "1 GB in memory": child(*shared, "--rows", small),
        f"{args.gigabytes:g} GB, at most {args.limit or 4:g} GB": child(
            *shared, "--limit", str(args.limit or 4)
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
