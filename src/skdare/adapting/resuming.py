"""Going on from the saved state of a stream."""

from __future__ import annotations

from os import PathLike
from typing import Any

from skdare.adapting.adapter import Adapter, check_adaptable
from skdare.adapting.fleet import Fleet
from skdare.adapting.stream_file import DAMAGE, StreamFile


def resume(head: Any, path: str | PathLike[str]) -> Adapter | Fleet:
    """The adapter or fleet of a head that ``save`` wrote to a file."""
    check_adaptable(head)
    head = head._uncalibrated()
    file = StreamFile.read(path, head)
    kinds: dict[str, type[Adapter] | type[Fleet]] = {"adapter": Adapter, "fleet": Fleet}
    try:
        return kinds[file.kind]._from_file(head, file)
    except DAMAGE as error:
        raise ValueError(
            f"{path} was altered since it was saved; start a new stream with adapter() or fleet()"
        ) from error
