"""Safetensors files: numbers only, with the names of classes and domains in the metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skdare.datasets._contents import ArrayInfo, Contents, TableArrays, needing, reading
from skdare.persist import check_shape, parse_json

_WIDTHS = (8, 16, 32, 64)
_DTYPES = {
    "BOOL": "bool",
    **{f"I{bits}": f"int{bits}" for bits in _WIDTHS},
    **{f"U{bits}": f"uint{bits}" for bits in _WIDTHS},
    **{f"F{bits}": f"float{bits}" for bits in _WIDTHS[1:]},
    "BF16": "float32",
}


def read_safetensors(path: Path) -> Contents:
    """Contents of a file; its metadata ``classes`` and ``domains``, JSON lists, name codes."""
    with needing("safetensors", path):
        from safetensors import deserialize, safe_open

    with reading(path, "safetensors"), safe_open(path, framework="np") as file:
        parts = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
        stored = {key: part.get_dtype() for key, part in parts.items()}
        shapes = {key: tuple(part.get_shape()) for key, part in parts.items()}
        metadata = file.metadata() or {}
    keys = {"target": "classes", "domains": "domains"}
    names = {
        role: _names(metadata[key], key, path) for role, key in keys.items() if key in metadata
    }
    dtypes = {key: np.dtype(_DTYPES.get(name, "V")) for key, name in stored.items()}

    def tensor(key: str) -> np.ndarray:
        if stored[key] not in _DTYPES:
            raise ValueError(f"{key} in {path} has dtype {stored[key]}; store it as F16 or F32")
        with reading(path, "safetensors"), safe_open(path, framework="np") as file:
            if stored[key] != "BF16":
                return file.get_tensor(key)
            # The upper half of a float32; NumPy has no such dtype, and safe_open cannot read it.
            data = dict(deserialize(path.read_bytes()))[key]["data"]
            upper = np.frombuffer(data, dtype="<u2").astype(np.uint32)
            return (upper << 16).view(np.float32).reshape(shapes[key])

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        n = shapes[keys[0]][0]
        for start in range(0, n, rows):
            # Opened again for each chunk: of a map all that was read stays resident.
            with reading(path, "safetensors"), safe_open(path, framework="np") as file:
                yield [file.get_slice(key)[start : min(start + rows, n)] for key in keys]

    entries = {key: ArrayInfo(shapes[key], dtypes[key]) for key in stored}
    plain = all(name in _DTYPES and name != "BF16" for name in stored.values())
    return Contents(
        path,
        entries,
        lambda keys: [tensor(key) for key in keys],
        stream if plain else None,
        names=names,
    )


def write_safetensors(file: BinaryIO, arrays: TableArrays, path: Path) -> None:
    """Write numbers only: text becomes codes, and what they stand for goes into the metadata."""
    with needing("safetensors", path):
        from safetensors.numpy import save
    tensors: dict[str, np.ndarray] = {}
    for key in ("X", "split"):
        if key in arrays:
            tensors[key] = np.ascontiguousarray(arrays[key])
    names = {}
    for key, name in (("y", "classes"), ("domain", "domains")):
        tensors[key] = np.ascontiguousarray(arrays[key])
        if tensors[key].dtype.kind == "U":
            present, tensors[key] = np.unique(arrays[key], return_inverse=True)
            names[name] = json.dumps(present.tolist())
    # Not save_file, which puts a file of its own, with a mode of its own, in the place of this one.
    file.write(save(tensors, metadata=names))


def _names(text: str, key: str, path: Path) -> list[Any]:
    """The labels that codes stand for: text, or numbers."""
    try:
        names = parse_json(text, list)
        kinds = {float if type(name) in (int, float) else type(name) for name in names}
        check_shape(names, [float if kinds == {float} else bool if kinds == {bool} else str])
    except ValueError as error:
        raise ValueError(
            f"the metadata {key!r} of {path} {error}; a JSON list of names of one kind is needed"
        ) from error
    return names
