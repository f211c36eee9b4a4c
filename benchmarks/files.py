"""Rows of every kind of file through `skdare predict`: rows a second, and peak resident memory.

    OPENBLAS_NUM_THREADS=1 python benchmarks/files.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/files.py --wide
    OPENBLAS_NUM_THREADS=1 python benchmarks/files.py --csv

Each kind is measured at a number of rows and at ten times as many, each in a process of its own;
memory is the peak beyond that of a process that reads 100 rows. A conversion holds up to 256 MiB,
one shard of the store.

With ``--wide``: tables of 500 rows and very many columns, as expression matrices have, read whole,
and a head fitted to them. Seconds are the processor's, of one core.

With ``--csv``: tables read from CSV and written to it, beside NumPy and pandas, in turn and in one
process; the quickest of three runs counts, in rows a second of the processor. NumPy reads the
columns of numbers only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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


WIDE_ROWS = 500
WIDE_KINDS = ("csv", "parquet", "npz", "npy", "safetensors", "store", "pt", "folder")


def make_wide(path: str, features: int) -> None:
    """A table of five domains; numbers have six digits, and rows repeat but for their first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, features)).round(5)
    labels = np.arange(WIDE_ROWS) % 2
    domains = np.arange(WIDE_ROWS) * 5 // WIDE_ROWS
    names = [f"gene_{j}" for j in range(features)]
    whole = np.resize(X, (WIDE_ROWS, features)).astype(np.float32)
    kind = path.rpartition(".")[2]
    if kind == "csv":
        lines = [",".join(map(str, row)) for row in X.tolist()]
        with open(path, "w") as file:
            file.write(",".join([*names, "y", "domain"]) + "\n")
            for i in range(WIDE_ROWS):
                file.write(f"{lines[i % 20]},{labels[i]},{domains[i]}\n")
    elif kind == "npy":
        np.save(path, whole)
    elif kind == "pt":
        import torch

        held = {"X": torch.tensor(whole), "y": torch.tensor(labels)}
        torch.save({**held, "domain": torch.tensor(domains)}, path)
    elif kind == "folder":  # as save_to_disk of Hugging Face writes it
        import pyarrow as pa

        os.mkdir(path)
        columns = dict(zip(names, whole.T, strict=True))
        rows = pa.table({**columns, "y": labels, "domain": domains})
        with pa.ipc.new_stream(f"{path}/data.arrow", rows.schema) as stream:
            stream.write_table(rows)
        Path(path, "dataset_info.json").write_text('{"features": {}}')
        Path(path, "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    else:
        write(path, DomainData(whole, labels, domains, None, "wide", names))


def one_wide(path: str, what: str) -> None:
    """Read a wide table in this process, or also fit to it; print seconds and peak."""
    from skdare.datasets import read, read_unlabelled

    began = time.process_time()
    if path.endswith(".npy"):
        read_unlabelled(path)
    else:
        data = read(path)
        if what == "fit":
            began = time.process_time()
            DAREClassifier().fit(data.X, data.y, domains=data.domains).predict(data.X)
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)
    print(time.process_time() - began, peak / 1024)


def wide_table() -> None:
    """A line for each kind of file and width."""
    print("| what | file | columns | size | seconds | peak memory |")
    print("|---|---|---:|---:|---:|---:|")
    for features in (20_000, 100_000):
        for kind in WIDE_KINDS:
            path = f"{features}.{kind}"
            make_wide(path, features)
            size = sum(f.stat().st_size for f in [Path(path), *Path(path).rglob("*")]) / 1e6
            for what in ("read", *(["fit"] if kind == "npz" else [])):
                script = [sys.executable, str(Path(__file__).resolve()), "--one-wide", path, what]
                run = subprocess.run(script, capture_output=True, text=True, check=True)
                seconds, peak = map(float, run.stdout.split()[-2:])
                print(
                    f"| {what} | {kind} | {features:,} | {size:,.0f} MB | {seconds:.2f} | "
                    f"{peak:,.0f} MB |",
                    flush=True,
                )


def quickest(*works: Callable[[], Any], runs: int = 3) -> list[float]:
    """The least processor time of each, when they take turns."""
    seconds = [float("inf")] * len(works)
    for _ in range(runs):
        for i, work in enumerate(works):
            began = time.process_time()
            work()
            seconds[i] = min(seconds[i], time.process_time() - began)
    return seconds


def csv_table() -> None:
    """A line for each width and number of digits."""
    import pandas as pd

    from skdare.datasets import read

    rng = np.random.default_rng(0)
    print("| features | digits | MB | read, rows/s | / NumPy | / pandas | written | / pandas |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for features in (16, 256, 1024):
        rows = 2_000_000 // features
        labels = np.arange(rows) % 2
        sites = np.array(["north", "south"])[labels]
        for digits in (6, 17):
            X = rng.normal(size=(rows, features))
            data = DomainData(X.round(5) if digits == 6 else X, labels, sites)
            path = f"{features}-{digits}.csv"
            frame = pd.DataFrame(data.X).assign(y=data.y, domain=data.domains)

            def ours(path: str = path, data: DomainData = data) -> None:
                Path(path).unlink(missing_ok=True)
                write(path, data)

            def pandas(frame: pd.DataFrame = frame) -> None:
                frame.to_csv("pandas.csv", index=False)

            def numpy(path: str = path, columns: range = range(features)) -> None:
                np.loadtxt(path, delimiter=",", skiprows=1, usecols=columns)

            written = rows / np.array(quickest(ours, pandas, runs=2))
            loaded = rows / np.array(
                quickest(partial(read, path), numpy, partial(pd.read_csv, path))
            )
            assert np.array_equal(read(path).X, data.X)
            print(
                f"| {features:,} | {digits} | {Path(path).stat().st_size / 1e6:,.0f} | "
                f"{loaded[0]:,.0f} | {loaded[0] / loaded[1]:.1f} | {loaded[0] / loaded[2]:.2f} | "
                f"{written[0]:,.0f} | {written[0] / written[1]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one-wide"]:
        one_wide(*sys.argv[2:])
        sys.exit()
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2:])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--wide", action="store_true", help="tables of very many columns")
    parser.add_argument("--csv", action="store_true", help="CSV beside NumPy and pandas")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if given.csv:
            csv_table()
        elif given.wide:
            wide_table()
        else:
            table(given.rows, given.features)
