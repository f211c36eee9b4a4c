"""How a group was run, and what failed."""

from __future__ import annotations

from collections.abc import Iterator

from skdare._safe_text import counted
from skdare.report._document import SectionPart
from skdare.report._names import FEATURES, ROWS, Naming
from skdare.report._numbers import duration
from skdare.report._table import Table, row
from skdare.report.summary.summary import Failure, SummaryGroup

SHOWN = 6  # values of one option that are listed


def failure_parts(group: SummaryGroup, label: Naming) -> Iterator[SectionPart]:
    """Trials without a score, and why."""
    if not group.failures:
        return
    alike: dict[tuple[str, str, str], list[Failure]] = {}
    for f in group.failures:
        alike.setdefault((f.head, f.study, f.reason), []).append(f)
    rows = [
        row(label(head), [study, f"{len(failures):,}", _listed(_domains(failures)), reason])
        for (head, study, reason), failures in alike.items()
    ]
    table = Table(
        "failures",
        counted(len(group.failures), "failed trial"),
        ("head", "study", "trials", "held out", "reason"),
        tuple(rows),
    )
    text = "Failed trials are left out of every mean and test."
    yield SectionPart("Failures", text, (), (table,), folded=True)


def condition_part(group: SummaryGroup, label: Naming) -> SectionPart:
    """Splits, versions, options and time."""
    conditions = group.conditions
    facts = [
        ("Protocol", group.protocol),
        ("Task", group.task),
        ("Trials", ", ".join(str(t) for t in conditions.trials)),
        ("Settings", ", ".join(f"{n} {' and '.join(v)}" for n, v in conditions.settings.items())),
        ("Features", "; ".join(FEATURES.get(of, of) for of in conditions.features_of)),
        ("Split", "; ".join(conditions.splits)),
        ("Tested on", ", ".join(ROWS.get(name, name) for name in conditions.tested_on)),
        ("Records", f"{conditions.records:,}, {counted(len(group.failures), 'failure')}"),
        ("Warnings", f"{sum(conditions.warnings.values()):,}"),
        ("Time", f"{duration(conditions.seconds)} over all trials"),
        ("Versions", ", ".join(f"{n} {' and '.join(v)}" for n, v in conditions.versions.items())),
    ]
    stated = tuple((term, text) for term, text in facts if text)
    tables = (*_options(group, label), *_warnings(group))
    return SectionPart("How it was run", "", (), tables, stated, folded=True)


def _options(group: SummaryGroup, label: Naming) -> Iterator[Table]:
    """A row for each option, so that one that differs between heads stands out."""
    options = {head: values for head, values in group.conditions.options.items() if values}
    names = dict.fromkeys(name for values in options.values() for name in values)
    if not names:
        return
    rows = [
        row(name, (_listed(values.get(name, ())) for values in options.values())) for name in names
    ]
    yield Table(
        "options",
        "Options of the heads, every value that occurs",
        ("option", *(label(head) for head in options)),
        tuple(rows),
        detail=True,
    )


def _warnings(group: SummaryGroup) -> Iterator[Table]:
    warnings = group.conditions.warnings
    if warnings:
        rows = (row(message, [f"{n:,}"]) for message, n in warnings.items())
        yield Table("warnings", "Warnings", ("message", "trials"), tuple(rows), detail=True)


def _domains(failures: list[Failure]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f.held_out for f in failures))


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values[:SHOWN]) + (" …" if len(values) > SHOWN else "")
