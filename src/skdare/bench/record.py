"""Records: one line of JSON for each finished trial, appended and never changed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from skdare.errors import InputError
from skdare.files import whole_file

SCHEMA = 1
RECORDS = "records.jsonl"
ABOUT = "run.json"
NOTHING = "nothing"
UNLABELLED = "unlabelled rows"
_KINDS = {"trial": int, "seconds": int | float, "score": int | float | None}
# Of the other values, those that a report reads.
_VALUES = {
    "label": str,
    "task": str,
    "chosen": str,
    "declined": str | None,
    "n_train": int,
    "n_test": int,
    "majority": int | float,
    "l2": int | float | None,
    "warnings": list,
}
# Columns of studies of other kinds, which may be in the same file.
_ALWAYS = {"features": "given", "protocol": "default", "x": None}


@dataclass(frozen=True)
class Record:
    """A finished trial and its result.

    Parameters
    ----------
    key : str
        Hash of everything that decides the result: a trial whose key is on file is not run again.
    study : str
        "main" for a head on a held-out domain.
    data : str
        Name of the table.
    head, held_out, trial
        Which trial it was.
    uses : str
        What was used of the held-out domain: "nothing", "unlabelled rows" or "labels".
    metric : str
    score : float or None
        None if the fit failed; ``reason`` then says why.
    seconds : float
    reason : str
    values : dict
        Everything else, flat: ``n_train``, ``n_test``, ``chosen`` (the strategy of a head that
        chooses), ``declined`` (why it was not adapted), ``majority`` (accuracy of always naming the
        most frequent class), ``label`` (its name in tables), ``l2``, ``warnings``.
    """

    key: str
    study: str
    data: str
    head: str
    held_out: str
    trial: int
    uses: str
    metric: str
    score: float | None
    seconds: float
    reason: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return "failed" if self.score is None else "ok"

    @property
    def place(self) -> tuple[Any, ...]:
        """All that tells trials apart; a head of the user may have other options now."""
        columns = (self.values.get(name, default) for name, default in _ALWAYS.items())
        return (self.study, self.data, self.head, self.held_out, self.trial, *map(str, columns))

    def to_line(self) -> str:
        flat = asdict(self)
        values = _ALWAYS | flat.pop("values")
        line = {"schema": SCHEMA, "status": self.status, **flat, **values}
        return json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        values = json.loads(line)
        if not isinstance(values, dict) or values.pop("schema", None) != SCHEMA:
            raise ValueError(f"it is not a record of schema {SCHEMA}")
        columns: dict[str, Any] = {}
        for each in fields(cls)[:-1]:
            kind = _KINDS.get(each.name, str)
            value = values.pop(each.name, "" if each.name == "reason" else ...)
            columns[each.name] = _checked(each.name, value, kind)
        for name, kind in _VALUES.items():
            if name in values:
                _checked(name, values[name], kind)
        if not all(isinstance(text, str) for text in values.get("warnings", ())):
            raise ValueError("warnings has an entry that is no text")
        if values.pop("status", "ok") == "failed":
            columns["score"] = None
        return cls(**columns, values=values)


def _checked(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} is missing or no {kind}")
    if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} is no finite number")
    return value


class RecordFile:
    """The folder of a run: its settings, and its records.

    A record is one write of a whole line, flushed to disk. A process that is killed leaves at most
    a line without its end, which the next one to open the folder cuts off.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / RECORDS

    def about(self) -> dict[str, Any]:
        """Settings and data of the run; empty if only records were kept."""
        path = self.folder / ABOUT
        if not path.exists():
            return {}
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise InputError(f"'{path}' is damaged: {error}", "delete it") from error
        if not isinstance(about, dict):
            raise InputError(f"'{path}' is damaged", "delete it")
        return about

    def records(self) -> list[Record]:
        """All records, the last one of each trial; a line without its end is not one yet."""
        if not self.path.exists():
            return []
        text = self.path.read_bytes().decode("utf-8", "replace")
        records: dict[tuple[Any, ...], Record] = {}
        for number, line in enumerate(text.split("\n")[:-1], start=1):
            if not line.strip():
                continue
            try:
                record = Record.from_line(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"line {number} of '{self.path}' cannot be read: {error}",
                    "delete that line, and run the same command again to redo it",
                ) from error
            records[record.place] = record
        return list(records.values())

    @contextmanager
    def open(self, about: dict[str, Any]) -> Iterator[set[str]]:
        """Hold the run for writing; yields the keys that are done.

        A folder in which something else was compared is refused.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot make the folder '{self.folder}': {error.strerror}", "give another out"
            ) from error
        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise InputError(
                f"another process is writing to '{self.folder}'", "wait for it, or give another out"
            ) from error
        with lock:
            self._agree(about)
            if self.path.exists():
                os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)
            yield {record.key for record in self.records() if record.score is not None}

    def _agree(self, about: dict[str, Any]) -> None:
        before = self.about()
        differ = [name for name in about if name in before and before[name] != about[name]]
        # Other differences tell a person more than that of fingerprints.
        differ.sort(key=lambda name: name == "fingerprint")
        if differ and differ[0] == "fingerprint":
            raise InputError(
                f"'{self.folder}' holds a run on other rows called '{before.get('data')}'",
                "give another out, or delete that folder",
            )
        if differ:
            name = differ[0]
            raise InputError(
                f"'{self.folder}' holds a run with {name} {before[name]}, and this one has "
                f"{name} {about[name]}",
                "give another out, or delete that folder",
            )
        if before != before | about:
            with whole_file(self.folder / ABOUT) as file:
                file.write(json.dumps(before | about, indent=2, ensure_ascii=False).encode())

    def append(self, record: Record) -> None:
        """Write a record; it is on disk when this returns."""
        line = record.to_line().encode("utf-8", "replace")
        with self.path.open("ab", buffering=0) as file:
            end = file.tell()
            if file.write(line) < len(line):  # the disk is full
                file.truncate(end)
                raise OSError(f"no room left for a record in '{self.path}'")
            os.fsync(file.fileno())
