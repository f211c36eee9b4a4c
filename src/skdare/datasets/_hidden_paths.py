"""Paths in a folder or archive that nobody put there on purpose."""

from __future__ import annotations

from pathlib import PurePosixPath

_SYSTEM_FILES = {"__macosx", "thumbs.db", "desktop.ini"}


def is_ignored(place: PurePosixPath) -> bool:
    """Whether a path is hidden, or one that a system leaves behind."""
    return any(part.startswith(".") or part.lower() in _SYSTEM_FILES for part in place.parts)
