"""Commands that are imported when they are called, and how all of them end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from skdare.cli._output import say

INTERRUPTED, UNREAD, TERMINATED = 130, 141, 143


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does, but for the exit code."""


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """As a shell has it: 128 and the number of the signal."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED


class Late(Mapping):
    """Commands by name, each imported when it is asked for: help of one need not wait for all."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"skdare.cli.{self._modules[name]}")
        return getattr(module, name if hasattr(module, name) else f"{name}_command")

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class Commands(click.Group):
    """All commands, listed by what they are for.

    Parameters
    ----------
    groups : mapping from a heading to commands, each with a line that says what it does
    **given : as for click.Group
    """

    def __init__(self, *, groups: Mapping[str, Mapping[str, str]], **given: Any) -> None:
        super().__init__(**given)
        self.groups = groups

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for group in self.groups.values() for name in group]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, lines in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl(list(lines.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list:
        """Names of commands without importing any, and options."""
        from click.shell_completion import CompletionItem

        lines = {name: line for group in self.groups.values() for name, line in group.items()}
        names = [n for n in lines if n.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=lines[name]) for name in names), *options]

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with ending_quietly():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with ending_quietly(), hearing_termination():
            found = super().invoke(ctx)
            # Here, where a reader that has gone can still be told from a failure.
            sys.stdout.flush()
            return found


@contextmanager
def ending_quietly() -> Iterator[None]:
    """No trace where nobody reads on (exit code 141), after Ctrl-C (130) or SIGTERM (143)."""
    try:
        yield
    except BrokenPipeError:
        # What is still buffered would be written, and complained of, when Python ends.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.__stdout__.fileno())  # type: ignore[union-attr]
        sys.exit(UNREAD)
    except KeyboardInterrupt as interrupt:
        say("stopped", err=True)
        sys.exit(exit_code(interrupt))


@contextmanager
def hearing_termination() -> Iterator[None]:
    """SIGTERM as an exception: files that are not yet whole are removed on its way."""

    def raised(*_: object) -> None:
        # Once is enough; a second one would come in the way of tidying up.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    # What ignores the signal, or handles it already, goes on to do so.
    ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, raised)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
