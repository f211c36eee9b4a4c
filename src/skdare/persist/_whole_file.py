"""Files and folders that are written whole, or stay what they were.

What is written has a passing name beside its place, ``NAME.<32 digits>.partial``, and takes its
own name in one step. While it is written it is locked. A process that is killed leaves it behind
without a lock, and the next one that writes there removes it; where the system has no locks it
stays.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from skdare.persist._lock import is_at, lock

PARTIAL = ".partial"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write that has its name only once it is whole on disk.

    After an exception nothing of it is left. A link stays a link, and its target is replaced; a
    file that is replaced passes its mode on. Several threads and processes may write the same
    file: each writes one of its own, and the last one stays.

    Parameters
    ----------
    path : Path
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "exists and is not a file; choose another path", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist; make it first", str(path))
    try:
        with partial_file(path) as partial:
            yield partial.file
            partial.keep(path)
    except OSError as error:
        if _is_of_another_file(error, path):
            raise
        raise OSError(
            error.errno,
            f"not written ({error.strerror or error}), and what was there is unchanged; "
            "make room, or choose another folder",
            str(path),
        ) from error


def _is_of_another_file(error: OSError, path: Path) -> bool:
    """Whether an error in a ``with`` block came from something else that the block did.

    Errors of open files do not name them, so one without a name is taken for ours.
    """
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    name = error.filename
    if not isinstance(name, str | bytes):
        return False
    return not os.path.basename(os.fsdecode(name)).startswith(path.name)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A path to make a folder at, which then takes its name; after an exception none is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with passing_folder(path.with_name(f".{path.name}")) as passing:
        folder = passing / path.name
        yield folder
        folder.rename(path)
        sync_folder(path.parent)


@contextmanager
def passing_folder(path: Path) -> Iterator[Path]:
    """A folder beside a path, for what is needed meanwhile; nothing of it is left."""
    with partial_file(path) as partial:
        partial.folder.mkdir()
        try:
            yield partial.folder
        finally:
            shutil.rmtree(partial.folder, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class PartialFile:
    """A file that is not yet whole, and locked.

    Parameters
    ----------
    path : Path
    file : binary file
    """

    path: Path
    file: BinaryIO
    mode: int | None = None

    @property
    def folder(self) -> Path:
        """A folder beside the file, for a folder that is not yet whole; it goes with the file."""
        return self.path.with_suffix("")

    def keep(self, path: Path) -> None:
        """Give the file its name in the same folder, and wait until both are on disk."""
        self.file.flush()
        if self.mode is not None:
            os.chmod(self.path, self.mode)
        os.fsync(self.file.fileno())
        if os.name != "posix":  # elsewhere an open file cannot be renamed
            self.file.close()
        os.replace(self.path, path)
        sync_folder(path.parent)


@contextmanager
def partial_file(path: Path) -> Iterator[PartialFile]:
    """A file beside a path, removed unless it is kept; so is what killed processes left there."""
    _clear_leftovers(path)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None

    def opener(name: str, flags: int) -> int:
        # Its owner may write it until it is kept: else nobody could lock what is left of it.
        return os.open(name, flags, 0o666 if mode is None else mode | stat.S_IWUSR)

    while True:
        # A name that nobody can foresee: a link with that name would be followed.
        partial = path.with_name(f"{path.name}.{uuid4().hex}{PARTIAL}")
        try:
            with open(partial, "x+b", opener=opener) as file:
                # Another process may have removed it as a leftover before it was locked.
                if lock(file.fileno()) is False or not is_at(partial, file.fileno()):
                    continue
                yield PartialFile(partial, file, mode)
                return
        finally:
            partial.unlink(missing_ok=True)


def _clear_leftovers(path: Path) -> None:
    """Remove what was to become this file, where nobody has it locked, as far as that works."""
    ours = re.compile(rf"{re.escape(path.name)}\.[0-9a-f]{{32}}{re.escape(PARTIAL)}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _clear_one(Path(entry.path))


def _clear_one(leftover: Path) -> None:
    # Opened for writing: network drives lock no other files.
    with leftover.open("r+b") as file:
        if lock(file.fileno()) and is_at(leftover, file.fileno()):
            shutil.rmtree(PartialFile(leftover, file).folder, ignore_errors=True)
            leftover.unlink()


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk, as far as the system can."""
    if os.name != "posix":  # elsewhere a folder cannot be opened, and renaming is synchronous
        return
    # The names are right even if this fails, so it is no reason to say that nothing was written.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
