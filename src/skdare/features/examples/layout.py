"""Known sets of images as people have them on disk: what to look for, and what to expect."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from skdare.errors import InputError, counted, note
from skdare.features.examples.collection import Archives, Collection, ImageFile, Row, listed
from skdare.features.examples.listing import Listing, folder_listing, zip_listing
from skdare.features.examples.names import is_ignored, natural
from skdare.features.examples.reading import reading
from skdare.features.examples.tables import read_listed_images
from skdare.features.json_file import check_keys, check_shape

# Folders around the domains: those of a download, of its archive, of all sets together.
_FOLDERS_AROUND = 2
# Versions of a set differ by a few percent: TerraIncognita has 24,788 images or 24,330, and
# DomainNet 586,575 or 9,431 duplicates more. A copy that was cut short lacks more than that.
_FEW = 0.05
_SHAPE = {
    "domains": [str],
    "classes": int | None,
    "images": {str: int},
    "total": int | None,
    "also": {str: [str]},
    "splits": [[str]],
    "lists": [str],
    "table": {str: str},
    "remark": str,
}
_TABLE_KEYS = {"file", "image", "label", "domain"}


@dataclass(frozen=True)
class Layout:
    """Where the domains of a known set lie on disk, and what must be found in them.

    Names are compared without regard to capitals, spaces, hyphens and underscores.

    Parameters
    ----------
    domains : sequence of str
        Their usual names, which rows are given whatever the folders are called.
    classes : int, optional
        How many there are.
    images : mapping from domain to int
        How many images a domain has, where that is known.
    total : int, optional
        How many images there are in all.
    also : mapping from domain to sequence of str
        Other names of its folder, or of its cells in a table.
    splits : sequence of sequence of str
        Names of splits, where these lie between domain and class. All of the first sequence whose
        splits are all there are put together, and others left out.
    lists : sequence of str
        Files beside the domains, with ``{domain}`` in their names, that list images. Where they
        are there, and then those of all domains must be, other images are left out.
    table : mapping, optional
        ``file``, a CSV file with a row for each image; ``image``, its path with columns in braces;
        ``label`` and ``domain``, columns. Without it, folders say what an image is.
    remark : str
        What is usually the matter where numbers differ.
    """

    domains: Sequence[str]
    classes: int | None = None
    images: Mapping[str, int] = field(default_factory=dict)
    total: int | None = None
    also: Mapping[str, Sequence[str]] = field(default_factory=dict)
    splits: Sequence[Sequence[str]] = ()
    lists: Sequence[str] = ()
    table: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Layout:
        """Layout with these parameters, as a TOML or JSON file has them."""
        check_keys(settings, [field.name for field in fields(cls)])
        complete: dict[str, Any] = {"classes": None, "total": None, "remark": ""}
        complete |= {"images": {}, "also": {}, "splits": [], "lists": [], "table": {}, **settings}
        check_shape(complete, _SHAPE)
        layout = cls(**complete)
        layout._check_names()
        return layout

    def _check_names(self) -> None:
        """Refuse names that are missing, unknown, or stand for two things."""
        if len(self.domains) < 2:
            raise InputError("has fewer than two domains; name them all")
        strange = {*self.images, *self.also} - set(self.domains)
        if strange:
            raise InputError(f"speaks of `{min(strange)}`, which is not among its domains")
        names = [{_plain(d), *map(_plain, self.also.get(d, ()))} for d in self.domains]
        if sum(map(len, names)) > len(set().union(*names)):
            raise InputError("has a name that stands for two domains; leave one out")
        if not all(self.splits):
            raise InputError("has an empty group of splits; leave it out")
        if self.table and set(self.table) != _TABLE_KEYS:
            raise InputError(f"has a table of other keys than {', '.join(sorted(_TABLE_KEYS))}")

    # Reading

    def read(self, path: Path) -> Collection:
        """Images of the set in a folder, or in a zip, perhaps below one or two more folders."""
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; give the folder of {self._names}")
        name = path.resolve().name if path.is_dir() else path.stem
        rows = self._rows_of_table(path) if self.table else self._rows_of_folders(path)
        return Collection.from_rows("image", name, path, rows)

    @property
    def _names(self) -> str:
        return listed([f"`{name}`" for name in self.domains])

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Usual name of a domain by each of its names."""
        names = {d: (d, *self.also.get(d, ())) for d in self.domains}
        return {_plain(name): domain for domain, also in names.items() for name in also}

    def _domain_of(self, name: str) -> str | None:
        """Usual name of the domain that a folder, zip or cell is named after."""
        return self._spellings.get(_plain(_stem(name)))

    def _rows_of_folders(self, path: Path) -> list[Row]:
        """Rows of all domains, without images that their lists do not name."""
        rows: list[Row] = []
        left_out = {}
        for domain in self._find(path):
            found = self._rows_of(domain)
            on_lists = self._on_lists(domain, found)
            rows += on_lists
            left_out[domain.name] = len(found) - len(on_lists)
        if any(left_out.values()):
            numbers = [f"{domain} {number:,}" for domain, number in left_out.items() if number]
            note(
                f"{counted(sum(left_out.values()), 'image')} of {path} left out, which the lists "
                f"beside the domains do not name: {listed(numbers)}"
            )
        return rows

    def _find(self, path: Path) -> list[_DomainFiles]:
        """The files of every domain; a domain that is missing is named."""
        tree = _Tree.of(path)
        place = self._place_of_domains(tree)
        names = tree.names(place)
        spellings: dict[str, str] = {}
        # Folders first: an archive that was unpacked is often left beside its folder.
        for name in sorted(names, key=lambda name: (_is_zip(name), natural(name))):
            domain = self._domain_of(name)
            if domain is None or (domain in spellings and _is_zip(name)):
                continue
            if domain in spellings:
                raise InputError(
                    f"`{spellings[domain]}` and `{name}` in {tree.folder(place)} may both be "
                    f"domain `{domain}`",
                    "move one away",
                )
            spellings[domain] = name
        missing = [domain for domain in self.domains if domain not in spellings]
        if missing:
            raise InputError(
                f"{tree.folder(place)} has no folder for domain "
                f"{listed([f'`{name}`' for name in missing])}; it has "
                f"{listed([f'`{name}`' for name in names]) or 'no folders'}",
                f"give the folder that holds {self._names}",
            )
        lists = self._find_lists(tree, place)
        return [
            _DomainFiles(
                domain, lists.get(domain, {}), self._below(tree, place / spellings[domain])
            )
            for domain in self.domains
        ]

    def _find_lists(self, tree: _Tree, place: PurePosixPath) -> dict[str, dict[str, ImageFile]]:
        """The lists of each domain by their names; all of them, or nothing."""
        if not self.lists:
            return {}
        files = {_plain(name): file for name, file in tree.files(place).items()}
        names = {d: [name.replace("{domain}", d) for name in self.lists] for d in self.domains}
        wanted = [name for of_domain in names.values() for name in of_domain]
        missing = [name for name in wanted if _plain(name) not in files]
        if len(missing) == len(wanted):
            return {}
        if missing:
            raise InputError(
                f"{tree.folder(place)} has lists of images, but no {listed(missing)}",
                "add it, or move the lists away to take all images",
            )
        return {d: {name: files[_plain(name)] for name in names[d]} for d in self.domains}

    def _place_of_domains(self, tree: _Tree) -> PurePosixPath:
        """The folder that holds most domains; at least two, unless there is no such folder."""
        counts: dict[PurePosixPath, int] = {}
        for level in tree.levels():
            for place in level:
                found = {self._domain_of(name) for name in tree.names(place)} - {None}
                counts[place] = len(found)
            most = max(counts.values())
            best = [place for place, count in counts.items() if count == most]
            if most >= 2 and len(best) > 1:
                shown = [str(tree.folder(place)) for place in best]
                raise InputError(
                    f"{' and '.join(shown[:2])} both hold domains of this set", "give one of them"
                )
            if most >= 2:
                return best[0]
        return max(counts, key=lambda place: counts[place])

    def _below(self, tree: _Tree, place: PurePosixPath) -> Listing:
        """What a domain has, without the folder of its name that its zip may hold."""
        listing = tree.listing(place)
        tops = {image.parts[0] for image in listing.images}
        if _is_zip(place.name) and len(tops) == 1 and self._domain_of(min(tops)) is not None:
            return listing.below(PurePosixPath(min(tops)))
        return listing

    def _rows_of(self, domain: _DomainFiles) -> list[Row]:
        """Rows of one domain, from folders ``class/image`` or ``split/class/image``."""
        images = domain.listing.images
        where = domain.listing.where
        if not images:
            raise InputError(f"{where} has no images", "fill it: it is a domain of this set")
        depths = {len(image.parts) for image in images}
        if depths == {3} and self.splits:
            images = self._of_splits(where, images)
        elif depths != {2}:
            odd = min((image for image in images if len(image.parts) != 2), key=str)
            raise InputError(
                f"{odd} in {where} lies in {counted(len(odd.parts) - 1, 'folder')}, and images of "
                "a domain must lie in that of their class",
                "move it",
            )
        files = domain.listing.files
        return [
            Row(domain.name, image.parts[-2], f"{domain.name}/{image}", files[image])
            for image in images
        ]

    def _of_splits(self, where: Path, images: list[PurePosixPath]) -> list[PurePosixPath]:
        """Images of the splits that make up the domain, each image once."""
        there = {image.parts[0] for image in images}
        for splits in self.splits:
            wanted = set(map(_plain, splits))
            if wanted.issubset(map(_plain, there)):
                return [image for image in images if _plain(image.parts[0]) in wanted]
        needed = " or ".join(" + ".join(splits) for splits in self.splits)
        raise InputError(
            f"{where} has {listed(sorted(there))} above its classes, and {needed} is needed",
            "complete it, or put all classes of the domain into one folder",
        )

    def _on_lists(self, domain: _DomainFiles, rows: list[Row]) -> list[Row]:
        """Rows that the domain's lists name, where it has them."""
        if not domain.lists:
            return rows
        named = {line for file in domain.lists.values() for line in _listed_images(file)}
        on_lists = [row for row in rows if row.id.removeprefix(f"{domain.name}/") in named]
        if not on_lists:
            raise InputError(
                f"{' and '.join(domain.lists)} beside {domain.listing.where} name none of the "
                f"images of domain `{domain.name}`",
                "move the lists away to take all images",
            )
        return on_lists

    def _rows_of_table(self, path: Path) -> list[Row]:
        """Rows of the table, with the domains' usual names."""
        columns = {name: self.table[name] for name in ("image", "label", "domain")}
        rows = read_listed_images(self._find_table(path), **columns)
        cells = {row.domain for row in rows}
        usual = {c: domain for c in cells if (domain := self._domain_of(c)) is not None}
        unknown = cells - usual.keys()
        if unknown:
            raise InputError(
                f"{self.table['domain']!r} in {path} has {min(unknown)!r}",
                f"it must be one of {self._names}",
            )
        missing = [name for name in self.domains if name not in usual.values()]
        if missing:
            raise InputError(
                f"{path} has no row of domain {listed([f'`{name}`' for name in missing])}",
                "take the whole table",
            )
        return [row._replace(domain=usual[row.domain]) for row in rows]

    def _find_table(self, path: Path) -> Path:
        """The table of the set: the path itself, or a file in a folder there."""
        file = self.table["file"]
        if path.is_file():
            return path
        tree = _Tree.of(path)
        for level in tree.levels():
            found = [tree.folder(place) / file for place in level]
            # Not Path.is_file, which raises below a closed folder before Python 3.14.
            found = [table for table in found if os.path.isfile(table)]
            if len(found) > 1:
                raise InputError(f"{found[0]} and {found[1]} are both there", "give one of them")
            if found:
                return found[0]
        raise InputError(f"{path} has no {file}", f"give the folder that holds {file}")

    # Checking

    def check(self, collection: Collection) -> None:
        """Refuse classes and numbers of images that are not those of the set.

        Numbers that differ by 5 % or less are a warning.
        """
        large = [*self._other_classes(collection)]
        small: list[str] = []
        counts: dict[str, int] = Counter(collection.domains.tolist())
        expected = {f"domain `{d}` has": (counts[d], n) for d, n in self.images.items()}
        if self.total is not None:
            expected["there are"] = (len(collection.ids), self.total)
        for what, (count, usual) in expected.items():
            if count != usual:
                text = f"{what} {counted(count, 'image')}, where {usual:,} are usual"
                (small if abs(count - usual) <= _FEW * usual else large).append(text)
        remark = f" ({self.remark})" if self.remark and (small or large) else ""
        if large:
            raise InputError(
                f"{collection.path} is not as expected: {', '.join([*large, *small])}{remark}",
                "complete it; any other set of images is for `skdare train`",
            )
        if small:
            note(f"{collection.path}: {', '.join(small)}{remark}")

    def _other_classes(self, collection: Collection) -> Iterator[str]:
        """How the classes differ between domains, and in number."""
        spellings: dict[str, list[str]] = {}
        for name in collection.classes:
            spellings.setdefault(_plain(name), []).append(name)
        for names in spellings.values():
            if len(names) > 1:
                yield f"{' and '.join(f'`{name}`' for name in names)} look like one class"
        for domain, classes in collection.missing().items():
            yield f"domain `{domain}` has no {listed([f'`{name}`' for name in classes])}"
        if self.classes is not None and len(collection.classes) != self.classes:
            number = counted(len(collection.classes), "class", "classes")
            yield f"there are {number}, where {self.classes:,} are usual"


@dataclass(frozen=True, eq=False)
class _DomainFiles:
    """Files of one domain, and the lists of those that are meant, by name."""

    name: str
    lists: dict[str, ImageFile]
    listing: Listing


@dataclass(frozen=True, eq=False)
class _Tree:
    """Folders and zips below a folder, or folders in a zip, by their path from its top.

    ``names`` are those in a place, ``files`` other files there by name.
    """

    top: Path
    names: Callable[[PurePosixPath], list[str]]
    files: Callable[[PurePosixPath], dict[str, ImageFile]]
    listing: Callable[[PurePosixPath], Listing]

    @classmethod
    def of(cls, path: Path) -> _Tree:
        if path.is_dir():
            return cls(
                path,
                lambda place: _folders_and_zips(path, place),
                lambda place: _files(path / place),
                lambda place: _listing(path / place),
            )
        if not _is_zip(path.name):
            raise InputError(f"{path} is not a folder", "give the folder of the set, or its zip")
        listing = zip_listing(path)
        folders = {parent for file in listing.files for parent in file.parents}
        return cls(
            path,
            lambda place: sorted(f.name for f in folders if f.parent == place and f != place),
            lambda place: {f.name: file for f, file in listing.files.items() if f.parent == place},
            listing.below,
        )

    def levels(self) -> Iterator[list[PurePosixPath]]:
        """Folders in which the set may lie, level by level."""
        level = [PurePosixPath()]
        for _ in range(_FOLDERS_AROUND + 1):
            yield level
            level = [p / n for p in level for n in self.names(p) if not _is_zip(n)]
            if not level:
                return

    def folder(self, place: PurePosixPath) -> Path:
        """Where a place is on disk."""
        return self.top / place


def _folders_and_zips(top: Path, place: PurePosixPath) -> list[str]:
    """Names in a folder; none in one below the top that is closed to us, such as lost+found."""
    try:
        with os.scandir(top / place) as entries:
            names = [entry.name for entry in entries if entry.is_dir() or _is_zip(entry.name)]
    except PermissionError:
        if place == PurePosixPath():
            raise
        return []
    return sorted((name for name in names if not is_ignored(PurePosixPath(name))), key=natural)


def _files(folder: Path) -> dict[str, ImageFile]:
    with os.scandir(folder) as entries:
        return {e.name: ImageFile(e.path, e.stat().st_size) for e in entries if e.is_file()}


def _listing(path: Path) -> Listing:
    return folder_listing(path) if path.is_dir() else zip_listing(path)


def _listed_images(file: ImageFile) -> Iterator[str]:
    """Images of a list, ``domain/class/image label`` in every line, without the domain."""
    zips = [] if file.member is None else [file.file]
    with reading(Path(file.file), "a list of images"), Archives(zips) as archives:
        content = file.read(archives)
    for line in content.splitlines():
        yield line.decode("utf-8", "replace").strip().rpartition(" ")[0].partition("/")[2]


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


def _stem(name: str) -> str:
    return name[: -len(".zip")] if _is_zip(name) else name


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
