"""The conditions of a run: versions, settings, splits and options, every value that occurs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skdare.bench import Record
from skdare.datasets._natural import natural


@dataclass(frozen=True)
class Conditions:
    """How a data set was run under one protocol.

    Parameters
    ----------
    versions : mapping from package to the versions that occur
    settings : mapping from setting to the values that occur
    features_of : tuple of str
        What has features of its own: the "data", each "held-out domain", or each "trial".
    splits : tuple of str
        Every split that occurs.
    tested_on : tuple of str
        Which held-out rows the main study was scored on.
    options : mapping from head to option to the values that occur
    trials : tuple of int
    records : int
    warnings : mapping from message to the number of trials that gave it
    seconds : float
        Sum over all records, whether or not they ran side by side.
    """

    versions: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, tuple[str, ...]]
    features_of: tuple[str, ...]
    splits: tuple[str, ...]
    tested_on: tuple[str, ...]
    options: Mapping[str, Mapping[str, tuple[str, ...]]]
    trials: tuple[int, ...]
    records: int
    warnings: Mapping[str, int]
    seconds: float


def conditions(records: Sequence[Record]) -> Conditions:
    """The conditions of these records."""
    main = [r for r in records if r.study == "main"]
    with_options = [r for r in records if r.study in ("main", "ceiling")] or records
    heads = dict.fromkeys(r.head for r in with_options)
    on_given = [r for r in records if r.features == "given"]
    return Conditions(
        versions=occurring(records, "version:"),
        settings=occurring(records, "setting:"),
        features_of=_distinct(r.values.get("features_of") for r in on_given),
        splits=_distinct(r.values.get("split") for r in records),
        tested_on=_distinct(r.values.get("tested_on") for r in main or records),
        options={h: occurring([r for r in with_options if r.head == h], "option:") for h in heads},
        trials=tuple(sorted({r.trial for r in records})),
        records=len(records),
        warnings=Counter(message for r in records for message in _warnings(r)),
        seconds=sum(r.seconds for r in records),
    )


def occurring(records: Sequence[Record], prefix: str) -> dict[str, tuple[str, ...]]:
    """Every value that occurs under each name with this prefix, by the rest of the name."""
    names = dict.fromkeys(n for r in records for n in r.values if n.startswith(prefix))
    return {
        name.removeprefix(prefix): _distinct(r.values.get(name) for r in records) for name in names
    }


def _distinct(values: Iterable[object]) -> tuple[str, ...]:
    """Each value once, numbers in their order and then text: trials finish in any order."""
    return tuple(sorted({str(v) for v in values if v is not None}, key=_order))


def _order(value: str) -> tuple[Any, ...]:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return math.isnan(number), 0.0 if math.isnan(number) else number, natural(value)


def _warnings(record: Record) -> list[str]:
    """The distinct messages of a trial, which its record holds in one text."""
    messages = record.values.get("warnings")
    return str(messages).split(" | ") if messages else []
