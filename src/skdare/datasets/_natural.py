"""The order in which people list names."""

from __future__ import annotations

import re


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sort key by which "batch 2" comes before "batch 10"; "1" and "01" stay apart."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts)], name
