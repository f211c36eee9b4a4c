"""Opening files that somebody else put there."""

from __future__ import annotations

import os
import stat
from os import PathLike
from typing import BinaryIO


def open_file(path: str | PathLike[str]) -> BinaryIO:
    """Open a file to read it; refuse a pipe or a device, whose bytes may never end."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a pipe or a device; give a file")
    return open(path, "rb")
