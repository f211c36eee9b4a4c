"""Progress on stderr: a bar while a command works, and the trials of a bench as they finish."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from skdare._logger import Progress
from skdare._safe_text import terminal_safe
from skdare.cli._commands import exit_code
from skdare.cli._output import say

if TYPE_CHECKING:
    from skdare.bench import Log, Plan, Record
    from skdare.bench._trial import Trial


class ProgressBar:
    """A progress bar on stderr with the time left; a plain line now and then without a terminal.

    Parameters
    ----------
    what : str
        What is being done, in front of the bar.
    total : int
    done : int
        What was done before.
    unit : str, optional
        Show how many of these are done a second, as in "images", in place of how many are done.
    quiet : bool
    """

    def __init__(
        self, what: str, total: int, *, done: int = 0, unit: str | None = None, quiet: bool = False
    ) -> None:
        self.progress: Any = None
        self._lines: Progress | None = None
        if quiet:
            return
        if not sys.stderr.isatty():
            show = partial(say, err=True)
            self._lines = Progress(what, total, shown=True, show=show, before=done)
            return
        from rich import progress as bars
        from rich.console import Console

        counts: list[Any] = [bars.MofNCompleteColumn()]
        if unit is not None:
            counts = [bars.TextColumn("{task.percentage:>3.0f} %"), _rate_column(unit)]
        self.progress = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            *counts,
            bars.TimeRemainingColumn(),
            bars.TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=60.0,
        )
        self._task = self.progress.add_task(terminal_safe(what), total=total, completed=done)

    def __enter__(self) -> ProgressBar:
        if self.progress is not None:
            self.progress.start()
            # A rate is taken between two moments: with this one, the first amount has one.
            self.progress.advance(self._task, 0)
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __call__(self, count: int = 1) -> None:
        """Count this many more as done."""
        if self.progress is not None:
            self.progress.advance(self._task, count)
        if self._lines is not None:
            self._lines.advance(count)

    def reached(self, done: int, total: int) -> None:
        """Set how many are done of how many in all."""
        if self.progress is not None:
            # Set by itself: an update of the total forgets the moments that a rate is taken of.
            self.progress.tasks[0].total = total
            self.progress.update(self._task, completed=done)
        if self._lines is not None:
            self._lines.reached(done, total)

    def describe(self, what: str) -> None:
        """Change the text in front of the bar."""
        if self.progress is not None:
            self.progress.update(self._task, description=terminal_safe(what))
        if self._lines is not None:
            self._lines.what = what

    def stop(self) -> None:
        """Take the bar away."""
        if self.progress is not None:
            self.progress.stop()


def _rate_column(unit: str) -> Any:
    """A column of a bar: units a second."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} {unit}/s" if speed else "")

    return Rate()


def follow(plan: Plan, log: Log, *, jobs: int, retry_failed: bool, quiet: bool) -> None:
    """Run the plan with a bar; Ctrl-C ends it, and finished trials stay on file."""
    from skdare.bench import run

    keys = {plan.key(trial) for trial in plan.trials}

    def on_file() -> int:
        return len(keys & log.done(retry_failed=retry_failed))

    done = on_file()
    if done and not quiet:
        say(f"{done} of {len(keys)} trials are on file in {log.folder}", err=True)
    with ProgressBar("fitting", len(keys), done=done, quiet=quiet) as bar:

        def started(trial: Trial) -> None:
            bar.describe(f"{trial.head}, {trial.held_out} held out")

        try:
            for _ in run(plan, log, jobs=jobs, retry_failed=retry_failed, started=started):
                bar()
        except KeyboardInterrupt as interrupt:
            bar.stop()
            say(
                f"stopped: {on_file()} of {len(keys)} trials are on file in {log.folder}; "
                "the same command goes on from there",
                err=True,
            )
            sys.stdout.flush()
            # Not sys.exit: threads still in a fit would be torn down with the interpreter.
            os._exit(exit_code(interrupt))
    _report_failures([record for record in log.read() if record.key in keys])


def _report_failures(records: list[Record]) -> None:
    """Say how many trials failed and why the first did; exit with 1 where all heads failed."""
    from skdare.bench._heads import HEADS

    failed = [record for record in records if record.status == "failed"]
    if failed:
        first = failed[0]
        say(
            f"{len(failed)} of {len(records)} trials failed; the first, {first.head} with "
            f"{first.held_out} held out: {first.reason}",
            err=True,
        )
    heads = [record for record in records if record.head in HEADS]
    if heads and all(record.status == "failed" for record in heads):
        sys.exit(1)
