"""From a file to one `DomainData`, or to many, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from skdare.arrays.rows import Index, Rows
from skdare.data import roles
from skdare.data.block import Block
from skdare.data.domain_data import DomainData
from skdare.data.source import STDIN, NpzSource, Source, StoreSource, open_source
from skdare.data.store import StoreWriter
from skdare.errors import InputError, counted, listed, note, unknown

# A chunk of a stream has about so many bytes of features.
_CHUNK_BYTES = 1 << 24
_ROLES = {"target": "y", "domains": "domains", "groups": "groups"}


def read(
    path: str | Path,
    *,
    target: str | None = None,
    domains: str | None = None,
    groups: str | None = None,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    missing: str = "refuse",
) -> DomainData:
    """Read features, targets and domains from a CSV, TSV, Parquet, Feather or npz file.

    Text is never a feature. Neither are columns of numbers that name or count rows, repeat the
    domain, or are called like a label; which ones is said in a warning, a `DataNote`.

    Parameters
    ----------
    path : str or path
        ``.csv`` and ``.tsv`` may be compressed (``.csv.gz``). An npz has arrays ``X`` (or those of
        ``scipy.sparse.save_npz``), ``y``, ``domains`` and, if it names them, ``feature_names``. In
        Parquet and Feather a column of lists of numbers is many features. Or a feature store.
    target, domains, groups : str, optional
        Columns of these roles. Default: a column with a usual name; none for groups. An empty
        name stands for none.
    drop, keep : sequence of str
        Columns to leave out of the features, and to keep among them though they would be left out.
        ``pca_*`` stands for all names that begin so.
    missing : {"refuse", "drop"}
        What to do with rows that have no target or no domain.

    Returns
    -------
    DomainData

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdare.data import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "plants.csv")
    ...     _ = path.write_text("height,width,class,site\\n1.5,2,fern,north\\n3,4,moss,south\\n")
    ...     read(path).X.tolist()
    [[1.5, 2.0], [3.0, 4.0]]
    """
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing is '{missing}'", "use refuse or drop")
    source = open_source(path)
    if groups is None and isinstance(source, NpzSource | StoreSource):
        groups = "groups" if "groups" in source.candidates else None
    given = {"target": target, "domains": domains, "groups": groups}
    chosen = roles.choose(source.candidates, given, needed=["target"])
    dropped = roles.matching(drop, source.columns)
    kept = roles.matching(keep, source.columns)
    if dropped & kept:
        raise InputError(f"{listed(dropped & kept)} is to be dropped and kept", "choose one")
    (block,) = source.blocks(list(chosen.values()), None, None)
    if not block.X.shape[0]:
        raise InputError(f"'{path}' has no rows")
    data = _labelled_rows(_assembled(block, chosen, _name_of(path)), missing)
    # Arrays that have their own names are not guessed at.
    others = roles.second_labels(block.names) if source.candidates is source.columns else {}
    return _features_only(data, others, dropped, kept)


def stream(
    path: str | Path,
    *,
    features: Sequence[str],
    target: str | None = "",
    domains: str | None = "",
    rows: int | None = None,
) -> Iterator[DomainData]:
    """Read new rows for a head that is fitted, some at a time, from a file of any size.

    Parameters
    ----------
    path : str or path
        As for `read`; ``"-"`` is CSV on the standard input.
    features : sequence of str
        The features that the head was fitted to. They are found by name, in any order; where the
        file has no names, by place.
    target, domains : str, optional
        Columns of the targets and domains, if they are wanted. None: those with a usual name.
    rows : int, optional
        How many at a time. Default: about 16 MB of features.

    Yields
    ------
    DomainData
        Columns that are no features are its ``ids``.
    """
    source = open_source(path)
    given = {"target": target, "domains": domains}
    needed = [role for role, name in given.items() if name is None and role == "target"]
    chosen = roles.choose(source.candidates, given, needed)
    wanted = list(features)
    if not isinstance(source, NpzSource | StoreSource):
        _refuse_absent(wanted, source, str(path))
    rows = rows or max(128, min(1 << 14, _CHUNK_BYTES // (8 * max(1, len(wanted)))))
    empty = True
    for block in source.blocks(list(chosen.values()), wanted, rows):
        if block.X.shape[0]:
            empty = False
            yield _exactly(_assembled(block, chosen, _name_of(path)), wanted)
    if empty:
        raise InputError(f"'{path}' has no rows")


def to_store(
    path: str | Path,
    folder: str | Path,
    *,
    target: str | None = None,
    domains: str | None = None,
    groups: str | None = None,
    drop: Iterable[str] = (),
    missing: str = "refuse",
    dtype: str = "float32",
    rows: int = 1 << 14,
) -> None:
    """Write a file of any size as a feature store, from which heads are fitted without loading it.

    Which columns are features is told from the first rows. The same call goes on where one was
    stopped.

    Parameters
    ----------
    path, target, domains, groups, drop, missing
        As for `read`.
    folder : path
    dtype : {"float32", "float16", "float64"}
    rows : int
        How many are in memory at a time.
    """
    source = open_source(path)
    given = {"target": target, "domains": domains, "groups": groups}
    chosen = roles.choose(source.candidates, given, needed=["target"])
    dropped = roles.matching(drop, source.columns) | set(roles.second_labels(source.columns))
    labels = list(chosen.values())
    first = _assembled(next(iter(source.blocks(labels, None, rows))), chosen, "")
    names = first.feature_names.tolist()
    found = roles.no_features(first.X, names, first.domains)
    if found:
        said = ", ".join(f"'{name}' {why}" for name, why in found.items())
        note(f"not used as features: {said}")
    features = [name for name in names if name not in dropped and name not in found]
    start = 0
    with StoreWriter(folder, features, dtype=dtype, made={"file": str(path)}) as writer:
        done = writer.rows  # by a call that was stopped
        for block in open_source(path).blocks(labels, features, rows):
            data = _labelled_rows(_exactly(_assembled(block, chosen, ""), features), missing)
            held = {name: getattr(data, name) for name in _ROLES.values()}
            columns = {name: values for name, values in held.items() if values is not None}
            rest = slice(max(0, done - start), None)
            start += len(data.X)
            if len(data.X[rest]):
                writer.append(data.X[rest], **{name: v[rest] for name, v in columns.items()})


def _name_of(path: str | Path) -> str:
    return "stdin" if str(path) == STDIN else Path(path).resolve().name.split(".")[0]


def _assembled(block: Block, chosen: dict[str, str], name: str) -> DomainData:
    others = dict(block.others)
    labels = {_ROLES[role]: others.pop(column) for role, column in chosen.items()}
    for role in ("domains", "groups"):
        values = labels.get(role)
        if values is not None and values.dtype.kind == "f":  # 3 and not 3.0
            whole = not np.any(values % 1)
            labels[role] = values.astype(np.int64) if whole else values.astype(str)
    return DomainData(
        block.X, labels.get("y"), labels.get("domains"), labels.get("groups"),
        np.array(block.names, dtype=object), ids=others, columns=chosen, name=name,
    )  # fmt: skip


def _labelled_rows(data: DomainData, missing: str) -> DomainData:
    """The rows that have every label; others are refused, or left out and counted."""
    absent = np.zeros(data.X.shape[0], dtype=bool)
    for role, column in data.columns.items():
        values = getattr(data, _ROLES[role])
        if values.dtype.kind not in "Of":
            continue
        gone = np.array([value is None or value != value for value in values.tolist()])
        if gone.any() and missing == "refuse":
            raise InputError(
                f"column '{column}' is empty in {counted(int(gone.sum()), 'row')}, first in row "
                f"{int(np.argmax(gone)) + 1}",
                "leave those rows out with missing=drop",
            )
        absent |= gone
    if not absent.any():
        return data
    if absent.all():
        raise InputError("no row has all of its labels", "name other columns")
    note(f"left out {counted(int(absent.sum()), 'row')} without a label")
    data = data.rows(np.flatnonzero(~absent))
    y, domains, groups = (
        np.array(labels.tolist()) if labels is not None and labels.dtype.kind == "O" else labels
        for labels in (data.y, data.domains, data.groups)
    )
    return replace(data, y=y, domains=domains, groups=groups)


def _features_only(
    data: DomainData, labels: dict[str, str], drop: set[str], keep: set[str]
) -> DomainData:
    """The data without columns that are no features, which is said in one line."""
    names = data.feature_names.tolist()
    text = [name for name, values in data.ids.items() if values.dtype.kind not in "iuf"]
    reasons = dict.fromkeys((name for name in text if name not in drop), "is text")
    reasons |= {name: why for name, why in labels.items() if name not in drop}
    if isinstance(data.X, np.ndarray):
        found = roles.no_features(data.X, names, data.domains)
        reasons = {name: why for name, why in found.items() if name not in drop} | reasons
    left_out = {name: why for name, why in reasons.items() if name not in keep}
    if keep & set(data.ids):
        raise InputError(f"column {listed(keep & set(data.ids))} is text", "encode it as numbers")
    if left_out:
        said = [f"'{name}' {why}" for name, why in list(left_out.items())[:4]]
        more = f", and {len(left_out) - 4:,} more" if len(left_out) > 4 else ""
        back = next((name for name, why in left_out.items() if why != "is text"), None)
        note(
            f"not used as features: {', '.join(said)}{more}"
            + (f" (keep={back} uses it all the same)" if back else "")
        )
    gone = np.array([name in drop or name in left_out for name in names], dtype=bool)
    if gone.all():
        raise InputError("no feature is left", "drop fewer columns, or keep some with keep=")
    ids = dict(data.ids)
    for j in np.flatnonzero(gone) if not isinstance(data.X, Rows) else ():
        values = data.X[:, j].toarray().ravel() if scipy.sparse.issparse(data.X) else data.X[:, j]
        whole = not np.isnan(values).any() and not np.any(values % 1)
        ids[names[j]] = values.astype(np.int64) if whole else values
    if gone.any():
        X = _columns(data.X, np.flatnonzero(~gone))
        data = replace(data, X=X, feature_names=data.feature_names[~gone])
    return replace(data, ids=ids, left_out=left_out)


def _refuse_absent(features: Sequence[str], source: Source, name: str) -> None:
    known = set(source.columns)
    absent = [feature for feature in features if feature not in known]
    # Features of a column of lists are called by its name and their place.
    absent = [name for name in absent if name.rpartition("_")[0] not in known]
    if absent:
        raise InputError(
            f"the head was fitted to {counted(len(features), 'feature')}, and '{Path(name).name}' "
            f"lacks {listed(absent)}",
            unknown("column", absent[0], source.columns).hint,
        )


def _exactly(data: DomainData, features: list[str]) -> DomainData:
    """The features that a head was fitted to, in its order."""
    names = data.feature_names.tolist()
    if names == features:
        return data
    place = {name: j for j, name in enumerate(names)}
    unnamed = all(name == f"x{j}" for j, name in enumerate(names))
    if unnamed and len(names) == len(features):
        return replace(data, feature_names=np.array(features, dtype=object))
    absent = [name for name in features if name not in place]
    if absent:
        raise InputError(
            f"the head was fitted to {counted(len(features), 'feature')}, and {data.name} has "
            f"{counted(len(names), 'feature')} and no {listed(absent)}",
            unknown("feature", absent[0], names).hint,
        )
    X = _columns(data.X, np.array([place[name] for name in features]))
    return replace(data, X=X, feature_names=np.array(features, dtype=object))


def _columns(X: Any, places: np.ndarray) -> Any:
    """Some features; of rows that lie elsewhere, whenever they are read."""
    if not isinstance(X, Rows):
        return X[:, places]
    return replace(X, shape=(len(X), len(places)), read=partial(_read_columns, X.read, places))


def _read_columns(read_rows: Callable[[Index], Any], places: np.ndarray, index: Index) -> Any:
    return read_rows(index)[:, places]
