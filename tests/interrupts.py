"""Processes that tests start, and that stop at a point which they come to themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

# Seconds that only a process which hangs takes, on however busy a machine.
PATIENCE = 600.0


def heard() -> None:
    """Run in a child before it starts: what runs in the background is born deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments: Any, **more: Any) -> subprocess.Popen[Any]:
    """A Python process that hears Ctrl-C, and whose output is read."""
    command = [sys.executable, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **{**pipes, **more}, preexec_fn=heard)


def ended(code: str, *arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    """A process that ran this code to its end; the modules of tests can be imported in it."""
    known = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    with start("-c", known + code, *arguments, text=True, **more) as process:
        try:
            out, told = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, told)


def stop_after(owner: Any, name: str, calls: int, by: int) -> None:
    """Make this process send itself a signal once a function has returned so often.

    No thread that calls it gets any further: what is done by then is the same on every machine.
    """
    function, numbers = getattr(owner, name), count(1)

    def counted(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        number = next(numbers)
        if number == calls:
            os.kill(os.getpid(), by)
        if number >= calls:
            threading.Event().wait()
        return result

    setattr(owner, name, counted)
