"""Names of files, classes, domains and columns: their order, and which do not count."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_SYSTEM_FILES = {"__macosx", "thumbs.db", "desktop.ini"}
# Names of classes and domains that a table reads as missing values.
MISSING = ("", "NA", "nan", "NaN", "?")
USUAL_NAMES = {
    "image": ("path", "file", "filename", "filepath", "image"),
    "text": ("text", "sentence", "document"),
    "label": ("y", "target", "label", "labels", "class"),
    "domain": (
        *("domain", "domains", "d", "group", "groups"),
        *("env", "site", "batch", "hospital", "source"),
    ),
}


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sort key by which "batch 2" comes before "batch 10"; "1" and "01" stay apart."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts)], name


def is_ignored(place: PurePosixPath) -> bool:
    """Whether a path is hidden, or one that a system leaves behind."""
    return any(part.startswith(".") or part.lower() in _SYSTEM_FILES for part in place.parts)
