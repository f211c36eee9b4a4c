"""From a path to features, targets and domains: which reader, and which entry is which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from skdare._validation import warn
from skdare.datasets._arrays import read_npz, read_safetensors, read_torch
from skdare.datasets._columns import read_csv, read_parquet
from skdare.datasets._contents import Contents
from skdare.datasets._hugging_face import is_hugging_face, read_hugging_face
from skdare.datasets._roles import NAMES, assemble, decode, features_alone
from skdare.datasets._store import read_store
from skdare.datasets._table import DomainData

_LABELS = ("target", "domains", "split")
LABEL_NAMES = {name for role in _LABELS for name in NAMES[role]}
IDS = {"id", "index", "unnamed: 0", "__index_level_0__"}
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
    keys = _choose(contents, named)
    where = {
        role: f"{role} {chosen[0]!r} in {path}" if len(chosen) == 1 else f"{role} in {path}"
        for role, chosen in keys.items()
    }
    arrays = {}
    for role, chosen in keys.items():
        arrays[role] = _load(contents, chosen)
        if (names := contents.names.get(role)) is not None:
            arrays[role] = decode(arrays[role], names, where[role])
    names_of_features = _feature_names(contents, keys["features"])
    data = assemble(arrays, where, _stem(path), names_of_features)
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
    if path.suffix == ".npy" and path.exists():
        return features_alone(np.load(path, allow_pickle=False), where)
    contents = _open(path, dict.fromkeys(_LABELS))
    main = _main(contents, {"features": key})
    if main is not None:
        return features_alone(_load(contents, [main]), where)
    if names is not None:
        missing = [name for name in names if name not in contents.entries]
        if missing:
            raise ValueError(
                f"{path} has no column {missing[0]!r}, which the training rows have; it has "
                f"{contents.listing()}"
            )
        return features_alone(_load(contents, list(names)), where)
    return features_alone(_load(contents, _columns(contents, key, set())), where)


def _open(path: Path, named: dict[str, str | None]) -> Contents:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the path of a file or a store")
    if path.is_dir():
        return read_hugging_face(path) if is_hugging_face(path) else read_store(path)
    suffix = _suffix(path)
    if not suffix:
        known = ", ".join((*_READERS, *_CSV))
        raise ValueError(f"{path} is of no known kind; skdare reads {known} and feature stores")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; write it again")
    if suffix in _CSV:
        labels = {named[role] for role in _LABELS}
        return read_csv(path, lambda name: name in labels or name.lower() in LABEL_NAMES)
    return _READERS[suffix](path)


def _suffix(path: Path) -> str:
    return next((s for s in (*_CSV, *_READERS) if path.name.lower().endswith(s)), "")


def _stem(path: Path) -> str:
    return path.resolve().name if path.is_dir() else path.name[: -len(_suffix(path))]


def _choose(contents: Contents, named: dict[str, str | None]) -> dict[str, list[str]]:
    """The entries of each role."""
    main = _main(contents, named)
    keys = {}
    for role in _LABELS:
        key = named[role]
        if key is None:
            called = _called(contents, role, named)
            agree = [k for k in called if not main or _rows(contents, k) == _rows(contents, main)]
            key = _only(contents, role, agree) or next(iter(called), None)
        if key or role != "split":
            keys[role] = [_present(contents, role, key)]
    used = {key for chosen in keys.values() for key in chosen}
    return {"features": [main] if main else _columns(contents, named["features"], used), **keys}


def _main(contents: Contents, named: dict[str, str | None]) -> str | None:
    """The one entry that holds all features; None where a table spreads them over columns."""
    if named["features"] is not None:
        return None if contents.tabular else _present(contents, "features", named["features"])
    wide = [k for k in _called(contents, "features", named) if len(contents.entries[k].shape) > 1]
    floats = [
        key
        for key, entry in contents.entries.items()
        if len(entry.shape) == 2 and entry.dtype.kind == "f"
        if key not in named.values() and key.lower() not in LABEL_NAMES
    ]
    main = _only(contents, "features", wide) or _only(contents, "features", floats)
    return main if main or contents.tabular else _present(contents, "features", None)


def _rows(contents: Contents, key: str) -> tuple[int, ...]:
    return contents.entries[key].shape[:1]


def _called(contents: Contents, role: str, named: dict[str, str | None]) -> list[str]:
    """Entries that go by a name of the role, in the order of those names; no scalars."""
    free = [k for k, e in contents.entries.items() if e.shape and k not in named.values()]
    return [key for name in NAMES[role] for key in free if key.lower() == name]


def _only(contents: Contents, role: str, candidates: list[str]) -> str | None:
    if len(candidates) > 1:
        raise ValueError(
            f"{contents.path} has {len(candidates)} candidates for {role}: "
            f"{', '.join(f'{k} {contents.entries[k]}' for k in candidates)}; name one with {role}="
        )
    return next(iter(candidates), None)


def _present(contents: Contents, role: str, key: str | None) -> str:
    if key is not None and key in contents.entries:
        return key
    found = f"no {role} found" if key is None else f"no {key!r} for {role}"
    raise ValueError(
        f"{found} in {contents.path}: it has {contents.listing()}; name one with {role}="
    )


def _columns(contents: Contents, pattern: str | None, used: set[str]) -> list[str]:
    """The columns of a table that a list or pattern names, or all that can be features."""
    if pattern is None:
        return _numeric_columns(contents, used)
    chosen: dict[str, None] = {}
    for part in map(str.strip, pattern.split(",")):
        matching = [k for k in contents.entries if fnmatchcase(k, part) and k not in used]
        chosen |= dict.fromkeys(matching or [_present(contents, "features", part)])
    text = [key for key in chosen if not contents.entries[key].numeric]
    if text:
        raise ValueError(f"column {text[0]!r} of {contents.path} is text; features are numbers")
    return list(chosen)


def _numeric_columns(contents: Contents, used: set[str]) -> list[str]:
    others = [k for k in contents.entries if k not in used and k.lower() not in IDS]
    # A second label among the features would give the answer away, so it has to be asked for.
    chosen = [
        key
        for key in others
        if contents.entries[key].numeric and len(contents.entries[key].shape) == 1
        if key.lower() not in LABEL_NAMES
    ]
    left = [key for key in others if key not in set(chosen)]
    if not chosen:
        _present(contents, "features", None)
    if left:
        warn(
            f"{contents.path}: {', '.join(left[:5])}{' and others' * (len(left) > 5)} left out of "
            "the features, being text or labels; name columns with features= to choose"
        )
    return chosen


def _load(contents: Contents, keys: list[str]) -> np.ndarray:
    loaded = contents.load(keys)
    if len(keys) == 1 and (not contents.tabular or loaded[0].ndim == 2):
        return loaded[0]
    return np.column_stack(loaded)


def _feature_names(contents: Contents, keys: list[str]) -> list[str] | None:
    entries = contents.entries
    if contents.tabular and all(len(entries[key].shape) == 1 for key in keys):
        return keys
    beside = entries.get("feature_names")
    if beside and beside.dtype.kind == "U" and beside.shape == entries[keys[0]].shape[1:2]:
        return contents.load(["feature_names"])[0].tolist()
    return contents.feature_names
