"""What commands say: names from data do nothing to the terminal that shows them."""

from __future__ import annotations

import sys
from typing import IO, Any

import click

from skdare._safe_text import terminal_safe


def say(*lines: object, err: bool = False) -> None:
    """Print lines, each of them on one line whatever stands in it."""
    click.echo("\n".join(terminal_safe(str(line)) for line in lines), err=err)


def say_all(text: str, *, err: bool = False) -> None:
    """Print a text of several lines, the names in which are safe already."""
    say(*text.split("\n"), err=err)


def output() -> IO[str]:
    """Standard output for rows; a terminal gets them in a form that does nothing to it."""
    shown: Any = _Shown(sys.stdout) if sys.stdout.isatty() else sys.stdout
    return shown


class _Shown:
    """A stream of text on its way to a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write("\n".join(map(terminal_safe, text.split("\n"))))
