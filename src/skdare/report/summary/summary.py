"""The summary: what the records of a run say, group by group; nothing is drawn or written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skdare.bench import Record
from skdare.bench._metrics import METRICS
from skdare.bench._record import ABLATION, LABELS, NETWORK
from skdare.report.summary.conditions import Conditions, conditions, occurring
from skdare.report.summary.grid import Grid, LineOf, Sweep, gather, sweep
from skdare.report.summary.main_study import MainStudy, main_study
from skdare.report.summary.published import Published

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


@dataclass(frozen=True, eq=False)
class SummaryGroup:
    """One data set under one protocol; a study that was not run is None, or absent.

    Parameters
    ----------
    data, protocol, task, metric : str
    main : MainStudy or None
    ceilings : Grid or None
        On the reserved rows; a line that used pretrained features says so.
    networks : Grid or None
        The network that made the features, on the domain it has not seen.
    other_rows : mapping from line of these two to the rows it was scored on
        Where they are not the reserved rows; "unknown" where the records do not say.
    curve : Sweep or None
        Against the number of labelled rows of the held-out domain.
    adjustment, alignment : Grid or None
        The paper's Tables 2 and 3.
    diagnostic_options : mapping from these two studies to option to the values that occur
    ablations : mapping from name to Grid, or to Sweep where a number was varied
    failures : tuple of Failure
    missing : int
        Trials that were planned and are not on record; or, where no plan is known, cells of the
        main table without one.
    conditions : Conditions
    own_names : mapping from head to str
        Heads that a user named, and what each was called before it was adapted, if it was.
    """

    data: str
    protocol: str
    task: str
    metric: str
    main: MainStudy | None
    ceilings: Grid | None
    networks: Grid | None
    other_rows: Mapping[str, tuple[str, ...]]
    curve: Sweep | None
    adjustment: Grid | None
    alignment: Grid | None
    diagnostic_options: Mapping[str, Mapping[str, tuple[str, ...]]]
    ablations: Mapping[str, Grid | Sweep]
    failures: tuple[Failure, ...]
    missing: int
    conditions: Conditions
    own_names: Mapping[str, str]

    @property
    def title(self) -> str:
        return f"{self.data}, {self.protocol} protocol"


@dataclass(frozen=True, eq=False)
class Summary:
    """Everything that the records of a run say, in groups of one data set and protocol each.

    Parameters
    ----------
    groups : tuple of SummaryGroup
    published : Published or None
        Figures to show beside those of the run.
    """

    groups: tuple[SummaryGroup, ...]
    published: Published | None = None


def summarise(
    records: Sequence[Record],
    unfinished: Mapping[tuple[str, str], int] | None = None,
    published: Published | None = None,
) -> Summary:
    """Summary of the records of any data sets, protocols and studies.

    Parameters
    ----------
    records : sequence of Record
        Groups are in order of appearance.
    unfinished : mapping from (data, protocol) to int, optional
        How many planned trials are not among the records, as `Log.unfinished` counts them.
    published : Published, optional
        Figures to show beside those of the run.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.data, record.protocol), []).append(record)
    missing = unfinished or {}
    summarised = tuple(_group(group, missing.get(key)) for key, group in groups.items())
    return Summary(summarised, published)


def _group(records: Sequence[Record], unfinished: int | None) -> SummaryGroup:
    studies: dict[str, list[Record]] = {}
    for record in records:
        studies.setdefault(record.study.removeprefix(ABLATION), []).append(record)
    main = studies.get("main", [])
    first = main[0] if main else records[0]
    diagnostics = {name: studies[name] for name in ("adjustment", "alignment") if name in studies}
    return SummaryGroup(
        data=first.data,
        protocol=first.protocol,
        task=first.task,
        metric=next((r.metric for r in [first, *records] if r.metric in METRICS), first.metric),
        main=main_study(main) if main else None,
        ceilings=_grid(studies.get("ceiling")),
        networks=_grid(studies.get(NETWORK)),
        other_rows=_other_rows([*studies.get("ceiling", []), *studies.get(NETWORK, [])]),
        curve=_curve(studies.get("curve")),
        adjustment=_grid(diagnostics.get("adjustment")),
        alignment=_grid(diagnostics.get("alignment")),
        diagnostic_options={name: occurring(r, "option:") for name, r in diagnostics.items()},
        ablations={name: _ablation(r) for name, r in studies.items() if name not in STUDIES},
        failures=tuple(_failure(r) for r in records if r.status == "failed"),
        missing=_missing(main) if unfinished is None else unfinished,
        conditions=conditions(records),
        own_names={r.head: r.values["adapted_from"] for r in records if "adapted_from" in r.values},
    )


def _line_of(records: Sequence[Record]) -> LineOf:
    """How lines of a study are named: the head, with what else sets it apart from others."""
    projections = len({r.values.get("option:projection") for r in records}) > 1

    def name(record: Record) -> str:
        projection = record.values.get("option:projection") if projections else None
        more = [f"{record.features} features"] if record.features != "given" else []
        more += [f"{projection} projection"] if projection else []
        return f"{record.head} ({', '.join(more)})" if more else record.head

    return name


def _grid(records: Sequence[Record] | None) -> Grid | None:
    return gather(records, line=_line_of(records)) if records else None


def _curve(records: Sequence[Record] | None) -> Sweep | None:
    return sweep(records, line=_line_of(records)) if records else None


def _ablation(records: Sequence[Record]) -> Grid | Sweep:
    # Ceilings are scored on the reserved rows; beside them, so are the heads.
    value = "score_reserved" if any(r.uses == LABELS for r in records) else None
    if any(r.x is not None for r in records):
        return sweep(records, value, line=_line_of(records))
    return gather(records, value, line=_line_of(records))


def _other_rows(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """The rows that lines were scored on, for lines with other rows than the reserved ones."""
    rows_of: dict[str, dict[str, None]] = {}
    for r in records:
        # Ceilings have always been scored on the reserved rows; older records do not say so.
        usual = "unknown" if r.study == NETWORK else "reserved"
        rows_of.setdefault(_line_of([r])(r), {})[str(r.values.get("tested_on", usual))] = None
    return {line: tuple(rows) for line, rows in rows_of.items() if rows != {"reserved": None}}


def _missing(main: Sequence[Record]) -> int:
    """Cells of the main table that no record fills."""
    heads = {r.head for r in main}
    domains = {r.held_out for r in main}
    trials = {r.trial for r in main}
    filled = {(r.head, r.held_out, r.trial) for r in main}
    return len(heads) * len(domains) * len(trials) - len(filled)


def _failure(r: Record) -> Failure:
    return Failure(r.study, _line_of([r])(r), r.held_out, r.trial, r.x, r.reason)
