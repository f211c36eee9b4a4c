"""Files of named arrays: npz, safetensors, and what torch saves."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from skdare._array import load_tensors
from skdare.datasets._contents import Contents, Entry, needing, reading

_WIDTHS = (8, 16, 32, 64)
_SAFETENSORS_DTYPES = {
    "BOOL": "bool",
    **{f"I{bits}": f"int{bits}" for bits in _WIDTHS},
    **{f"U{bits}": f"uint{bits}" for bits in _WIDTHS},
    **{f"F{bits}": f"float{bits}" for bits in _WIDTHS[1:]},
    "BF16": "float32",
}


def read_npz(path: Path) -> Contents:
    """Arrays as NumPy saves them; only the headers are read before a choice is made."""
    entries = {}
    with reading(path, "npz"), zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                old = np.lib.format.read_magic(file) == (1, 0)
                header = f"read_array_header_{1 if old else 2}_0"
                shape, _, dtype = getattr(np.lib.format, header)(file)
            entries[member.removesuffix(".npy")] = Entry(shape, dtype)

    def load(keys: list[str]) -> list[np.ndarray]:
        for key in keys:
            if entries[key].dtype.hasobject:
                raise ValueError(
                    f"{key} in {path} is an object array, which only unpickling could read; "
                    "save it as numbers or strings"
                )
        with reading(path, "npz"), np.load(path, allow_pickle=False) as archive:
            return [archive[key] for key in keys]

    return Contents(path, entries, load)


def read_safetensors(path: Path) -> Contents:
    """Tensors; the metadata ``classes`` and ``domains``, JSON lists, name integer codes."""
    with needing("safetensors", path):
        from safetensors import deserialize, safe_open

    with reading(path, "safetensors"), safe_open(path, framework="np") as file:
        parts = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
        stored = {key: part.get_dtype() for key, part in parts.items()}
        shapes = {key: tuple(part.get_shape()) for key, part in parts.items()}
        named = (("target", "classes"), ("domains", "domains"))
        metadata = file.metadata() or {}
    with reading(path, "safetensors with JSON lists of names"):
        names = {role: json.loads(metadata[key]) for role, key in named if key in metadata}
    dtypes = {key: np.dtype(_SAFETENSORS_DTYPES.get(name, "V")) for key, name in stored.items()}

    def tensor(key: str) -> np.ndarray:
        if stored[key] not in _SAFETENSORS_DTYPES:
            raise ValueError(f"{key} in {path} has dtype {stored[key]}; store it as F16 or F32")
        with reading(path, "safetensors"), safe_open(path, framework="np") as file:
            if stored[key] != "BF16":
                return file.get_tensor(key)
            # The upper half of a float32; NumPy has no such dtype, and the package no way round.
            data = dict(deserialize(path.read_bytes()))[key]["data"]
            upper = np.frombuffer(data, dtype="<u2").astype(np.uint32)
            return (upper << 16).view(np.float32).reshape(shapes[key])

    entries = {key: Entry(shapes[key], dtypes[key]) for key in stored}
    return Contents(path, entries, lambda keys: [tensor(key) for key in keys], names=names)


def read_torch(path: Path) -> Contents:
    """A dict of tensors or lists, loaded without running code from the file."""
    with reading(path, "a dict of tensors or lists (weights only)"):
        held = {key: np.asarray(values) for key, values in load_tensors(path).items()}
    entries = {key: Entry(values.shape, values.dtype) for key, values in held.items()}
    return Contents(path, entries, lambda keys: [held[key] for key in keys])
