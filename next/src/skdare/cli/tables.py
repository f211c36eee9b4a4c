"""Tables that commands read, and files that they write."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from skdare.errors import InputError, counted, note

if TYPE_CHECKING:
    from skdare.data import DomainData


def _names(kind: Any, words: tuple[Token, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for word in words for name in word.value.split(",") if name.strip())


Names = Annotated[tuple[str, ...], Parameter(converter=_names, metavar="NAME,...")]
"""An option that takes names: by commas, or given several times."""

Stream = Annotated[Path, Parameter(allow_leading_hyphen=True)]
"""A file, or - for the standard input or output."""

HEAD = ".safetensors"
_SUFFIXES = {HEAD, ".csv", ".tsv", ".parquet", ".feather", ".npz", ".gz", ".bz2", ".xz"}
# Numbers with more values than this are seldom codes of classes.
_FEW_CODES = 10

Task = Literal["classification", "regression"]


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """What is in a table, for all commands that need labels.

    Parameters
    ----------
    target
        Column of what is to be predicted  [default: one called y, target, label or class]
    domains
        Column that says where each row came from  [default: one with a usual name, such as domain,
        site or batch]
    groups
        Column of patients, songs or specimens: rows of one are never on both sides of a split.
    drop
        Columns that are no features; `pca_*` stands for all that begin so.
    keep
        Columns to keep as features though they look like row numbers or repeat the domain.
    missing
        What to do with rows without a target or a domain.
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


def task_of(data: DomainData, given: Task | None) -> str:
    """What the target is; a guess that may well be wrong is said."""
    import numpy as np

    if given is not None:
        return given
    count = len(np.unique(data.y))
    if data.task == "classification" and data.y.dtype.kind in "iuf" and count > _FEW_CODES:
        column = data.columns["target"]
        note(f"'{column}' is taken for {count} classes; task=regression takes it for numbers")
    return data.task


def options(columns: Columns, **more: Any) -> list[str]:
    """The options that say the same again: those that differ from the defaults."""
    words: list[str] = []
    for name, value in {**asdict(columns), **more}.items():
        if value in (None, (), "", "refuse"):
            continue
        words += [f"--{name.replace('_', '-')}"]
        words += [",".join(value) if isinstance(value, tuple) else str(value)]
    return words


def writable(out: Path, *inputs: Path | None, ending: str = "") -> Path:
    """The file, if it can be written: refused before any work, never after it."""
    if not out.name.endswith(ending):
        raise InputError(
            f"out is '{out}', and its name must end in {ending}", f"call it '{out.stem}{ending}'"
        )
    for one in filter(None, inputs):
        if out.exists() and one.exists() and out.samefile(one):
            raise InputError(f"out is '{out}', which is read", "give another name with --out")
    if out.is_dir():
        raise InputError(f"out is '{out}', which is a folder", "give the name of a file")
    if out.exists() and out.suffix == HEAD:
        from skdare.heads.inspect import inspect_file

        try:
            inspect_file(out)
        except InputError as error:
            what = f"'{out}' exists, and is no file that this skdare has written"
            raise InputError(what, "give another name with --out, or remove it first") from error
    folder = out.parent
    if not folder.is_dir():
        raise InputError(f"there is no folder '{folder}' to write '{out.name}' to", "make it first")
    if not os.access(folder, os.W_OK) or (out.exists() and not os.access(out, os.W_OK)):
        raise InputError(f"'{out}' cannot be written", "give another place with --out")
    return out


def beside(file: Path, ending: str) -> Path:
    """A file named after another one, in the folder where the command runs."""
    name = Path("stdin" if str(file) == "-" else file.resolve().name)
    while name.suffix in _SUFFIXES:
        name = name.with_suffix("")
    return Path(f"{name}{ending}")


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
