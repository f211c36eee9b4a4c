"""Progress records of the library as bars on a terminal, and as lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from skdare.errors import printable
from skdare.progress import LOGGER

# Seconds until a bar is drawn; what is done sooner needs none. Without a terminal, seconds until
# the first line; each pause is longer than the last, so that hours make a screenful of lines.
_BRIEF = 1.0
_FIRST_PAUSE = 10.0
_LONGER = 1.3


@contextmanager
def shown(write: Callable[[str], None]) -> Iterator[None]:
    """Draw bars on stderr if that is a terminal; else, and for warnings, `write` lines."""
    handler = (_Bars if sys.stderr.isatty() else _Lines)(write)
    level = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)
        handler.close()


class _Lines(logging.Handler):
    """A line now and then, of the work that began first."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.write = write
        self.begun: dict[str, float] = {}
        self.told = 0.0
        self.pause = _FIRST_PAUSE

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "work"):
            self.show(*record.work)
        elif record.levelno >= logging.WARNING:
            self.write(record.getMessage())

    def show(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        begun = self.begun.setdefault(what, now)
        if 0 < done < total and what == next(iter(self.begun)):
            if now - max(begun, self.told) > self.pause:
                left = (now - begun) / done * (total - done)
                self.write(f"{what}: {done:,} of {total:,} done, about {left:,.0f} s left")
                self.told = now
                self.pause *= _LONGER
        elif done == total:
            del self.begun[what]


class _Bars(_Lines):
    """A bar for each work that is going on, the outer one above."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(write)
        self.from_then = time.monotonic() + _BRIEF
        self.tasks: dict[str, Any] = {}
        self.bars: Any = None

    def show(self, what: str, done: int, total: int) -> None:
        if time.monotonic() < self.from_then:
            return
        if self.bars is None:
            from rich import progress
            from rich.console import Console

            self.bars = progress.Progress(
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("left"),
                console=Console(stderr=True),
                transient=True,
            )
            self.bars.start()
        if what not in self.tasks:
            self.tasks[what] = self.bars.add_task(printable(what), total=total)
        self.bars.update(self.tasks[what], completed=done, total=total)
        if done == total:
            self.bars.remove_task(self.tasks.pop(what))

    def close(self) -> None:
        if self.bars is not None:
            self.bars.stop()
        super().close()
