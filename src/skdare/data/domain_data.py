"""Features, targets and domains, row by row: what every reader returns."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse

from skdare.checks import check_labels
from skdare.errors import InputError, listed
from skdare.fitting.hold_out import chained_by_groups

# What holds the column of each role.
ROLES = {"target": "y", "domains": "domains", "groups": "groups"}
# Whole numbers with at most this many values are codes of classes.
FEW_VALUES = 20
_HASHED_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class DomainData:
    """Features, targets and domains of rows.

    Parameters
    ----------
    X : array, CSR array or Rows of shape (n, d)
        Floats. NaN stands for a missing value; there is no infinity. `Rows` stay on disk.
    y : array of shape (n,), optional
        None if the table has no target.
    domains : array of shape (n,), optional
    groups : array of shape (n,), optional
        The patient, song or specimen that a row belongs to.
    feature_names : array of shape (d,)
    ids : mapping from name to array of shape (n,)
        Columns that are not features. They are written next to predictions.
    left_out : mapping from name to str
        Columns of numbers or text that are not used as features, with the reason.
    columns : mapping from role to str
        What the columns of "target", "domains" and "groups" are called.
    name : str
        What to call the table.

    Examples
    --------
    >>> from skdare.data import DomainData
    >>> data = DomainData.of([[0.1, 1.0], [0.2, 3.0]], ["cat", "dog"], domains=["north", "south"])
    >>> data.task, data.feature_names.tolist()
    ('classification', ['x0', 'x1'])
    """

    X: Any
    y: Any
    domains: Any
    groups: Any
    feature_names: np.ndarray
    ids: Mapping[str, np.ndarray] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    name: str = "data"

    @classmethod
    def of(
        cls, X: Any, y: Any = None, *, domains: Any = None, groups: Any = None, name: str = "data"
    ) -> Self:
        """Arrays, lists or data frames as a table; refused if they do not belong together."""
        names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow has both
        if not scipy.sparse.issparse(X):
            X = _numbers(X)
        else:
            X = scipy.sparse.csr_array(X)
            X.check_format(full_check=True)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise InputError(f"X has shape {X.shape} and dtype {X.dtype}", "pass rows of numbers")
        X = X if X.dtype.kind == "f" else X.astype(np.float64)
        n, d = X.shape
        labels: dict[str, Any] = {"y": y, "domains": domains, "groups": groups}
        for role, values in labels.items():
            if values is not None:
                labels[role] = _labels(role, values, n)
        names = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
        return cls(X, **labels, feature_names=np.array(names, dtype=object), name=name)

    @property
    def labels(self) -> dict[str, Any]:
        """Those of y, domains and groups that there are."""
        labels = {name: getattr(self, name) for name in ROLES.values()}
        return {name: values for name, values in labels.items() if values is not None}

    def rows(self, chosen: np.ndarray | slice) -> Self:
        """The data of some rows."""
        labels: dict[str, Any] = {name: v[chosen] for name, v in self.labels.items()}
        ids = {name: values[chosen] for name, values in self.ids.items()}
        return replace(self, X=self.X[chosen], ids=ids, **labels)

    @property
    def domain_names(self) -> list[str]:
        """Domains in the order of a reader: numbers by size, names by the alphabet."""
        return [str(label) for label in np.unique(self.domains)]

    @property
    def task(self) -> str:
        """Guess "classification" or "regression" from y.

        Text and truth values are classes. Whole numbers are classes if they take at most 20
        values, or, stored as integers, at most √n: codes of classes repeat, prices seldom do.
        """
        y = self.y
        if y.dtype.kind not in "iuf":
            return "classification"
        if y.dtype.kind == "f" and np.any(y != np.floor(y)):
            return "regression"
        most = FEW_VALUES if y.dtype.kind == "f" else max(FEW_VALUES, math.isqrt(len(y)))
        return "classification" if len(np.unique(y)) <= most else "regression"

    @property
    def groups_tie_all_domains(self) -> bool:
        """Whether groups in several domains chain all of them together: none can be held out."""
        domain = np.unique(self.domains, return_inverse=True)[1]
        group = np.unique(self.groups, return_inverse=True)[1]
        return chained_by_groups(domain, group)[0] == 1

    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change with any value, label or name of a feature.

        They do not depend on the name of the table or the format of its file.
        """
        digest = hashlib.sha256()
        X = self.X
        if scipy.sparse.issparse(X):
            X = X.tocsr()
            parts = iter([X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)])
        else:
            starts = range(0, X.shape[0], _HASHED_ROWS)
            parts = (X[start : start + _HASHED_ROWS] for start in starts)
        digest.update(f"{X.shape} {X.dtype.name}".encode())
        for part in parts:
            digest.update(np.ascontiguousarray(part, part.dtype.newbyteorder("<")).data)
        for labels in (self.y, self.domains, self.groups, self.feature_names):
            if labels is not None:
                digest.update("\n".join(map(str, labels.tolist())).encode() + b"\0")
        return digest.hexdigest()[:16]


def _numbers(X: Any) -> np.ndarray:
    """Rows as an array; columns of a data frame that are not numbers are refused by name."""
    kinds: Any = getattr(X, "dtypes", None)
    if not hasattr(kinds, "items"):  # as those of pandas have
        return np.asarray(X)
    import pandas as pd

    text = [name for name, kind in kinds.items() if not pd.api.types.is_numeric_dtype(kind)]
    if text:
        raise InputError(
            f"X has columns that are not numbers: {listed(text)}",
            "encode them as numbers, or leave them out",
        )
    single = set(map(str, kinds)) == {"float32"}
    return X.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)


def _labels(role: str, values: Any, n: int) -> np.ndarray:
    """One label per row, all of one type."""
    distinct, codes = check_labels(role, values, n)
    if any(isinstance(label, float) and math.isinf(label) for label in distinct):
        raise InputError(f"{role} has infinity", "correct those rows, or leave them out")
    if isinstance(values, np.ndarray) and values.shape == (n,) and values.dtype.kind in "biufU":
        return values
    return np.array(distinct)[codes]
