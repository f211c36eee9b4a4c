"""From a table to a path: the kinds of files that `read` understands."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skdare.datasets._contents import needing
from skdare.datasets._entries import IDS, LABEL_NAMES
from skdare.datasets._manifest import CODES, DTYPES
from skdare.datasets._row_writer import encoded
from skdare.datasets._store_codes import blocks, refuse_beyond
from skdare.datasets._store_table import checked_table, write_store
from skdare.datasets._store_writer import refuse_existing
from skdare.datasets._table import DomainData
from skdare.persist import whole_file

Table = dict[str, Any]


def write(path: str | Path, data: DomainData, *, dtype: str | None = None, ids: Any = None) -> None:
    """Write a table such that `read` gives it back: a file, or a feature store.

    ``.npz``, ``.csv``, ``.csv.gz``, ``.parquet`` and ``.safetensors`` files, by the name of the
    path; any other name is that of a feature store, the only kind that keeps how the features
    were made. It appears whole or not at all, and what exists is never overwritten.

    Parameters
    ----------
    path : str or Path
    data : DomainData
    dtype : {"float64", "float32", "float16", "uint8"}, optional
        How features are kept; "uint8", 8-bit codes, in a feature store only. Default: as they are.
    ids : n str, optional
        What rows are called; not kept in ``.safetensors``.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/latent.csv", make_latent_domains(n_rows=5, random_state=0))
    ...     read(f"{folder}/latent.csv").X.shape
    (20, 8)
    """
    path = Path(path)
    refuse_existing(path)
    suffix = _suffix(path)
    if suffix is None:
        return write_store(path, data, dtype=dtype, ids=ids)
    if suffix in _UNWRITTEN:
        raise ValueError(f"{suffix} is only read; write .safetensors, or a feature store")
    table = _arrays(data, dtype, ids)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        _WRITERS[suffix](file, table, path)
    return None


def is_store_name(path: str | Path) -> bool:
    """Whether `write` makes a feature store of a path: where its suffix is that of no file.

    Parameters
    ----------
    path : str or Path

    Examples
    --------
    >>> from skdare.datasets._write import is_store_name
    >>> is_store_name("features"), is_store_name("features.npz")
    (True, False)
    """
    return _suffix(Path(path)) is None


def _suffix(path: Path) -> str | None:
    known = (*_WRITERS, *_UNWRITTEN)
    return next((suffix for suffix in known if path.name.lower().endswith(suffix)), None)


def _arrays(data: DomainData, dtype: str | None, ids: Any) -> Table:
    """What there is, by the names that files give it, the features first."""
    data = checked_table(data)
    if dtype is not None:
        if dtype == CODES or dtype not in DTYPES:
            raise ValueError(f"dtype is {dtype!r}; float64, float32 or float16 fit such a file")
        refuse_beyond(data.X, dtype)
    X = data.X if dtype is None else data.X.astype(dtype, copy=False)
    held: Table = {"X": X, "y": data.y, "domain": data.domains, "split": data.split}
    held |= {"feature_names": data.feature_names, "id": None if ids is None else np.asarray(ids)}
    return {key: values for key, values in held.items() if values is not None}


def _npz(file: BinaryIO, table: Table, path: Path) -> None:
    np.savez(file, **table)


def _csv(file: BinaryIO, table: Table, path: Path) -> None:
    labels = [key for key in ("y", "domain", "split", "id") if key in table]
    with encoded(file, path) as text:
        writer = csv.writer(text)
        writer.writerow([*_column_names(table, path), *labels])
        for start, rows in blocks(table["X"]):
            beside = (table[key][start : start + len(rows)].tolist() for key in labels)
            writer.writerows([*x, *rest] for x, *rest in zip(rows.tolist(), *beside, strict=True))


def _parquet(file: BinaryIO, table: Table, path: Path) -> None:
    with needing("parquet", path):
        import pyarrow as pa
        import pyarrow.parquet as pq
    X = table["X"]
    if "feature_names" in table:
        columns = {name: pa.array(X[:, j]) for j, name in enumerate(_column_names(table, path))}
    else:
        flat = pa.array(np.ascontiguousarray(X).ravel())
        columns = {"features": pa.FixedSizeListArray.from_arrays(flat, X.shape[1])}
    labels = {k: pa.array(table[k]) for k in ("y", "domain", "split", "id") if k in table}
    pq.write_table(pa.table(columns | labels), file)


def _safetensors(file: BinaryIO, table: Table, path: Path) -> None:
    """Numbers only: text becomes codes, and its names metadata."""
    with needing("safetensors", path):
        from safetensors.numpy import save
    arrays = {k: np.ascontiguousarray(v) for k, v in table.items() if k in ("X", "split")}
    names = {}
    for key, called in (("y", "classes"), ("domain", "domains")):
        arrays[key] = np.ascontiguousarray(table[key])
        if arrays[key].dtype.kind == "U":
            present, arrays[key] = np.unique(table[key], return_inverse=True)
            names[called] = json.dumps(present.tolist())
    # Not save_file, which puts a file of its own, with a mode of its own, in the place of this one.
    file.write(save(arrays, metadata=names))


def _column_names(table: Table, path: Path) -> list[str]:
    """The names of the features, refused where they could not be told from others again."""
    names = table.get("feature_names") or [f"feat_{j}" for j in range(table["X"].shape[1])]
    taken = {name for name in names if name.strip().lower() in LABEL_NAMES | IDS}
    odd = {name for name in names if not name.strip() or set(name) & set(',;\t"\r\n')}
    if taken or odd or len(set(names)) < len(names):
        told = min(taken | odd, default="the same name twice")
        raise ValueError(
            f"the features have {told!r}, which cannot name a column of {path}; rename it, or "
            "write .npz or a feature store"
        )
    return names


_WRITERS: dict[str, Callable[[BinaryIO, Table, Path], None]] = {
    ".npz": _npz,
    ".csv": _csv,
    ".csv.gz": _csv,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
_UNWRITTEN = (".pt", ".pth")
