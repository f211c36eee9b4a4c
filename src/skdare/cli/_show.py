"""What a command found, on stdout: tables as wide as the terminal allows, or one JSON object."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from skdare.cli._terminal import say_all

if TYPE_CHECKING:
    from skdare.bench import Record

WIDTH = 100
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def show(records: Sequence[Record]) -> None:
    """Print what the records say."""
    from skdare.report import summarise, text

    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    say_all(text(summarise(records), width))


def statistics(records: Sequence[Record]) -> dict[str, Any]:
    """What the records say, a row for each statistic, and how many trials failed."""
    from skdare.report import summarise, tidy

    failed = sum(record.status == "failed" for record in records)
    return {"trials": len(records), "failed": failed, "statistics": tidy(summarise(records))}


def as_object(told: dict[str, Any]) -> None:
    """Print one JSON object, on one line; paths, dates and NumPy's scalars are text."""
    click.echo(json.dumps(told, ensure_ascii=False, default=str))
