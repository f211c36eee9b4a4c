"""Locks on files and folders, which the system releases however a process ends.

Where the system has no such locks (Windows, some network drives) nothing is locked: two processes
that write the same run, store or stream at once are not kept apart there.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Seconds before a caller is told that it waits, and between two attempts.
_PATIENCE = 1.0
_PAUSE = 0.05


def lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; False if another has it, None if there are no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def is_at(path: Path, descriptor: int) -> bool:
    """Whether this path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def lock_folder(folder: Path) -> int | None:
    """Lock a folder until the returned descriptor is closed; None where there are no locks."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    if lock(descriptor) is False:
        os.close(descriptor)
        raise ValueError(
            f"{folder} is being written to; wait for that process, or choose another name"
        )
    return descriptor


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Keep other processes that lock the same path out of a ``with`` block; they wait.

    The file may be replaced, so another beside it is locked, ``.NAME.lock``, which is removed
    once nobody needs it.

    Parameters
    ----------
    path : Path
        It need not exist.
    on_wait : callable
        Called once if another process has the lock for longer than a second.
    """
    if os.name != "posix":
        yield
        return
    path = Path(os.path.realpath(path))
    lock_path = path.with_name(f".{path.name}.lock")
    deadline = time.monotonic() + _PATIENCE
    called = False
    while (descriptor := _acquire(lock_path)) is None:
        if not called and time.monotonic() > deadline:
            on_wait()
            called = True
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        # Removed before it is unlocked: a process that opened it meanwhile sees that it is gone.
        lock_path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int | None:
    """A descriptor of the file once it is locked, or nobody can tell; None while another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    if lock(descriptor) is not False and is_at(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None
