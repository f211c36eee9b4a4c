"""Files within zip and tar archives, read without being unpacked.

Nothing is written, so a name within an archive is only a name. Those that lead out of the archive
are left aside all the same.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from skdare._input_error import InputError

_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError)


def is_called_archive(name: str) -> bool:
    """Whether a file's name is that of an archive."""
    return name.endswith(_ENDINGS) and not name.startswith(".")


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
    try:
        with path.open("rb") as file:
            _collect(file, patterns, contents)
    except _DAMAGE as error:
        raise InputError(
            f"{path} is not a whole archive ({error})", "delete it to download it again"
        ) from error
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in contents):
            raise InputError(
                f"{path} holds no file called {pattern}",
                "it may have been replaced where it is published",
            )
    return contents


def _collect(archive: BinaryIO, patterns: Sequence[str], contents: dict[str, bytes]) -> None:
    for member, read in _members(archive):
        place = PurePosixPath(member.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts:
            continue
        if any(fnmatchcase(place.name, pattern) for pattern in patterns):
            contents.setdefault(place.name, read())
        elif is_called_archive(place.name):
            _collect(BytesIO(read()), patterns, contents)


def _members(archive: BinaryIO) -> Iterator[tuple[str, Callable[[], bytes]]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                if not info.is_dir():
                    yield info.filename, partial(zipped.read, info)
    else:
        archive.seek(0)
        with tarfile.open(fileobj=archive) as tape:
            for entry in tape:
                content = tape.extractfile(entry) if entry.isfile() else None
                if content is not None:
                    yield entry.name, content.read
