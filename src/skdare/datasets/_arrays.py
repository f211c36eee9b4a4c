"""Files of named arrays: npz, npy, safetensors, and what torch saves."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from skdare.arrays import load_tensors
from skdare.datasets._contents import Contents, Entry, needing, reading
from skdare.persist import check_shape, parse_json

_WIDTHS = (8, 16, 32, 64)
_SAFETENSORS_DTYPES = {
    "BOOL": "bool",
    **{f"I{bits}": f"int{bits}" for bits in _WIDTHS},
    **{f"U{bits}": f"uint{bits}" for bits in _WIDTHS},
    **{f"F{bits}": f"float{bits}" for bits in _WIDTHS[1:]},
    "BF16": "float32",
}
# How what torch saves begins: a zip archive, or, before torch 1.6, a pickle.
_SAVED_BY_TORCH = (b"PK\x03\x04", b"\x80")


def read_npz(path: Path) -> Contents:
    """Arrays as NumPy saves them; only the headers are read before a choice is made."""
    entries, turned = {}, set()
    with reading(path, "npz"), zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            key = member.removesuffix(".npy")
            with archive.open(member) as file:
                entries[key], fortran = _header(file)
            turned |= {key} if fortran else set()

    def check(keys: list[str]) -> None:
        for key in keys:
            if entries[key].dtype.hasobject:
                raise ValueError(
                    f"{key} in {path} is an object array, which only unpickling could read; "
                    "save it as numbers or strings"
                )

    def load(keys: list[str]) -> list[np.ndarray]:
        check(keys)
        with reading(path, "npz"), np.load(path, allow_pickle=False) as archive:
            return [archive[key] for key in keys]

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        check(keys)
        # Columns one after the other on file have no rows to read in turn.
        whole = {key: load([key])[0] for key in keys if key in turned}
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            files = {k: stack.enter_context(archive.open(f"{k}.npy")) for k in keys}
            for file in files.values():
                _header(file)
            for start in range(0, entries[keys[0]].shape[0], rows):
                with reading(path, "npz"):
                    yield [
                        whole[k][start : start + rows]
                        if k in whole
                        else _next_rows(files[k], entries[k], start, rows)
                        for k in keys
                    ]

    return Contents(path, entries, load, stream=stream)


def _header(file: IO[bytes]) -> tuple[Entry, bool]:
    """What an ``.npy`` file holds, and whether column after column; its rows come next."""
    old = np.lib.format.read_magic(file) == (1, 0)
    header = f"read_array_header_{1 if old else 2}_0"
    shape, fortran, dtype = getattr(np.lib.format, header)(file)
    return Entry(shape, dtype), fortran


def _next_rows(file: IO[bytes], entry: Entry, start: int, rows: int) -> np.ndarray:
    shape = (min(rows, entry.shape[0] - start), *entry.shape[1:])
    data = file.read(math.prod(shape) * entry.dtype.itemsize)
    return np.frombuffer(data, entry.dtype).reshape(shape)


def read_npy(path: Path) -> Contents:
    """One array, under the name that features go by."""
    with reading(path, "npy"), path.open("rb") as file:
        entry, by_columns = _header(file)

    def load(keys: list[str]) -> list[np.ndarray]:
        with reading(path, "npy"):
            return [np.load(path, mmap_mode="r", allow_pickle=False)]

    def stream(keys: list[str], n: int) -> Iterator[list[np.ndarray]]:
        # Read, not mapped: of a map all that was read stays resident, and it needs as much room
        # among the addresses as the file has bytes.
        with path.open("rb") as file:
            _header(file)
            for start in range(0, entry.shape[0], n):
                with reading(path, "npy"):
                    rows = _next_rows(file, entry, start, n)
                yield [rows]

    return Contents(path, {"X": entry}, load, stream=None if by_columns else stream)


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
    names = {role: _names(metadata[key], key, path) for role, key in named if key in metadata}
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

    def stream(keys: list[str], n: int) -> Iterator[list[np.ndarray]]:
        rows = shapes[keys[0]][0]
        for start in range(0, rows, n):
            # Opened anew for each chunk, as for .npy.
            with reading(path, "safetensors"), safe_open(path, framework="np") as file:
                yield [file.get_slice(key)[start : min(start + n, rows)] for key in keys]

    entries = {key: Entry(shapes[key], dtypes[key]) for key in stored}
    plain = all(name in _SAFETENSORS_DTYPES and name != "BF16" for name in stored.values())
    return Contents(
        path,
        entries,
        lambda keys: [tensor(key) for key in keys],
        names=names,
        stream=stream if plain else None,
    )


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


def read_torch(path: Path) -> Contents:
    """A dict of tensors or lists, loaded without running code from the file."""
    with reading(path, "a dict of tensors or lists (weights only)"):
        with path.open("rb") as file:
            if not file.read(4).startswith(_SAVED_BY_TORCH):
                raise ValueError("neither a zip archive nor a pickle")
        held = {key: np.asarray(values) for key, values in load_tensors(path).items()}
    entries = {key: Entry(values.shape, values.dtype) for key, values in held.items()}
    return Contents(path, entries, lambda keys: [held[key] for key in keys])
