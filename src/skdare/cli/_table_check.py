"""The checks of a table that run before a fit, and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skdare.cli._output import say

if TYPE_CHECKING:
    from skdare.checking import DataCheck
    from skdare.datasets import DomainData

_SHOWN = 3
# What a fit says, or refuses, in its own words.
_SAID_ELSEWHERE = ("scales", "one domain", "missing", "rows without label", "groups")


def checked(data: DomainData, task: str | None, guessed: str | None = None) -> DataCheck:
    """What a check of the table finds; of groups, by which column they were guessed."""
    from skdare.checking import check_data

    result = check_data(
        data.X,
        data.y,
        domains=data.domains,
        groups=data.groups,
        feature_names=data.feature_names,
        task=task,
    )
    if guessed is None:
        return result
    findings = [
        replace(each, text=f"by column {guessed!r}, {each.text}") if each.name == "groups" else each
        for each in result.findings
    ]
    return replace(result, findings=tuple(findings))


def say_findings(data: DomainData, task: str | None, place: str) -> None:
    """Print the gravest findings, in a few lines on stderr."""
    findings = [
        finding
        for finding in checked(data, task).findings
        if finding.level != "note" and finding.name not in _SAID_ELSEWHERE
    ]
    for finding in findings[:_SHOWN]:
        say(f"{finding.level}: {finding.text}; {finding.remedy}", err=True)
    if findings:
        more = len(findings) - _SHOWN
        others = f"{more} more; " if more > 0 else ""
        say(f"{others}`skdare check {place}` lists all", err=True)


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
