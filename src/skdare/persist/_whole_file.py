"""A file that is there whole, or as it was before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"


@contextmanager
def whole_file(path: Path, *, mark: str = "") -> Iterator[BinaryIO]:
    """A file that has its name only once it is whole on disk; nothing of it is left otherwise.

    A link stays one, and what it points to is replaced.

    Parameters
    ----------
    path : Path
    mark : str, default=""
        Told apart by it, several processes may write the same file; the last one stays.
    """
    path = Path(os.path.realpath(path))
    partial = path.with_name(f"{path.name}{mark}{PARTIAL}")
    try:
        with partial.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        _remove(partial)
        raise OSError(
            error.errno,
            f"not written ({error.strerror or error}), and what was there is as it was; make room, "
            "or choose another folder",
            str(path),
        ) from error
    except BaseException:
        _remove(partial)
        raise


def _remove(partial: Path) -> None:
    """Where it was begun at all: its folder may be none."""
    if partial.is_file():
        partial.unlink()
