"""Files that are written whole, or stay what they were."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from os import PathLike
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from skdare.errors import InputError

# Seconds after which what was to become a file is what a killed process has left.
_LONG_AGO = 3600.0


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that has its name only once it is whole on disk.

    After an exception nothing of it is left. A link stays a link, and its target is replaced; a
    file that is replaced passes its mode on. Several processes may write the same file: each
    writes one of its own, and the last one stays.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is not a file", "choose another path")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(target.parent)!r} does not exist; make it first")
    for leftover in target.parent.glob(f"{escape(target.name)}.{'[0-9a-f]' * 32}.partial"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _LONG_AGO:
                leftover.unlink()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # A name that nobody can foresee: a link with that name would be followed.
    partial = target.with_name(f"{target.name}.{uuid4().hex}.partial")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            partial.chmod(mode)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    with suppress(OSError):  # the names are right even if this fails
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def locked(path: str | PathLike[str]) -> Iterator[None]:
    """Keep other processes that lock the same path out of a ``with`` block; they wait."""
    from filelock import FileLock

    target = Path(os.path.realpath(path))
    with FileLock(target.with_name(f".{target.name}.lock")):
        yield
