"""Tables as commands read them: the options that say what is in one, and its task."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from skdare.errors import InputError, counted, listed, note

if TYPE_CHECKING:
    from skdare.data import DomainData


def _names(kind: Any, words: tuple[Token, ...]) -> tuple[str, ...]:
    """As in a row of CSV: a name with a comma stands in double quotes."""
    rows = csv.reader((word.value for word in words), skipinitialspace=True)
    return tuple(name.strip() for row in rows for name in row if name.strip())


Names = Annotated[tuple[str, ...], Parameter(converter=_names, metavar="NAME,...")]
"""An option that takes names: by commas, or given several times."""

Stream = Annotated[Path, Parameter(allow_leading_hyphen=True)]
"""A file, or - for the standard input or output."""

# Numbers with more values than this are seldom codes of classes.
_FEW_CODES = 10

Task = Literal["classification", "regression"]
Preparation = Literal["auto", "standardize", "none"]


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """What is in a table, for all commands that need labels.

    Parameters
    ----------
    target
        Column to predict  [default: one called y, target, label or class]
    domains
        Column of domains  [default: one with a usual name, such as domain, site or batch]
    groups
        Column of patients, songs or specimens: rows of one are never on both sides of a split.
    drop
        Columns to leave out of the features; `pca_*` stands for all that begin with pca_.
    keep
        Columns to keep as features even if they look like row numbers or repeat the domain.
    missing
        Rows without a target or a domain: refuse the table, or drop them.
    """

    target: str | None = None
    domains: str | None = None
    groups: str | None = None
    drop: Names = ()
    keep: Names = ()
    missing: Literal["refuse", "drop"] = "refuse"


def read_labelled(file: Path, columns: Columns) -> DomainData:
    """A table with targets."""
    from skdare.data import read

    return read(file, **asdict(columns))


def task_of(data: DomainData, given: Task | None) -> Task:
    """Kind of target, refused if the column cannot be one; an uncertain guess is a note."""
    import numpy as np

    task: Task = given or ("regression" if data.task == "regression" else "classification")
    column = data.columns["target"]
    if task == "regression":
        if data.y.dtype.kind not in "iuf":
            raise InputError(
                f"column '{column}' is text, and regression needs numbers",
                "name another --target, or leave --task out",
            )
        return task
    count = len(np.unique(data.y))
    if 2 * count > len(data.y) > _FEW_CODES:
        hint = "name another --target"
        if data.y.dtype.kind in "iuf":
            hint += ", or give --task regression if these are numbers to predict"
        raise InputError(
            f"column '{column}' has {count:,} values in {len(data.y):,} rows, and looks like an "
            "id, not like classes",
            hint,
        )
    if given is None and data.y.dtype.kind in "iuf" and count > _FEW_CODES:
        note(f"'{column}' is taken for {count} classes; --task regression takes it for numbers")
    return task


def perhaps_domains(data: DomainData) -> str:
    """Columns that may well name the domains of a table in which none is named."""
    from skdare.data.roles import may_be_domains

    few = may_be_domains(data.ids)
    return f", perhaps {listed(few, 3)}" if few else ""


def options(columns: Columns, **more: Any) -> list[str]:
    """Options that differ from the defaults, as they would be typed."""
    words: list[str] = []
    for name, value in {**asdict(columns), **more}.items():
        if value in (None, (), "", "refuse"):
            continue
        option = f"--{name.replace('_', '-')}"
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        words += [f"{option}={text}"] if text.startswith("-") else [option, text]
    return words


def say_findings(data: DomainData, task: str, again: str) -> None:
    """The gravest findings about a table, as notes; the rest is what `check` is for."""
    from skdare.checking import check

    findings = check(data, task=task).findings
    grave = [finding for finding in findings if finding.level == "problem"]
    for finding in grave:
        note(f"{finding.what}; {finding.remedy}")
    if len(findings) > len(grave):
        more = counted(len(findings) - len(grave), "more finding" if grave else "finding")
        note(f"{more} about the table; to see them: {again}")
