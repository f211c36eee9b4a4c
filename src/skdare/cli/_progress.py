"""A bar on stderr while a run goes on; nothing where nobody watches."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from skdare._safe_text import terminal_safe
from skdare.cli._commands import exit_code
from skdare.cli._terminal import say

if TYPE_CHECKING:
    from skdare.bench import Log, Plan, Record
    from skdare.bench._trial import Trial


def follow(plan: Plan, log: Log, *, jobs: int, retry_failed: bool, quiet: bool) -> None:
    """Run the plan with a bar; Ctrl-C ends it with what is done on file."""
    from skdare.bench import run

    keys = {plan.key(trial) for trial in plan.trials}
    done = len(keys & log.done(retry_failed=retry_failed))
    if done and not quiet:
        say(f"{done} of {len(keys)} trials are on file in {log.folder}", err=True)
    with _Bar(len(keys), done, not quiet and sys.stderr.isatty()) as bar:
        try:
            for _ in run(plan, log, jobs=jobs, retry_failed=retry_failed, started=bar.started):
                bar.advance()
        except KeyboardInterrupt as interrupt:
            bar.stop()
            done = len(keys & log.done(retry_failed=retry_failed))
            say(
                f"stopped: {done} of {len(keys)} trials are on file in {log.folder}; "
                "the same command goes on from there",
                err=True,
            )
            sys.stdout.flush()
            # Not sys.exit: threads still in a fit would be torn down with the interpreter.
            os._exit(exit_code(interrupt))
    _tell_failures([record for record in log.read() if record.key in keys])


def _tell_failures(ours: list[Record]) -> None:
    """On stderr: how many trials failed, and the first reason; all heads' is an error."""
    from skdare.bench._heads import HEADS

    failed = [record for record in ours if record.status == "failed"]
    if failed:
        first = failed[0]
        say(
            f"{len(failed)} of {len(ours)} trials failed; the first, {first.head} with "
            f"{first.held_out} held out: {first.reason}",
            err=True,
        )
    heads = [record for record in ours if record.head in HEADS]
    if heads and all(record.status == "failed" for record in heads):
        sys.exit(1)


class _Bar:
    """A rich progress bar, or nothing."""

    def __init__(self, total: int, done: int, watched: bool) -> None:
        self.progress: Any = None
        if not watched:
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            Remaining(),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.progress.add_task("fitting", total=total, completed=done)

    def __enter__(self) -> _Bar:
        if self.progress is not None:
            self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def started(self, trial: Trial) -> None:
        """Say what is being fitted."""
        if self.progress is not None:
            shown = terminal_safe(f"{trial.head}, {trial.held_out} held out")
            self.progress.update(self.task, description=shown)

    def advance(self) -> None:
        """Count one more."""
        if self.progress is not None:
            self.progress.advance(self.task)

    def stop(self) -> None:
        """Take the bar away."""
        if self.progress is not None:
            self.progress.stop()
