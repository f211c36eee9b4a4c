"""Seconds to read, check and write tables, as ratios to pandas; another copy of skdare beside it.

    python benchmarks/tables.py [--beside FOLDER] [--cases wide middle long]

Each row is one table in one format. Numbers above 1 are slower than pandas, which reads without
looking for labels, ids or damage. ``--beside src`` also reads with the package in that folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
warnings.simplefilter("ignore")

import numpy as np
import pandas as pd

CASES = {"wide": (500, 10_000), "middle": (10_000, 512), "long": (200_000, 8), "tiny": (100, 3)}
FORMATS = ("csv", "parquet", "npz")
TIMES = 3


def seconds(action: Callable[[], object]) -> float:
    """CPU time of the quickest run, in all threads."""
    taken = []
    for _ in range(TIMES):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def write_case(folder: Path, n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"f{j}" for j in range(d)])
    labels = pd.DataFrame({"y": rng.integers(3, size=n), "site": np.arange(n) % 4})
    frame = pd.concat([labels, X], axis=1)
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_parquet(folder / "table.parquet", index=False)
    held = {name: labels[name].to_numpy() for name in labels}
    np.savez(folder / "table.npz", X=X.to_numpy(), **held)


def with_pandas(folder: Path) -> dict[str, float]:
    frame = pd.read_parquet(folder / "table.parquet")
    names = [name for name in frame if name not in ("y", "site")]

    def split(frame: pd.DataFrame) -> np.ndarray:
        return frame[names].to_numpy()

    def from_npz() -> dict[str, np.ndarray]:
        with np.load(folder / "table.npz") as file:
            return {name: file[name] for name in file.files}

    return {
        "read csv": seconds(lambda: split(pd.read_csv(folder / "table.csv"))),
        "read parquet": seconds(lambda: split(pd.read_parquet(folder / "table.parquet"))),
        "read npz": seconds(from_npz),
        "check": seconds(lambda: frame[names].describe()),
        "write csv": seconds(lambda: frame.to_csv(folder / "out.csv", index=False)),
        "write parquet": seconds(lambda: frame.to_parquet(folder / "out.parquet", index=False)),
    }


def with_skdare(folder: Path) -> dict[str, float]:
    try:
        from skdare.checking import check
        from skdare.data import read, write
    except ImportError:  # of a copy with other names only reading is compared
        from skdare.datasets import read

        return {f"read {kind}": seconds(lambda k=kind: read(folder / f"table.{k}"))
                for kind in FORMATS}  # fmt: skip
    data = read(folder / "table.npz")
    return {f"read {kind}": seconds(lambda k=kind: read(folder / f"table.{k}"))
            for kind in FORMATS} | {
        "check": seconds(lambda: check(data)),
        "write csv": seconds(lambda: write(data, folder / "out.csv")),
        "write parquet": seconds(lambda: write(data, folder / "out.parquet")),
    }  # fmt: skip


def elsewhere(package: str, folder: Path) -> dict[str, float]:
    """The same in a process of its own, with the package of a folder."""
    command = [sys.executable, __file__, "--child", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(package).resolve())}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", help="folder of another copy of the package")
    parser.add_argument("--cases", nargs="*", default=["wide", "middle", "long"], choices=CASES)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(with_skdare(given.child)))
        return
    print("| rows × features | what | pandas, s | skdare / pandas | the other / skdare |")
    print("|---|---|---:|---:|---:|")
    for name in given.cases:
        n, d = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            write_case(Path(folder), n, d)
            theirs, ours = with_pandas(Path(folder)), with_skdare(Path(folder))
            other = elsewhere(given.beside, Path(folder)) if given.beside else {}
        for what, taken in ours.items():
            ratio = f"{other[what] / taken:.2f}" if what in other else ""
            ours_to_theirs = taken / max(theirs[what], 1e-9)
            print(
                f"| {n:,} × {d:,} | {what} | {theirs[what]:.2f} | {ours_to_theirs:.2f} | {ratio} |"
            )


if __name__ == "__main__":
    main()
