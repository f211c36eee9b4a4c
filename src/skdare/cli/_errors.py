"""A user's mistake: one line that says what, a hint apart, exit code 2."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import click

from skdare.bench import Settings


def check_writable(path: str) -> None:
    """Refuse a file that cannot be written, before the work that would go into it."""
    file = Path(path).resolve()
    if file.is_dir() or not file.parent.is_dir():
        raise ValueError(f"{path} cannot be written; name a file in a folder that is there")


@contextmanager
def mistakes() -> Iterator[None]:
    """Show a ValueError, or a file or package that is not there, as a user's mistake.

    Our messages say what was given and needed before the first semicolon, and what to do after.
    """
    try:
        yield
    except BrokenPipeError:  # nobody reads on; click ends quietly
        raise
    except (ValueError, OSError, ImportError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.strerror and error.filename:
            text = f"{error.filename}: {error.strerror.lower()}; name another path"
        for name in ("extras", *(f.name for f in fields(Settings))):
            option = "--with" if name == "extras" else "--" + name.replace("_", "-")
            text = re.sub(rf"^{name}\b", option, text)
        what, _, hint = text.partition("; ")
        click.echo(f"error: {what}", err=True)
        if hint:
            click.echo(f"\nhint: {hint}", err=True)
        sys.exit(2)
