"""A bar with a rate: how much is done a second, and how long the rest will take."""

from __future__ import annotations

import sys
from typing import Any

from skdare._safe_text import terminal_safe


class Meter:
    """A rich progress bar on stderr with a rate, or nothing where nobody watches.

    Parameters
    ----------
    what : str
    unit : str
        What is counted, as in "images".
    total : int
    watched : bool
    """

    def __init__(self, what: str, unit: str, total: int, watched: bool) -> None:
        self._progress: Any = None
        if not (watched and sys.stderr.isatty()):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining
        from rich.text import Text

        class Rate(ProgressColumn):
            """So many a second."""

            def render(self, task: Any) -> Text:
                speed = task.finished_speed or task.speed
                return Text(f"{speed:,.0f} {unit}/s" if speed else "")

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            Rate(),
            Remaining(),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=60.0,
        )
        self._task = self._progress.add_task(terminal_safe(what), total=total)

    def __enter__(self) -> Meter:
        if self._progress is not None:
            self._progress.start()
            # A rate is taken between two moments: with this one, the first amount has one.
            self._progress.advance(self._task, 0)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, count: int) -> None:
        """So many more are done."""
        if self._progress is not None:
            self._progress.advance(self._task, count)

    def reached(self, done: int, total: int) -> None:
        """So many are done in all."""
        if self._progress is not None:
            # Set by itself: an update of the total forgets the moments that a rate is taken of.
            self._progress.tasks[0].total = total
            self._progress.update(self._task, completed=done)
