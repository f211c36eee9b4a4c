"""Log records under the name "skdare": what was decided, and how far long work has come.

No handler is installed but one that drops everything: a program that wants to see the records
sets up `logging` as for any library. ``verbose`` prints the same texts.
"""

from __future__ import annotations

import logging
import time
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
        print(text, flush=True)


class Progress:
    """Counts pieces of work, and says now and then how many are done.

    Every piece is a log record of level DEBUG, and the line now and then is one of level INFO, both
    under the name "skdare.progress".

    Parameters
    ----------
    what : str
        What is being done, as in "rehearsing".
    total : int
        Pieces of work.
    shown : bool
        Whether to print the lines, too.
    """

    def __init__(self, what: str, total: int, *, shown: bool = False) -> None:
        self.what = what
        self.total = total
        self.shown = shown
        self.count = 0
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
        with self._lock:
            self.count += 1
            PROGRESS.debug("%s: %s is done", self.what, piece)
            if time.monotonic() < self._next or self.count >= self.total:
                return
            self._pause *= LONGER
            self._next = time.monotonic() + self._pause
            line = f"{self.what}: {self.count} of {self.total} done, {self.seconds:.0f} s"
        PROGRESS.info("%s", line)
        if self.shown:
            print(line, flush=True)
