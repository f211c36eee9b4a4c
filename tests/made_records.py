"""Records of benches that were never run: scores by head and held-out domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skdare.bench.heads import HEADS
from skdare.bench.record import NOTHING, UNLABELLED, Record, RecordFile
from skdare.report import Summary
from skdare.report.summary import frame_of


def record(head: str, held_out: str, score: float | None, **more: Any) -> Record:
    """A trial of the main study."""
    known = HEADS.get(head)
    values = {"label": known.label if known else head, "n_test": 100, "majority": 0.5}
    fields = {"trial": 0, "metric": "accuracy", "seconds": 0.5, "reason": ""}
    for name in list(more):
        if name in fields:
            fields[name] = more.pop(name)
    values |= more
    return Record(
        key="-".join([head, held_out, str(fields["trial"])]),
        study="main",
        data="table",
        head=head,
        held_out=held_out,
        uses=UNLABELLED if known and known.adapts else NOTHING,
        score=score,
        values=values,
        **fields,
    )


def records(
    scores: Mapping[str, Sequence[float | None]], domains: Sequence[str] = (), **more: Any
) -> list[Record]:
    """Scores of each head on domains a, b, c and so on."""
    count = len(next(iter(scores.values())))
    names = domains or [chr(ord("a") + i) for i in range(count)]
    return [
        record(head, name, score, **more)
        for head, column in scores.items()
        for name, score in zip(names, column, strict=True)
    ]


def summary(scores: Mapping[str, Sequence[float | None]], **more: Any) -> Summary:
    """What is read from such records."""
    about = {"data": "table", "rows": 400, "features": 3, "classes": 2}
    return Summary(about, frame_of(records(scores, **more)))


def run_of(folder: Path, made: Sequence[Record], **about: Any) -> Path:
    """The folder of a run with these records."""
    file = RecordFile(folder)
    with file.open({"data": "table", **about}):
        for each in made:
            file.append(each)
    return folder
