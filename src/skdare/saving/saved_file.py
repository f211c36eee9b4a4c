"""Files of arrays and a JSON header, and no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from skdare.errors import InputError
from skdare.files import whole_file

VERSION = 4
DAMAGED = "it was cut off or altered, or skdare did not write it"


@dataclass(frozen=True, eq=False)
class SavedFile:
    """Content of a file."""

    kind: str
    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    def write(self, path: str | PathLike[str]) -> None:
        """Replace the file in one step; if that fails, what was there stays."""
        from safetensors.numpy import save

        text = json.dumps({"version": VERSION, "kind": self.kind, **self.header})
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        content = save(arrays, {"skdare": text, "sha256": _digest(text, arrays)})
        with whole_file(path) as file:
            file.write(content)

    @classmethod
    def read(cls, path: str | PathLike[str], kind: str) -> SavedFile:
        """A file of this kind; refused if a bit of it changed since it was written."""
        from safetensors import SafetensorError, safe_open

        check_is_file(path)
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, ValueError, TypeError, OverflowError) as error:
            raise unreadable(path, DAMAGED) from error
        text = metadata.get("skdare", "")
        # The checksum finds damage; it is no signature, so everything is checked as well.
        if _digest(text, arrays) != metadata.get("sha256"):
            raise unreadable(path, DAMAGED)
        header = header_of(text, path)
        if header["kind"] != kind:
            raise InputError(f"{path} holds a {header['kind']!r:.40}, not a {kind}")
        return cls(kind, header, arrays)


def header_of(text: str, path: str | PathLike[str]) -> dict[str, Any]:
    """The JSON header of a file of this version."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, "its header is not JSON") from error
    if not isinstance(header, dict) or not {"version", "kind"} <= set(header):
        raise unreadable(path, "skdare did not write it")
    if header["version"] != VERSION:
        raise InputError(
            f"{path} has version {header['version']!r:.20} of the format, and this skdare reads "
            f"version {VERSION}",
            "use the skdare that wrote it, or make it again",
        )
    return header


def unreadable(path: str | PathLike[str], why: object) -> InputError:
    return InputError(f"{path} cannot be read: {why}", "take another copy of it, or make it again")


def check_is_file(path: str | PathLike[str]) -> None:
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}")


def _digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode("utf-8", "surrogatepass"))
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()
