"""`skdare check`: what is odd about a table, before anything is fitted to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from skdare.cli._bench_choices import TASKS
from skdare.cli._errors import mistakes, notes
from skdare.cli._options import with_options
from skdare.cli._output import JSON, as_object, say, say_all
from skdare.cli._table_check import checked, say_task
from skdare.cli._tables import (
    DROP_MISSING,
    GROUPS,
    WITHOUT_SPLIT,
    column_of_groups,
    read_table,
    table_keys,
)

if TYPE_CHECKING:
    from skdare.checking import DataCheck


@click.command()
@click.argument("features", metavar="FEATURES", type=click.Path())
@with_options([*WITHOUT_SPLIT, GROUPS, DROP_MISSING])
@click.option("--task", type=click.Choice(TASKS), help="What the target is  [default: guessed]")
@JSON
def check(features: str, as_json: bool, **options: Any) -> None:
    """List what is odd about a table, the gravest first, and what to do about it.

    FEATURES is any table that `skdare fit` and `skdare bench` read; these two and `skdare diagnose`
    look for the same, and print the gravest findings. A finding is advice: the exit code is 0
    unless the table cannot be read. With --json: rows, features, domains, task, looked_at (of how
    many rows the features were), and findings, each with name, level (problem, caution or note),
    text, remedy, columns, domains and rows (those that the text names, counted from 0).

    \b
    Example:
      skdare check features.npz
    """
    with mistakes():
        keys = table_keys(options)
        guessed = None if options["groups"] else column_of_groups(features, keys)
        if guessed is not None:
            keys["groups"] = guessed
        with notes():
            data = read_table(features, keys, missing="keep")
        say_task(data.y, options["task"])
        result = checked(data, options["task"], guessed=guessed, file=features)
        if options["drop_missing"]:
            result = _without_unlabelled(result)
        if as_json:
            as_object(result.to_dict())
        else:
            say_all(str(result))


def _without_unlabelled(result: DataCheck) -> DataCheck:
    """The result without its finding on rows without label or domain, which becomes a note."""
    findings = []
    for finding in result.findings:
        if finding.name == "rows without label":
            say(f"note: {finding.text}, left out", err=True)
        else:
            findings.append(finding)
    return replace(result, findings=tuple(findings))
