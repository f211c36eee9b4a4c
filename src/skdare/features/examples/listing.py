"""What lies in a folder or zip, before anyone says what is a domain and what a class."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from skdare.errors import InputError
from skdare.features.examples.collection import IMAGE_SUFFIXES, ImageFile
from skdare.features.examples.names import is_ignored
from skdare.features.examples.reading import reading

# Settings of a run. A folder that has them holds networks and figures, and no examples.
RUN_SETTINGS = "run.json"


@dataclass(frozen=True, eq=False)
class Listing:
    """Files and folders in a folder or zip, by their path from its top."""

    where: Path
    files: dict[PurePosixPath, ImageFile]
    folders: list[PurePosixPath]

    @property
    def images(self) -> list[PurePosixPath]:
        """Files whose suffix is that of an image."""
        return [file for file in self.files if file.suffix.lower() in IMAGE_SUFFIXES]

    def below(self, place: PurePosixPath) -> Listing:
        """What lies below one of the folders, by its path from there."""
        files = {
            path.relative_to(place): file
            for path, file in self.files.items()
            if place in path.parents
        }
        folders = [path.relative_to(place) for path in self.folders if place in path.parents]
        return Listing(self.where / place, files, folders)


def folder_listing(folder: Path) -> Listing:
    """Everything below a folder."""
    listing = Listing(folder, {}, [])
    for entry, place in _walk(folder, PurePosixPath()):
        if entry.is_dir():
            listing.folders.append(place)
        else:
            listing.files[place] = ImageFile(entry.path, _size(entry))
    return listing


def _walk(
    folder: str | Path, place: PurePosixPath, above: tuple[str, ...] = ()
) -> Iterator[tuple[os.DirEntry[str], PurePosixPath]]:
    """Entries below a folder, following links unless they lead back to a folder above."""
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            below = place / entry.name
            if is_ignored(below):
                continue
            if not entry.is_dir():
                yield entry, below
            elif not os.path.exists(os.path.join(entry.path, RUN_SETTINGS)):
                yield entry, below
                yield from _walk(entry.path, below, (*above, real))


def _size(entry: os.DirEntry[str]) -> int:
    # A broken link is listed all the same, so that decoding reports it by name.
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0


def zip_listing(path: Path) -> Listing:
    """Everything in a zip."""
    listing = Listing(path, {}, [])
    with reading(path, "zip"), ZipFile(path) as archive:
        members = archive.infolist()
    for info in members:
        place = PurePosixPath(info.filename.lstrip("/"))
        if is_ignored(place):
            continue
        if info.is_dir():
            listing.folders.append(place)
            continue
        if place in listing.files:
            raise InputError(f"{path} has two files called {place}; zip it again with one")
        listing.files[place] = ImageFile(str(path), info.file_size, info.filename, info.CRC)
    return listing
