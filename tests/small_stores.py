"""A small table, and a writer that puts it into a feature store a few rows at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from skdare.datasets import DomainData, StoreWriter

N = 23
D = 4
LABELS = {
    "text": np.array(["cat", "dog", "élan"])[np.arange(N) % 3],
    "whole": np.arange(N) % 3,
    "many whole": np.arange(N) * 7,
    "real": np.arange(N) / 8,
    "few real": np.arange(N) % 3 * 1.0,
    "bool": np.arange(N) % 3 == 0,
}
MADE = {"backbone": "resnet50", "held_out": None, "trial": 0, "sizes": [256, 224]}
# Stored as 8-bit codes, in shards of 9 rows.
CODED = {"dtype": "uint8", "rows_per_shard": 9}


def table(labels: str = "text", dtype: str = "float32") -> DomainData:
    """23 rows of 4 features that float16 holds exactly."""
    X = ((np.arange(N * D).reshape(N, D) * 37) % 101 - 40).astype(dtype) / 4
    domains = np.array(["north", "south, far"])[np.arange(N) // 2 % 2]
    names = [f"f{j}" for j in range(D)]
    return DomainData(X, LABELS[labels], domains, np.arange(N) % 5 == 0, "table", names, MADE)


def rows_of(data: DomainData, rows: slice) -> DomainData:
    split = None if data.split is None else data.split[rows]
    return replace(data, X=data.X[rows], y=data.y[rows], domains=data.domains[rows], split=split)


def begin(path: Path, **options) -> StoreWriter:
    options = {"features": D, "rows_per_shard": 5, "made": MADE, **options}
    return StoreWriter(path, **options)


def feed(writer: StoreWriter, data: DomainData, step: int = 3, stop: int = N) -> None:
    """The rows that are not on file yet, a few at a time."""
    for start in range(writer.rows, stop, step):
        part = rows_of(data, slice(start, min(start + step, stop)))
        ids = [f"{start + i}.jpg" for i in range(len(part.X))]
        writer.append(part.X, part.y, part.domains, part.split, ids)
