"""The summary: what the records of a run say, group by group; nothing is drawn or written here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skdare.bench import ABLATION, LABELS, METRICS, NETWORK, Record
from skdare.datasets._natural import natural
from skdare.report.summary.grid import Grid, Line, Sweep, gather, sweep
from skdare.report.summary.standing import Standing, stand

STUDIES = ("main", "ceiling", NETWORK, "curve", "adjustment", "alignment")


@dataclass(frozen=True)
class Failure:
    """A trial without a score, and why."""

    study: str
    head: str
    held_out: str
    trial: int
    x: float | None
    reason: str


@dataclass(frozen=True)
class Conditions:
    """How a group was run.

    Parameters
    ----------
    versions : mapping from package to the versions that occur
    settings : mapping from setting to the values that occur
    features_of : tuple of str
        What has features of its own: the "data", each "held-out domain", or each "trial".
    splits : tuple of str
        Every one that occurs.
    tested_on : tuple of str
        Which held-out rows the main study was scored on.
    options : mapping from head to option to the values that occur
    trials : tuple of int
    records : int
    warnings : mapping from message to the number of trials that gave it
    seconds : float
        Over all records, however many ran side by side.
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


@dataclass(frozen=True, eq=False)
class Group:
    """One data set under one protocol; a study that was not run is None, or absent.

    Parameters
    ----------
    data, protocol, task, metric : str
    main : Standing or None
    ceilings : Grid or None
        On the reserved rows; a line that used pretrained features says so.
    networks : Grid or None
        The network that made the features, on the domain it has not seen.
    other_rows : mapping from line of these two to the rows it was scored on
        Where they are others than those set aside; "unknown" where nobody noted them.
    curve : Sweep or None
        Against the number of labelled rows of the held-out domain.
    adjustment, alignment : Grid or None
        The paper's Tables 2 and 3.
    ablations : mapping from name to Grid, or to Sweep where a number was varied
    failures : tuple of Failure
    missing : int
        Trials that were planned and are not on record; or, where no plan is known, cells of the
        main table without one.
    conditions : Conditions
    diagnosed : mapping from study to option to the values that occur
    """

    data: str
    protocol: str
    task: str
    metric: str
    main: Standing | None
    ceilings: Grid | None
    networks: Grid | None
    other_rows: Mapping[str, tuple[str, ...]]
    curve: Sweep | None
    adjustment: Grid | None
    alignment: Grid | None
    ablations: Mapping[str, Grid | Sweep]
    failures: tuple[Failure, ...]
    missing: int
    conditions: Conditions
    diagnosed: Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True, eq=False)
class Summary:
    """Everything that the records of a run say."""

    groups: tuple[Group, ...]


def summarise(
    records: Sequence[Record], unfinished: Mapping[tuple[str, str], int] | None = None
) -> Summary:
    """Records of any data sets, protocols and studies, group by group in order of appearance.

    ``unfinished`` is how many trials of a data set and protocol were planned and are not among
    them.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.data, record.protocol), []).append(record)
    known = unfinished or {}
    return Summary(tuple(_group(found, known.get(key)) for key, found in groups.items()))


def namer(records: Sequence[Record]) -> Line:
    """How lines of a study are named: the head, with what else sets it apart from others."""
    projections = len({r.values.get("option:projection") for r in records}) > 1

    def name(record: Record) -> str:
        projection = record.values.get("option:projection") if projections else None
        more = [f"{record.features} features"] if record.features != "given" else []
        more += [f"{projection} projection"] if projection else []
        return f"{record.head} ({', '.join(more)})" if more else record.head

    return name


def _group(records: Sequence[Record], unfinished: int | None) -> Group:
    studies: dict[str, list[Record]] = {}
    for record in records:
        studies.setdefault(record.study.removeprefix(ABLATION), []).append(record)
    main = studies.get("main", [])
    standing = stand(main) if main else None
    first = main[0] if main else records[0]
    found = {name: studies.get(name) for name in ("ceiling", "adjustment", "alignment")}
    return Group(
        data=first.data,
        protocol=first.protocol,
        task=first.task,
        metric=METRICS[first.task],
        main=standing,
        ceilings=_grid(found["ceiling"]),
        networks=_grid(studies.get(NETWORK)),
        other_rows=_other_rows([*studies.get("ceiling", []), *studies.get(NETWORK, [])]),
        curve=_curve(studies.get("curve")),
        adjustment=_grid(found["adjustment"]),
        alignment=_grid(found["alignment"]),
        ablations={name: _ablation(r) for name, r in studies.items() if name not in STUDIES},
        failures=tuple(_failure(r) for r in records if r.status == "failed"),
        missing=_missing(standing, main) if unfinished is None else unfinished,
        conditions=_conditions(records),
        diagnosed={name: _occurring(r, "option:") for name, r in found.items() if r},
    )


def _grid(records: Sequence[Record] | None) -> Grid | None:
    return gather(records, line=namer(records)) if records else None


def _other_rows(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """What lines were scored on, of those that have other rows than the reserved ones."""
    found: dict[str, dict[str, None]] = {}
    for r in records:
        # Ceilings have always been scored on the reserved rows; older records do not say so.
        usual = "unknown" if r.study == NETWORK else "reserved"
        found.setdefault(namer([r])(r), {})[str(r.values.get("tested_on", usual))] = None
    return {line: tuple(rows) for line, rows in found.items() if rows != {"reserved": None}}


def _curve(records: Sequence[Record] | None) -> Sweep | None:
    return sweep(records, line=namer(records)) if records else None


def _ablation(records: Sequence[Record]) -> Grid | Sweep:
    # Ceilings are scored on the reserved rows; beside them, so are the heads.
    value = "score_reserved" if any(r.uses == LABELS for r in records) else None
    if any(r.x is not None for r in records):
        return sweep(records, value, line=namer(records))
    return gather(records, value, line=namer(records))


def _missing(standing: Standing | None, main: Sequence[Record]) -> int:
    there = {(r.head, r.held_out, r.trial) for r in main}
    return standing.grid.S.size - len(there) if standing else 0


def _failure(r: Record) -> Failure:
    return Failure(r.study, namer([r])(r), r.held_out, r.trial, r.x, r.reason)


def _conditions(records: Sequence[Record]) -> Conditions:
    main = [r for r in records if r.study == "main"]
    settled = [r for r in records if r.study in ("main", "ceiling")] or records
    heads = dict.fromkeys(r.head for r in settled)
    return Conditions(
        versions=_occurring(records, "version:"),
        settings=_occurring(records, "setting:"),
        features_of=_distinct(
            r.values.get("features_of") for r in records if r.features == "given"
        ),
        splits=_distinct(r.values.get("split") for r in records),
        tested_on=_distinct(r.values.get("tested_on") for r in main or records),
        options={h: _occurring([r for r in settled if r.head == h], "option:") for h in heads},
        trials=tuple(sorted({r.trial for r in records})),
        records=len(records),
        warnings=Counter(w for r in records for w in _warnings(r)),
        seconds=sum(r.seconds for r in records),
    )


def _distinct(values: Iterable[object]) -> tuple[str, ...]:
    """Each value once, numbers in their order and then text: trials finish in any order."""
    return tuple(sorted({str(v) for v in values if v is not None}, key=_order))


def _order(value: str) -> tuple[Any, ...]:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return math.isnan(number), 0.0 if math.isnan(number) else number, natural(value)


def _occurring(records: Sequence[Record], prefix: str) -> dict[str, tuple[str, ...]]:
    """Every value of every name that starts so."""
    names = dict.fromkeys(n for r in records for n in r.values if n.startswith(prefix))
    return {
        name.removeprefix(prefix): _distinct(r.values.get(name) for r in records) for name in names
    }


def _warnings(record: Record) -> list[str]:
    """The distinct messages of a trial, which its record holds in one text."""
    found = record.values.get("warnings")
    return str(found).split(" | ") if found else []
