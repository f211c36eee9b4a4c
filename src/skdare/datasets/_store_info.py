"""What a feature store says of itself, and whether its files are what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skdare.datasets._manifest import read_manifest
from skdare.datasets._roles import decode
from skdare.datasets._store import open_store
from skdare.datasets._store_files import damage


@dataclass(frozen=True)
class StoreInfo:
    """A feature store in short.

    Parameters
    ----------
    finished : bool
        Whether all rows that were to come are there.
    version, rows, features : int
        Of the format; then how many there are.
    dtype : str
        How the features are kept.
    shards, files, bytes : int
        How many there are.
    classes : list or None
        Class names; None where labels are numbers.
    domains : dict from name to int
        Rows of each domain.
    reserved : dict from name to int, or None
        Those of them that are reserved; None where the store has no split.
    feature_names : list of str, optional
    made : dict, optional
        How the features were made.
    """

    finished: bool
    version: int
    rows: int
    features: int
    dtype: str
    shards: int
    files: int
    bytes: int
    classes: list[Any] | None
    domains: Mapping[Any, int]
    reserved: Mapping[Any, int] | None
    feature_names: list[str] | None
    made: Mapping[str, Any] | None


def store_info(path: str | Path) -> StoreInfo:
    """Read what a feature store says of itself; an unfinished one too.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    StoreInfo

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, store_info, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     store_info(f"{folder}/latent").domains
    {0: 300, 1: 300, 2: 300, 3: 300}
    """
    store = open_store(path, ("domains", "split"), unfinished=True)
    manifest = store.manifest
    names, reserved = manifest.domains, None
    codes = store.rows("domains") if manifest.shards else np.empty(0, np.intp)
    decode(codes, names, f"domains in {path}")  # codes without a name are refused here
    if "split" in store.dtypes:
        reserved = _counted(names, codes[store.rows("split")])
    places = [store.folder / file.name for file in manifest.files]
    return StoreInfo(
        manifest.finished,
        manifest.version,
        manifest.rows,
        manifest.features,
        manifest.dtype,
        len(manifest.shards),
        len(places),
        sum(place.stat().st_size for place in places if place.is_file()),
        manifest.classes,
        _counted(names, codes),
        reserved,
        manifest.feature_names,
        manifest.made,
    )


def _counted(names: list[Any], codes: np.ndarray) -> dict[Any, int]:
    counts = np.bincount(codes, minlength=len(names)).tolist()
    return dict(zip(names, counts, strict=True))


@dataclass(frozen=True)
class Verification:
    """Which files of a store are not what its manifest says.

    Parameters
    ----------
    files : int
        How many were looked at.
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
    """Compute the checksum of every file of a feature store anew; an unfinished one's too.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Verification

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
    looked = [(file.name, damage(folder, file, hashed=True)) for file in manifest.files]
    bad = tuple(f"{name} {what}" for name, what in looked if what)
    return Verification(len(looked), bad, manifest.finished)
