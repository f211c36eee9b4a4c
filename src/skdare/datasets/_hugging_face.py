"""Hugging Face datasets: one that is open, or a folder that ``save_to_disk`` wrote.

Neither needs the package ``datasets`` here: an open one hands out Arrow tables, and a folder
holds Arrow streams beside a JSON file that names the classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skdare._validation import InputError
from skdare.arrays import BlockReader
from skdare.datasets._arrow import column_dtype, column_item, column_values, table_values
from skdare.datasets._contents import ArrayInfo, Contents, Key, needing, reading
from skdare.datasets._domain_data import DomainData
from skdare.datasets._entries import distinct
from skdare.datasets._roles import NAMES, assemble, decode
from skdare.persist import check_shape, read_json

_INFO = "dataset_info.json"
_STATE = "state.json"
_SPLITS = "dataset_dict.json"
_REMEDY = "write the folder again with save_to_disk"
_ROWS = 8192  # of a block: 25 MB of 768 float32 features


class ArrowRows(BlockReader):
    """A column of lists in an open Hugging Face dataset, read a block of rows at a time.

    Parameters
    ----------
    dataset : datasets.Dataset
    column : str
    """

    def __init__(self, dataset: Any, column: str) -> None:
        self.column = column
        self._tables = dataset.select_columns([column]).with_format("arrow")
        first = self._read(0, 1)
        self.shape = (len(dataset), first.shape[1])
        self.dtype = first.dtype
        self._block = (0, 0, first[:0])

    def __repr__(self) -> str:
        return f"ArrowRows({self.column!r}, {self.shape[0]} rows, {self.shape[1]} features)"

    def _block_of(self, row: int) -> tuple[int, int, np.ndarray]:
        if not self._block[0] <= row < self._block[1]:
            start = row // _ROWS * _ROWS
            stop = min(start + _ROWS, self.shape[0])
            rows = self._read(start, stop)
            if rows.shape[1] != self.shape[1]:
                raise ValueError(
                    f"{self.column!r} has {self.shape[1]} numbers in row 0 and {rows.shape[1]} in "
                    f"row {start}; every row needs the same number"
                )
            self._block = (start, stop, rows)
        return self._block

    def _read(self, start: int, stop: int) -> np.ndarray:
        what = f"{self.column!r} of the dataset"
        rows = column_values(self._tables[start:stop].column(self.column), what)
        if rows.ndim != 2 or not rows.shape[1] or rows.dtype.kind not in "biuf":
            raise ValueError(
                f"{what} has {rows.dtype} of shape {rows.shape[1:]} in a row; features are lists "
                "of numbers, or several columns of numbers"
            )
        return rows if rows.dtype.kind == "f" else rows.astype(np.float32)


def from_hugging_face(
    dataset: Any,
    *,
    features: str | Sequence[str] | None = None,
    target: str | None = None,
    domains: str | None = None,
    split: str | None = None,
) -> DomainData:
    """Take features, targets and domains from columns of an open Hugging Face dataset.

    A column of lists stays where it is, memory-mapped as a rule, and heads read it a block at a
    time; ``data.X[:]`` loads it. Rows that lie together by domain are read fastest. Labels of
    the type ``ClassLabel`` become the names that they stand for. Infinity is refused only in
    columns of single numbers, NaN nowhere.

    Parameters
    ----------
    dataset : datasets.Dataset
        One split, and not streamed.
    features : str or sequence of str, optional
        A column of lists of numbers, or several columns of numbers. Default: X, features,
        embeddings, embedding or feats.
    target : str, optional
        Default: y, target, label, labels or class.
    domains : str, optional
        Default: domain, domains, d, group, groups, env, site, batch, hospital or source.
    split : str, optional
        A column that marks the rows set aside, as in `read`. Default: none.

    Returns
    -------
    DomainData

    Examples
    --------
    >>> from datasets import Dataset  # doctest: +SKIP
    >>> rows = Dataset.from_parquet("embeddings.parquet")  # doctest: +SKIP
    >>> data = from_hugging_face(rows, features="embedding", domains="site")  # doctest: +SKIP
    >>> head = DAREClassifier().fit(data.X, data.y, domains=data.domains)  # doctest: +SKIP
    """
    _refuse_others(dataset)
    roles = {"target": target, "domains": domains} | ({"split": split} if split else {})
    keys = {role: _column(dataset, role, key) for role, key in roles.items()}
    where = {role: f"{role} {key!r} of the dataset" for role, key in keys.items()}
    where["features"] = "features of the dataset"
    arrays = {role: _values(dataset, key) for role, key in keys.items()}
    if features is None or isinstance(features, str):
        X: Any = ArrowRows(dataset, _column(dataset, "features", features))
        # The labels are checked beside zeros, so that features are not read for it.
        data = assemble({"features": np.zeros((len(X), 1)), **arrays}, where)
        return replace(data, X=X)
    columns = [_column(dataset, "features", key) for key in features]
    arrays["features"] = np.column_stack([_values(dataset, key) for key in columns])
    return assemble(arrays, where, "", columns)


def _refuse_others(dataset: Any) -> None:
    if isinstance(dataset, Mapping):
        raise ValueError(
            f"this is a dict of datasets ({', '.join(map(str, dataset))}); pass one of them, or "
            "datasets.concatenate_datasets of several"
        )
    needed = ("column_names", "features", "select_columns", "with_format", "__len__")
    if not all(hasattr(dataset, name) for name in needed):
        raise TypeError(
            f"dataset is a {type(dataset).__name__}; pass a datasets.Dataset, which can be read "
            "more than once (a streamed one is saved first)"
        )
    if not len(dataset):
        raise ValueError("the dataset has no rows; there is nothing to learn from")


def _column(dataset: Any, role: str, key: str | None) -> str:
    """The column that ``key`` names, or one that goes by a name of the role."""
    columns = list(dataset.column_names)
    if key is None:
        key = next((c for name in NAMES[role] for c in columns if c.lower() == name), None)
    if key is None or key not in columns:
        raise InputError(
            f"no {'column' if key is None else repr(key)} for {role}: the dataset has "
            f"{', '.join(columns)}",
            f"name one with {role}=",
            argument=role,
        )
    return key


def _values(dataset: Any, key: str) -> np.ndarray:
    """One column of single values, decoded where it holds codes of classes."""
    column = dataset.select_columns([key]).with_format("arrow")[:].column(key)
    values = column_values(column, f"{key!r} of the dataset")
    names = getattr(dataset.features[key], "names", None)
    return values if names is None else decode(values, list(names), f"{key!r} of the dataset")


def is_hugging_face(path: Path) -> bool:
    """Whether a folder was written by ``save_to_disk``."""
    return (path / _SPLITS).is_file() or all((path / name).is_file() for name in (_INFO, _STATE))


def read_hugging_face(path: Path) -> Contents:
    """Contents of a folder that ``save_to_disk`` wrote."""
    if (path / _SPLITS).is_file():
        splits = read_json(path / _SPLITS, {"splits": [str]}, remedy=_REMEDY)["splits"]
        example = f", such as {path / splits[0]}" if splits else ""
        raise ValueError(
            f"{path} holds the splits {', '.join(splits) or '(none)'}; give one{example}"
        )
    with needing("parquet", path):
        import pyarrow as pa
    state = read_json(path / _STATE, {"_data_files": [{"filename": str}]}, remedy=_REMEDY)
    # By name alone: what a file says must not lead out of its folder.
    files = [path / Path(entry["filename"]).name for entry in state["_data_files"]]
    for file in files:
        if not file.is_file():
            raise ValueError(f"{path / _STATE} names {file.name}, which is not a file; {_REMEDY}")
    if not files:
        raise ValueError(f"{path / _STATE} names no data files; {_REMEDY}")
    with reading(path, "a dataset that save_to_disk wrote"):
        # Memory maps: what is not asked for is not read.
        parts = [pa.ipc.open_stream(pa.memory_map(str(file))).read_all() for file in files]
        table = pa.concat_tables(parts)
    distinct(table.column_names, path)
    classes = _classes(path / _INFO)

    def load(keys: Sequence[Key]) -> list[np.ndarray]:
        return table_values(table, keys, path, one)

    def one(key: str) -> np.ndarray:
        values = column_values(table.column(key), f"{key} in {path}")
        return decode(values, classes[key], f"{key} in {path}") if key in classes else values

    entries = {name: _info(table, name, name in classes) for name in table.column_names}
    return Contents(path, entries, load, tabular=True)


def _classes(path: Path) -> dict[str, list[str]]:
    """Class names of the columns that hold codes of classes."""
    info = read_json(path, {"features": dict | None}, remedy=_REMEDY, finite=False)
    types = {key: kind for key, kind in (info["features"] or {}).items() if isinstance(kind, dict)}
    labels = {key: kind for key, kind in types.items() if kind.get("_type") == "ClassLabel"}
    try:
        check_shape(labels, {str: {"names": [str]}}, "features")
    except ValueError as error:
        raise ValueError(f"{path} {error}; {_REMEDY}") from error
    return {key: kind["names"] for key, kind in labels.items()}


def _info(table: Any, name: str, is_class: bool) -> ArrayInfo:
    kind = table.schema.field(name).type
    rows = table.num_rows
    dtype = np.dtype(str) if is_class else column_dtype(column_item(kind))
    if column_item(kind) == kind:
        return ArrayInfo((rows,), dtype)
    return ArrayInfo((rows, len(table.column(name)[0]) if rows else 0), dtype)
