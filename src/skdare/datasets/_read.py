"""From a path to features, targets and domains: all in memory, or features some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skdare.datasets._contents import Contents
from skdare.datasets._csv import typed_labels
from skdare.datasets._domain_data import DomainData
from skdare.datasets._entries import (
    choose,
    columns_of,
    feature_names_of,
    is_label,
    load_entries,
    main_entry,
    named_columns,
    places,
    side_by_side,
)
from skdare.datasets._formats import is_csv, open_contents, open_stream, stem
from skdare.datasets._lazy_rows import ChunkedRows
from skdare.datasets._numpy_files import read_npy
from skdare.datasets._roles import (
    assemble,
    decode,
    features_alone,
    features_matrix,
    masked_integers,
    refuse_infinity,
)
from skdare.datasets._row_source import rows_at_a_time


def read(
    path: str | Path,
    *,
    features: str | None = None,
    target: str | None = None,
    domains: str | None = None,
    split: str | None = None,
    groups: str | None = None,
    missing: str = "refuse",
) -> DomainData:
    """Read features, targets and domain labels from a file or a feature store.

    ``.npz``, ``.parquet``, ``.csv``, ``.csv.gz``, ``.safetensors``, ``.pt``, ``.pth``, or a
    folder made by ``write_store``, by ``StoreWriter``, or by ``save_to_disk`` of Hugging Face.
    Names that are not given are guessed, and a guess between two candidates is refused. Features
    stay in their float type, integers and 8-bit codes become float32; NaN is left in,
    infinity is refused. A store of one shard stays on disk, several shards are loaded into one
    array (``read_chunks`` loads none of them).

    Parameters
    ----------
    path : str or Path
    features : str, optional
        A key; or in CSV and Parquet a column of lists, or columns separated by commas, where
        ``feat_*`` stands for all that match. Default: a 2-D array called X, features,
        embeddings, embedding or feats, else the only 2-D array of floats; or all numeric
        columns that are not labels or numbers of rows.
    target : str, optional
        Default: y, target, label, labels or class. Beside a file of arrays, such as a matrix that
        ``scipy.sparse.save_npz`` wrote, this and the other labels may be ``.npy`` files.
    domains : str, optional
        Default: domain, domains, d, group, groups, env, site, batch, hospital or source;
        ``""``: all rows are one domain.
    split : str, optional
        False, 0, train or in; and True, 1, test, val, valid, validation or out for the
        reserved rows. Default: split or fold where there is one; ``""``: none.
    groups : str, optional
        The patient, song or specimen that each row is of. Default: none.
    missing : "refuse", "drop" or "keep"
        What to do with rows that have no label or no domain. They are kept for `check_data` alone.

    Returns
    -------
    DomainData

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skdare.datasets import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", X=np.eye(4), gas=[0, 1, 0, 1], site=list("nnss"))
    ...     read(f"{folder}/a.npz", target="gas").domains
    array(['n', 'n', 's', 's'], dtype='<U1')
    """
    path = Path(path)
    named = {
        "features": features,
        "target": target,
        "domains": domains,
        "split": split,
        "groups": groups,
    }
    contents = open_contents(path, lambda name: is_label(name, named))
    contents = _with_label_files(contents, named)
    keys = choose(contents, named)
    where = places(keys, path)
    arrays = {}
    for role, chosen in keys.items():
        arrays[role] = load_entries(contents, chosen)
        if (names := contents.names.get(role)) is not None:
            arrays[role] = decode(arrays[role], names, where[role])
    (target_key,) = keys["target"]
    arrays["target"] = masked_integers(arrays["target"], contents.entries[target_key].dtype)
    feature_names = feature_names_of(contents, keys["features"])
    data = assemble(arrays, where, stem(path), feature_names, missing, contents.place)
    return _named(replace(data, made=contents.made), keys)


def _with_label_files(contents: Contents, named: dict[str, str | None]) -> Contents:
    """The arrays of a file, and labels that are in ``.npy`` files of their own."""
    files = {
        name: read_npy(Path(name))
        for role, name in named.items()
        if name and role != "features" and name not in contents.entries
        if name.endswith(".npy") and Path(name).is_file()
    }
    if contents.tabular or not files:
        return contents

    def load(keys: list[Any]) -> list[np.ndarray]:
        return [
            files[key].load(["X"])[0] if key in files else contents.load([key])[0] for key in keys
        ]

    entries = {name: file.entries["X"] for name, file in files.items()}
    return replace(contents, entries={**contents.entries, **entries}, load=load, stream=None)


def read_unlabelled(
    path: str | Path, *, names: Sequence[str] | None = None, key: str | None = None
) -> np.ndarray:
    """Read features alone, of rows without labels.

    Labels that a file has all the same are left out.

    Parameters
    ----------
    path : str or Path
        As for `read`, or an array in a ``.npy`` file.
    names : sequence of str, optional
        The features in their order: columns of a table are taken by these names.
    key : str, optional
        As ``features`` in `read`, where no names are known.

    Returns
    -------
    array of shape (n, d)
    """
    path = Path(path)
    contents = open_contents(path, lambda name: is_label(name, {}))
    main = main_entry(contents, key)
    if main is not None:
        columns = [main]
    elif names is not None:
        columns = named_columns(contents, names)
    else:
        columns = columns_of(contents, key, set())
    X = load_entries(contents, columns)
    return features_alone(X, f"the table of features in {path}", contents.place)


def stream_table(
    path: str | Path,
    *,
    features: str | None = None,
    target: str | None = None,
    domains: str | None = None,
    split: str | None = None,
    groups: str | None = None,
) -> DomainData:
    """Read a table like `read`, but leave its features in the file.

    They are read again in every pass, chunk after chunk: to fit a head to a table that is larger
    than memory, convert it to a feature store first, which is read much faster.

    Parameters
    ----------
    path : str or Path
        A file that `read` takes; ``.pt`` is loaded.
    features, target, domains, split, groups : str, optional
        As for `read`.

    Returns
    -------
    DomainData
        Whose ``X`` is `ChunkedRows`.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, stream_table, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/latent.csv", make_latent_domains(n_rows=5, random_state=0))
    ...     stream_table(f"{folder}/latent.csv").X[:3].shape
    (3, 8)
    """
    path = Path(path)
    named = {
        "features": features,
        "target": target,
        "domains": domains,
        "split": split,
        "groups": groups,
    }
    contents = open_stream(path, lambda name: is_label(name, named))
    keys = choose(contents, named)
    where = places(keys, path)
    labels = {
        role: _labels(contents, role, chosen[0], where)
        for role, chosen in keys.items()
        if role != "features"
    }
    columns = keys["features"]
    feature_names = feature_names_of(contents, columns)
    n = len(labels["target"])
    # Labels are checked beside zeros, one for each row of features. How many rows of text there
    # are only reading all of them tells, and each has a cell for every column.
    shape = contents.entries[columns[0]].shape
    rows = n if is_csv(path) else int(np.prod(shape[:1]))
    zeros = np.broadcast_to(np.float32(0), (rows, 1))
    data = assemble({"features": zeros, **labels}, where, stem(path), place=contents.place)
    width = shape[1] if len(shape) == 2 else len(columns)
    key = side_by_side(contents, columns)

    def matrices() -> Iterator[np.ndarray]:
        start = 0
        for (values,) in contents.visit([key], rows_at_a_time(width)):
            X = features_matrix(values, where["features"])
            refuse_infinity(X, where["features"], feature_names, start, contents.place)
            yield X
            start += len(X)

    dtypes = {contents.entries[column].dtype for column in columns}
    dtype = features_matrix(np.zeros((1, 1), np.result_type(*dtypes)), where["features"]).dtype
    X: Any = ChunkedRows(matrices, n, width, dtype)
    return _named(replace(data, X=X, feature_names=feature_names), keys)


def _named(data: DomainData, keys: dict[str, list[str]]) -> DomainData:
    """The data with what targets and domains are called in the file; other files name nothing."""
    names = {
        role: key
        for role, (key, *_) in keys.items()
        if role in ("target", "domains") and not key.endswith(".npy")
    }
    return replace(data, target_name=names.get("target"), domain_name=names.get("domains"))


def _labels(contents: Contents, role: str, key: str, where: dict[str, str]) -> np.ndarray:
    parts = [values for (values,) in contents.visit([key], rows_at_a_time(1))]
    if not parts:
        raise ValueError(f"{contents.path} has no rows; there is nothing to learn from")
    labels = np.concatenate(parts)
    if is_csv(contents.path):
        return typed_labels(labels.tolist())
    names = contents.names.get(role)
    return labels if names is None else decode(labels, names, where[role])
