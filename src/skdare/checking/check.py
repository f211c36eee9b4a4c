"""The findings about a table, the gravest first."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from skdare.checking.oddities import FINDINGS, LEVELS, Finding
from skdare.checking.sorted_table import SortedTable
from skdare.data import DomainData
from skdare.errors import InputError, counted, filled, printable


@dataclass(frozen=True)
class Check:
    """Findings about a table.

    Parameters
    ----------
    summary : str
        Its size, in one line.
    findings : list of Finding
        "problem", "caution" or "note", in this order.
    """

    summary: str
    findings: list[Finding]

    def __str__(self) -> str:
        lines = [filled(self.summary)]
        for finding in self.findings:
            lines += ["", filled(f"{finding.level}: {finding.what}", indent="  ")]
            lines += [filled(f"  {finding.remedy}", indent="  ")]
        return printable("\n".join(lines if self.findings else [*lines, "nothing odd was found"]))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(f.level)}</td><td style='text-align:left'>{escape(f.what)}</td>"
            f"<td style='text-align:left'>{escape(f.remedy)}</td></tr>"
            for f in self.findings
        )
        return printable(f"<p>{escape(self.summary)}</p><table>{rows}</table>")


def check(
    X: Any, y: Any = None, *, domains: Any = None, groups: Any = None, task: str = ""
) -> Check:
    """List what is odd about a table: leaks, codes, scales, missing classes, copies.

    Findings are advice; nothing is changed or refused. Of a very large table a sample is examined.

    Parameters
    ----------
    X : DomainData, or array or data frame of shape (n, d)
        What `read` returns, or features; NaN is a missing value.
    y, domains, groups : array of shape (n,)
        Labels, if X is features only.
    task : {"classification", "regression"}, optional
        Kind of the target. Default: guessed.

    Returns
    -------
    Check

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.checking import check
    >>> rng = np.random.default_rng(0)
    >>> domains = np.repeat(["a", "b", "c"], 40)
    >>> y = rng.integers(2, size=120)
    >>> X = np.column_stack([rng.normal(size=(120, 3)), np.arange(120)])
    >>> [finding.what for finding in check(X, y, domains=domains).findings]
    ["column 'x3' counts the rows"]
    """
    data = X if isinstance(X, DomainData) else DomainData.of(X, y, domains=domains, groups=groups)
    if data.y is None:
        raise InputError(f"{data.name} has no target", "name one")
    table = SortedTable.of(data, task)
    findings = [finding for look in FINDINGS for finding in look(table)]
    findings.sort(key=lambda finding: LEVELS.index(finding.level))
    rows, features = data.X.shape
    parts = [counted(rows, "row"), counted(features, "feature")]
    if table.is_classification:
        parts.append(counted(len(table.classes), "class", "classes"))
    else:
        parts.append("a number as target")
    if data.domains is not None:
        parts.append(counted(len(table.domains), "domain"))
    if len(table.X) < rows:
        parts.append(f"features of {len(table.X):,} rows examined")
    return Check(f"{data.name}: {', '.join(parts)}", findings)
