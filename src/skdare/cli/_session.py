"""Commands that train or extract: their watcher, how they end, and torchrun's processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skdare._input_error import InputError
from skdare._safe_text import terminal_safe
from skdare.cli._commands import exit_code
from skdare.cli._errors import mistakes
from skdare.cli._output import say
from skdare.cli._progress import ProgressBar

if TYPE_CHECKING:
    from skdare.reproduce import Watcher

# What a table has columns for.
COLUMNS = ("image", "text", "label", "domain")


def watching(quiet: bool) -> Watcher:
    """Watcher that writes sentences and bars to stderr."""
    from skdare.reproduce import Watcher

    def write(text: str) -> None:
        if not quiet:
            # Not click.echo, which writes past a bar that is being drawn, into its line.
            print(*map(terminal_safe, text.split("\n")), sep="\n", file=sys.stderr)

    return Watcher(
        write, lambda what, unit, total: ProgressBar(what, total, unit=unit, quiet=quiet)
    )


@contextmanager
def learning() -> Iterator[None]:
    """Show mistakes; Ctrl-C ends a run, and what is done stays on file."""
    with mistakes():
        try:
            yield
        except KeyboardInterrupt as interrupt:
            say("stopped; the same command goes on from what is on file", err=True)
            sys.exit(exit_code(interrupt))
        except MemoryError as error:
            raise InputError(
                str(error) or "there is too little memory",
                "give a --cache folder, or a smaller --size",
            ) from error
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            raise InputError(
                "the GPU has too little memory",
                "give --at-once 1, a --micro-batch, or a smaller --size",
            ) from error


def rank() -> int:
    """Number of this process among those that ``torchrun`` started; 0 if it is alone."""
    return int(os.environ.get("RANK", "0"))


def refuse_processes(command: str) -> None:
    """Refuse to do the same work in several processes."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            f"`skdare {command}` runs in one process",
            "start only `train` with torchrun, and run this after it",
        )


def leave_processes() -> None:
    """Part from the other processes of ``torchrun``, once all are done.

    Not after an error: the others may wait for something else, and torchrun ends them all.
    """
    # Looked up, because the command line does not import torch: if it is not loaded, no process
    # group was joined.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
