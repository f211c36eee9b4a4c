"""The state of a stream in a file: numbers and arrays without code, written whole or not at all."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from skdare.heads._adaptation import head_digest

_FORMAT, _VERSION, _HEADER = "skdare stream", 1, "header"
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    RuntimeError,
    NotImplementedError,
)


@dataclass(frozen=True, eq=False)
class StreamFile:
    """What a file holds.

    Parameters
    ----------
    kind : "adapter" or "fleet"
    header : mapping
        Of what JSON can hold.
    arrays : mapping of arrays by name
        Of numbers.
    """

    kind: str
    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    def write(self, path: str | PathLike[str]) -> None:
        """Replace the file in one step; where that fails, what was there stays."""
        path = Path(path)
        about = {"format": _FORMAT, "version": _VERSION, "kind": self.kind, **self.header}
        text = np.frombuffer(json.dumps(about).encode("utf-8"), dtype=np.uint8)
        named: dict[str, Any] = {_HEADER: text, **self.arrays}
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            with partial.open("wb") as file:
                np.savez(file, **named)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"the stream was not saved ({error.strerror}), and what was there before is as it "
                "was; make room, or choose another path",
                str(path),
            ) from error
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    @classmethod
    def read(cls, path: str | PathLike[str], head: Any) -> StreamFile:
        """A file that was written for this head; any other is refused."""
        try:
            with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(arrays.pop(_HEADER).tobytes())
            known, version = about["format"] == _FORMAT, int(about["version"])
            kind, digest = str(about["kind"]), str(about["digest"])
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is no saved stream, or was cut off or altered; start a new one with "
                "adapter() or fleet()"
            ) from error
        if not known:
            raise ValueError(f"{path} is no saved stream; pass a file that save wrote")
        if version > _VERSION:
            raise ValueError(
                f"{path} has version {version} of the format, and this skdare reads {_VERSION}; "
                "update skdare"
            )
        if digest != head_digest(head):
            raise ValueError(
                f"{path} was saved for another head, or for this one before it was fitted again; "
                "resume with the head that it was saved with"
            )
        return cls(kind, about, arrays)
