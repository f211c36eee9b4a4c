"""A user's mistake: one line that says what, a hint apart, exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def mistakes() -> Iterator[None]:
    """Show a ValueError, or a file or package that is not there, as a user's mistake.

    Our messages say what was given and needed before the first semicolon, and what to do after.
    """
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        what, _, hint = str(error).partition("; ")
        click.echo(f"error: {what}", err=True)
        if hint:
            click.echo(f"\nhint: {hint}", err=True)
        sys.exit(2)
