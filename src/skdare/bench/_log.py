"""The log of a run: its records in a file that only grows, and what was planned."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from pathlib import Path
from reprlib import repr as short
from threading import Lock
from typing import Any, Self

from skdare.bench._record import Record
from skdare.datasets._natural import natural
from skdare.persist import lock, open_file, parse_json, read_json, whole_file

FILE, PLANNED = "records.jsonl", "planned.json"


def finished(records: Iterable[Record], *, retry_failed: bool) -> set[str]:
    """Keys of the trials that need not be run again."""
    return {r.key for r in records if r.status != "failed" or not retry_failed}


class Log:
    """The records of a run, in a file that only grows.

    A process killed while writing leaves at most one torn last line; it is cut off before the
    next record is written, so its trial runs again and no other is lost.

    Parameters
    ----------
    folder : path
        The run; made with the first record.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self._planned = self.folder / PLANNED

    def read(self) -> list[Record]:
        """Every whole record; a later one of the same trial replaces the earlier.

        Those of one data set and protocol are in the order of held-out domains and trials, and not
        in that in which they finished.
        """
        found: dict[str, Record] = {}
        for number, line in self._lines():
            try:
                record = Record.from_line(line)
            except ValueError as error:
                raise ValueError(
                    f"line {number} of {self.path} {error}; it was not written by skdare bench, or "
                    "was changed since"
                ) from error
            found[record.key] = record
        begun: dict[tuple[str, str], int] = {}
        for record in found.values():
            begun.setdefault((record.data, record.protocol), len(begun))

        def place(record: Record) -> tuple[Any, ...]:
            return begun[record.data, record.protocol], natural(record.held_out), record.trial

        return sorted(found.values(), key=place)

    def done(self, *, retry_failed: bool = False) -> set[str]:
        """Keys of the trials that need not be run again."""
        return finished(self.read(), retry_failed=retry_failed)

    def announce(self, data: str, protocol: str, keys: Iterable[str]) -> None:
        """Note what is to be run, so that a report can say what is missing."""
        known = self._announced()
        known[data, protocol] = sorted({*known.get((data, protocol), []), *keys})
        named = {json.dumps(name): planned for name, planned in known.items()}
        with whole_file(self._planned) as file:
            file.write(json.dumps(named).encode("utf-8"))

    def unfinished(self) -> dict[tuple[str, str], int]:
        """How many trials of each data set and protocol were announced and are not on file."""
        done = self.done()
        return {name: len(set(keys) - done) for name, keys in self._announced().items()}

    def _announced(self) -> dict[tuple[str, str], list[str]]:
        """Keys of the trials that were planned, by data set and protocol."""
        if not self._planned.exists():
            return {}
        remedy = "remove it, and run the bench again to plan what is missing"
        planned = read_json(self._planned, {str: [str]}, remedy=remedy)
        try:
            names = {name: tuple(parse_json(name, [str])) for name in planned}
        except ValueError as error:
            raise ValueError(f"a name in {self._planned} {error}; {remedy}") from error
        for name, parts in names.items():
            if len(parts) != 2:
                raise ValueError(
                    f"{self._planned} names {short(name)}; a data set and a protocol are needed"
                )
        return {names[name]: keys for name, keys in planned.items()}

    def _lines(self) -> Iterator[tuple[int, str]]:
        if not self.path.exists():
            return
        with open_file(self.path) as raw, TextIOWrapper(raw, "utf-8", "replace") as file:
            for number, line in enumerate(file, 1):
                if line.endswith("\n") and line.strip():
                    yield number, line

    def open(self) -> Writer:
        """Start to append; refused while another process does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return Writer(self.path)


class Writer:
    """Appends records, each in one write, from any thread, while it holds the file's lock."""

    def __init__(self, path: Path) -> None:
        self._file, self._turn = path.open("a+b"), Lock()
        if lock(self._file.fileno()) is False:
            self._file.close()
            raise ValueError(
                f"another process is writing to {path}; wait for it, or name another run"
            )
        _cut_torn_line(self._file)

    def append(self, record: Record) -> None:
        """Write one record; it is on file when this returns. Nothing happens once closed."""
        with self._turn:
            if not self._file.closed:
                self._file.write(record.to_line().encode("utf-8") + b"\n")
                self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._turn:
            self._file.close()


def _cut_torn_line(file: Any) -> None:
    """Drop what follows the last newline."""
    end = file.seek(0, os.SEEK_END)
    start = end
    while start > 0:
        step = min(start, 1 << 16)
        file.seek(start - step)
        place = file.read(step).rfind(b"\n")
        if place >= 0:
            start = start - step + place + 1
            break
        start -= step
    if start < end:
        file.truncate(start)
