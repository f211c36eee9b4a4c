"""A user's mistake: one line that says what, a hint apart, exit code 2; a failure: exit code 1."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from skdare.cli._terminal import say

# The machine's failures, which no other argument would mend.
_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# Options that messages of the bench begin with, under the names they have there.
_TOLD = (
    *("extras", "protocol", "aside", "test_on", "l2", "l2_grid", "impute", "standardize", "clip"),
    *("step", "inner", "patience", "validate_with"),
)


def check_writable(path: str) -> None:
    """Refuse a file that cannot be written, before the work that would go into it."""
    file = Path(path).resolve()
    if file.is_dir() or not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written; name a file in a folder that is there")


@contextmanager
def mistakes() -> Iterator[None]:
    """Show a ValueError, or a file or package that is not there, as a user's mistake.

    Our messages say what was given and needed before the first semicolon, and what to do after.
    """
    try:
        yield
    except BrokenPipeError:  # nobody reads on
        raise
    except MemoryError as error:
        _tell(f"there is too little memory ({error})" if str(error) else "memory is full")
        sys.exit(1)
    except (ValueError, OSError, ImportError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.strerror and error.filename:
            text = f"{error.filename}: {error.strerror.lower()}; name another path"
        _tell(_spelled(text))
        failed = isinstance(error, OSError) and error.errno in _FAILURES
        sys.exit(1 if failed else 2)


def _tell(text: str) -> None:
    what, _, hint = text.partition("; ")
    say(f"error: {what}", err=True)
    if hint:
        say("", f"hint: {hint}", err=True)


def _spelled(text: str) -> str:
    """A message that begins with the name of a setting, by the option of that name."""
    context = click.get_current_context(silent=True)
    options = [] if context is None else context.command.params
    for option in options:
        if option.name in _TOLD and re.match(rf"{option.name}\b", text):
            return text.replace(option.name, option.opts[0], 1)
    return text


@contextmanager
def notes(quiet: bool = False) -> Iterator[None]:
    """Warnings of the library as notes on stderr, each once."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        # Rows are given as arrays, in the order of the names, which were looked at before.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in heard):
                if not quiet:
                    say(f"note: {message}", err=True)
