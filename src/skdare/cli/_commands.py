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
from click.exceptions import NoArgsIsHelpError

from skdare.cli._output import say

INTERRUPTED = 130
UNREAD = 141
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does, with another exit code."""


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Exit code after a signal, as in a shell: 128 plus the signal's number."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED


class Late(Mapping):
    """Commands by name, each imported on first use, so that help for one does not wait for all."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"skdare.cli.{self._modules[name]}")
        return getattr(module, name)

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
    **attributes : as for click.Group
    """

    def __init__(self, *, groups: Mapping[str, Mapping[str, str]], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.groups = groups

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for group in self.groups.values() for name in group]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, lines in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl(list(lines.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list:
        """Names of commands, none of which is imported, and options."""
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
            result = super().invoke(ctx)
            # Here, where a closed pipe can still be told from a failure.
            sys.stdout.flush()
            return result


@contextmanager
def ending_quietly() -> Iterator[None]:
    """End without a traceback on a closed pipe (exit code 141), Ctrl-C (130) or SIGTERM (143).

    What click refuses (exit code 2) is shown as other mistakes are.
    """
    try:
        yield
    except NoArgsIsHelpError:  # shows the help
        raise
    except click.UsageError as error:
        text = error.format_message().rstrip(".")
        say(f"error: {text[:1].lower()}{text[1:]}", err=True)
        if error.ctx is not None:
            say("", f"hint: `{error.ctx.command_path} --help` says how to call it", err=True)
        sys.exit(error.exit_code)
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
    """Raise SIGTERM as an exception, on whose way half-written files are removed."""

    def raised(*_: object) -> None:
        # Once is enough; a second signal would interrupt the cleaning up.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    # A program that ignores or handles the signal already goes on to do so.
    ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, raised)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
