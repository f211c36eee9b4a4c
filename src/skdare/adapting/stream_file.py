"""The state of a stream in a file: numbers and arrays without code, written whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from skdare.fitting.domain_fit import domain_fit_of
from skdare.fitting.formulation import Formulation
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

    def write(self, path: str | PathLike[str], restore: Callable[[StreamFile], object]) -> None:
        """Replace the file in one step; where that fails, what was there stays.

        Parameters
        ----------
        path : str or path
        restore : callable
            Makes the stream of a file; one that it cannot make is not written.
        """

        def check(file: TensorFile) -> None:
            try:
                restore(StreamFile(file.kind, file.header, file.arrays))
            except DAMAGE as error:
                raise ValueError(
                    f"not written to {path}, as it could not be read again: {error}; what was "
                    "there is as it was, and the stream goes on"
                ) from error

        TensorFile(self.kind, self.header, self.arrays).write(path, check=check)

    @classmethod
    def read(cls, path: str | PathLike[str], head: Any) -> StreamFile:
        """A file that was written for this head; any other is refused."""
        file = TensorFile.read(path)
        if file.kind not in STREAMS:
            raise ValueError(
                f"{path} holds a {file.kind}, not the state of a stream; pass a file that "
                "adapter.save or fleet.save wrote"
            )
        if file.header.get("digest") != head_digest(head):
            raise ValueError(
                f"{path} was saved for another head, or for this one before it was fitted again; "
                "resume with the head that it was saved with"
            )
        return cls(file.kind, file.header, file.arrays)

    def numbers(self, fields: Mapping[str, Field]) -> dict[str, Any]:
        """Numbers in the header, each checked by its field."""
        saved = ReadContext({}, {})
        numbers = self.header["numbers"]
        unknown = set(numbers) - set(fields)
        if unknown:
            raise FieldError(f"it has a number {min(unknown)!r}")
        return {name: fields[name].read(numbers[name], saved.inside(name)) for name in numbers}

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


def head_digest(head: Any) -> str:
    """A checksum of the weights, the guess, the mixture and the guard that adapting goes by."""
    digest = hashlib.sha256()
    arrays = [head.coef_, head.intercept_]
    fit = domain_fit_of(head)
    adaptation = fit.adaptation
    if adaptation is not None:
        guess = adaptation.guess
        digest.update(_described(adaptation.formulation).encode())
        arrays += [adaptation.B, adaptation.b, adaptation.mean, guess.common]
        arrays += [guess.scale, guess.matrix, guess.U, guess.weights]
        if guess.diagonal is not None:
            arrays.append(guess.diagonal)
        if adaptation.places is not None:
            digest.update(repr(adaptation.mixture).encode())
            places = adaptation.places
            arrays += [places.shares, places.means, places.within]
    if fit.guard is not None:
        arrays += [fit.guard.shares, fit.guard.within, fit.guard.separations]
    for array in arrays:
        values = np.zeros(0) if array is None else np.asarray(array, dtype="<f8")
        digest.update(repr(values.shape).encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _described(formulation: Formulation) -> str:
    """A formulation in the words that files have had since the format began."""
    whitening = formulation.whitening
    means = formulation.means
    form = (
        f"Form(centered={means.center_in_training!r}, mean_penalty={means.mean_penalty!r}, "
        f"subtract={means.subtract_in_use!r})"
    )
    rest = f"l2={formulation.l2!r}, by_rows={formulation.by_rows!r}"
    return f"Plan(whitening={whitening!r}, form={form}, {rest})"
