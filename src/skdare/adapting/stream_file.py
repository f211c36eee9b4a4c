"""The state of an adapter in a file, to go on from another day."""

from __future__ import annotations

import hashlib
import json
from os import PathLike

import numpy as np

from skdare.adapting.new_domain import NewDomain, Options
from skdare.adapting.stream import Stream
from skdare.checks import ClassWeight
from skdare.errors import InputError
from skdare.fitting.domain_fit import DomainFit
from skdare.fitting.problem import Targets
from skdare.saving.saved_file import SavedFile, unreadable
from skdare.saving.state import Reader, Writer


def save_stream(new_domain: NewDomain, path: str | PathLike[str]) -> None:
    """Write the state of a stream to a file; see `Adapter.save`."""
    writer = Writer()
    header = {
        "head": fit_digest(new_domain.fit),
        "options": writer.write(new_domain.options),
        "stream": writer.write(new_domain.stream.compact()),
    }
    SavedFile("stream", header, writer.arrays).write(path)


def load_stream(
    fit: DomainFit, targets: Targets, class_weight: ClassWeight, path: str | PathLike[str]
) -> NewDomain:
    """The new domain that `save_stream` wrote, for the head that it was made with."""
    file = SavedFile.read(path, "stream")
    if file.header.get("head") != fit_digest(fit):
        raise InputError(
            f"{path} was saved for another head, or for this one before it was fitted again",
            "resume with the head that it was saved with",
        )
    reader = Reader(file.arrays, {"d": len(fit.unseen.B)})
    try:
        options = reader.read(Options, file.header.get("options"), "options")
        new_domain = NewDomain(fit, targets, class_weight, **vars(options))
        stream = reader.read(Stream, file.header.get("stream"), "stream")
        _check_stream(stream, new_domain.stream)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise unreadable(path, error) from error
    new_domain.stream = stream
    return new_domain


def _check_stream(stream: Stream, new: Stream) -> None:
    """Refuse the state of a stream that such a head could not have come to."""
    sampled = sum(map(len, stream.sampled))
    known = codes_fit = rows_fit = True
    if stream.labels is not None and len(stream.labels):
        numbers = stream.labels.numbers
        rows_fit = bool(
            np.all(numbers % 1 == 0)
            and np.all(np.diff(numbers) > 0)
            and numbers[0] >= 0
            and numbers[-1] < stream.n_seen
        )
    if stream.classes is not None and new.classes is not None:
        known = np.array_equal(stream.classes[: len(new.classes)], new.classes)
        if stream.labels is not None:
            codes = stream.labels.T
            codes_fit = bool(
                np.all((codes >= 0) & (codes < len(stream.classes)) & (codes % 1 == 0))
            )
    fits = (
        (stream.d, stream.half_life, stream.most_sampled)
        == (new.d, new.half_life, new.most_sampled)
        and known
        and codes_fit
        and rows_fit
        and (stream.classes is None) == (new.classes is None)
        and stream.n_seen >= 0
        and sampled == (len(stream.sample_numbers) if stream.most_sampled else 0)
        and (stream.moments is None or stream.moments.n > 0)
    )
    if not fits:
        raise ValueError("it is not the state of a stream of this head")


def fit_digest(fit: DomainFit) -> str:
    """A checksum of all that adapting uses."""
    writer = Writer()
    digest = hashlib.sha256(json.dumps(writer.write(fit)).encode())
    for array in writer.arrays.values():
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()
