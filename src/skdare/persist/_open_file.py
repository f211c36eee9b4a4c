"""Opening a file that somebody else put there."""

from __future__ import annotations

import os
import stat
from os import PathLike
from typing import BinaryIO


def open_file(path: str | PathLike[str]) -> BinaryIO:
    """A file to be read; a pipe or a device, of which the bytes may never end, is not opened."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a pipe or a device; a file is needed")
    return open(path, "rb")
