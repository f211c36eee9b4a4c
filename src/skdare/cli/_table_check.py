"""The checks of a table that run before a fit, and what follows from them."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare._safe_text import counted
from skdare.cli._errors import in_options
from skdare.cli._output import say

if TYPE_CHECKING:
    import numpy as np

    from skdare.checking import DataCheck, DataFinding
    from skdare.datasets import DomainData

_SHOWN = 3
# What a fit says, or refuses, in its own words.
_SAID_ELSEWHERE = ("scales", "one domain", "missing", "rows without label", "groups")


def checked(
    data: DomainData, task: str | None, *, guessed: str | None = None, file: str | None = None
) -> DataCheck:
    """What a check of the table finds, in the words of the command line.

    Parameters
    ----------
    data : DomainData
    task : "classification", "regression" or None
    guessed : str, optional
        The column that groups were guessed from.
    file : str, optional
        The file that has exactly these rows; without it rows are not named.
    """
    from skdare.checking import check_data
    from skdare.cli._fit import fit

    result = check_data(
        data.X,
        data.y,
        domains=data.domains,
        groups=data.groups,
        feature_names=data.feature_names,
        task=task,
    )
    findings = []
    for finding in result.findings:
        text = _with_places(finding, file)
        if finding.name == "groups" and guessed is not None:
            text = f"by column {guessed!r}, {text}"
        # A check has few options itself: what it advises is done by a fit.
        _, remedy = in_options("", finding.remedy, command=fit)
        findings.append(replace(finding, text=text, remedy=remedy))
    return replace(result, findings=tuple(findings))


def _with_places(finding: DataFinding, file: str | None) -> str:
    """The text of a finding, with lines of the file in the place of numbers of rows."""
    from skdare.datasets._contents import numbered_row
    from skdare.datasets._formats import row_place

    text = finding.text
    for row in finding.rows:
        place = "one row" if file is None else row_place(file, row)
        text = text.replace(numbered_row(row), place)
    return text


def check_target(y: np.ndarray, task: str | None) -> None:
    """Refuse a target that names rows, before any work."""
    from skdare._validation import too_many_classes
    from skdare.checking._finding import other_target
    from skdare.datasets import guess_task

    if (task or guess_task(y)) == "classification":
        wrong = too_many_classes(len(set(y.tolist())), len(y))
        if wrong is not None:
            raise InputError(f"the target has {wrong}", other_target(y))


def say_task(y: np.ndarray, task: str | None) -> None:
    """Say what a target of numbers is taken for, classes or numbers, unless the task was named."""
    from skdare.datasets import guess_task
    from skdare.datasets._roles import missing_labels

    if task is not None or y.dtype.kind not in "iuf":
        return
    y = y[~missing_labels(y)]
    if guess_task(y) == "classification":
        meaning = (
            f"{counted(len(set(y.tolist())), 'class')}; if they are numbers, --task regression"
        )
    else:
        meaning = "numbers; if they are classes, --task classification"
    say(f"y is taken as {meaning}", err=True)


def say_findings(
    data: DomainData, options: dict[str, Any], place: str | None, *, whole: bool = False
) -> None:
    """Print what the target is taken for, the gravest findings, and how to see all, on stderr.

    Parameters
    ----------
    data : DomainData
    options : dict
        Those of the running command.
    place : str, optional
        Where `skdare check` finds the table; None where it does not.
    whole : bool, default=False
        Whether these are all rows of it.
    """
    say_task(data.y, options["task"])
    findings = [
        finding
        for finding in checked(data, options["task"], file=place if whole else None).findings
        if finding.level != "note" and finding.name not in _SAID_ELSEWHERE
    ]
    for finding in findings[:_SHOWN]:
        say(f"{finding.level}: {finding.text}; {finding.remedy}", err=True)
    more = len(findings) - _SHOWN
    others = [f"{more} more"] if more > 0 else []
    command = [] if place is None else [f"`{_check_command(place, options)}` lists all"]
    if findings and (others or command):
        say("; ".join(others + command), err=True)


def _check_command(place: str, options: dict[str, Any]) -> str:
    """The command that checks the same table, with what the running one was given."""
    from skdare.cli._check import check

    words = ["skdare", "check", place]
    for option in check.params:
        value = options.get(str(option.name))
        if isinstance(option, click.Option) and value not in (None, False):
            words += [option.opts[0]] if option.is_flag else [option.opts[0], str(value)]
    return shlex.join(words)


def standardizes(options: dict[str, Any], X: Any, *, quiet: bool = False) -> bool:
    """Whether to standardise features: as asked for, else where their scales are very different."""
    if options["standardize"] is not None:
        return bool(options["standardize"])
    from skdare.checking._check import scales_differ

    if not scales_differ(X):
        return False
    if not quiet:
        say(
            "note: features are standardised, for their scales are very different; "
            "--no-standardize leaves them as they are",
            err=True,
        )
    return True
