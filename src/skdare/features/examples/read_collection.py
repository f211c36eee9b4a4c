"""Find images in folders ``domain/class/image`` and in zips of them; tables are next door."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skdare.errors import InputError, counted
from skdare.features.examples.collection import IMAGE_SUFFIXES, Collection, Row, listed
from skdare.features.examples.listing import Listing, folder_listing, zip_listing
from skdare.features.examples.names import natural
from skdare.features.examples.tables import TABLES, read_table

_LAYOUT = "domain/class/image"


def read_collection(path: str | Path) -> Collection:
    """Find images or texts with their labels and domains; nothing is decoded yet.

    Read are folders ``domain/class/image``; a zip of them; a folder of such zips, where a zip may
    also hold one domain as ``class/image`` and be named after it; and tables (``.csv``,
    ``.csv.gz``, ``.parquet``) with a column for the image's path, relative to the table's folder,
    or for the text, and columns for label and domain. One extra folder around all domains is
    allowed. Hidden files are ignored; files that are not images are left out, and ``describe``
    names them. A domain may lack classes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdare.features import read_collection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "reviews.csv")
    ...     _ = table.write_text("text,label,domain\\nfine,good,books\\ndull,bad,films\\n")
    ...     print(read_collection(table).describe())
    2 domains, 2 classes, 2 texts
    books 1, films 1
    domain `books` has no `bad`
    domain `films` has no `good`
    """
    path = Path(path)
    if not path.exists():
        raise InputError(
            f"there is no file or folder '{path}'", f"give a folder or zip of {_LAYOUT}, or a table"
        )
    if path.is_file() and path.name.lower().endswith(TABLES):
        return read_table(path)
    if path.is_dir():
        return _read_folder(path)
    if path.suffix.lower() != ".zip":
        raise InputError(
            f"{path} cannot be read as images or texts",
            f"give a folder or zip of {_LAYOUT}, or a table that ends in {_or(TABLES)}",
        )
    return _collection(path, path.stem, [_image_rows(zip_listing(path))])


def _or(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


@dataclass(frozen=True, eq=False)
class _ImageRows:
    """Images of one listing as rows, and the names of its other files."""

    rows: list[Row]
    others: list[str]


def _read_folder(path: Path) -> Collection:
    listing = folder_listing(path)
    zips = [f for f in listing.files if f.suffix.lower() == ".zip" and len(f.parts) == 1]
    zips.sort(key=lambda file: natural(file.name))
    name = path.resolve().name
    if not zips:
        return _collection(path, name, [_image_rows(listing)])
    if listing.images:
        raise InputError(
            f"{path} has images in folders and also zips, {listed([z.name for z in zips])}; "
            "move one or the other away, so that no domain is left out or read twice"
        )
    return _collection(path, name, [_image_rows(zip_listing(path / z.name), z.stem) for z in zips])


def _collection(path: Path, name: str, listings: list[_ImageRows]) -> Collection:
    rows = [row for listing in listings for row in listing.rows]
    others = [name for listing in listings for name in listing.others]
    return Collection.from_rows("image", name, path, rows, others)


def _image_rows(listing: Listing, domain: str | None = None) -> _ImageRows:
    """Images with the domain and class that their folders name.

    ``domain`` applies to images that lie in a folder for their class only.
    """
    images = listing.images
    others = [str(file) for file in listing.files if file.suffix.lower() not in IMAGE_SUFFIXES]
    if not images:
        but = f" but {len(others):,} other files, such as {others[0]}" if others else ""
        raise InputError(f"{listing.where} has no images{but}; images end in {_or(IMAGE_SUFFIXES)}")
    depths = {len(image.parts) for image in images}
    extra_folders = 0
    if depths == {4} and len({image.parts[0] for image in images}) == 1:
        extra_folders = 1
    elif depths == {2} and domain is not None:
        extra_folders = -1
    elif depths != {3}:
        _refuse_depth(listing.where, images)
    _refuse_empty(listing, images, extra_folders)
    above = (str(domain),) if extra_folders < 0 else ()
    rows = []
    for image in images:
        parts = (*above, *image.parts[max(extra_folders, 0) :])
        rows.append(Row(parts[0], parts[1], "/".join(parts), listing.files[image]))
    return _ImageRows(rows, others)


def _refuse_depth(where: Path, images: list[PurePosixPath]) -> None:
    """Name the first image that lies in too few or too many folders."""
    images = sorted(images, key=lambda image: natural(str(image)))
    image = next(image for image in images if len(image.parts) != 3)
    above = len(image.parts) - 1
    if above > 2:
        remedy = "move it up, or list images and their labels in a table of path,label,domain"
    else:
        remedy = "give every domain a folder for each class, or give the folder above this one"
    raise InputError(
        f"{image} in {where} lies in {counted(above, 'folder')}, and images must lie in 2, "
        f"as {_LAYOUT}; {remedy}"
    )


def _refuse_empty(listing: Listing, images: list[PurePosixPath], extra_folders: int) -> None:
    """Refuse an empty folder for a domain or class, as a failed copy leaves it.

    A folder beside the domains may hold other files, such as lists of splits.
    """
    with_images = {parent for image in images for parent in image.parents}
    with_files = {parent for file in listing.files for parent in file.parents}
    # A zip need not list its folders, so those that hold files are added.
    folders = {*listing.folders, *with_files}
    for folder in sorted(folders, key=lambda folder: natural(str(folder))):
        if folder in with_images:
            continue
        level = len(folder.parts) - extra_folders
        empty_domain = level == 1 and folder not in with_files
        empty_class = level == 2 and folder.parent in with_images
        if empty_domain or empty_class:
            raise InputError(
                f"folder {folder} in {listing.where} has no images; fill it, or remove it: a "
                "domain may lack a class"
            )
