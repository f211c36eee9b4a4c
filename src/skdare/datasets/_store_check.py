"""Whether the files of a feature store are what its manifest says."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skdare.datasets._contents import reading
from skdare.datasets._manifest import MANIFEST, StoredFile, read_manifest

_KINDS = {"whole numbers": "biu", "numbers": "biuf", "booleans": "b", "text": "SU"}


@dataclass(frozen=True)
class Verification:
    """Which files of a store are not what its manifest says.

    Parameters
    ----------
    files : int
        How many were checked.
    bad : tuple of str
        A sentence for each that is truncated, altered or missing; it starts with the file's name.
    finished : bool
        Whether the store says that all rows are there.
    """

    files: int
    bad: tuple[str, ...]
    finished: bool = True

    @property
    def ok(self) -> bool:
        """Whether every file is as it was written."""
        return not self.bad


def verify(path: str | Path) -> Verification:
    """Compute the checksum of every file of a feature store again, also of an unfinished one.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Verification
        With the number of ``files``, a sentence for each ``bad`` one, whether the store is
        ``finished``, and whether all is ``ok``.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, verify, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     verify(f"{folder}/latent")
    Verification(files=3, bad=(), finished=True)
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if manifest.version == 1:
        raise ValueError(
            f"{folder} has version 1, which keeps no checksums; read it and write it again"
        )
    checks = [(file.name, damage(folder, file, hashed=True)) for file in manifest.files]
    bad = tuple(f"{name} {problem}" for name, problem in checks if problem)
    return Verification(len(checks), bad, manifest.finished)


def damage(folder: Path, file: StoredFile, *, hashed: bool) -> str | None:
    """What is wrong with the size or (``hashed``) the checksum of a file; None if nothing is."""
    path = folder / file.name
    if not path.is_file():
        return f"is missing, though {MANIFEST} names it"
    if path.is_symlink() and path.resolve().parent != folder.resolve():
        return "is a link out of the folder"
    size = path.stat().st_size
    if file.bytes is not None and size != file.bytes:
        problem = "is truncated" if size < file.bytes else "is altered"
        return f"{problem}: it has {size} bytes, and {MANIFEST} gives {file.bytes}"
    if hashed and file.sha256 is not None and _sha256(path) != file.sha256:
        return f"is altered: its SHA-256 is not the one in {MANIFEST}"
    return None


def open_rows(folder: Path, file: StoredFile, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Memory map of a file, checked to have this shape, and this dtype or kind of values."""
    path = folder / file.name
    with reading(path, "npy"):
        values = np.lib.format.open_memmap(path, mode="r")
    if values.shape != shape:
        raise ValueError(f"{path} has shape {values.shape}, but {MANIFEST} gives {shape}")
    fits = values.dtype.kind in _KINDS[kind] if kind in _KINDS else values.dtype.name == kind
    if not fits:
        raise ValueError(f"{path} has dtype {values.dtype}, but {MANIFEST} gives {kind}")
    return values


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
