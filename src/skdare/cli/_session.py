"""How a command that learns begins and ends: who hears of it, mistakes, Ctrl-C, processes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skdare._safe_text import terminal_safe
from skdare.cli._commands import exit_code
from skdare.cli._errors import mistakes
from skdare.cli._meter import Meter
from skdare.cli._terminal import say

if TYPE_CHECKING:
    from skdare.reproduce import Watcher

# What a table has columns for.
COLUMNS = ("image", "text", "label", "domain")


def watching(quiet: bool) -> Watcher:
    """Sentences and bars on stderr."""
    from skdare.reproduce import Watcher

    def say(text: str) -> None:
        if not quiet:
            # Not click.echo, which writes past a bar that is being drawn, into its line.
            print(*map(terminal_safe, text.split("\n")), sep="\n", file=sys.stderr)

    return Watcher(say, lambda what, unit, total: Meter(what, unit, total, not quiet))


@contextmanager
def learning() -> Iterator[None]:
    """Mistakes in the words of the command line; Ctrl-C ends a run with what is done on file."""
    with mistakes():
        try:
            yield
        except KeyboardInterrupt as interrupt:
            say("stopped; the same command goes on from what is on file", err=True)
            sys.exit(exit_code(interrupt))
        except ValueError as error:
            raise ValueError(_spelled(str(error))) from error
        except MemoryError as error:
            raise ValueError(f"{error}; give a --cache folder, or a smaller --size") from error
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            remedy = "give --at-once 1, a --micro-batch, or a smaller --size"
            raise ValueError(f"the GPU has too little memory; {remedy}") from error


def _spelled(text: str) -> str:
    """Advice about arguments as advice about options."""
    text = text.replace("skip_unreadable=True (--skip-unreadable)", "--skip-unreadable")
    text = re.sub(r"kind='(image|text)'", r"--\1-column", text)
    text = re.sub(rf"\b({'|'.join(COLUMNS)})=(?=[\s,;]|$)", r"--\1-column", text)
    names = r"^(lr|dropout|weight_decay)(?= is )"
    return re.sub(names, lambda found: "--" + found[0].replace("_", "-"), text)


def rank() -> int:
    """Which of the processes this is that ``torchrun`` started; 0 if it is alone."""
    return int(os.environ.get("RANK", "0"))


def refuse_processes(command: str) -> None:
    """Refuse to do the same work in several processes."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(
            f"`skdare {command}` runs in one process; give torchrun `train` alone, and run it after"
        )


def leave_processes() -> None:
    """Part from the others that ``torchrun`` started, once all are done.

    Not after an error: the others may wait for something else, and torchrun ends them all.
    """
    # Looked up, because the command line imports torch nowhere: where nothing joined a group,
    # there is none.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
