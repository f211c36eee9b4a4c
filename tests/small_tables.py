"""A small table, and every kind of file that it can be written as."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skdare.datasets import DomainData, write_store

N = 12
D = 3


def table(task: str = "classification") -> DomainData:
    """12 rows, 3 features that float16 holds exactly, one of them missing."""
    X = (np.arange(N * D).reshape(N, D) - 7.5) / 4
    X[2, 1] = np.nan
    y = np.array(["cat", "dog", "élan"])[np.arange(N) % 3]
    if task == "regression":
        y = np.arange(N) / 8
    elif task == "codes":
        y = np.arange(N) % 3
    domains = np.array(["north", "south, far"])[np.arange(N) % 2]
    return DomainData(X, y, domains, np.arange(N) % 5 == 0, "table")


def as_columns(data: DomainData) -> dict[str, list]:
    X = {f"feat_{j}": data.X[:, j].tolist() for j in range(data.X.shape[1])}
    labels = {"y": data.y.tolist(), "domain": data.domains.tolist()}
    split = {} if data.split is None else {"split": data.split.tolist()}
    return {"id": list(range(len(data.y))), **X, **labels, **split}


def as_codes(data: DomainData) -> tuple[dict[str, np.ndarray], dict[str, list]]:
    """Numbers only, and the names that integers stand for."""
    arrays, names = {"X": data.X, "y": data.y}, {}
    if data.y.dtype.kind == "U":
        values, arrays["y"] = np.unique(data.y, return_inverse=True)
        names["classes"] = values.tolist()
    values, arrays["domain"] = np.unique(data.domains, return_inverse=True)
    return {**arrays, "split": data.split}, {**names, "domains": values.tolist()}


def write_npz(folder: Path, data: DomainData) -> Path:
    path = folder / "table.npz"
    np.savez(path, X=data.X, y=data.y, domain=data.domains, split=data.split)
    return path


def csv_writer(suffix: str, delimiter: str, encoding: str = "utf-8") -> Callable:
    def write(folder: Path, data: DomainData) -> Path:
        path = folder / f"table{suffix}"
        columns = as_columns(data)
        opener = gzip.open if suffix.endswith("gz") else open
        with opener(path, "wt", encoding=encoding, newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([columns, *zip(*columns.values(), strict=True)])
        return path

    return write


def write_parquet(folder: Path, data: DomainData) -> Path:
    pa, pq = parquet()
    pq.write_table(pa.table(as_columns(data)), folder / "table.parquet", row_group_size=5)
    return folder / "table.parquet"


def write_parquet_lists(folder: Path, data: DomainData, size: int = -1) -> Path:
    pa, pq = parquet()
    columns = {k: v for k, v in as_columns(data).items() if not k.startswith("feat_")}
    columns["domain"] = pa.array(columns["domain"]).dictionary_encode()
    columns["embedding"] = pa.array(data.X.tolist(), pa.list_(pa.float64(), size))
    pq.write_table(pa.table(columns), folder / "table.parquet", row_group_size=5)
    return folder / "table.parquet"


def write_parquet_fixed_lists(folder: Path, data: DomainData) -> Path:
    return write_parquet_lists(folder, data, D)


def write_safetensors(folder: Path, data: DomainData) -> Path:
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    arrays, names = as_codes(data)
    path = folder / "table.safetensors"
    safetensors.save_file(arrays, path, metadata={k: json.dumps(v) for k, v in names.items()})
    return path


def write_torch(folder: Path, data: DomainData) -> Path:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    arrays = {"X": torch.tensor(data.X), "y": data.y.tolist(), "domain": data.domains.tolist()}
    torch.save({**arrays, "split": torch.tensor(data.split), "epoch": 3}, folder / "table.pt")
    return folder / "table.pt"


def write_one_shard(folder: Path, data: DomainData) -> Path:
    write_store(folder / "table", data)
    return folder / "table"


def write_two_shards(folder: Path, data: DomainData) -> Path:
    write_store(folder / "table", data, rows_per_shard=7)
    return folder / "table"


def write_version_1(folder: Path, data: DomainData) -> Path:
    """Two shards, as the first version had them: names of files, and no checksums."""
    arrays, names = as_codes(data)
    arrays = {"features": arrays["X"], "labels": arrays["y"], "domains": arrays["domain"]}
    arrays["split"] = data.split
    shards = []
    for number, rows in enumerate((slice(0, 5), slice(5, N))):
        shard = {key: f"{key}-{number}.npy" for key in arrays}
        (folder / "table").mkdir(exist_ok=True)
        for key, name in shard.items():
            np.save(folder / "table" / name, arrays[key][rows])
        shards.append({"rows": len(range(N)[rows]), **shard})
    manifest = {"format": "skdare-features", "version": 1, "rows": N, "features": D}
    manifest |= {"dtype": data.X.dtype.name, "classes": None, "feature_names": None}
    manifest |= {"shards": shards, **names}
    (folder / "table" / "manifest.json").write_text(json.dumps(manifest))
    return folder / "table"


WRITERS = {
    "npz": write_npz,
    "csv": csv_writer(".csv", ","),
    "csv with semicolons": csv_writer(".csv", ";"),
    "csv with tabs and a BOM": csv_writer(".CSV", "\t", "utf-8-sig"),
    "csv.gz": csv_writer(".csv.gz", ","),
    "parquet": write_parquet,
    "parquet with lists": write_parquet_lists,
    "parquet with fixed lists": write_parquet_fixed_lists,
    "safetensors": write_safetensors,
    "torch": write_torch,
    "store": write_one_shard,
    "store of two shards": write_two_shards,
    "store of version 1": write_version_1,
}


def parquet():
    return (
        pytest.importorskip("pyarrow", reason="pyarrow is not installed"),
        pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed"),
    )
