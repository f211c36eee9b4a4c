"""How time and memory of a fit grow, and fits to more rows than memory.

    python benchmarks/scale.py curves [--beside OTHER/src]
    python benchmarks/scale.py out-of-core --gigabytes 20 --limit 4 --folder FOLDER

``curves``: a DARE and an ERM head, in memory, as rows, features, classes and domains grow one at a
time. ``out-of-core``: a feature store of so many gigabytes of float32 (kept in FOLDER, and used if
it is there), a DARE head fitted to it in a process whose data may not exceed the limit, and one
fitted to the first gigabyte of it in memory. Seconds are of the processor; memory is what NumPy
allocates at most at one time, by tracemalloc.
"""

from __future__ import annotations

import json
import resource
import time
import tracemalloc
from pathlib import Path

import numpy as np

from houses import arguments, best, made, measured, ratio, table

USUAL = {"rows": 20_000, "features": 128, "classes": 10, "domains": 4}
AXES = {
    "rows": [10_000, 40_000, 160_000],
    "features": [64, 256, 1024],
    "classes": [2, 30, 100],
    "domains": [2, 8, 32],
}
FEATURES, BLOCK, GIGABYTE = 1024, 16_384, 10**9


def shape(case: str, runs: int) -> dict[str, float]:
    """A fit of one shape, "axis=value"."""
    from skdare import DAREClassifier, ERMClassifier

    axis, value = case.split("=")
    X, y, domains = made(*{**USUAL, axis: int(value)}.values())
    result: dict[str, float] = {}
    heads = {"dare": DAREClassifier(adaptation=None, tol=1e-4), "erm": ERMClassifier(tol=1e-4)}
    for name, head in heads.items():
        result[name], _ = best(lambda head=head: head.fit(X, y, domains=domains), runs)
        tracemalloc.start()
        head.fit(X, y, domains=domains)
        result[f"{name} MB"] = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    return result


def write(folder: Path, gigabytes: float) -> None:
    """Domains that scale the same latents, one after the other, in a feature store."""
    from skdare.data import StoreWriter

    if (folder / "manifest.json").exists():
        return
    rng = np.random.default_rng(0)
    B = (3.0 * rng.normal(size=(FEATURES, 10)) / FEATURES**0.5).astype(np.float32)
    blocks = max(1, round(gigabytes * GIGABYTE / (4 * FEATURES * BLOCK * 4)))
    with StoreWriter(folder, [f"x{j}" for j in range(FEATURES)]) as writer:
        for domain in range(4):
            scales = np.exp(rng.uniform(-0.5, 0.5, FEATURES)).astype(np.float32)
            for _ in range(blocks):
                latents = rng.standard_normal((BLOCK, FEATURES), dtype=np.float32)
                y = (latents @ B + rng.gumbel(size=(BLOCK, 10))).argmax(axis=1)
                writer.append(latents * scales, y=y, domains=np.full(BLOCK, f"domain {domain}"))


def from_store(folder: str, gigabytes: float, limit: float | None) -> dict[str, float]:
    """A fit to all rows on disk under a limit, or to a gigabyte of them in memory."""
    from skdare import DAREClassifier
    from skdare.data import read

    write(Path(folder), gigabytes)
    data = read(folder)
    X, y, domains = data.X, data.y, data.domains
    if limit is None:
        each = GIGABYTE // (4 * FEATURES * 4)
        starts = [int(np.argmax(domains == name)) for name in np.unique(domains)]
        chosen = np.concatenate([np.arange(s, min(s + each, len(y))) for s in starts])
        X = np.concatenate([np.asarray(X[part]) for part in np.array_split(chosen, 64)])
        y, domains = y[chosen], domains[chosen]
    else:
        size = int(limit * GIGABYTE)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    start = time.process_time()
    head = DAREClassifier(adaptation=None).fit(X, y, domains=domains)
    seconds = time.process_time() - start
    passes = head.solution_.n_iter + 1
    each = 1e9 * seconds / (len(y) * passes)
    return {"rows": len(y), "seconds": seconds, "iterations": passes - 1, "each": each}


def curves(options) -> None:
    rows = []
    for axis, values in AXES.items():
        for value in values[: options.steps]:
            ours, *other = measured(__file__, f"{axis}={value}", options)
            cells = [f"{value:,} {axis}"]
            for name in ("dare", "erm"):
                before = ratio(other[0][name], ours[name]) if other else ""
                cells += [f"{ours[name]:.2f}", before, f"{ours[f'{name} MB']:.0f}"]
            rows.append(cells)
    one = ["seconds", "other checkout", "MB"]
    print(table(["one at a time", *(f"{n} {w}" for n in ("DARE", "ERM") for w in one)], rows))


def out_of_core(options) -> None:
    folder = options.folder / f"{options.gigabytes:g} GB"
    options.beside = None
    rows, each = [], []
    for name, limit in (("1 GB in memory", ""), (f"in {options.limit:g} GB", options.limit)):
        [found] = measured(__file__, f"{folder}|{options.gigabytes}|{limit}", options)
        each.append(found["each"])
        counts = [f"{found['rows']:,}", f"{found['seconds']:.1f}", f"{found['iterations']}"]
        rows.append([name, *counts, f"{found['each']:.0f}"])
    print(table(["", "rows", "seconds", "iterations", "ns per row and iteration"], rows))
    print(f"\n{each[1] / each[0]:.2f} × the time per row of rows in memory")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("part", nargs="?", choices=["curves", "out-of-core"], default="curves")
    parser.add_argument("--steps", type=int, default=3, help="sizes of each axis")
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--limit", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    options = parser.parse_args()
    if options.child and "|" in options.child:
        folder, size, limit = options.child.split("|")
        print(json.dumps(from_store(folder, float(size), float(limit) if limit else None)))
    elif options.child:
        print(json.dumps(shape(options.child, options.runs)))
    elif options.part == "curves":
        curves(options)
    else:
        out_of_core(options)


if __name__ == "__main__":
    main()
