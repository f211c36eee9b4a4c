"""Files and folders that are written whole, or stay what they were."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from os import PathLike
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from skdare.errors import InputError, quoted

# Seconds after which an unfinished file must be what a killed process has left.
_LONG_AGO = 3600.0
# Failures of the disk, which Python reports without the name of the file.
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def check_writable(path: str | PathLike[str]) -> None:
    """Refuse a name that no file can have, before any work is done for it."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(
            f"cannot write to {quoted(Path(path))}", f"there is no folder {quoted(target.parent)}"
        )
    if target.is_dir():
        raise InputError(
            f"cannot write to {quoted(Path(path))}", "it is a folder; give the name of a file"
        )
    if target.exists() and not target.is_file():
        raise InputError(f"cannot write to {quoted(Path(path))}", "it is not a file")


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that has its name only once it is whole on disk.

    After an exception nothing of it is left. A link stays a link, and its target is replaced; a
    file that is replaced passes its mode on. Several processes may write the same file: each
    writes one of its own, and the last one stays.
    """
    target = Path(os.path.realpath(path))
    check_writable(target)
    _remove_leftovers(target)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # From the start: a private file is never readable by others.
    first = 0o666 if mode is None else mode
    partial = _partial(target)
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, first)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            partial.chmod(mode)
        os.replace(partial, target)
    except OSError as error:
        _name(error, partial, path)
        raise
    finally:
        with suppress(OSError):  # which would hide what went wrong
            partial.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def whole_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """The name of a folder to make, which has its own name only once it is complete."""
    target = Path(os.path.realpath(path))
    if target.exists():
        raise InputError(
            f"{quoted(Path(path))} exists already", "choose another name, or remove it"
        )
    check_writable(target)
    _remove_leftovers(target)
    partial = _partial(target)
    try:
        yield partial
        try:
            os.rename(partial, target)
        except OSError as error:
            if target.exists():  # another process was first
                raise InputError(
                    f"{quoted(Path(path))} exists already", "choose another name"
                ) from error
            raise
    except OSError as error:
        _name(error, partial, path)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _sync_folder(target.parent)


def _partial(target: Path) -> Path:
    # An unpredictable name, because an existing link of that name would be followed.
    return target.with_name(f"{target.name}.{uuid4().hex}.partial")


def _name(error: OSError, partial: Path, path: str | PathLike[str]) -> None:
    """Call the file by the name that was asked for in an error about it."""
    name = error.filename
    of_the_file = isinstance(name, str) and name.startswith(str(partial))
    if of_the_file or (name is None and error.errno in _OF_THE_DISK):
        error.filename = os.fspath(path)


def _remove_leftovers(target: Path) -> None:
    for leftover in target.parent.glob(f"{escape(target.name)}.{'[0-9a-f]' * 32}.partial"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _LONG_AGO:
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # the names are right even if this fails
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(path: str | PathLike[str]) -> Iterator[None]:
    """Keep other processes that lock the same path out of a ``with`` block; they wait."""
    from filelock import FileLock

    target = Path(os.path.realpath(path))
    with FileLock(target.with_name(f".{target.name}.lock")):
        yield
