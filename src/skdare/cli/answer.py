"""The answer of a command: for people, for programs, and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skdare.errors import filled


@dataclass(frozen=True)
class Answer:
    """The answer of a command; the frame prints it as text, or as one JSON object.

    Parameters
    ----------
    text : str
        For people, lines of at most 80 characters.
    fields : mapping
        The same for programs.
    next : list of str
        Commands to type next, ready to paste.
    failed : bool
        Whether what was asked for could not be done at all: exit code 1.
    """

    text: str
    fields: Mapping[str, Any]
    next: list[str] = field(default_factory=list)
    failed: bool = False


def command(*words: object) -> str:
    """A command of ours as one would type it."""
    # A file that is called like an option gets a folder.
    typed = (
        f"./{word}" if isinstance(word, Path) and len(str(word)) > 1 and str(word)[0] == "-"
        else str(word) for word in words
    )  # fmt: skip
    return shlex.join(["skdare", *typed])


def facts(pairs: Mapping[str, str]) -> list[str]:
    """Lines of a name and a text, which is wrapped to the right of the names."""
    width = max(map(len, pairs)) + 2
    lines = []
    for name, text in pairs.items():
        for i, line in enumerate(filled(text, 80 - width).split("\n")):
            lines.append(f"{name if i == 0 else '':<{width}}{line}")
    return lines


def file_size(path: Any) -> str:
    n = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} GB"


def shares(counts: Mapping[object, int], most: int = 6) -> str:
    """Classes or domains with their numbers of rows: "a (12), b (1,300) and 4 more"."""
    texts = [f"{name} ({n:,})" for name, n in counts.items()]
    return some(texts, most)


def some(texts: Iterable[str], most: int = 6) -> str:
    texts = list(texts)
    if len(texts) <= most + 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {len(texts) - most:,} more"
