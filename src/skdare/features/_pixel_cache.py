"""Pixels on disk: found again by their fingerprint, and there whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skdare.persist import PartialFile, partial_file, read_json, whole_file

_HEADER = 128


@dataclass(frozen=True)
class PixelCache:
    """A folder of ``<fingerprint>-<size>.npy``, with lists of images that could not be read.

    Such a list goes by the fingerprint of all images, the pixels by that of the readable ones.
    """

    folder: Path
    size: int

    def load(self, fingerprint: str, rows: int) -> np.ndarray | None:
        """The pixels as a read-only memory map, if they are there and whole."""
        path = self._path(fingerprint, "npy")
        try:
            pixels = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        fits = pixels.shape == (rows, self.size, self.size, 3) and pixels.dtype == np.uint8
        whole = path.stat().st_size == _HEADER + pixels.nbytes
        return pixels if fits and whole else None

    def unreadable(self, fingerprint: str) -> dict[str, str]:
        """Why images could not be read in an earlier run, by id; nothing if none is known."""
        try:
            path = self._path(fingerprint, "unreadable.json")
            return read_json(path, {str: str}, remedy="remove it")
        except (OSError, ValueError):  # a cache: what cannot be read is made again
            return {}

    def note(self, fingerprint: str, unreadable: Mapping[str, str]) -> None:
        """Keep why images cannot be read."""
        with whole_file(self._path(fingerprint, "unreadable.json")) as file:
            file.write(json.dumps(unreadable, indent=1).encode("utf-8"))

    @contextmanager
    def written(self, blocks: Iterable[np.ndarray], rows: int) -> Iterator[PartialFile]:
        """A file of at most so many rows under a name of no meaning, gone unless it is kept."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_space(rows)
        with partial_file(self.folder / f".{self.size}") as partial:
            partial.file.write(self._header(rows))
            written = 0
            for block in blocks:
                partial.file.write(block.data)
                written += len(block)
            partial.file.seek(0)
            partial.file.write(self._header(written))
            yield partial

    def keep(self, partial: PartialFile, fingerprint: str, rows: int) -> np.ndarray:
        """Give a file the name under which it is found again, and open it."""
        partial.keep(self._path(fingerprint, "npy"))
        pixels = self.load(fingerprint, rows)
        if pixels is None:
            raise OSError(f"{self._path(fingerprint, 'npy')} is gone or changed; run it again")
        return pixels

    def _path(self, fingerprint: str, suffix: str) -> Path:
        return self.folder / f"{fingerprint}-{self.size}.{suffix}"

    def _header(self, rows: int) -> bytes:
        """The start of an npy file, of one length whatever the rows: it is written twice."""
        shape = (rows, self.size, self.size, 3)
        fields = {"descr": "|u1", "fortran_order": False, "shape": shape}
        text = str(fields).ljust(_HEADER - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + text.encode()

    def _check_space(self, rows: int) -> None:
        needed = rows * self.size * self.size * 3
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise ValueError(
                f"{rows:,} images of {self.size} × {self.size} pixels take {needed / 1e9:.1f} GB, "
                f"but {self.folder} has {free / 1e9:.1f} free; use another folder or a smaller size"
            )
