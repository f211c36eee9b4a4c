"""Files of a feature store: written whole or not at all, and looked at before they are trusted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skdare.datasets._contents import reading
from skdare.datasets._manifest import CODEBOOK, MANIFEST, NEEDED, OPTIONAL, Manifest, StoredFile
from skdare.persist import PARTIAL, whole_file

_KEYS = "|".join((*NEEDED, *OPTIONAL, CODEBOOK))
_ENDED = rf"((\.[0-9a-f]{{32}})?{re.escape(PARTIAL)})"
_OURS = re.compile(rf"({_KEYS})-\d{{5,}}\.npy{_ENDED}?|{re.escape(MANIFEST)}{_ENDED}")
KINDS = {"whole numbers": "biu", "numbers": "biuf", "booleans": "b", "text": "SU"}


def file_name(key: str, number: int) -> str:
    """What the file of a shard is called."""
    return f"{key}-{number:05d}.npy"


class _Hashed:
    """A file that keeps the checksum of what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest, self.bytes = file, hashlib.sha256(), 0

    def write(self, data: Any) -> None:
        self.file.write(data)
        self.digest.update(data)
        self.bytes += memoryview(data).nbytes


def save_rows(
    folder: Path, name: str, parts: Iterable[np.ndarray], shape: tuple[int, ...], dtype: Any
) -> StoredFile:
    """Write an ``.npy`` file part after part; it has its name only once it is whole on disk."""
    kind = np.dtype(dtype).newbyteorder("<")
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with whole_file(folder / name) as file:
        hashed = _Hashed(file)
        np.lib.format.write_array_header_1_0(hashed, header)
        for part in parts:
            hashed.write(np.ascontiguousarray(part, dtype=kind).data)
    return StoredFile(name, hashed.bytes, hashed.digest.hexdigest())


def save_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest in one step; until then the store is what it was."""
    with whole_file(folder / MANIFEST) as file:
        file.write(manifest.to_json().encode("utf-8"))


def drop_orphans(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed process left; files that no store would write are not touched."""
    named = {file.name for file in manifest.files}
    for path in folder.iterdir():
        if path.name not in named and _OURS.fullmatch(path.name):
            path.unlink()


def damage(folder: Path, file: StoredFile, *, hashed: bool) -> str | None:
    """What is wrong with a file, as far as size and (``hashed``) checksum tell; None: nothing."""
    where = folder / file.name
    if not where.is_file():
        return f"is missing, though {MANIFEST} names it"
    if where.is_symlink() and where.resolve().parent != folder.resolve():
        return "is a link out of the folder"
    size = where.stat().st_size
    if file.bytes is not None and size != file.bytes:
        short = "is truncated: it" if size < file.bytes else "is altered: it"
        return f"{short} has {size} bytes, and {MANIFEST} gives {file.bytes}"
    if hashed and file.sha256 is not None and _sha256(where) != file.sha256:
        return f"is altered: its SHA-256 is not the one in {MANIFEST}"
    return None


def open_rows(folder: Path, file: StoredFile, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """A file as a memory map that has the shape, and the dtype or kind, the manifest gives it."""
    where = folder / file.name
    with reading(where, "npy"):
        values = np.lib.format.open_memmap(where, mode="r")
    if values.shape != shape:
        raise ValueError(f"{where} has shape {values.shape}, but {MANIFEST} gives {shape}")
    known = values.dtype.kind in KINDS[kind] if kind in KINDS else values.dtype.name == kind
    if not known:
        raise ValueError(f"{where} has dtype {values.dtype}, but {MANIFEST} gives {kind}")
    return values


def _sha256(where: Path) -> str:
    with where.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
