"""Features, targets and domain labels, row by row: what every reader returns."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.arrays import chunks

_FEW_VALUES = 20


@dataclass(frozen=True, eq=False)
class DomainData:
    """Features, targets and domain labels.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    domains : array of shape (n,)
    split : bool array of shape (n,), optional
        True where the row belongs to the reserved 20 %.
    name : str
        What to call the data in a report.
    feature_names : list of d str, optional
    made : dict, optional
        How the features were made, as a feature store says: the backbone and, if it was
        fine-tuned, the domain held out (``held_out``) and the trial (``trial``), among others.
    target_name, domain_name : str, optional
        What the columns, or arrays, of the targets and of the domains are called.
    groups : array of shape (n,), optional
        The patient, song or specimen that each row is of.
    """

    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    split: np.ndarray | None = None
    name: str = ""
    feature_names: list[str] | None = None
    made: Mapping[str, Any] | None = None
    target_name: str | None = None
    domain_name: str | None = None
    groups: np.ndarray | None = None


def guess_task(y: np.ndarray) -> str:
    """Guess whether y names classes or measures something.

    Strings and booleans are classes. Numbers with a fractional part are measurements. Whole
    numbers are classes if they take at most 20 values, or, stored as integers, at most √n: codes
    of classes repeat, 345 of them over half a million rows, and ages, counts or prices seldom do.

    Parameters
    ----------
    y : array of shape (n,)

    Returns
    -------
    {"classification", "regression"}

    Examples
    --------
    >>> from skdare.datasets import guess_task
    >>> guess_task([0, 1, 1, 2]), guess_task([0.5, 1.0]), guess_task(["cat", "dog"])
    ('classification', 'regression', 'classification')
    """
    y = np.asarray(y)
    if y.dtype.kind not in "iuf":
        return "classification"
    if y.dtype.kind == "f" and np.any(y != np.floor(y)):
        return "regression"
    few = _FEW_VALUES if y.dtype.kind == "f" else max(_FEW_VALUES, math.isqrt(len(y)))
    return "classification" if len(np.unique(y)) <= few else "regression"


def fingerprint(data: DomainData) -> str:
    """Short name for what the data holds: 16 hexadecimal digits of a SHA-256.

    Shapes, features at their precision, targets, domains, split and groups count; the name and the
    file format do not. The features are visited in chunks, so a memory map is never loaded whole.

    Parameters
    ----------
    data : DomainData

    Returns
    -------
    str

    Examples
    --------
    >>> from skdare.datasets import make_latent_domains
    >>> from skdare.datasets._domain_data import fingerprint
    >>> data = make_latent_domains(random_state=0)
    >>> fingerprint(data) == fingerprint(make_latent_domains(random_state=0))
    True
    """
    digest = hashlib.sha256()
    digest.update(f"X {data.X.shape} {data.X.dtype.name}".encode())
    for _, rows in chunks(data.X, slice(0, len(data.X))):
        digest.update(_portable(rows))
    for role in ("y", "domains", "split", "groups"):
        values = getattr(data, role)
        if values is not None:
            digest.update(f"{role} {values.shape}".encode() + _content(values))
    return digest.hexdigest()[:16]


def _content(values: np.ndarray) -> bytes:
    # One width for each kind, so that int32 codes or strings padded further hash alike.
    if values.dtype.kind in "biu":
        return b"whole" + _portable(values.astype(np.int64))
    if values.dtype.kind == "f":
        return b"real" + _portable(values.astype(np.float64))
    return json.dumps([str(v) for v in values.tolist()]).encode()


def _portable(values: np.ndarray) -> memoryview:
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).data
