"""A small table, and every kind of file that holds it."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse

from skdare.data import DomainData, StoreWriter, write_store

N, D = 24, 3
NAMES = ["height", "width", "mass"]
TARGETS = {
    "classification": np.array(["cat", "dog", "élan"])[np.arange(N) % 3],
    "codes": np.arange(N) % 3,
    "regression": np.arange(N) / 8,
}


def table(task: str = "classification", *, missing: bool = True) -> DomainData:
    """24 rows of features that float16 holds exactly, one of them missing."""
    X = ((np.arange(N * D) * 7) % 31 - 7.5).reshape(N, D) / 4
    if missing:
        X[2, 1] = np.nan
    domains = np.array(["north", "south, far"])[np.arange(N) % 2]
    frame = pd.DataFrame(X, columns=NAMES)
    return DomainData.of(frame, TARGETS[task], domains=domains, groups=np.arange(N) // 3)


def cells(data: DomainData) -> pd.DataFrame:
    """The table with its labels, as a person has it."""
    labels = pd.DataFrame({"site": data.domains, "patient": data.groups, "y": data.y})
    X = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X
    return pd.concat([labels, pd.DataFrame(X, columns=data.feature_names)], axis=1)


def csv_file(name: str, opener: Callable = open, encoding: str = "utf-8", **style) -> Callable:
    """A writer of text: ``index`` and ``blanks`` are oddities, the rest is for `csv.writer`."""
    index, blanks = style.pop("index", False), style.pop("blanks", False)

    def write(folder: Path, data: DomainData) -> Path:
        frame = cells(data)
        if index:
            frame.insert(0, "", range(len(frame)))
        header = [f" {name} " for name in frame.columns] if blanks else frame.columns
        rows = [["" if c != c else c for c in row] for row in frame.astype(object).to_numpy()]
        with opener(folder / name, "wt", encoding=encoding, newline="") as file:
            csv.writer(file, **{"lineterminator": "\n"} | style).writerows([header, *rows])
        return folder / name

    return write


def parquet(folder: Path, data: DomainData) -> Path:
    cells(data).to_parquet(folder / "table.parquet", row_group_size=5)
    return folder / "table.parquet"


def feather(folder: Path, data: DomainData) -> Path:
    cells(data).to_feather(folder / "table.feather")
    return folder / "table.feather"


def npz(folder: Path, data: DomainData) -> Path:
    labels = {"y": data.y, "site": data.domains, "patient": data.groups}
    np.savez(folder / "table.npz", X=data.X, feature_names=NAMES, **labels)
    return folder / "table.npz"


def sparse_npz(folder: Path, data: DomainData, layout: str = "csr") -> Path:
    scipy.sparse.save_npz(folder / "X.npz", scipy.sparse.coo_array(data.X).asformat(layout))
    with np.load(folder / "X.npz") as file:
        labels = {"y": data.y, "site": data.domains, "patient": data.groups}
        np.savez(folder / "table.npz", **file, **labels, feature_names=NAMES)
    (folder / "X.npz").unlink()
    return folder / "table.npz"


def store(folder: Path, data: DomainData) -> Path:
    write_store(folder / "table", data)
    return folder / "table"


def shards(folder: Path, data: DomainData) -> Path:
    with StoreWriter(folder / "table", NAMES, dtype="float64", rows_per_shard=7) as writer:
        for start in range(0, N, 4):
            part = slice(start, start + 4)
            labels = {name: values[part] for name, values in data.labels.items()}
            writer.append(data.X[part], **labels)
    return folder / "table"


TEXT = {
    "commas": csv_file("table.csv"),
    "semicolons": csv_file("table.csv", delimiter=";"),
    "tabs": csv_file("table.csv", delimiter="\t"),
    "tsv": csv_file("table.tsv", delimiter="\t"),
    "gz": csv_file("table.csv.gz", gzip.open),
    "bz2": csv_file("table.csv.bz2", bz2.open),
    "xz": csv_file("table.csv.xz", lzma.open),
    "byte order mark": csv_file("table.csv", encoding="utf-8-sig"),
    "carriage returns": csv_file("table.csv", lineterminator="\r\n"),
    "blank lines": csv_file("table.csv", lineterminator="\n\n"),
    "quotes": csv_file("table.csv", quoting=csv.QUOTE_ALL),
    "capital letters": csv_file("TABLE.CSV"),
    "index": csv_file("table.csv", index=True),
    "blanks in the header": csv_file("table.csv", blanks=True),
}
ARROW = {"parquet": parquet, "feather": feather}
ARRAYS = {"npz": npz, "sparse npz": sparse_npz, "store": store, "shards": shards}
WRITERS: dict[str, Callable[[Path, DomainData], Path]] = {**TEXT, **ARROW, **ARRAYS}


def roles(form: str) -> dict[str, str]:
    """What to call the columns: a store has names of its own."""
    groups = "groups" if form in ("store", "shards") else "patient"
    return {"target": "y", "groups": groups}


def dense(X) -> np.ndarray:
    return X.toarray() if scipy.sparse.issparse(X) else X[:]
