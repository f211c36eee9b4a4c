"""Tables on stdout, as wide as the terminal allows."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click

from skdare.bench import Record
from skdare.report import text
from skdare.summary import summarise

WIDTH = 100


def show(records: Sequence[Record]) -> None:
    """Print what the records say."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    click.echo(text(summarise(records), width))
