"""Ctrl-C for processes that tests start."""

from __future__ import annotations

import signal


def heard() -> None:
    """Run in a child before it starts: what runs in the background is born deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
