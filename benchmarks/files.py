"""Rows of every kind of file through `skdare predict`: rows a second, and peak resident memory.

    OPENBLAS_NUM_THREADS=1 python benchmarks/files.py

Each kind is measured at a number of rows and at ten times as many, each in a process of its own;
memory is the peak beyond that of a process that reads 100 rows. A conversion holds up to 256 MiB,
one shard of the store.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from skdare import DAREClassifier
from skdare.datasets import DomainData, make_latent_domains, write

KINDS = ("store", "npy", "npz", "parquet", "safetensors", "csv")
COMMANDS = {
    "predict": ["predict", "head.safetensors", "{path}", "--proba", "--out", "out.csv"],
    "adapt": ["adapt", "head.safetensors", "{path}", "--out", "adapted.safetensors"],
    "convert": ["features", "convert", "{path}", "{path}.converted"],
}


def make(path: str, rows: int, features: int) -> None:
    """One file; rows repeat, so that large ones are made quickly."""
    rng = np.random.default_rng(0)
    X = np.resize(rng.normal(size=(1000, features)).astype(np.float32), (rows, features))
    labels = np.arange(rows) % 2
    if path.endswith(".npy"):
        np.save(path, X)
    else:
        write(path, DomainData(X, labels, labels))


def measured(command: str, path: str) -> tuple[float, float]:
    """Seconds, and the peak in MB, of a process of its own."""
    arguments = [part.format(path=path) for part in COMMANDS[command]]
    script = [sys.executable, str(Path(__file__).resolve()), "--one", *arguments]
    lines = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    return float(lines[-2]), float(lines[-1])


def one(arguments: list[str]) -> None:
    """Run a command in this process, and print seconds and peak."""
    from skdare.cli import main

    began = time.perf_counter()
    quiet = [] if arguments[0] == "features" else ["--quiet"]
    main([*arguments, *quiet], standalone_mode=False)
    # Not ru_maxrss, which begins with what the process that started this one had.
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)
    print(time.perf_counter() - began, peak / 1024)


def table(rows: int, features: int) -> None:
    """A line for each command and kind of file."""
    data = make_latent_domains(3, 200, features, random_state=0)
    head = DAREClassifier().fit(data.X, data.y, domains=data.domains)
    head.save("head.safetensors")
    print("| command | file | rows | size | rows a second | peak memory | at a tenth of the rows |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for command in COMMANDS:
        for kind in KINDS:
            if command == "convert" and kind in ("store", "npy"):
                continue
            found = {}
            for n in (100, rows, 10 * rows):
                path = f"{command}-{n}.{kind}"
                make(path, n, features)
                found[n] = measured(command, path)
            big = Path(path)
            files = big.rglob("*") if big.is_dir() else [big]
            size = sum(file.stat().st_size for file in files) / 1e6
            seconds, peak = found[10 * rows]
            speed = 9 * rows / (seconds - found[rows][0])
            floor = found[100][1]
            print(
                f"| {command} | {kind} | {10 * rows:,} | {size:,.0f} MB | {speed:,.0f} | "
                f"{peak - floor:,.0f} MB | {found[rows][1] - floor:,.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2:])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=512)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        table(given.rows, given.features)
