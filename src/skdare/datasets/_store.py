"""The feature store: a folder of memory-mappable shards and a manifest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from skdare.datasets._contents import Contents, Entry, reading
from skdare.datasets._roles import assemble
from skdare.datasets._table import DomainData, guess_task

MANIFEST = "manifest.json"
_FORMAT, _VERSION = "skdare-features", 1
_NEEDED, _OPTIONAL = ("features", "labels", "domains"), ("split", "ids")


def write_store(path: str | Path, data: DomainData) -> None:
    """Write a feature store: a folder of ``.npy`` files that heads can read without loading it.

    The folder appears whole or not at all, and an existing one is never overwritten.

    Parameters
    ----------
    path : str or Path
    data : DomainData

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, read, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(f"{folder}/latent", make_latent_domains(random_state=0))
    ...     read(f"{folder}/latent").X.shape
    (1200, 8)
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists already; choose another name, or remove it first")
    manifest, arrays = _layout(_checked(data))
    folder = path.with_name(f".{path.name}-{uuid4().hex}")
    folder.mkdir(parents=True)
    try:
        for key, values in arrays.items():
            np.save(folder / manifest["shards"][0][key], values)
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        folder.rename(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _checked(data: DomainData) -> DomainData:
    arrays = {"features": data.X, "target": data.y, "domains": data.domains}
    if data.split is not None:
        arrays["split"] = data.split
    where = {"features": "X", "target": "y", "domains": "domains", "split": "split"}
    return assemble(arrays, where, data.name, data.feature_names)


def _layout(data: DomainData) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest of one shard, and its arrays."""
    # A list of classes also keeps their type: JSON tells 1 from "1" and from true.
    classes, labels = None, data.y
    if guess_task(data.y) == "classification":
        classes, labels = np.unique(data.y, return_inverse=True)
    domains, codes = np.unique(data.domains, return_inverse=True)
    arrays = {"features": data.X, "labels": labels, "domains": codes}
    if data.split is not None:
        arrays["split"] = data.split
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "rows": len(data.X),
        "features": data.X.shape[1],
        "dtype": data.X.dtype.name,
        "classes": None if classes is None else classes.tolist(),
        "domains": domains.tolist(),
        "feature_names": data.feature_names,
        "shards": [{"rows": len(data.X), **{key: f"{key}-00000.npy" for key in arrays}}],
    }
    return manifest, arrays


def read_store(path: Path) -> Contents:
    """A feature store; one shard stays a memory map, several become one array when loaded."""
    manifest = _manifest(path)
    shards = manifest["shards"]
    parts = {
        key: [_shard(path, manifest, shard, key) for shard in shards]
        for key in (*_NEEDED, *(key for key in _OPTIONAL if key in shards[0]))
    }
    entries = {
        key: Entry((manifest["rows"], *arrays[0].shape[1:]), arrays[0].dtype)
        for key, arrays in parts.items()
    }

    def load(keys: list[str]) -> list[np.ndarray]:
        return [parts[k][0] if len(shards) == 1 else np.concatenate(parts[k]) for k in keys]

    names = {"target": manifest.get("classes"), "domains": manifest["domains"]}
    return Contents(path, entries, load, False, names, manifest.get("feature_names"))


def _manifest(path: Path) -> dict[str, Any]:
    where = path / MANIFEST
    if not where.is_file():
        raise ValueError(f"{path} is a folder without {MANIFEST}; a feature store has one")
    with reading(where, "JSON"):
        manifest = json.loads(where.read_text(encoding="utf-8"))
    given = manifest if isinstance(manifest, dict) else {}
    if given.get("format") != _FORMAT:
        raise ValueError(f"{where} has format {given.get('format')!r}; {_FORMAT!r} is needed")
    if given.get("version") != _VERSION:
        raise ValueError(
            f"{where} has version {given.get('version')!r}; this skdare reads version {_VERSION}"
        )
    absent = [k for k in ("rows", "features", "dtype", "domains", "shards") if k not in given]
    if absent:
        raise ValueError(f"{where} lacks {', '.join(absent)}; write the store again")
    whole = {"rows", *_NEEDED}
    shards = given["shards"]
    if not shards or not all(isinstance(s, dict) and whole <= s.keys() for s in shards):
        raise ValueError(f"{where} needs shards, each with {', '.join(sorted(whole))}")
    rows = sum(shard["rows"] for shard in shards)
    if rows != given["rows"]:
        raise ValueError(f"{where} has {given['rows']} rows, but its shards have {rows}")
    return given


def _shard(path: Path, manifest: dict[str, Any], shard: dict[str, Any], key: str) -> np.ndarray:
    """One file of a shard, as a memory map that has the shape the manifest gives it."""
    where = path / shard.get(key, f"({key} of a shard)")
    if not where.is_file():
        raise ValueError(f"{where} is missing, though {MANIFEST} needs it; write the store again")
    with reading(where, "npy"):
        values = np.load(where, mmap_mode="r", allow_pickle=False)
    shape = (shard["rows"], manifest["features"]) if key == "features" else (shard["rows"],)
    if values.shape != shape:
        raise ValueError(f"{where} has shape {values.shape}, but {MANIFEST} gives {shape}")
    if key == "features" and values.dtype.name != manifest["dtype"]:
        raise ValueError(
            f"{where} has dtype {values.dtype}, but {MANIFEST} gives {manifest['dtype']}"
        )
    return values
