"""A fit with two single-threaded Dask workers beside one in this process with two BLAS threads.

    python benchmarks/cluster.py [--gigabytes 2] [--repeats 3] [--folder FOLDER] [--interleaved]

Writes a feature store of so many gigabytes of float32 (kept in FOLDER, and taken up if it is
there). Both sides read it from the page cache; start-up of the cluster and a first fit are not
timed. Repeats alternate, each in a process of its own, and the best of each side are compared;
the processor's seconds, workers' included, tell how much of that was waiting for other programs.

Then the cost model: bytes that a pass takes to the workers and back, as predicted, as pickled,
and as counted on the loopback device, where each message passes twice: between worker and
scheduler, and between scheduler and this process.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

FEATURES, CLASSES, DOMAINS, BLOCK = 1024, 10, 4, 16_384
GIGABYTE = 10**9


def write(path: Path, gigabytes: float, interleaved: bool) -> None:
    """Domains that stretch the same latents, one after the other or row by row."""
    from skdare.datasets import StoreWriter

    if (path / "manifest.json").exists():
        return
    rng = np.random.default_rng(0)
    B = (3.0 * rng.normal(size=(FEATURES, CLASSES)) / np.sqrt(FEATURES)).astype(np.float32)
    stretch = np.exp(rng.uniform(-0.5, 0.5, (DOMAINS, FEATURES))).astype(np.float32)
    blocks = max(DOMAINS, round(gigabytes * GIGABYTE / (4 * FEATURES * BLOCK)))
    with StoreWriter(path, features=FEATURES, dtype="float32", rows_per_shard=8 * BLOCK) as writer:
        for block in range(blocks):
            latents = rng.standard_normal((BLOCK, FEATURES), dtype=np.float32)
            labels = (latents @ B + rng.gumbel(size=(BLOCK, CLASSES))).argmax(axis=1)
            domains = np.full(BLOCK, block * DOMAINS // blocks)
            if interleaved:
                domains = rng.integers(DOMAINS, size=BLOCK)
            writer.append(latents * stretch[domains], labels, domains)


def loopback() -> int:
    """Bytes that the loopback device has received."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[0])
    raise OSError("/proc/net/dev has no loopback device; this needs Linux")


class Counted:
    """Passes of a fit: pairs of a task and a domain, and bytes brought and found, pickled."""

    def __init__(self) -> None:
        from skdare.engines import _cluster, _share

        self.passes: list[tuple[str, int, int, int]] = []
        submit, results = _cluster.Cluster.submit, _cluster.Cluster.results
        self._down, self._what = 0, ""

        def counted_submit(cluster, function, visit, share, held, carried, **options):
            assert function is _share.visit_share
            self._what = getattr(visit, "__name__", type(visit).__name__).strip("_")
            self._down += len(pickle.dumps((visit, carried), protocol=5))
            return submit(cluster, function, visit, share, held, carried, **options)

        def counted_results(cluster, futures, places):
            found = results(cluster, futures, places)
            up = sum(len(pickle.dumps(result, protocol=5)) for result in found)
            pairs = sum(len(parts) for result in found for parts in result.values())
            self.passes.append((self._what, pairs, self._down, up))
            self._down = 0
            return found

        _cluster.Cluster.submit = counted_submit
        _cluster.Cluster.results = counted_results


def processor_seconds(client) -> float:
    """Of this process and the workers."""
    workers = client.run(time.process_time).values() if client is not None else ()
    return time.process_time() + sum(workers)


def fit(path: Path, name: str, engine: str, counting: bool) -> dict:
    """One timed fit after one that is not."""
    from skdare import DAREClassifier, ERMClassifier
    from skdare.datasets import open_table

    table = open_table(path)
    heads = {"DARE": DAREClassifier(adaptation=None, engine=engine)}
    head = heads.get(name, ERMClassifier(engine=engine))
    cluster = client = counted = None
    begin = time.perf_counter()
    if engine == "dask":
        from distributed import Client, LocalCluster

        options = {"threads_per_worker": 1, "dashboard_address": ":0"}
        cluster = LocalCluster(n_workers=2, **options)
        client = Client(cluster)
    start_up = time.perf_counter() - begin
    head.fit(table.X, table.y, domains=table.domains)
    if counting:
        counted = Counted()
    used = processor_seconds(client)
    before, begin = loopback(), time.perf_counter()
    head.fit(table.X, table.y, domains=table.domains)
    seconds, moved = time.perf_counter() - begin, loopback() - before
    result = {
        "seconds": seconds,
        "processor": processor_seconds(client) - used,
        "start_up": start_up,
        "evaluations": head.solution_.n_evaluations,
        "coef": float(np.abs(head.coef_).sum()),
        "moved": moved,
        "passes": counted.passes if counted else [],
    }
    if client is not None:
        client.close()
        cluster.close()
    return result


def child(path: Path, name: str, engine: str, *more: str) -> dict:
    """A fit in a process of its own; workers have one BLAS thread each, a local fit two."""
    threads = "2" if engine == "local" else "1"
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    run = subprocess.run(
        [sys.executable, __file__, "--fit", name, engine, "--store", str(path), *more],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **dict.fromkeys(names, threads)},
    )
    return json.loads(run.stdout.splitlines()[-1])


def times(path: Path, repeats: int) -> None:
    """Print the best times of both sides."""
    print("| head, engine | seconds, best | all | processor | evaluations | start-up |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    told = []
    for name in ("DARE", "ERM"):
        found: dict[str, list[dict]] = {"local": [], "dask": []}
        for _ in range(repeats):
            for engine, results in found.items():
                results.append(child(path, name, engine))
        for engine, results in found.items():
            best = min(results, key=lambda result: result["seconds"])
            listed = ", ".join(f"{result['seconds']:.2f}" for result in results)
            print(
                f"| {name}, {engine} | {best['seconds']:.2f} | {listed} | "
                f"{min(result['processor'] for result in results):.2f} | "
                f"{best['evaluations']} | {best['start_up']:.1f} |"
            )
        here, there = ([r["seconds"] for r in results] for results in found.values())
        paired = ", ".join(f"{b / a:.2f}" for a, b in zip(here, there, strict=True))
        told.append(f"{name}: {min(there) / min(here):.2f} × of the best, run by run {paired}")
    print("\nDask against local, " + "; ".join(told) + "\n")


def costs(path: Path) -> None:
    """Print what passes move, beside the model."""
    result = child(path, "DARE", "dask", "--counting")
    d, k = FEATURES, CLASSES
    model = {  # of s pairs of a task and a domain that has rows in it; there are two tasks
        "Residuals": lambda s: (s * (d * k * 4 + k * 8), s * (d * k + k + 1) * 8),
        "moments_of": lambda s: (0, s * (d * d + 2 * d + 2) * 8),
        "ClassWeights": lambda s: (2 * (d * k * 4 + 8 * k), s * k * 8),
    }
    print("| pass | passes | pairs | down, model | pickled | up, model | pickled |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    total = 0
    for what in dict.fromkeys(row[0] for row in result["passes"]):
        own = [row[1:] for row in result["passes"] if row[0] == what]
        pairs, down, up = (np.mean(column) for column in zip(*own, strict=True))
        total += sum(row[1] + row[2] for row in own)
        moved = model[what](pairs) if what in model else (0, 0)
        told = [f"{value / 1e3:,.0f} kB" for value in moved]
        print(
            f"| {what} | {len(own)} | {pairs:.0f} | {told[0]} | {down / 1e3:,.0f} kB | {told[1]} "
            f"| {up / 1e3:,.0f} kB |"
        )
    print(
        f"\nin all {len(result['passes'])} passes, {total / 1e6:.1f} MB pickled, "
        f"{result['moved'] / 1e6:.1f} MB on the loopback device (two hops, targets and weights, "
        "heartbeats)"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", default="scale")
    parser.add_argument("--interleaved", action="store_true")
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--counting", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit:
        print(json.dumps(fit(args.store, *args.fit, args.counting)))
        return
    order = "interleaved" if args.interleaved else "sorted"
    path = Path(args.folder) / f"cluster {args.gigabytes:g} GB {order}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, args.gigabytes, args.interleaved)
    times(path, args.repeats)
    costs(path)


if __name__ == "__main__":
    main()
