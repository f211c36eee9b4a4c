"""What is found before anything is decoded: items, each with a label, a domain and a name."""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np

from skdare.datasets._natural import natural
from skdare.datasets._roles import MISSING
from skdare.persist import open_file

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# Formats in which another picture of the same shape has the same number of bytes.
_UNCOMPRESSED = (".bmp", ".ppm", ".pgm", ".tif", ".tiff")
_LISTED = 10


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


class Archives:
    """Zips held open while several threads read from them."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = set(files)

    def __enter__(self) -> Archives:
        self._lock = threading.Lock()
        with ExitStack() as stack:
            self._open = {file: stack.enter_context(ZipFile(file)) for file in self._files}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, file: str, member: str) -> bytes:
        # A ZipFile counts its open members without a lock of its own; reading them has one.
        with self._lock:
            stream = self._open[file].open(member)
        try:
            return stream.read()
        finally:
            with self._lock:
                stream.close()


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image that can be opened: a file, or a member of a zip with its checksum."""

    file: str
    size: int
    member: str | None = None
    crc: int | None = None

    def read(self, archives: Archives) -> bytes:
        """All bytes of the file."""
        if self.member is None:
            with open_file(self.file) as file:
                return file.read()
        return archives.read(self.file, self.member)

    def content(self) -> list[int]:
        """Numbers that change with the content, found without decoding.

        The size, which is the same in a folder and in a zip. Only formats that do not compress
        are read through for a checksum: there the size says nothing about the picture.
        """
        if not (self.member or self.file).lower().endswith(_UNCOMPRESSED):
            return [self.size]
        if self.crc is not None:
            return [self.size, self.crc]
        try:
            with open_file(self.file) as file:
                return [self.size, zlib.crc32(file.read())]
        except (OSError, ValueError):
            return [self.size]


class Row(NamedTuple):
    """One item with what is known about it; a text is its own item."""

    domain: str
    label: str
    id: str
    item: ImageFile | str


@dataclass(frozen=True, eq=False)
class Collection:
    """Images or texts as they lie on disk, with labels and domains, before any is decoded.

    Rows are ordered by domain, class and name, numbers in names by their value, so the order in
    which a file system lists its files does not matter.

    Parameters
    ----------
    kind : "image" or "text"
    name : str
    path : Path
        Where it was found.
    items : list of n ImageFile, or of n str
    labels : int64 array of shape (n,)
        Codes into ``classes``.
    classes : list of str
    domains : str array of shape (n,)
    ids : str array of shape (n,)
        Such as ``art/dog/001.jpg``; of a text, the number of its row in the table.
    others : list of str
        Files that were found among the images and are none.
    """

    kind: str
    name: str
    path: Path
    items: list[Any]
    labels: np.ndarray
    classes: list[str]
    domains: np.ndarray
    ids: np.ndarray
    others: list[str]

    @classmethod
    def of(
        cls, kind: str, name: str, path: Path, rows: Iterable[Row], others: Iterable[str] = ()
    ) -> Collection:
        """Rows in their order, with names that differ."""
        rows = list(rows)
        name_of_most, times = Counter(row.id for row in rows).most_common(1)[0]
        if times > 1:
            raise ValueError(
                f"{path} has {times} rows called {name_of_most}; keep one: a row in two places "
                "would be trained on and tested on"
            )
        _refuse_missing(path, rows)
        classes = sorted({row.label for row in rows}, key=natural)
        code = {label: number for number, label in enumerate(classes)}
        rows.sort(key=lambda row: (natural(row.domain), code[row.label], natural(row.id)))
        return cls(
            kind,
            name,
            path,
            [row.item for row in rows],
            np.array([code[row.label] for row in rows], dtype=np.int64),
            classes,
            np.array([row.domain for row in rows]),
            np.array([row.id for row in rows]),
            sorted(others, key=natural),
        )

    def without(self, ids: Iterable[str]) -> Collection:
        """The rows of other names; classes and domains that lose all their rows go too."""
        dropped = set(ids)
        labels = [self.classes[code] for code in self.labels.tolist()]
        rows = map(Row, self.domains.tolist(), labels, self.ids.tolist(), self.items)
        kept = (row for row in rows if row.id not in dropped)
        return Collection.of(self.kind, self.name, self.path, kept, self.others)

    def missing(self) -> dict[str, list[str]]:
        """The classes that each domain lacks; only domains that lack some are named."""
        there = set(zip(self.domains.tolist(), self.labels.tolist(), strict=True))
        lacking = {
            domain: [name for code, name in enumerate(self.classes) if (domain, code) not in there]
            for domain in dict.fromkeys(self.domains.tolist())
        }
        return {domain: classes for domain, classes in lacking.items() if classes}

    def describe(self) -> str:
        """How many of each, which classes are missing where, and which files were left out."""
        counts = Counter(self.domains.tolist())
        lines = [
            f"{_count(len(counts), 'domain')}, {_count(len(self.classes), 'class', 'es')}, "
            f"{_count(len(self.ids), self.kind)}",
            listed([f"{domain} {n:,}" for domain, n in counts.items()]),
        ]
        lines += [
            f"domain `{domain}` has no {listed([f'`{name}`' for name in classes])}"
            for domain, classes in self.missing().items()
        ]
        if self.others:
            lines.append(
                f"{_count(len(self.others), 'file')} left out as no image: {listed(self.others)}"
            )
        return "\n".join(lines)


def _refuse_missing(path: Path, rows: list[Row]) -> None:
    """Refuse names that a table of features would take for missing ones."""
    for row in rows:
        for what, name in (("class", row.label), ("domain", row.domain)):
            if name.strip() in MISSING:
                raise ValueError(
                    f"{path} has a {what} called {name!r} (of {row.id}), which stands for a "
                    "missing one in tables; give it another name"
                )


def _count(n: int, noun: str, plural: str = "s") -> str:
    return f"{n:,} {noun}{plural if n != 1 else ''}"
