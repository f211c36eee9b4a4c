"""Warnings by thread: each trial hears its own."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCAL = threading.local()


def warnings_of_thread() -> list[str]:
    """The messages of warnings that this thread has given since it first asked."""
    if not hasattr(_LOCAL, "messages"):
        _LOCAL.messages = []
    return _LOCAL.messages


@contextmanager
def heard_by_thread() -> Iterator[None]:
    """Send every warning to a list of the thread that gives it, where it has asked for one.

    `warnings.catch_warnings` changes the whole process, so it is entered once, around all
    threads, and not around each trial; the warnings of other threads are shown as before.
    """
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def listen(message: Warning | str, *details: Any, **more: Any) -> None:
            if hasattr(_LOCAL, "messages"):
                _LOCAL.messages.append(str(message))
            else:
                shown(message, *details, **more)

        warnings.simplefilter("always")
        warnings.showwarning = listen
        yield
