"""Arrays and a JSON header in one safetensors file, with a checksum of every byte.

The layout is that of safetensors: eight bytes that give the length of a JSON text, the text, which
says where each array is, and the arrays. Its metadata hold our header as a string, and a SHA-256
of the whole file, taken with zeros in its own place. The checksum finds damage; it is no signature:
whoever can write the file can write another checksum, so everything in it is checked as well.

The safetensors package is not used: it has no checksum, so that files would be read twice, and it
would become a dependency of every install.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skdare.persist._json import parse_json
from skdare.persist._open_file import open_file
from skdare.persist._whole_file import whole_file

VERSION = 2
_FORMAT = "skdare"
_METADATA = "__metadata__"
_DIGEST = "sha256"
_HEADER = "header"
_UNSIGNED = "0" * 64
_DTYPES = {
    **{f"F{8 * n}": f"<f{n}" for n in (2, 4, 8)},
    **{f"I{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    "BOOL": "|b1",
}
_NAMES = {np.dtype(kind): name for name, kind in _DTYPES.items()}
# The limit of the safetensors library: no header is longer.
_LONGEST = 100_000_000
_CHUNK = 1 << 22
# More than the bytes of any file. It also bounds the other sizes of a shape that has a zero.
_MOST = 1 << 40


@dataclass(frozen=True, eq=False)
class TensorFile:
    """A header and arrays, as one file holds them.

    Parameters
    ----------
    kind : str
        Such as "head".
    header : mapping
        Values that JSON can hold.
    arrays : mapping from name to array
        Arrays of numbers or booleans.
    version : int
        Version of the format.
    """

    kind: str
    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    version: int = VERSION

    def write(
        self, path: str | PathLike[str], check: Callable[[TensorFile], object] | None = None
    ) -> None:
        """Replace the file in one step; if that fails, what was there stays.

        Parameters
        ----------
        path : str or path
        check : callable, optional
            Called with what reading the file will give, before the file takes its name; if it
            raises, nothing is written.
        """
        # Wide numbers first, so that all of them are aligned.
        widest = sorted(self.arrays.items(), key=lambda item: -item[1].itemsize)
        arrays = {name: _portable(array) for name, array in widest}
        text = _text(self._metadata(), arrays)
        with whole_file(Path(path)) as file:
            digest = hashlib.sha256()
            start = memoryview(len(text).to_bytes(8, "little") + text)
            for part in (start, *map(_bytes, arrays.values())):
                file.write(part)
                digest.update(part)
            file.seek(8 + text.index(_UNSIGNED.encode()))
            file.write(digest.hexdigest().encode())
            if check is not None:
                # The header from the file; the arrays are those whose bytes were just written.
                file.flush()
                file.seek(0)
                outline = _outline(file, path)
                check(TensorFile(outline.kind, outline.header, arrays, outline.version))

    def _metadata(self) -> dict[str, str]:
        document = {"kind": self.kind, "version": self.version, **self.header}
        header = json.dumps(document, allow_nan=False)
        return {"format": _FORMAT, _DIGEST: _UNSIGNED, _HEADER: header}

    @classmethod
    def read(cls, path: str | PathLike[str]) -> TensorFile:
        """Read a file that skdare wrote; refuse any other, a damaged or a newer one."""
        with open_file(path) as file:
            outline = _outline(file, path)
            digest = hashlib.sha256(len(outline.text).to_bytes(8, "little") + outline.unsigned)
            arrays = {}
            for name, dtype, shape in outline.arrays:
                array = np.empty(shape, dtype)
                _fill(file, array, digest)
                arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
        if digest.hexdigest() != outline.digest:
            raise ValueError(
                f"{path} was altered: its checksum is not the one it was written with; get "
                "another copy of it, or make it again"
            )
        return cls(outline.kind, outline.header, arrays, outline.version)


def read_header(path: str | PathLike[str]) -> TensorFile:
    """Read the header alone, without arrays; the checksum is not computed."""
    with open_file(path) as file:
        outline = _outline(file, path)
    return TensorFile(outline.kind, outline.header, {}, outline.version)


@dataclass(frozen=True)
class _Outline:
    """What the text at the start of a file says."""

    text: bytes
    header: dict[str, Any]
    digest: str
    arrays: list[tuple[str, np.dtype, tuple[int, ...]]]
    kind: str
    version: int

    @property
    def unsigned(self) -> bytes:
        """The text with zeros in the place of the checksum."""
        return self.text.replace(self.digest.encode(), _UNSIGNED.encode(), 1)


def _outline(file: BinaryIO, path: str | PathLike[str]) -> _Outline:
    """Read the text, and check that its arrays fill the rest of the file."""
    try:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST):
            raise _NotOurs("it has no header")
        text = file.read(length)
        entries = _parsed(text)
        metadata = entries.pop(_METADATA, None)
        if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
            raise _NotOurs("skdare did not write it")
        digest = metadata.get(_DIGEST)
        header = _parsed(metadata[_HEADER])
        if not isinstance(digest, str) or len(digest) != 64:
            raise _NotOurs("its header is not whole")
        kind = header.pop("kind")
        version = header.pop("version")
        if not isinstance(kind, str) or type(version) is not int or version < 2:
            raise _NotOurs("its header is not whole")
        if version > VERSION:
            raise _Newer(
                f"{path} has version {version} of the format, and this skdare reads up to "
                f"{VERSION}; update skdare"
            )
        arrays = list(_arrays(entries, size - 8 - length))
    except _Newer:
        raise
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        why = error if isinstance(error, _NotOurs) else "its header is damaged"
        raise ValueError(
            f"{path} cannot be read: {why}; pass a file that save wrote, whole and unaltered"
        ) from error
    return _Outline(text, header, digest, arrays, kind, version)


def _parsed(text: Any) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise _NotOurs(f"its header {error}") from error


class _NotOurs(ValueError):
    """Why a file is refused."""


class _Newer(ValueError):
    """A file of a later version."""


def _arrays(entries: dict[str, Any], size: int) -> Iterator[tuple[str, np.dtype, tuple[int, ...]]]:
    """Name, dtype and shape of the arrays, which follow one another and fill ``size`` bytes."""
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        shape = entry["shape"]
        start, stop = entry["data_offsets"]
        numbers = (*shape, start, stop)
        if any(type(n) is not int or not 0 <= n < _MOST for n in numbers) or len(shape) > 8:
            raise _NotOurs(f"array {name!r} has an impossible shape")
        if start != position or stop - start != dtype.itemsize * math.prod(shape):
            raise _NotOurs(f"array {name!r} is not where it should be")
        position = stop
        yield name, dtype, tuple(shape)
    if position != size:
        raise _NotOurs(
            "it was cut off" if position > size else "it has more bytes than its header says"
        )


def _portable(array: np.ndarray) -> np.ndarray:
    """The array in C order and little-endian, as the file holds it."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def _text(metadata: dict[str, str], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The JSON text, padded so that arrays begin at a multiple of eight bytes."""
    entries: dict[str, Any] = {_METADATA: metadata}
    position = 0
    for name, array in arrays.items():
        if name == _METADATA or array.dtype not in _NAMES:
            raise TypeError(f"array {name!r} is {array.dtype}; a file holds numbers and booleans")
        entries[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    if len(text) > _LONGEST:
        raise ValueError(
            f"the header would have {len(text) / 1e6:.0f} MB, and safetensors allows 100; "
            "save with adaptable=False, or fewer labels"
        )
    return text + b" " * (-len(text) % 8)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _fill(file: BinaryIO, array: np.ndarray, digest: Any) -> None:
    """Fill an array with the next bytes of a file, and hash them."""
    view = _bytes(array)
    for start in range(0, len(view), _CHUNK):
        part = view[start : start + _CHUNK]
        if file.readinto(part) != len(part):  # type: ignore[attr-defined]
            raise ValueError("the file became shorter while it was read; wait until it is written")
        digest.update(part)
