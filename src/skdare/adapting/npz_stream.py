"""Streams as version 1 of the format had them: an uncompressed npz file."""

from __future__ import annotations

import struct
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np

from skdare.persist import TensorFile, open_file, parse_json

_ZIP = b"PK\x03\x04"
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    OSError,
)


def is_npz(path: str | PathLike[str]) -> bool:
    """Whether a file is of that kind."""
    with open_file(path) as file:
        return file.read(len(_ZIP)) == _ZIP


def read_npz_stream(path: str | PathLike[str]) -> TensorFile:
    """The state in such a file; one that is not whole is refused."""
    try:
        with Path(path).open("rb") as raw:
            _check_sizes(raw, Path(path).stat().st_size)
            with np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        about = parse_json(arrays.pop("header").tobytes())
        if about.pop("format") != "skdare stream" or about.pop("version") != 1:
            raise ValueError("no stream of version 1")
        return TensorFile(about.pop("kind"), about, arrays, 1)
    except _DAMAGE as error:
        raise ValueError(
            f"{path} cannot be read: it is no stream that skdare saved, or was cut off or altered; "
            "pass a file that save wrote, whole and unaltered"
        ) from error


def _check_sizes(raw: BinaryIO, size: int) -> None:
    """It is one of ours, and nothing in it is compressed or larger than the file."""
    with zipfile.ZipFile(raw) as entries:
        if "header.npy" not in entries.namelist():
            raise ValueError("no header")
        for entry in entries.infolist():
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
                raise ValueError("compressed")
            with entries.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read = {(1, 0): np.lib.format.read_array_header_1_0}.get(version)
                shape, _, dtype = (read or np.lib.format.read_array_header_2_0)(file)
                if np.prod([float(n) for n in shape]) * dtype.itemsize > size:
                    raise ValueError("an array larger than the file")
    raw.seek(0)
