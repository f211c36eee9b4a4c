"""One sentence in place of whatever a library raises on a broken file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skdare.errors import InputError


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises on a broken file into one sentence that names the file."""
    try:
        yield
    except (MemoryError, ImportError, PermissionError, FileNotFoundError, InputError):
        raise
    except Exception as error:
        raise InputError(
            f"{path} cannot be read as {kind}", "it is truncated, or something else"
        ) from error
