"""The check of a table: rows with label and domain are looked at once, and findings listed."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np

from skdare._input_error import InputError
from skdare._safe_text import counted
from skdare._validation import Labels, check_choice, is_missing
from skdare.arrays import RowReader, is_foreign, is_sparse, take, to_numpy
from skdare.checking._domains import domain_findings
from skdare.checking._features import feature_findings
from skdare.checking._finding import DataFinding, gravest_first
from skdare.checking._rows import row_findings, unlabelled_finding
from skdare.checking._table import LabelledRows, RowLabels, column_scales, scale_range
from skdare.datasets import guess_task
from skdare.datasets._roles import missing_labels, usable_domains

# More numbers than these are not looked at: a sample of the rows must do.
_MOST_NUMBERS = 1 << 25
_MOST_NUMBERS_ON_DISK = 1 << 22
_WIDTH = 100


@dataclass(frozen=True)
class DataCheck:
    """What a check of a table found.

    Parameters
    ----------
    rows, features, domains : int
        How many there are, of rows that have a label and a domain.
    task : "classification" or "regression"
        What the target was taken for.
    looked_at : int
        Of how many rows the features were looked at: all, or a sample of very many.
    findings : tuple of DataFinding
        The gravest first.
    """

    rows: int
    features: int
    domains: int
    task: str
    looked_at: int
    findings: tuple[DataFinding, ...]

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._lines()])

    def to_dict(self) -> dict[str, Any]:
        """Fields of the check, ready for JSON."""
        findings = [finding.to_dict() for finding in self.findings]
        return {**vars(self), "findings": findings}

    def _headline(self) -> str:
        size = (
            f"{counted(self.rows, 'row')} of {counted(self.features, 'feature')} from "
            f"{counted(self.domains, 'domain')}, target taken as "
            f"{'classes' if self.task == 'classification' else 'numbers'}"
        )
        if self.looked_at < self.rows:
            size += f" (features of {self.looked_at:,} rows looked at)"
        return f"{size}: {counted(len(self.findings), 'finding') if self.findings else 'fine'}"

    def _lines(self) -> Iterator[str]:
        for finding in self.findings:
            text = f"{finding.level}: {finding.text}; {finding.remedy}"
            yield fill(
                text,
                _WIDTH,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        lines = "".join(
            f"<tr><td>{html.escape(each.level)}</td><td>{html.escape(each.text)}</td>"
            f"<td>{html.escape(each.remedy)}</td></tr>"
            for each in self.findings
        )
        head = "<tr><th></th><th>finding</th><th>what to do</th></tr>"
        table = f"<table>{head}{lines}</table>" if lines else ""
        return f"<p>{html.escape(self._headline())}</p>{table}"


def check_data(
    X: Any,
    y: Any,
    *,
    domains: Labels | None = None,
    groups: Labels | None = None,
    feature_names: Sequence[str] | None = None,
    task: str | None = None,
) -> DataCheck:
    """Look for what goes wrong in silence: scales, leaks, codes, missing classes, duplicates.

    Findings are advice; nothing is changed or refused. Labels, domains and groups are looked at in
    every row, and features in a sample where there are very many numbers.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
        Features; NaN is a missing value.
    y : array of shape (n,)
        Classes or numbers.
    domains : sequence of n labels, optional
        None is one domain.
    groups : sequence of n labels, optional
        The patient, song or specimen that each row is of.
    feature_names : sequence of d str, optional
        Default: the columns of a data frame, else "feature 0" and so on.
    task : "classification" or "regression", optional
        Default: guessed from y.

    Returns
    -------
    DataCheck

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.checking import check_data
    >>> rng = np.random.default_rng(0)
    >>> domains = np.repeat(["a", "b", "c"], 40)
    >>> y = rng.integers(2, size=120)
    >>> X = np.column_stack([rng.normal(size=(120, 3)), np.arange(120)])
    >>> for finding in check_data(X, y, domains=domains).findings:
    ...     print(finding.name, finding.columns)
    row number ('feature 3',)
    """
    if feature_names is None and hasattr(X, "columns"):
        feature_names = [str(name) for name in X.columns]
    X = _as_rows(X)
    n, d = X.shape
    y = _column("y", y, n)
    labels = np.full(n, "all") if domains is None else _column("domains", domains, n)
    if feature_names is None:
        feature_names = [f"feature {j}" for j in range(d)]
    if len(feature_names) != d:
        raise InputError(
            f"feature_names has {len(feature_names)} names but X has {d} features",
            "pass one for each",
            argument="feature_names",
        )
    check_choice("task", task, ("classification", "regression", None))
    if task == "regression" and y.dtype.kind not in "biuf":
        raise InputError(
            "y is text, and a regression needs numbers", "leave task out", argument="task"
        )
    without_label = missing_labels(y)
    without_domain = missing_labels(labels)
    unlabelled = unlabelled_finding(int(without_label.sum()), int(without_domain.sum()), n)
    numbers = np.flatnonzero(~(without_label | without_domain))
    if not len(numbers):
        raise InputError("no row has a label and a domain", "name other columns", argument="y")
    labels_of_rows = RowLabels(
        np.asarray(y[numbers]),
        usable_domains(labels[numbers]),
        None if groups is None else _column("groups", groups, n)[numbers],
        task or guess_task(np.asarray(y[numbers])),
    )
    seen = _sample(X, len(numbers))
    rows = LabelledRows(
        _taken(X, numbers[seen]),
        labels_of_rows.y[seen],
        labels_of_rows.domains[seen],
        numbers[seen],
        feature_names,
        labels_of_rows.task,
    )
    findings = [
        *domain_findings(labels_of_rows, d),
        *feature_findings(rows),
        *row_findings(rows),
    ]
    if unlabelled is not None:
        findings.insert(0, unlabelled)
    return DataCheck(
        len(numbers),
        d,
        len(labels_of_rows.names),
        labels_of_rows.task,
        len(seen),
        gravest_first(findings),
    )


def scales_differ(X: Any) -> bool:
    """Whether the features of some rows should be standardised, by `LARGEST_RATIO`."""
    X = _as_rows(X)
    apart = scale_range(column_scales(_taken(X, _sample(X, X.shape[0]))))
    return apart is not None and apart.is_wide


def _as_rows(X: Any) -> Any:
    """Features as an array of numbers, or rows that stay on disk."""
    if isinstance(X, RowReader):
        return X
    if is_sparse(X):
        raise InputError(
            "X is sparse", "check the columns that matter, as a dense array", argument="X"
        )
    X = to_numpy(X) if is_foreign(X) else np.asarray(X)
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "biuf":
        raise InputError(
            f"X has shape {X.shape} and dtype {X.dtype}",
            "features must be numbers, in rows by features",
            argument="X",
        )
    return X


def _sample(X: Any, rows: int) -> np.ndarray:
    """Which of this many rows to look at, in order: all, or some by chance.

    By chance and not every second or third, which in a table that lists domains or classes in
    turn would be rows of one of them.
    """
    most = _MOST_NUMBERS_ON_DISK if isinstance(X, RowReader) else _MOST_NUMBERS
    size = max(1, most // int(X.shape[1]))
    if size >= rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).permutation(rows)[:size])


def _taken(X: Any, numbers: np.ndarray) -> np.ndarray:
    """Rows as floats; infinity counts as missing."""
    rows = X if len(numbers) == X.shape[0] and isinstance(X, np.ndarray) else take(X, numbers)
    rows = np.asarray(rows, dtype=rows.dtype if rows.dtype in ("f4", "f8") else np.float64)
    infinite = np.isinf(rows)
    return np.where(infinite, np.nan, rows) if infinite.any() else rows


def _column(name: str, values: Any, n: int) -> np.ndarray:
    values = to_numpy(values) if is_foreign(values) else values
    column = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n,):
        raise InputError(
            f"{name} has shape {column.shape} but X has {counted(n, 'row')}",
            "pass one label per row",
            argument=name,
        )
    if column.dtype.kind in "OTSmM":
        # Any hashable labels, as text; what is missing is missing in text too.
        missing = [is_missing(label) for label in column.tolist()]
        column = np.where(missing, "", column.astype(str))
    return column
