"""NumPy's own files: an ``.npz`` archive of named arrays, and one array in an ``.npy`` file."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from skdare.datasets._contents import ArrayInfo, Contents, TableArrays, reading


def read_npz(path: Path) -> Contents:
    """Contents of an archive; only the headers are read before arrays are chosen."""
    entries: dict[str, ArrayInfo] = {}
    by_columns: dict[str, bool] = {}
    with reading(path, "npz"), zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            key = member.removesuffix(".npy")
            with archive.open(member) as file:
                entries[key], by_columns[key] = _header(file)
    if entries.keys() >= {"data", "format", "shape"}:
        return _read_sparse(path)

    def refuse_objects(keys: list[str]) -> None:
        for key in keys:
            if entries[key].dtype.hasobject:
                raise ValueError(
                    f"{key} in {path} is an object array, which only unpickling could read; "
                    "save it as numbers or strings"
                )

    def load(keys: list[str]) -> list[np.ndarray]:
        refuse_objects(keys)
        with reading(path, "npz"), np.load(path, allow_pickle=False) as archive:
            return [archive[key] for key in keys]

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        refuse_objects(keys)
        # Columns one after the other on file have no rows to read in turn.
        whole = {key: load([key])[0] for key in keys if by_columns[key]}
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            files = {key: stack.enter_context(archive.open(f"{key}.npy")) for key in keys}
            for file in files.values():
                _header(file)
            for start in range(0, entries[keys[0]].shape[0], rows):
                with reading(path, "npz"):
                    yield [
                        whole[key][start : start + rows]
                        if key in whole
                        else _next_rows(files[key], entries[key], start, rows)
                        for key in keys
                    ]

    return Contents(path, entries, load, stream)


def _read_sparse(path: Path) -> Contents:
    """A matrix that ``scipy.sparse.save_npz`` wrote, called X; its rows are read as dense ones."""
    from scipy import sparse

    with reading(path, "npz"):
        matrix = sparse.csr_array(sparse.load_npz(path))

    def load(keys: list[str]) -> list[np.ndarray]:
        return [matrix.toarray()]

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        for start in range(0, matrix.shape[0], rows):
            yield [matrix[start : start + rows].toarray()]

    return Contents(path, {"X": ArrayInfo(matrix.shape, matrix.dtype)}, load, stream)


def write_npz(file: BinaryIO, arrays: TableArrays, path: Path) -> None:
    """Write every array under its name."""
    np.savez(file, **arrays)


def _header(file: IO[bytes]) -> tuple[ArrayInfo, bool]:
    """What an ``.npy`` file holds, and whether it has column after column; its data come next."""
    if np.lib.format.read_magic(file) == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(file)
    return ArrayInfo(shape, dtype), by_columns


def _next_rows(file: IO[bytes], entry: ArrayInfo, start: int, rows: int) -> np.ndarray:
    shape = (min(rows, entry.shape[0] - start), *entry.shape[1:])
    data = file.read(math.prod(shape) * entry.dtype.itemsize)
    return np.frombuffer(data, entry.dtype).reshape(shape)


def read_npy(path: Path) -> Contents:
    """Contents of a file with one array, which is called X."""
    with reading(path, "npy"), path.open("rb") as file:
        entry, by_columns = _header(file)

    def load(keys: list[str]) -> list[np.ndarray]:
        with reading(path, "npy"):
            return [np.load(path, mmap_mode="r", allow_pickle=False)]

    def stream(keys: list[str], rows: int) -> Iterator[list[np.ndarray]]:
        # Read, not mapped: of a map all that was read stays resident, and it needs as much room
        # among the addresses as the file has bytes.
        with path.open("rb") as file:
            _header(file)
            for start in range(0, entry.shape[0], rows):
                with reading(path, "npy"):
                    X = _next_rows(file, entry, start, rows)
                yield [X]

    return Contents(path, {"X": entry}, load, None if by_columns else stream)
