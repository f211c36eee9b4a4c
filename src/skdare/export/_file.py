"""A file that is there whole, or as it was before."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path


def check_place(path: str | PathLike) -> Path:
    """A path that a file can be written to, before any work."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it, or pass another path")
    return path


def replace_file(path: Path, content: bytes) -> None:
    """Write in one step; where that fails, what was there stays."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
