"""A file that is there whole, or as it was before."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

PARTIAL = ".partial"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that has its name only once it is whole on disk; nothing of it is left otherwise.

    A link stays one, and what it points to is replaced. Several threads and processes may write
    the same file: each writes one of its own, and the last one stays.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "is no file, and is left as it is; choose another", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist; make it", str(path))
    # A name that nobody can foresee: a link put there would be followed.
    partial = path.with_name(f"{path.name}.{uuid4().hex}{PARTIAL}")
    try:
        with partial.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(
            error.errno,
            f"not written ({error.strerror or error}), and what was there is as it was; make room, "
            "or choose another folder",
            str(path),
        ) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
