"""From a path to features, targets and domains: which reader, and which entry is which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from skdare.datasets._arrays import read_npy, read_npz, read_safetensors, read_torch
from skdare.datasets._columns import read_csv, read_parquet
from skdare.datasets._contents import Contents
from skdare.datasets._entries import (
    LABELS,
    choose,
    columns_of,
    feature_names_of,
    is_label,
    load_entries,
    main_entry,
    places,
)
from skdare.datasets._hugging_face import is_hugging_face, read_hugging_face
from skdare.datasets._roles import assemble, decode, features_alone
from skdare.datasets._store import read_store
from skdare.datasets._table import DomainData
from skdare.persist import open_file

_READERS = {
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".safetensors": read_safetensors,
    ".pt": read_torch,
    ".pth": read_torch,
}
_CSV = (".csv.gz", ".csv")


def read(
    path: str | Path,
    *,
    features: str | None = None,
    target: str | None = None,
    domains: str | None = None,
    split: str | None = None,
) -> DomainData:
    """Read features, targets and domain labels from a file or a feature store.

    ``.npz``, ``.parquet``, ``.csv``, ``.csv.gz``, ``.safetensors``, ``.pt``, ``.pth``, or a
    folder made by ``write_store``, by ``StoreWriter``, or by ``save_to_disk`` of Hugging Face.
    Names that are not given are guessed, and a guess between two candidates is refused. Features
    stay in the float type they have, integers and 8-bit codes become float32; NaN is left in,
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
        Default: y, target, label, labels or class.
    domains : str, optional
        Default: domain, domains, d, group, groups, env, site, batch, hospital or source.
    split : str, optional
        False, 0, train or in; and True, 1, test, val, valid, validation or out for the
        reserved rows. Default: split or fold where there is one; ``""``: none.

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
    named = {"features": features, "target": target, "domains": domains, "split": split}
    contents = _open(path, named)
    keys = choose(contents, named)
    where = places(keys, path)
    arrays = {}
    for role, chosen in keys.items():
        arrays[role] = load_entries(contents, chosen)
        if (names := contents.names.get(role)) is not None:
            arrays[role] = decode(arrays[role], names, where[role])
    names_of_features = feature_names_of(contents, keys["features"])
    data = assemble(arrays, where, stem(path), names_of_features)
    return replace(data, made=contents.made)


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
    where = f"features in {path}"
    contents = opened(path)
    main = main_entry(contents, key)
    if main is not None:
        return features_alone(load_entries(contents, [main]), where)
    if names is not None:
        missing = [name for name in names if name not in contents.entries]
        if missing:
            raise ValueError(
                f"{path} has no column {missing[0]!r}, which the training rows have; it has "
                f"{contents.listing()}"
            )
        return features_alone(load_entries(contents, list(names)), where)
    return features_alone(load_entries(contents, columns_of(contents, key, set())), where)


def opened(path: Path) -> Contents:
    """What a file or a store holds, where no entry is named; an ``.npy`` file holds features."""
    if path.suffix.lower() == ".npy" and path.is_file():
        return read_npy(path)
    return _open(path, dict.fromkeys(LABELS))


def is_csv(path: Path) -> bool:
    """Whether the name is that of a CSV file."""
    return _suffix(path) in _CSV


def _open(path: Path, named: dict[str, str | None]) -> Contents:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the path of a file or a store")
    if path.is_dir():
        return read_hugging_face(path) if is_hugging_face(path) else read_store(path)
    suffix = _suffix(path)
    if not suffix:
        known = ", ".join((*_READERS, *_CSV))
        raise ValueError(f"{path} is of no known kind; skdare reads {known} and feature stores")
    open_file(path).close()
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; write it again")
    if suffix in _CSV:
        return read_csv(path, lambda name: is_label(name, named))
    return _READERS[suffix](path)


def _suffix(path: Path) -> str:
    return next((s for s in (*_CSV, *_READERS) if path.name.lower().endswith(s)), "")


def stem(path: Path) -> str:
    """What a file or store is called, without its suffix."""
    return path.resolve().name if path.is_dir() else path.name[: -len(_suffix(path))]
