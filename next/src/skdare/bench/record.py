"""Records: one line of JSON for each finished trial, appended and never changed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from skdare.errors import InputError

SCHEMA = 1
RECORDS = "records.jsonl"
ABOUT = "run.json"
NOTHING = "nothing"
UNLABELLED = "unlabelled rows"
# What the main table does not need, and every line has, so that studies of other kinds may stand
# in the same file.
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
        chooses), ``majority`` (accuracy of always naming the most frequent class), ``label`` (what
        tables call the head), ``warnings``.
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
        kinds = {"trial": int, "seconds": int | float, "score": int | float | None}
        known: dict[str, Any] = {}
        for each in fields(cls)[:-1]:
            kind = kinds.get(each.name, str)
            value = values.pop(each.name, "" if each.name == "reason" else ...)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ValueError(f"{each.name} is missing or no {kind}")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{each.name} is {value}")
            known[each.name] = value
        if values.pop("status", "ok") == "failed":
            known["score"] = None
        return cls(**known, values=values)


class RecordFile:
    """The folder of a run: what it compares, and its records.

    A record is one write of a whole line, flushed to disk. A process that is killed leaves at most
    a line without its end, which the next one to open the folder cuts off.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / RECORDS

    def about(self) -> dict[str, Any]:
        """What the run compares; nothing where only records were kept."""
        path = self.folder / ABOUT
        if not path.exists():
            return {}
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"'{path}' is damaged: {error}", "delete it") from error
        if not isinstance(about, dict):
            raise InputError(f"'{path}' is damaged", "delete it")
        return about

    def records(self) -> list[Record]:
        """All records, the last one of each key; a line without its end is not one yet."""
        if not self.path.exists():
            return []
        text = self.path.read_bytes().decode("utf-8", "replace")
        records: dict[str, Record] = {}
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
            records[record.key] = record
        return list(records.values())

    @contextmanager
    def open(self, about: dict[str, Any]) -> Iterator[set[str]]:
        """Hold the run for writing; gives the keys that are done.

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
        # A fingerprint tells a person nothing; what else differs does.
        differ.sort(key=lambda name: name == "fingerprint")
        if differ and differ[0] == "fingerprint":
            raise InputError(
                f"'{self.folder}' holds a run on other rows called '{before['data']}'",
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
            part = self.folder / f"{ABOUT}.part"
            part.write_text(json.dumps(before | about, indent=2, ensure_ascii=False), "utf-8")
            os.replace(part, self.folder / ABOUT)

    def append(self, record: Record) -> None:
        """Write a record; it is on disk when this returns."""
        line = record.to_line().encode()
        with self.path.open("ab", buffering=0) as file:
            end = file.tell()
            if file.write(line) < len(line):  # the disk is full
                file.truncate(end)
                raise OSError(f"no room left for a record in '{self.path}'")
            os.fsync(file.fileno())
