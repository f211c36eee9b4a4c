"""What features, targets, domains and splits must be, and the names they go by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from skdare._validation import InputError, check_choice, warn
from skdare.arrays import chunks
from skdare.datasets._contents import numbered_row
from skdare.datasets._domain_data import DomainData

NAMES = {
    "features": ("x", "features", "embeddings", "embedding", "feats"),
    "target": ("y", "target", "label", "labels", "class"),
    "domains": (
        *("domain", "domains", "d", "group", "groups"),
        *("env", "site", "batch", "hospital", "source"),
    ),
    "split": ("split", "fold"),
    "groups": (),  # never guessed: what names rows may be anything
}
# From the number of a row to what errors call it.
Place = Callable[[int], str]
ONE_DOMAIN = "all"
"""What the domain is called where a table has none."""
MISSING = ("", "NA", "nan", "NaN", "?")
# What every row must have, where the table has it at all.
_NEEDED = ("target", "domains", "groups")
_RESERVED = {
    **dict.fromkeys(("0", "false", "train", "in"), False),
    **dict.fromkeys(("1", "true", "test", "val", "valid", "validation", "out"), True),
}


def assemble(
    arrays: Mapping[str, np.ndarray],
    where: Mapping[str, str],
    name: str = "",
    feature_names: list[str] | None = None,
    missing: str = "refuse",
    place: Place = numbered_row,
) -> DomainData:
    """Checked data from one array per role; ``where`` is what errors call each of them.

    Domains and split may be absent. Rows without label or domain are refused; with
    ``missing="drop"`` they are left out, and with ``missing="keep"`` they stay, for who looks at
    the table as it is. ``place`` gives what errors call a row, from its number.
    """
    check_choice("missing", missing, ("refuse", "drop", "keep"))
    X = features_matrix(arrays["features"], where["features"])
    labels = {role: _labels(arrays[role], where[role]) for role in arrays if role != "features"}
    rows = {where["features"]: len(X)} | {where[role]: len(v) for role, v in labels.items()}
    if len(set(rows.values())) > 1:
        each = ", ".join(f"{what} has {n}" for what, n in rows.items())
        raise ValueError(f"rows do not agree: {each}; every row needs all of them")
    if not len(X):
        raise ValueError(f"{where['features']} has no rows; there is nothing to learn from")
    labels.setdefault("domains", np.full(len(X), ONE_DOMAIN))
    numbers = np.arange(len(X))
    if missing == "drop":
        numbers = _labelled_rows(labels)
        if len(numbers) < len(X):
            X = X[numbers]
            labels = {role: np.asarray(values[numbers]) for role, values in labels.items()}
    if missing != "keep":
        for role in _NEEDED:
            if role in labels:
                _refuse_missing(labels[role], where.get(role, role), place)
        labels["domains"] = usable_domains(labels["domains"])
    split = _split(labels["split"], where["split"]) if "split" in labels else None
    groups = labels.get("groups")
    refuse_infinity(X, where["features"], feature_names, place=lambda row: place(int(numbers[row])))
    return DomainData(
        X, labels["target"], labels["domains"], split, name, feature_names, groups=groups
    )


def features_alone(X: np.ndarray, what: str, place: Place = numbered_row) -> np.ndarray:
    """Checked features, without anything beside them."""
    X = features_matrix(X, what)
    if not len(X):
        raise ValueError(f"{what} has no rows; there is nothing to look at")
    refuse_infinity(X, what, None, place=place)
    return X


def decode(codes: np.ndarray, names: Sequence[Any], what: str) -> np.ndarray:
    """The labels that integer codes stand for."""
    if not isinstance(names, list):
        raise ValueError(f"{what} has names {names!r}; a JSON list is needed, one name per code")
    if codes.dtype.kind not in "biu":
        raise ValueError(f"{what} has dtype {codes.dtype}; codes must be whole numbers")
    wrong = np.flatnonzero((codes < 0) | (codes >= len(names)))
    if len(wrong):
        raise ValueError(
            f"{what} has code {codes.flat[wrong[0]]} in {numbered_row(wrong[0])}, but only "
            f"{len(names)} names; codes count from 0 too"
        )
    return np.array(names)[codes.astype(np.intp)]


def features_matrix(X: np.ndarray, what: str) -> np.ndarray:
    """Rows by features, in a float type that heads take."""
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"{what} has shape {X.shape}; features must be rows by features")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{what} has dtype {X.dtype}; features must be numbers")
    dtype: np.dtype = np.dtype(np.float32) if X.dtype.kind != "f" else X.dtype.newbyteorder("=")
    return X.astype(dtype if dtype.itemsize <= 8 else np.float64, copy=False)


def _labels(values: np.ndarray, what: str) -> np.ndarray:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{what} has shape {values.shape}; one label per row is needed")
    if values.dtype.kind == "S":
        # Bytes that are not UTF-8 stay apart from one another, which "replace" would undo.
        return np.char.decode(values, "utf-8", "backslashreplace")
    if values.dtype.kind not in "biufU":
        raise ValueError(f"{what} has dtype {values.dtype}; labels must be numbers or strings")
    return values


def missing_labels(values: np.ndarray) -> np.ndarray:
    """Which labels are missing: masked, not a number, or text that stands for nothing."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values)
    if values.dtype.kind == "f":
        return ~np.isfinite(values)
    if values.dtype.kind == "U":
        return np.isin(np.strings.strip(values), MISSING)
    return np.zeros(len(values), dtype=bool)


def masked_integers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Labels of a column of this type, masked where missing ones have made floats of integers.

    What the labels are is guessed from their type: a column must not become another one by the
    rows that have none.
    """
    if values.dtype.kind != "f" or dtype.kind not in "biu":
        return values
    missing = np.isnan(values)
    if not missing.any():  # classes that are numbers, which the column has by their codes
        return values
    return np.ma.array(np.where(missing, 0, values).astype(dtype), mask=missing)


def _refuse_missing(values: np.ndarray, what: str, place: Place) -> None:
    missing = np.flatnonzero(missing_labels(values))
    if len(missing):
        first = "nan" if isinstance(values, np.ma.MaskedArray) else str(values[missing[0]])
        raise InputError(
            f"{what} has no usable value in {len(missing)} of {len(values)} rows, the first "
            f"{first!r} in {place(int(missing[0]))}",
            "leave those rows out with missing='drop'",
        )


def _labelled_rows(labels: dict[str, np.ndarray]) -> np.ndarray:
    """Numbers of the rows that have a label and a domain; how many have not is a warning."""
    absent = np.any([missing_labels(labels[role]) for role in _NEEDED if role in labels], axis=0)
    if absent.all():
        raise InputError("no row has both a label and a domain", "name other columns")
    if absent.any():
        lost = int(absent.sum())
        have, are = ("has", "is") if lost == 1 else ("have", "are")
        warn(f"{lost} of {len(absent)} rows {have} no label or no domain, and {are} left out")
    return np.flatnonzero(~absent)


def usable_domains(labels: np.ndarray) -> np.ndarray:
    """Domain labels as integers or text."""
    if labels.dtype.kind == "f":
        return labels.astype(str if np.any(labels != np.floor(labels)) else np.int64)
    return labels.astype(np.int64) if labels.dtype.kind == "b" else labels


def _split(values: np.ndarray, what: str) -> np.ndarray:
    if values.dtype.kind == "f" and np.all(np.isin(values, (0, 1))):
        values = values.astype(np.int64)
    words, place = np.unique(values, return_inverse=True)
    reserved = [_RESERVED.get(str(word).strip().lower()) for word in words.tolist()]
    if None in reserved:
        raise InputError(
            f"{what} has the value {words[reserved.index(None)].item()!r}",
            "use 0 or train, 1 or test, or leave it out with split=''",
            argument="split",
        )
    return np.array(reserved, dtype=bool)[place]


def refuse_infinity(
    X: np.ndarray,
    what: str,
    names: list[str] | None,
    before: int = 0,
    place: Place = numbered_row,
) -> None:
    """Refuse infinity, and say where it is; ``before`` rows came before these."""
    for part, rows in chunks(X, slice(0, len(X))):
        if np.isinf(rows).any():
            row, column = np.argwhere(np.isinf(rows))[0]
            name = repr(names[column]) if names else column
            raise ValueError(
                f"{what} has infinity in {place(before + part.start + int(row))}, column {name}; "
                "correct or drop that row"
            )
