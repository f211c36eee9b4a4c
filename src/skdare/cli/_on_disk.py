"""Tables that are larger than memory: their features stay on disk while a head is fitted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skdare.arrays import chunks
from skdare.datasets import ChunkedRows, DomainData, open_table, stream_table, write_store
from skdare.datasets._entries import main_entry
from skdare.datasets._formats import is_csv, open_stream

# A fit in memory holds the rows, a copy in another type or prepared, and sums over them; a choosing
# head prepares another copy for each left-out domain.
_COPIES = 4
# A shard is in memory while it fills.
_SHARD_BYTES = 32 << 20
# Text packs into about a fifth of its size.
_PACKED = 5


def free_memory() -> int | None:
    """Bytes that a process may still take, as far as the system says."""
    rooms = [_available(), _left_in_group(Path("/sys/fs/cgroup"))]
    known = [room for room in rooms if room is not None]
    return min(known, default=None)


def _available() -> int | None:
    """Memory of the machine that is free, or could be."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(x.split()[1]) for x in lines if x.startswith("MemAvailable"))
    except (OSError, ValueError, StopIteration):
        pass
    try:  # all there is, where the system does not say what is free
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_group(folder: Path) -> int | None:
    """Memory that a container has left, where one is limited."""
    try:
        most = int((folder / "memory.max").read_text())
        used = int((folder / "memory.current").read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
        # Files that were read before are kept there, and make room when it is needed.
        kept = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
        return most - used + kept
    except (OSError, ValueError):
        return None


def is_larger_than_memory(places: Sequence[str], keys: dict[str, str | None]) -> bool:
    """Whether fitting to these files in memory could take more than is free."""
    room = free_memory()
    needed = sum(feature_bytes(place, keys["features"]) for place in places)
    return room is not None and _COPIES * needed > room


def feature_bytes(place: str, key: str | None) -> int:
    """About how many bytes the features of a file take in memory; 0 for what stays on disk."""
    path = Path(place)
    if not path.is_file():
        return 0
    if is_csv(place):
        return path.stat().st_size * (_PACKED if path.suffix.lower() == ".gz" else 1)
    entries = open_stream(place, lambda name: False)
    main = main_entry(entries, key)
    columns = [entries.entries[main]] if main else list(entries.entries.values())
    return sum(int(np.prod(c.shape)) * c.dtype.itemsize for c in columns if c.numeric)


def table_on_disk(places: Sequence[str], keys: dict[str, str | None], folder: Path) -> DomainData:
    """The rows of all files, as a feature store that is made in a folder, some at a time."""
    tables = [stream_table(place, **keys) for place in places]
    first = tables[0]
    for place, table in zip(places, tables, strict=True):
        check_same_features(place, table, places[0], first)
    y = np.concatenate([table.y for table in tables])
    domains = np.concatenate([table.domains for table in tables])
    dtype = np.result_type(*(table.X.dtype for table in tables))
    X: Any = ChunkedRows(lambda: _rows(tables), len(y), first.X.shape[1], dtype)
    table = replace(first, X=X, y=y, domains=domains, split=None)
    rows = max(1, _SHARD_BYTES // (X.shape[1] * X.dtype.itemsize))
    write_store(folder / "rows", table, rows_per_shard=rows)
    stored = open_table(folder / "rows")
    return replace(
        stored,
        target_name=first.target_name,
        domain_name=first.domain_name,
        groups=joined_groups(tables),
    )


def joined_groups(tables: Sequence[DomainData]) -> np.ndarray | None:
    """The groups of the rows of all tables; None where they have none."""
    groups = [table.groups for table in tables if table.groups is not None]
    return np.concatenate(groups) if groups else None


def check_same_features(place: str, table: DomainData, first_place: str, first: DomainData) -> None:
    """Refuse to join tables of different columns."""
    if table.X.shape[1] != first.X.shape[1] or table.feature_names != first.feature_names:
        raise ValueError(
            f"{place} has other features than {first_place}; give tables with the same columns"
        )


def _rows(tables: Sequence[DomainData]) -> Iterator[Any]:
    for table in tables:
        for _, rows in chunks(table.X, slice(0, len(table.y))):
            yield rows
