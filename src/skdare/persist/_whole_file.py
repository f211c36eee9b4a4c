"""Files and folders that are there whole, or as they were before.

What is written lies beside its place under a passing name, ``NAME.<32 digits>.partial``, and takes
its name in one step. While it is written it is locked. A process that is killed leaves it behind
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
    """A file that has its name only once it is whole on disk; nothing of it is left otherwise.

    A link stays one, and what it points to is replaced. The mode of a file that is replaced is
    kept. Several threads and processes may write the same file: each writes one of its own, and
    the last one stays.

    Parameters
    ----------
    path : Path
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "is no file, and is left as it is; choose another", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist; make it", str(path))
    try:
        with partial_file(path) as partial:
            yield partial.file
            partial.keep(path)
    except OSError as error:
        raise OSError(
            error.errno,
            f"not written ({error.strerror or error}), and what was there is as it was; make room, "
            "or choose another folder",
            str(path),
        ) from error


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A place to make a folder at, which then takes its name; nothing of it is left otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with partial_file(path.with_name(f".{path.name}")) as partial:
        partial.folder.mkdir()
        folder = partial.folder / path.name
        try:
            yield folder
            folder.rename(path)
            sync_folder(path.parent)
        finally:
            shutil.rmtree(partial.folder, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class PartialFile:
    """A file that is not yet whole, and is locked.

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
        """A folder beside the file, for what is not yet whole; it is cleared away with the file."""
        return self.path.with_suffix("")

    def keep(self, path: Path) -> None:
        """Give it a name in the same folder, on disk as well."""
        self.file.flush()
        if self.mode is not None:
            os.chmod(self.path, self.mode)
        os.fsync(self.file.fileno())
        if os.name != "posix":  # elsewhere no open file is renamed
            self.file.close()
        os.replace(self.path, path)
        sync_folder(path.parent)


@contextmanager
def partial_file(path: Path) -> Iterator[PartialFile]:
    """A file beside a path, gone unless it is kept; what killed processes left there is removed."""
    _clear(path)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None

    def opener(name: str, flags: int) -> int:
        # To be written by its owner until it is kept: else nobody could lock what is left of it.
        return os.open(name, flags, 0o666 if mode is None else mode | stat.S_IWUSR)

    while True:
        # A name that nobody can foresee: a link put there would be followed.
        partial = path.with_name(f"{path.name}.{uuid4().hex}{PARTIAL}")
        try:
            with open(partial, "x+b", opener=opener) as file:
                # Another may have taken it for left behind before it was locked.
                if lock(file.fileno()) is False or not is_at(partial, file.fileno()):
                    continue
                yield PartialFile(partial, file, mode)
                return
        finally:
            partial.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """Remove what was to become this file, where nobody holds it; what cannot be removed stays."""
    ours = re.compile(rf"{re.escape(path.name)}\.[0-9a-f]{{32}}{re.escape(PARTIAL)}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _clear_one(Path(entry.path))


def _clear_one(left: Path) -> None:
    # For writing: network drives lock no other.
    with left.open("r+b") as file:
        if lock(file.fileno()) and is_at(left, file.fileno()):
            shutil.rmtree(PartialFile(left, file).folder, ignore_errors=True)
            left.unlink()


def sync_folder(folder: Path) -> None:
    """Names in a folder as they are now, on disk, as far as the system can."""
    if os.name != "posix":  # elsewhere a folder cannot be opened, and renaming is synchronous
        return
    # The names are as they should be whatever comes of it: no reason to say that nothing was
    # written.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
