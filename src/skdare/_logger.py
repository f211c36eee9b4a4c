"""Log records under the name "skdare": what was decided, and how far long work has come.

No handler is installed but one that drops everything: a program that wants to see the records
sets up `logging` as for any library. ``verbose`` prints the same texts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

LOGGER = logging.getLogger("skdare")
LOGGER.addHandler(logging.NullHandler())
PROGRESS = logging.getLogger("skdare.progress")
# Seconds before the first line on how far work has come; each pause is longer than the last, so
# that hours of work have a screenful of lines.
FIRST_PAUSE = 10.0
LONGER = 1.3


def tell(text: str, *, shown: bool = False, level: int = logging.INFO) -> None:
    """Log what was decided, and print it where a user asked for that."""
    LOGGER.log(level, "%s", text)
    if shown:
        _print(text)


def _print(line: str) -> None:
    print(line, flush=True)


class Progress:
    """Counts pieces of work, and says now and then how many are done and how long the rest takes.

    Every piece that has a name is a log record of level DEBUG, and the line now and then is one of
    level INFO, both under the name "skdare.progress".

    Parameters
    ----------
    what : str
        What is being done, as in "rehearsing".
    total : int
        Pieces of work.
    shown : bool
        Whether to show the lines, too.
    show : callable, optional
        Shows a line. Default: on standard output.
    before : int
        Pieces that were done before.
    """

    def __init__(
        self,
        what: str,
        total: int,
        *,
        shown: bool = False,
        show: Callable[[str], object] = _print,
        before: int = 0,
    ) -> None:
        self.what = what
        self.total = total
        self.shown = shown
        self.count = before
        self._show = show
        self._before = before
        self._begin = time.monotonic()
        self._pause = FIRST_PAUSE
        self._next = self._begin + self._pause
        self._lock = Lock()

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self._begin

    def done(self, piece: str) -> None:
        """Count a piece of work, from any thread."""
        PROGRESS.debug("%s: %s is done", self.what, piece)
        self.advance(1)

    def advance(self, pieces: int) -> None:
        """Count pieces of work, from any thread."""
        with self._lock:
            self.count += pieces
            line = self._line()
        self._tell(line)

    def reached(self, count: int, total: int) -> None:
        """Set how many pieces are done of how many in all."""
        with self._lock:
            self.count = count
            self.total = total
            line = self._line()
        self._tell(line)

    def _line(self) -> str:
        """How far the work has come, if it is time to say so."""
        now = time.monotonic()
        if now < self._next or self.count >= self.total:
            return ""
        self._pause *= LONGER
        self._next = now + self._pause
        new = self.count - self._before
        left = (
            f", about {self.seconds / new * (self.total - self.count):,.0f} s left" if new else ""
        )
        return f"{self.what}: {self.count:,} of {self.total:,} done{left}"

    def _tell(self, line: str) -> None:
        if line:
            PROGRESS.info("%s", line)
            if self.shown:
                self._show(line)
