"""Decoded pixels on disk, found again by their fingerprint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from skdare.persist import PartialFile, partial_file, read_json, whole_file


@dataclass(frozen=True)
class PixelCache:
    """A folder of ``<fingerprint>-<size>.npy``, with lists of images that could not be read.

    A list is named by the fingerprint of all images, the pixels by that of the readable ones.
    """

    folder: Path
    size: int

    def load(self, fingerprint: str, rows: int) -> np.ndarray | None:
        """Pixels as a read-only memory map, or None if the file is missing or damaged."""
        path = self._path(fingerprint, "npy")
        try:
            pixels = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        fits = pixels.shape == (rows, self.size, self.size, 3) and pixels.dtype == np.uint8
        whole = path.stat().st_size == pixels.offset + pixels.nbytes
        return pixels if fits and whole else None

    def unreadable(self, fingerprint: str) -> dict[str, str]:
        """Reasons why images could not be read in an earlier run, by id."""
        try:
            path = self._path(fingerprint, "unreadable.json")
            return read_json(path, {str: str}, remedy="remove it")
        except (OSError, ValueError):  # a cache: what cannot be read is made again
            return {}

    def save_unreadable(self, fingerprint: str, unreadable: Mapping[str, str]) -> None:
        """Write down why images cannot be read."""
        with whole_file(self._path(fingerprint, "unreadable.json")) as file:
            file.write(json.dumps(unreadable, indent=1).encode("utf-8"))

    @contextmanager
    def writing(self, blocks: Iterable[np.ndarray], rows: int) -> Iterator[PartialFile]:
        """Temporary file of the blocks, at most ``rows`` in all; removed unless `keep` names it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_space(rows)
        with partial_file(self.folder / f".{self.size}") as partial:
            self._write_header(partial.file, rows)
            written = 0
            for block in blocks:
                partial.file.write(block.data)
                written += len(block)
            # How many rows there are is known at the end. The header pads to a multiple of 64
            # bytes, and is 128 bytes long for any number of rows.
            partial.file.seek(0)
            self._write_header(partial.file, written)
            yield partial

    def keep(self, partial: PartialFile, fingerprint: str, rows: int) -> np.ndarray:
        """Give a temporary file its final name, and open it."""
        partial.keep(self._path(fingerprint, "npy"))
        pixels = self.load(fingerprint, rows)
        if pixels is None:
            raise OSError(
                f"{self._path(fingerprint, 'npy')} was removed or changed by another program; "
                "try again"
            )
        return pixels

    def _path(self, fingerprint: str, suffix: str) -> Path:
        return self.folder / f"{fingerprint}-{self.size}.{suffix}"

    def _write_header(self, file: IO[bytes], rows: int) -> None:
        shape = (rows, self.size, self.size, 3)
        fields = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, fields)

    def _check_space(self, rows: int) -> None:
        needed = rows * self.size * self.size * 3
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise ValueError(
                f"{rows:,} images of {self.size} × {self.size} pixels take {needed / 1e9:.1f} GB, "
                f"but {self.folder} has {free / 1e9:.1f} free; use another folder or a smaller size"
            )
