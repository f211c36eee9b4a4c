"""Files within zip and tar archives, read without being unpacked.

Nothing is written, so a name within an archive is only a name. Those that lead out of the archive
are left aside all the same.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from skdare._input_error import InputError
from skdare.datasets._hidden_paths import is_ignored

_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
# An archive, and archives in it: publishers put one into another, and none goes deeper.
_LEVELS = 2
# Four times the largest file that a public set has: 66 MB, the training windows of
# `fetch_har`, 7,352 lines of 561 values of 16 characters.
_MOST_BYTES = 1 << 28


@dataclass(frozen=True, eq=False)
class ArchivedFile:
    """A file in an archive that is open.

    Parameters
    ----------
    name : str
        With its folders.
    size : int
        Bytes, unpacked, as the archive states it.
    open : callable
    """

    name: str
    size: int
    open: Callable[[], IO[bytes] | None]

    def content(self) -> bytes:
        """All of it, unless that is far more than any public set has."""
        if self.size > _MOST_BYTES:
            raise InputError(f"{self.name} in it has {self.size} bytes, over {_MOST_BYTES}")
        # A size that is a lie bounds what is unpacked all the same.
        with cast("IO[bytes]", self.open()) as file:
            return file.read(self.size)


def is_called_archive(name: str) -> bool:
    """Whether a file's name is that of an archive."""
    return name.endswith(_ENDINGS)


def is_archive(file: BinaryIO) -> bool:
    """Whether a file is a zip or tar archive."""
    found = zipfile.is_zipfile(file)
    file.seek(0)
    if not found:
        found = tarfile.is_tarfile(cast("IO[bytes]", file))
        file.seek(0)
    return found


def archived_files(path: Path, *patterns: str) -> dict[str, bytes]:
    """Contents of the files in an archive, and in archives in it, whose own name fits a pattern.

    A damaged archive raises what zipfile, tarfile and their decompressors do.

    Parameters
    ----------
    path : Path
    *patterns : str
        As in a shell, and compared with names without folders. Each must fit a file.

    Returns
    -------
    dict
        By name without folders, in the order of the archive.
    """
    contents: dict[str, bytes] = {}
    with path.open("rb") as file:
        _collect(file, patterns, contents, _LEVELS)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in contents):
            raise InputError(f"it holds no file called {pattern}")
    return contents


def _collect(
    archive: BinaryIO, patterns: Sequence[str], contents: dict[str, bytes], levels: int
) -> None:
    for member in _members(archive):
        place = PurePosixPath(member.name.replace("\\", "/"))
        # ".." is hidden too.
        if place.is_absolute() or is_ignored(place):
            continue
        if any(fnmatchcase(place.name, pattern) for pattern in patterns):
            contents.setdefault(place.name, member.content())
        elif levels > 1 and is_called_archive(place.name):
            _collect(BytesIO(member.content()), patterns, contents, levels - 1)


def _members(archive: BinaryIO) -> Iterator[ArchivedFile]:
    if not is_archive(archive):
        raise InputError("it is not a whole archive, or an archive in it is not")
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                if not info.is_dir():
                    opener = partial(zipped.open, info)
                    yield ArchivedFile(info.filename, info.file_size, opener)
    else:
        archive.seek(0)
        with tarfile.open(fileobj=archive) as tape:
            for entry in tape:
                if entry.isfile():
                    yield ArchivedFile(entry.name, entry.size, partial(tape.extractfile, entry))
