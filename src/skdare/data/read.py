"""From a file to one `DomainData`, or to a stream of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skdare.arrays import Index, Rows
from skdare.data import roles
from skdare.data.csv_source import CsvSource
from skdare.data.domain_data import ROLES, DomainData
from skdare.data.row_block import LONGEST_LABEL, RowBlock, is_whole
from skdare.data.source import STDIN, NpzSource, Source, StoreSource, open_source
from skdare.data.store import StoreWriter
from skdare.errors import InputError, counted, listed, note, quoted, unknown

if TYPE_CHECKING:
    import pandas as pd

# Bytes of features in a chunk of a stream, about.
_CHUNK_BYTES = 1 << 24


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
    domain, or are called like a label. A warning, a `DataNote`, names them.

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
        Columns to leave out of the features, and columns to keep that would be left out. ``pca_*``
        stands for all names that begin so.
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
    _check_missing(missing)
    source = open_source(path)
    if groups is None and isinstance(source, NpzSource | StoreSource):
        groups = "groups" if "groups" in source.candidates else None
    named = {"target": target, "domains": domains, "groups": groups}
    chosen = roles.choose(source.candidates, named, needed=["target"])
    dropped = roles.matching(drop, source.columns)
    keeping = roles.matching(keep, source.columns)
    if dropped & keeping:
        raise InputError(f"{listed(dropped & keeping)} is to be dropped and kept", "choose one")
    (block,) = source.blocks(list(chosen.values()), None, None)
    if not block.X.shape[0]:
        raise InputError(f"{quoted(path)} has no rows")
    data = _labelled_rows(_assembled(block, chosen, _name_of(path)), missing)
    _note_left_out(block.X.shape[0] - data.X.shape[0])
    if not data.X.shape[0]:
        raise InputError("no row has all of its labels", "name other columns")
    return _features_only(data, dropped, keeping, is_table=source.candidates is source.columns)


def stream(
    path: str | Path,
    *,
    features: Sequence[str],
    target: str | None = "",
    domains: str | None = "",
    rows: int | None = None,
) -> Iterator[DomainData]:
    """Read new rows for a fitted head in chunks, from a file of any size.

    Parameters
    ----------
    path : str or path
        As for `read`; ``"-"`` is CSV on the standard input.
    features : sequence of str
        The features that the head was fitted to. They are found by name, in any order; where the
        file has no names, by place.
    target, domains : str, optional
        Columns of the targets and domains; an empty name for none. None: those with a usual name.
    rows : int, optional
        Rows in a chunk. Default: about 16 MB of features.

    Yields
    ------
    DomainData
        Its ``ids`` are all other columns.
    """
    source = open_source(path)
    named = {"target": target, "domains": domains}
    needed = [role for role, name in named.items() if name is None and role == "target"]
    chosen = roles.choose(source.candidates, named, needed)
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
        raise InputError(f"{quoted(path)} has no rows")


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
    """Convert a file of any size to a feature store, from which heads are fitted out of memory.

    The first rows decide which columns are features. A call that was stopped continues when it is
    made again.

    Parameters
    ----------
    path, target, domains, groups, drop, missing
        As for `read`.
    folder : path
    dtype : {"float32", "float16", "float64"}
    rows : int
        Rows in memory at a time.
    """
    _check_missing(missing)
    if str(path) == STDIN:
        raise InputError("the standard input cannot be converted to a store", "give a file")
    source = open_source(path)
    named = {"target": target, "domains": domains, "groups": groups}
    chosen = roles.choose(source.candidates, named, needed=["target"])
    dropped = roles.matching(drop, source.columns) | set(roles.second_labels(source.columns))
    labels = list(chosen.values())
    block = next(iter(source.blocks(labels, None, rows)), None)
    if block is None:
        raise InputError(f"{quoted(path)} has no rows")
    first = _labelled_rows(_assembled(block, chosen, ""), missing)
    names = first.feature_names.tolist()
    no_measurements = {}
    if isinstance(first.X, np.ndarray) and len(first.X):
        no_measurements = roles.no_features(first.X, names, first.domains)
    if no_measurements:
        note(f"not used as features: {roles.with_reasons(no_measurements)}")
    features = [name for name in names if name not in dropped and name not in no_measurements]
    start = seen = 0
    with StoreWriter(folder, features, dtype=dtype, made={"file": str(path)}) as writer:
        done = writer.rows  # by a call that was stopped
        for block in open_source(path).blocks(labels, features, rows):
            data = _exactly(_assembled(block, chosen, ""), features)
            data = _labelled_rows(data, missing, seen)
            rest = data.rows(slice(max(0, done - start), None))
            seen += block.X.shape[0]
            start += data.X.shape[0]
            if rest.X.shape[0]:
                X = rest.X.toarray() if scipy.sparse.issparse(rest.X) else rest.X
                writer.append(X, **rest.labels)
    _note_left_out(seen - start)


def read_text(path: str | Path) -> pd.DataFrame:
    """All cells of a CSV file as text."""
    source = open_source(path)
    if not isinstance(source, CsvSource):
        raise InputError(f"{quoted(path)} is not CSV", "save it as CSV")
    return source.text()


def _name_of(path: str | Path) -> str:
    return "stdin" if str(path) == STDIN else Path(path).resolve().name.split(".")[0]


def _assembled(block: RowBlock, chosen: dict[str, str], name: str) -> DomainData:
    others = dict(block.others)
    labels = {ROLES[role]: others.pop(column) for role, column in chosen.items()}
    for role in ("domains", "groups"):
        values = labels.get(role)
        if values is not None and values.dtype.kind == "f":  # 3 and not 3.0
            labels[role] = values.astype(np.int64 if is_whole(values).all() else str)
    return DomainData(
        block.X, labels.get("y"), labels.get("domains"), labels.get("groups"),
        np.array(block.names, dtype=object), ids=others, columns=chosen, name=name,
    )  # fmt: skip


def _check_missing(missing: str) -> None:
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing is {quoted(missing)}", "use refuse or drop")


def _labelled_rows(data: DomainData, missing: str, start: int = 0) -> DomainData:
    """The rows that have every label; others are refused, or left out."""
    absent = np.zeros(data.X.shape[0], dtype=bool)
    for role, column in data.columns.items():
        values = getattr(data, ROLES[role])
        if values.dtype.kind not in "Of":
            continue
        if values.dtype.kind == "f" and np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise InputError(
                f"column {quoted(column)} has infinity in row {start + row + 1:,}",
                "put a number there, or nothing",
            )
        for row, value in enumerate(values.tolist()):
            if isinstance(value, str) and len(value) > LONGEST_LABEL:
                raise InputError(
                    f"column {quoted(column)} has text of {len(value):,} characters in row "
                    f"{start + row + 1:,}, which is not a label",
                    "name another column",
                )
        gone = np.array([value is None or value != value for value in values.tolist()])
        if gone.any() and missing == "refuse":
            raise InputError(
                f"column {quoted(column)} is empty in {counted(int(gone.sum()), 'row')}, first in "
                f"row {start + int(np.argmax(gone)) + 1:,}",
                "leave those rows out with missing=drop",
            )
        absent |= gone
    if not absent.any():
        return data
    data = data.rows(np.flatnonzero(~absent))
    labels: dict[str, Any] = {
        name: np.array(values.tolist()) for name, values in data.labels.items()
    }
    return replace(data, **labels)


def _note_left_out(rows: int) -> None:
    if rows:
        note(f"left out {counted(rows, 'row')} without a label")


def _features_only(
    data: DomainData, drop: set[str], keep: set[str], *, is_table: bool
) -> DomainData:
    """The data without columns that are not features; a note names these."""
    names = data.feature_names.tolist()
    # In a table all columns but numbers are text; arrays may be numbers for another purpose.
    kinds = {name: values.dtype.kind for name, values in data.ids.items() if name not in drop}
    text = [name for name, kind in kinds.items() if is_table or kind not in "iuf"]
    reasons = roles.second_labels(name for name in names if is_table and name not in drop)
    if isinstance(data.X, np.ndarray):
        no_measurements = roles.no_features(data.X, names, data.domains)
        reasons = {name: why for name, why in no_measurements.items() if name not in drop} | reasons
    reasons = {name: why for name, why in reasons.items() if name not in keep}
    if keep & set(data.ids):
        raise InputError(
            f"column {listed(keep & set(data.ids))} is text",
            f"encode it as numbers, {roles.ENCODING}",
        )
    if reasons:
        note(
            f"not used as features: {roles.with_reasons(reasons)} (keep={next(iter(reasons))} uses "
            "it all the same)"
        )
    if classes := [name for name in text if roles.is_classes(data.ids[name])]:
        note(
            f"text is not used as features: {listed(classes, roles.NAMED)}; encode it as numbers, "
            f"{roles.ENCODING}"
        )
    left_out = reasons | dict.fromkeys(text, "is text")
    gone = np.array([name in drop or name in left_out for name in names], dtype=bool)
    if gone.all():
        raise InputError("no feature is left", "drop fewer columns, or keep some with keep=")
    ids = dict(data.ids)
    for j in np.flatnonzero(gone) if not isinstance(data.X, Rows) else ():
        values = data.X[:, j].toarray().ravel() if scipy.sparse.issparse(data.X) else data.X[:, j]
        ids[names[j]] = values.astype(np.int64) if is_whole(values).all() else values
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
            f"the head was fitted to {counted(len(features), 'feature')}, and "
            f"{quoted(Path(name).name)} lacks {listed(absent)}",
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
    """Some features; those of rows stored outside memory are taken when they are read."""
    if not isinstance(X, Rows):
        return X[:, places]
    return replace(X, shape=(len(X), len(places)), read=partial(_read_columns, X.read, places))


def _read_columns(read_rows: Callable[[Index], Any], places: np.ndarray, index: Index) -> Any:
    return read_rows(index)[:, places]
