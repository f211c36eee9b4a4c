"""Where images lie: folders ``domain/class/image``, zips of them, and tables that name them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from skdare._validation import check_choice
from skdare.datasets._contents import reading
from skdare.datasets._natural import natural
from skdare.features._collection import IMAGE_SUFFIXES, Collection, ImageFile, Row, listed
from skdare.features._tables import TABLES, read_table
from skdare.persist import open_file

_LAYOUT = "domain/class/image"
_SYSTEM = {"__macosx", "thumbs.db", "desktop.ini"}


def read_collection(
    path: str | Path,
    *,
    kind: str | None = None,
    image: str | None = None,
    text: str | None = None,
    label: str | None = None,
    domain: str | None = None,
) -> Collection:
    """Find images or texts with their labels and domains; nothing is decoded yet.

    A folder ``domain/class/image``; a zip of it; a folder of such zips, where a zip may also
    hold one domain as ``class/image`` and be called after it; or a table (``.csv``, ``.csv.gz``,
    ``.parquet``) with columns for the image's path, from the table's folder, or for the text,
    and for label and domain. One folder around all the others is seen through. Hidden files are
    passed over, other files that are no images are left out and named by ``describe``. A domain
    may lack classes.

    Parameters
    ----------
    path : str or Path
    kind : "image" or "text", optional
        What to take from a table that has a column for each.
    image, text, label, domain : str, optional
        Columns of a table. Default: path, file, filename, filepath or image; text, sentence or
        document; for label and domain the names that ``skdare.datasets.read`` knows.

    Returns
    -------
    Collection

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdare.features._layouts import read_collection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "reviews.csv")
    ...     _ = table.write_text("text,label,shop\\nfine,good,books\\ndull,bad,films\\n")
    ...     print(read_collection(table, domain="shop").describe())
    2 domains, 2 classes, 2 texts
    books 1, films 1
    domain `books` has no `bad`
    domain `films` has no `good`
    """
    path = Path(path)
    check_choice("kind", kind, ("image", "text", None))
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist; give a folder or zip of {_LAYOUT}, or a table"
        )
    columns = {"image": image, "text": text, "label": label, "domain": domain}
    if path.is_file() and path.name.lower().endswith(TABLES):
        return read_table(path, kind, columns)
    named = [role for role, column in columns.items() if column is not None]
    if named or kind == "text":
        asked = f"{named[0]}= names a column" if named else "text comes in a table"
        raise ValueError(f"{asked}, but {path} is none; give a file that ends in {_or(TABLES)}")
    if path.is_dir():
        return _read_folder(path)
    if path.suffix.lower() != ".zip":
        raise ValueError(
            f"{path} is of no known kind; skdare reads folders and zips of {_LAYOUT}, and "
            f"tables that end in {_or(TABLES)}"
        )
    return _collection(path, path.stem, [_arranged(_zip_listing(path))])


def _or(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


@dataclass(frozen=True, eq=False)
class _Listing:
    """The files and folders in a folder or zip, by their path from its top."""

    where: Path
    files: dict[PurePosixPath, ImageFile]
    folders: list[PurePosixPath]

    @property
    def images(self) -> list[PurePosixPath]:
        return [file for file in self.files if file.suffix.lower() in IMAGE_SUFFIXES]


def _folder_listing(folder: Path) -> _Listing:
    listing = _Listing(folder, {}, [])
    for entry, place in _walk(folder, PurePosixPath()):
        if entry.is_dir():
            listing.folders.append(place)
        else:
            listing.files[place] = ImageFile(entry.path, _size(entry))
    return listing


def _walk(
    folder: str | Path, place: PurePosixPath, above: tuple[str, ...] = ()
) -> Iterator[tuple[os.DirEntry[str], PurePosixPath]]:
    """Entries below a folder, through links, unless they lead to a folder that it lies in."""
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            below = place / entry.name
            if not _passed_over(below):
                yield entry, below
                if entry.is_dir():
                    yield from _walk(entry.path, below, (*above, real))


def _size(entry: os.DirEntry[str]) -> int:
    # A link that leads nowhere is listed all the same, so that decoding reports it by name.
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0


def _zip_listing(path: Path) -> _Listing:
    listing = _Listing(path, {}, [])
    with open_file(path) as file, reading(path, "zip"), ZipFile(file) as archive:
        members = archive.infolist()
    for info in members:
        place = PurePosixPath(info.filename.lstrip("/"))
        if _passed_over(place):
            continue
        if info.is_dir():
            listing.folders.append(place)
            continue
        if place in listing.files:
            raise ValueError(f"{path} has two files called {place}; zip it again with one")
        listing.files[place] = ImageFile(str(path), info.file_size, info.filename, info.CRC)
    return listing


def _passed_over(place: PurePosixPath) -> bool:
    return any(part.startswith(".") or part.lower() in _SYSTEM for part in place.parts)


@dataclass(frozen=True, eq=False)
class _Arranged:
    """The images of one listing as rows, and its other files."""

    rows: list[Row]
    others: list[str]


def _read_folder(path: Path) -> Collection:
    listing = _folder_listing(path)
    zips = [f for f in listing.files if f.suffix.lower() == ".zip" and len(f.parts) == 1]
    zips.sort(key=lambda file: natural(file.name))
    name = path.resolve().name
    if not zips:
        return _collection(path, name, [_arranged(listing)])
    if listing.images:
        raise ValueError(
            f"{path} has images in folders and also zips, {listed([z.name for z in zips])}; "
            "move either away, so that no domain is left out or read twice"
        )
    parts = [_arranged(_zip_listing(path / z.name), z.stem) for z in zips]
    return _collection(path, name, parts)


def _collection(path: Path, name: str, parts: list[_Arranged]) -> Collection:
    rows = [row for part in parts for row in part.rows]
    return Collection.of("image", name, path, rows, [o for part in parts for o in part.others])


def _arranged(listing: _Listing, domain: str | None = None) -> _Arranged:
    """Domain, class and name from the folders that an image lies in.

    ``domain`` is that of images which lie only in the folder of their class.
    """
    images = listing.images
    others = [str(file) for file in listing.files if file.suffix.lower() not in IMAGE_SUFFIXES]
    if not images:
        found = f" but {len(others):,} other files, such as {others[0]}" if others else ""
        raise ValueError(
            f"{listing.where} has no images{found}; images end in {_or(IMAGE_SUFFIXES)}"
        )
    depths = {len(image.parts) for image in images}
    around = 0
    if depths == {4} and len({image.parts[0] for image in images}) == 1:
        around = 1
    elif depths == {2} and domain is not None:
        around = -1
    elif depths != {3}:
        _refuse_depth(listing.where, images)
    _refuse_empty(listing, images, around)
    above = () if around >= 0 else (str(domain),)
    rows = []
    for image in images:
        parts = (*above, *image.parts[max(around, 0) :])
        rows.append(Row(parts[0], parts[1], "/".join(parts), listing.files[image]))
    return _Arranged(rows, others)


def _refuse_depth(where: Path, images: list[PurePosixPath]) -> None:
    """Say which image lies in too few or too many folders."""
    images = sorted(images, key=lambda image: natural(str(image)))
    image = next(image for image in images if len(image.parts) != 3)
    above = len(image.parts) - 1
    if above > 2:
        remedy = "move it up, or name images and their labels in a table of path,label,domain"
    else:
        remedy = "give every domain a folder for each class, or give the folder above this one"
    raise ValueError(
        f"{image} in {where} lies in {above} folder{'s' * (above != 1)}, and images must lie in 2, "
        f"as {_LAYOUT}; {remedy}"
    )


def _refuse_empty(listing: _Listing, images: list[PurePosixPath], around: int) -> None:
    """Refuse folders of a domain or class that hold nothing: a copy that failed looks like that.

    A folder beside the domains that holds other files, such as lists of splits, may stay.
    """
    holding_images = {parent for image in images for parent in image.parents}
    holding_files = {parent for file in listing.files for parent in file.parents}
    # A zip need not list its folders; the files in them tell.
    folders = {*listing.folders, *holding_files}
    for folder in sorted(folders, key=lambda folder: natural(str(folder))):
        if folder in holding_images:
            continue
        level = len(folder.parts) - around
        empty_domain = level == 1 and folder not in holding_files
        empty_class = level == 2 and folder.parent in holding_images
        if empty_domain or empty_class:
            raise ValueError(
                f"folder {folder} in {listing.where} has no images; fill it, or remove it: a "
                "domain may lack a class"
            )
