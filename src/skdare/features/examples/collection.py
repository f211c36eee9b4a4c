"""Images or texts with labels and domains, before any image is decoded."""

from __future__ import annotations

import os
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

from skdare.errors import InputError, counted
from skdare.features.examples.names import MISSING, natural

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# Formats in which another picture of the same shape has the same number of bytes.
_UNCOMPRESSED = (".bmp", ".ppm", ".pgm", ".tif", ".tiff")
_LISTED = 10


def listed(names: Sequence[str]) -> str:
    """Up to ten names, and how many more there are."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


class Archives:
    """Zip files, kept open while several threads read from them."""

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
        """Content of one member of one zip."""
        # ZipFile locks reads from its members, but not the count of those that are open.
        with self._lock:
            stream = self._open[file].open(member)
        try:
            return stream.read()
        finally:
            with self._lock:
                stream.close()


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image on disk: a file, or a member of a zip with its checksum."""

    file: str
    size: int
    member: str | None = None
    crc: int | None = None

    def read(self, archives: Archives) -> bytes:
        """Content of the file."""
        if self.member is None:
            with open(self.file, "rb") as file:
                return file.read()
        return archives.read(self.file, self.member)

    def ends(self, archives: Archives, count: int) -> tuple[bytes, bytes]:
        """First and last bytes of the file; of a file on disk no others are read."""
        if self.member is not None:
            content = self.read(archives)
            return content[:count], content[-count:]
        with open(self.file, "rb") as file:
            first = file.read(count)
            file.seek(max(0, os.fstat(file.fileno()).st_size - count))
            return first, file.read(count)

    def content(self) -> list[int]:
        """Numbers that change with the content, found without decoding the image.

        The size in bytes, which is the same in a folder and in a zip. Formats without compression
        are read for a checksum too: there the size says nothing about the picture.
        """
        if not (self.member or self.file).lower().endswith(_UNCOMPRESSED):
            return [self.size]
        if self.crc is not None:
            return [self.size, self.crc]
        try:
            with open(self.file, "rb") as file:
                return [self.size, zlib.crc32(file.read())]
        except (OSError, ValueError):
            return [self.size]


class Row(NamedTuple):
    """One image or text with its domain, label and name."""

    domain: str
    label: str
    id: str
    item: ImageFile | str


@dataclass(frozen=True, eq=False)
class Collection:
    """Images or texts with labels and domains, as found on disk.

    Rows are sorted by domain, class and name, with numbers in names sorted by value. The order in
    which the file system lists files does not matter.

    Parameters
    ----------
    kind : "image" or "text"
    name : str
    path : Path
        The folder, zip or table.
    items : list of n ImageFile, or of n str
    labels : int64 array of shape (n,)
        Codes into ``classes``.
    classes : list of str
    domains : str array of shape (n,)
    ids : str array of shape (n,)
        Such as ``art/dog/001.jpg``; for a text, the number of its row in the table.
    others : list of str
        Files found beside the images that are not images.
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
    def from_rows(
        cls, kind: str, name: str, path: Path, rows: Iterable[Row], others: Iterable[str] = ()
    ) -> Collection:
        """Collection of these rows, sorted; two rows of one name are refused."""
        rows = list(rows)
        commonest, count = Counter(row.id for row in rows).most_common(1)[0]
        if count > 1:
            raise InputError(
                f"{path} has {count} rows called {commonest}; keep one: a row that occurs twice "
                "could be trained on and tested on"
            )
        _refuse_missing_names(path, rows)
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
        """The other rows; classes and domains without rows are dropped too."""
        dropped = set(ids)
        labels = [self.classes[code] for code in self.labels.tolist()]
        rows = map(Row, self.domains.tolist(), labels, self.ids.tolist(), self.items)
        others = (row for row in rows if row.id not in dropped)
        return Collection.from_rows(self.kind, self.name, self.path, others, self.others)

    def missing(self) -> dict[str, list[str]]:
        """Classes that a domain lacks, for each domain that lacks any."""
        present = set(zip(self.domains.tolist(), self.labels.tolist(), strict=True))
        lacking = {
            domain: [
                name for code, name in enumerate(self.classes) if (domain, code) not in present
            ]
            for domain in dict.fromkeys(self.domains.tolist())
        }
        return {domain: classes for domain, classes in lacking.items() if classes}

    def describe(self) -> str:
        """Summary: counts, classes that domains lack, and files that were left out."""
        counts = Counter(self.domains.tolist())
        lines = [
            f"{counted(len(counts), 'domain')}, {counted(len(self.classes), 'class', 'classes')}, "
            f"{counted(len(self.ids), self.kind)}",
            listed([f"{domain} {n:,}" for domain, n in counts.items()]),
        ]
        lines += [
            f"domain `{domain}` has no {listed([f'`{name}`' for name in classes])}"
            for domain, classes in self.missing().items()
        ]
        if self.others:
            files = counted(len(self.others), "file")
            lines.append(f"left out {files} without an image suffix: {listed(self.others)}")
        return "\n".join(lines)


def _refuse_missing_names(path: Path, rows: list[Row]) -> None:
    """Refuse names that a feature table would read as missing values."""
    for row in rows:
        for what, name in (("class", row.label), ("domain", row.domain)):
            if name.strip() in MISSING:
                raise InputError(
                    f"{path} has a {what} called {name!r} (at {row.id}), which tables read as a "
                    "missing value; give it another name"
                )
