"""Arrays and a JSON header in one safetensors file, with a checksum of every byte.

The layout is that of safetensors: eight bytes that give the length of a JSON text, the text, which
says where each array lies, and the arrays. Its metadata hold our header as a string, and a SHA-256
of the whole file, taken with zeros in its own place. The checksum finds damage; it is no signature:
who can write the file can write another checksum, so everything in it is checked as well.
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
_FORMAT, _METADATA, _DIGEST, _HEADER = "skdare", "__metadata__", "sha256", "header"
_UNSIGNED = "0" * 64
_DTYPES = {
    **{f"F{8 * n}": f"<f{n}" for n in (2, 4, 8)},
    **{f"I{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    "BOOL": "|b1",
}
_NAMES = {np.dtype(kind): name for name, kind in _DTYPES.items()}
# As in the safetensors library: a text longer than this is no header.
_LONGEST = 100_000_000
_CHUNK = 1 << 22
# More than any file has bytes, and few enough that a shape with a zero in it is one.
_MOST = 1 << 40


@dataclass(frozen=True, eq=False)
class TensorFile:
    """What a file holds.

    Parameters
    ----------
    kind : str
        Such as "head".
    header : mapping
        Of what JSON can hold.
    arrays : mapping of arrays by name
        Of numbers or booleans.
    version : int
        Of the format.
    """

    kind: str
    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    version: int = VERSION

    def write(
        self, path: str | PathLike[str], check: Callable[[TensorFile], object] | None = None
    ) -> None:
        """Replace the file in one step; where that fails, what was there stays.

        Parameters
        ----------
        path : str or path
        check : callable, optional
            Called before the file takes its name with what reading it will give; what it raises
            is raised.
        """
        # Wide numbers first, so that all of them are aligned.
        widest = sorted(self.arrays.items(), key=lambda item: -item[1].itemsize)
        arrays = {name: _portable(array) for name, array in widest}
        text = _text(self._metadata(), arrays)
        with whole_file(Path(path)) as file:
            digest, at = hashlib.sha256(), text.index(_UNSIGNED.encode())
            begin = memoryview(len(text).to_bytes(8, "little") + text)
            for part in (begin, *map(_bytes, arrays.values())):
                file.write(part)
                digest.update(part)
            file.seek(8 + at)
            file.write(digest.hexdigest().encode())
            if check is not None:
                # The header from the file; the arrays are those whose bytes were just written.
                file.flush()
                file.seek(0)
                outline = _outline(file, path)
                check(TensorFile(outline.kind, outline.header, arrays, outline.version))

    def _metadata(self) -> dict[str, str]:
        about = {"kind": self.kind, "version": self.version, **self.header}
        header = json.dumps(about, allow_nan=False)
        return {"format": _FORMAT, _DIGEST: _UNSIGNED, _HEADER: header}

    @classmethod
    def read(cls, path: str | PathLike[str]) -> TensorFile:
        """A file that skdare wrote; one that is not, or is damaged, or newer, is refused."""
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
                f"{path} was altered: its checksum is not the one it was written with; take "
                "another copy of it, or make it again"
            )
        return cls(outline.kind, outline.header, arrays, outline.version)


def read_header(path: str | PathLike[str]) -> TensorFile:
    """The header alone, without any array; the checksum is not looked at."""
    with open_file(path) as file:
        outline = _outline(file, path)
    return TensorFile(outline.kind, outline.header, {}, outline.version)


@dataclass(frozen=True)
class _Outline:
    """What the text of a file says of the rest of it."""

    text: bytes
    header: dict[str, Any]
    digest: str
    arrays: list[tuple[str, np.dtype, tuple[int, ...]]]
    kind: str
    version: int

    @property
    def unsigned(self) -> bytes:
        """The text as it was before it had its checksum."""
        return self.text.replace(self.digest.encode(), _UNSIGNED.encode(), 1)


def _outline(file: BinaryIO, path: str | PathLike[str]) -> _Outline:
    """Read and check the text; the arrays it names are as long as the rest of the file."""
    try:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST):
            raise _NotOurs("it has no header")
        text = file.read(length)
        entries = _parsed(text)
        metadata = entries.pop(_METADATA, None)
        if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
            raise _NotOurs("it is none of skdare's")
        digest, header = metadata.get(_DIGEST), _parsed(metadata[_HEADER])
        if not isinstance(digest, str) or len(digest) != 64:
            raise _NotOurs("its header is not whole")
        kind, version = header.pop("kind"), header.pop("version")
        if not isinstance(kind, str) or type(version) is not int or version < 2:
            raise _NotOurs("its header is not whole")
        if version > VERSION:
            raise _Newer(
                f"{path} has version {version} of the format, and this skdare reads up to "
                f"{VERSION}; update skdare"
            )
        arrays = list(_placed(entries, size - 8 - length))
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


def _placed(entries: dict[str, Any], rest: int) -> Iterator[tuple[str, np.dtype, tuple[int, ...]]]:
    """Name, dtype and shape of the arrays, which lie one after the other up to the end."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), entry["shape"]
        begin, end = entry["data_offsets"]
        sizes = (*shape, begin, end)
        if any(type(n) is not int or not 0 <= n < _MOST for n in sizes) or len(shape) > 8:
            raise _NotOurs(f"array {name!r} has no proper shape")
        if begin != at or end - begin != dtype.itemsize * math.prod(shape):
            raise _NotOurs(f"array {name!r} is not where it should be")
        at = end
        yield name, dtype, tuple(shape)
    if at != rest:
        cut = "it was cut off" if at > rest else "it has more bytes than its header tells"
        raise _NotOurs(cut)


def _portable(array: np.ndarray) -> np.ndarray:
    """In C order and little-endian, as the file has it."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def _text(metadata: dict[str, str], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The JSON text, padded so that arrays begin at a multiple of eight bytes."""
    entries: dict[str, Any] = {_METADATA: metadata}
    at = 0
    for name, array in arrays.items():
        if name == _METADATA or array.dtype not in _NAMES:
            raise TypeError(f"array {name!r} is {array.dtype}; a file holds numbers and booleans")
        place = [at, at + array.nbytes]
        entries[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": place,
        }
        at = place[1]
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
    """The next bytes of a file, which are known to be there."""
    view = _bytes(array)
    for start in range(0, len(view), _CHUNK):
        part = view[start : start + _CHUNK]
        if file.readinto(part) != len(part):  # type: ignore[attr-defined]
            raise ValueError("the file became shorter while it was read; wait until it is written")
        digest.update(part)
