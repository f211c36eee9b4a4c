"""Locks on files and folders, which the system lets go of however a process ends.

Where the system has no such locks (Windows, some network drives) nothing is held: two processes
that write the same run, store or stream at once are not kept apart there.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_MOMENT, _PAUSE = 1.0, 0.05


def lock(descriptor: int) -> bool | None:
    """Hold an open file until it is closed; False: another does, None: there are no locks here."""
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
    """Whether an open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def lock_folder(folder: Path) -> int | None:
    """A descriptor that holds a folder until it is closed; None where there are no locks."""
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
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Within, no other process that takes turns at a file has its turn; they wait.

    The file may be replaced, so what is locked is another beside it, ``.NAME.lock``. It is gone
    once nobody needs it.

    Parameters
    ----------
    path : Path
        It need not be there.
    waiting : callable
        Called once where another process does not end within a second.
    """
    if os.name != "posix":
        yield
        return
    path = Path(os.path.realpath(path))
    place = path.with_name(f".{path.name}.lock")
    began, told = time.monotonic(), False
    while (descriptor := _taken(place)) is None:
        if not told and time.monotonic() - began > _MOMENT:
            waiting()
            told = True
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        # Before it is let go of: who has opened it meanwhile sees that it is gone.
        place.unlink(missing_ok=True)
        os.close(descriptor)


def _taken(place: Path) -> int | None:
    """A descriptor of the file, if it is ours, or nobody can tell."""
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
    if lock(descriptor) is not False and is_at(place, descriptor):
        return descriptor
    os.close(descriptor)
    return None
