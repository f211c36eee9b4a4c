"""A Dask cluster as a user starts one, and rows in every place that its workers can read."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dask.array as da
import distributed
import numpy as np
from scipy import sparse

import skdare
from interrupts import PATIENCE
from skdare.datasets import ChunkedRows, DomainData, StoreWriter, make_latent_domains, open_table

OPTIONS = {
    "DAREClassifierCV": {"l2": (0.01,), "shrinkage": (0.5,), "strategies": ("erm", "raw")},
    "DARERegressorCV": {"l2": (0.01,), "shrinkage": (0.5,), "strategies": ("erm", "raw")},
    "AnchorRegressor": {"adjust": True},
}


def problem(task: str = "classification", dtype=np.float64) -> DomainData:
    data = make_latent_domains(3, 300, 6, task=task, random_state=0)
    order = np.random.default_rng(0).permutation(len(data.y))
    # Exact in float16, so that every way of keeping them keeps the same numbers.
    X = data.X[order].astype(np.float16).astype(dtype)
    return DomainData(X, data.y[order], data.domains[order])


def fit(name: str, data: DomainData, X=None, *, sample_weight=None, **options):
    head = getattr(skdare, name)(**OPTIONS.get(name, {}), **options)
    X = data.X if X is None else X
    return head.fit(X, data.y, domains=data.domains, sample_weight=sample_weight)


def in_store(path, data: DomainData, dtype: str):
    with StoreWriter(path, features=6, dtype=dtype, rows_per_shard=170) as writer:
        writer.append(data.X, data.y, data.domains)
    return open_table(path).X


def mapped(path, data: DomainData):
    np.save(path / "X.npy", np.concatenate([data.X[:100] + 7, data.X]))
    return np.load(path / "X.npy", mmap_mode="r")[100:]


WAYS = {
    "store": lambda path, data: in_store(path / "store", data, "float64"),
    "float16 store": lambda path, data: in_store(path / "store", data, "float16"),
    "codes": lambda path, data: in_store(path / "store", data, "uint8"),
    "part of a memory map": mapped,
    "CSR": lambda path, data: sparse.csr_matrix(data.X),
    "chunks": lambda path, data: ChunkedRows(
        lambda: np.array_split(data.X, 7), *data.X.shape, data.X.dtype
    ),
    "dask.array": lambda path, data: da.from_array(data.X, chunks=(130, 4)),
}


def held_by(client, expected: int = 0) -> list:
    """Everything that the scheduler knows of, once it has heard of what was dropped."""
    end = time.monotonic() + PATIENCE
    while True:
        tasks = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if len(tasks) == expected or time.monotonic() > end:
            return tasks
        time.sleep(0.05)


@contextmanager
def processes(folder: Path, *workers: str):
    """A scheduler and workers with these options, and a client in scope."""
    started: list[subprocess.Popen] = []
    known = folder / "scheduler.json"

    def start(*arguments: str) -> subprocess.Popen:
        options = ("--scheduler-file", str(known), "--host", "127.0.0.1", "--no-dashboard")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = [sys.executable, "-m", "dask", *arguments, *options, "--dashboard-address", ":0"]
        started.append(subprocess.Popen(run, **quiet))
        return started[-1]

    try:
        scheduler = start("scheduler", "--port", "0")
        for options in workers:
            start("worker", "--nthreads", "1", *options.split())
        while not known.exists():
            assert scheduler.poll() is None, "the scheduler ended by itself"
            time.sleep(0.05)
        with (
            distributed.Client(scheduler_file=str(known), set_as_default=False) as client,
            client.as_current(),
        ):
            client.wait_for_workers(len(workers), timeout=PATIENCE)
            yield client, scheduler
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
