"""The state of a stream in a file: numbers and arrays without code, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from skdare.adapting.adaptation import head_digest
from skdare.adapting.npz_stream import is_npz, read_npz_stream
from skdare.persist import ArrayOf, Field, FieldError, ReadContext, TensorFile

STREAMS = ("adapter", "fleet")
# What making a stream of a file that does not fit together may raise.
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


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

    def write(self, path: str | PathLike[str], made: Callable[[StreamFile], object]) -> None:
        """Replace the file in one step; where that fails, what was there stays.

        Parameters
        ----------
        path : str or path
        made : callable
            Makes the stream of a file; one that it cannot make is not written.
        """

        def check(file: TensorFile) -> None:
            try:
                made(StreamFile(file.kind, file.header, file.arrays))
            except DAMAGE as error:
                raise ValueError(
                    f"not written to {path}, as it could not be read again: {error}; what was "
                    "there is as it was, and the stream goes on"
                ) from error

        TensorFile(self.kind, self.header, self.arrays).write(path, check=check)

    @classmethod
    def read(cls, path: str | PathLike[str], head: Any) -> StreamFile:
        """A file that was written for this head; any other is refused."""
        read = read_npz_stream(path) if is_npz(path) else TensorFile.read(path)
        if read.kind not in STREAMS:
            raise ValueError(
                f"{path} holds a {read.kind}, not the state of a stream; pass a file that "
                "adapter.save or fleet.save wrote"
            )
        if read.header.get("digest") != head_digest(head):
            raise ValueError(
                f"{path} was saved for another head, or for this one before it was fitted again; "
                "resume with the head that it was saved with"
            )
        return cls(read.kind, read.header, read.arrays)

    def numbers(self, fields: Mapping[str, Field]) -> dict[str, Any]:
        """Those of the numbers that the file has, each of its kind."""
        saved, given = ReadContext({}, {}), self.header["numbers"]
        unknown = set(given) - set(fields)
        if unknown:
            raise FieldError(f"it has a number {min(unknown)!r}")
        return {name: fields[name].read(given[name], saved.inside(name)) for name in given}

    def checked(self, shapes: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
        """The arrays, of the shapes that letters give."""
        saved = ReadContext(self.arrays, dict(sizes))
        unknown = set(self.arrays) - set(shapes)
        if unknown:
            raise FieldError(f"it has an array {min(unknown)!r}")
        return {
            name: ArrayOf(shapes[name]).read({"array": name}, saved.inside(name))
            for name in self.arrays
        }
