"""The log of a run: its records in a file that only grows, and the keys of planned trials."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from threading import Lock
from typing import Any, Self

from skdare.bench._record import Record
from skdare.datasets._natural import natural
from skdare.persist import lock, open_file, parse_json, read_json, whole_file

RECORDS = "records.jsonl"
PLANNED = "planned.json"


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
        The folder of the run; created with the first record.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / RECORDS
        self._planned_path = self.folder / PLANNED

    def read(self) -> list[Record]:
        """Every whole record; a later one of the same trial replaces the earlier.

        Records of one data set and protocol are in the order of held-out domains and trials, and
        within a trial as they were planned, not as they finished.
        """
        records: dict[str, Record] = {}
        for number, line in self._lines():
            try:
                record = Record.from_line(line)
            except ValueError as error:
                raise ValueError(
                    f"line {number} of {self.path} {error}; it was not written by the bench, or "
                    "was changed since"
                ) from error
            records[record.key] = record
        groups: dict[tuple[str, str], int] = {}
        for record in records.values():
            groups.setdefault((record.data, record.protocol), len(groups))
        order = self._planned_order()

        def place(record: Record) -> tuple[Any, ...]:
            group = groups[record.data, record.protocol]
            planned = order.get(record.key, len(order))
            return group, natural(record.held_out), record.trial, planned

        return sorted(records.values(), key=place)

    def _planned_order(self) -> dict[str, int]:
        """Place of each planned trial, where the order was kept."""
        # Earlier runs have sorted keys, which say nothing of the plan.
        in_order = [keys for keys in self._planned().values() if keys != sorted(keys)]
        return {key: place for place, key in enumerate(chain.from_iterable(in_order))}

    def done(self, *, retry_failed: bool = False) -> set[str]:
        """Keys of the trials that need not be run again."""
        return finished(self.read(), retry_failed=retry_failed)

    def announce(self, data: str, protocol: str, keys: Iterable[str]) -> None:
        """Note the trials to run, in order, so that a report can say what is missing."""
        planned = self._planned()
        planned[data, protocol] = list(dict.fromkeys([*planned.get((data, protocol), []), *keys]))
        content = {json.dumps(name): keys for name, keys in planned.items()}
        with whole_file(self._planned_path) as file:
            file.write(json.dumps(content).encode("utf-8"))

    def unfinished(self) -> dict[tuple[str, str], int]:
        """How many planned trials of each data set and protocol are not on file."""
        done = self.done()
        return {name: len(set(keys) - done) for name, keys in self._planned().items()}

    def _planned(self) -> dict[tuple[str, str], list[str]]:
        """Keys of the trials that were planned, by data set and protocol."""
        if not self._planned_path.exists():
            return {}
        remedy = "remove it, and run the bench again to plan what is missing"
        planned = read_json(self._planned_path, {str: [str]}, remedy=remedy)
        try:
            names = {name: tuple(parse_json(name, [str])) for name in planned}
        except ValueError as error:
            raise ValueError(f"a name in {self._planned_path} {error}; {remedy}") from error
        for name, parts in names.items():
            if len(parts) != 2:
                raise ValueError(
                    f"{self._planned_path} names {short(name)}; a data set and a protocol are "
                    "needed"
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
    """Appends records under the file's lock, each in one write, from any thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b")
        self._turn = Lock()
        if lock(self._file.fileno()) is False:
            self._file.close()
            raise ValueError(
                f"another process is writing to {path}; wait for it, or name another folder"
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
