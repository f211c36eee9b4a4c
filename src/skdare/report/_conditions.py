"""How a group was run, and what failed."""

from __future__ import annotations

from collections.abc import Iterator

from skdare.report._names import Naming
from skdare.report._numbers import count, duration
from skdare.report._part import Part
from skdare.report._standing import ROWS
from skdare.report._table import Table, row
from skdare.report.summary.groups import Failure, Group

SHOWN = 6  # values of one option that are listed
FEATURES = {
    "data": "one table for all",
    "held-out domain": "a table for each held-out domain",
    "trial": "a table for each held-out domain and trial",
}


def failure_parts(group: Group, label: Naming) -> Iterator[Part]:
    """Trials without a score, and why."""
    if not group.failures:
        return
    alike: dict[tuple[str, str, str], list[Failure]] = {}
    for f in group.failures:
        alike.setdefault((f.head, f.study, f.reason), []).append(f)
    rows = [
        row(label(head), [study, f"{len(found):,}", _listed(_domains(found)), reason])
        for (head, study, reason), found in alike.items()
    ]
    table = Table(
        "failures",
        f"{count(len(group.failures), 'failed trial')}",
        ("head", "study", "trials", "held out", "reason"),
        tuple(rows),
    )
    yield Part("Failures", "They count in no mean and no test.", (), (table,))


def condition_part(group: Group, label: Naming) -> Part:
    """Splits, versions, options and time."""
    found = group.conditions
    facts = [
        ("Protocol", group.protocol),
        ("Task", group.task),
        ("Trials", ", ".join(str(t) for t in found.trials)),
        ("Settings", ", ".join(f"{n} {' and '.join(v)}" for n, v in found.settings.items())),
        ("Features", "; ".join(FEATURES.get(of, of) for of in found.features_of)),
        ("Split", "; ".join(found.splits)),
        ("Tested on", ", ".join(ROWS.get(name, name) for name in found.tested_on)),
        ("Records", f"{found.records:,}, {count(len(group.failures), 'failure')}"),
        ("Warnings", f"{sum(found.warnings.values()):,}"),
        ("Time", f"{duration(found.seconds)} over all trials"),
        ("Versions", ", ".join(f"{n} {' and '.join(v)}" for n, v in found.versions.items())),
    ]
    known = tuple((term, text) for term, text in facts if text)
    tables = (*_options(group, label), *_warnings(group))
    return Part("How it was run", "", (), tables, known, folded=True)


def _options(group: Group, label: Naming) -> Iterator[Table]:
    """A row an option, so that one that differs between heads is seen."""
    options = {head: found for head, found in group.conditions.options.items() if found}
    names = dict.fromkeys(name for found in options.values() for name in found)
    if not names:
        return
    rows = [
        row(name, (_listed(found.get(name, ())) for found in options.values())) for name in names
    ]
    yield Table(
        "options",
        "Options of the heads, every value that occurs",
        ("option", *(label(head) for head in options)),
        tuple(rows),
        detail=True,
    )


def _warnings(group: Group) -> Iterator[Table]:
    found = group.conditions.warnings
    if found:
        rows = (row(message, [f"{n:,}"]) for message, n in found.items())
        yield Table("warnings", "Warnings", ("message", "trials"), tuple(rows), detail=True)


def _domains(failures: list[Failure]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f.held_out for f in failures))


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values[:SHOWN]) + (" …" if len(values) > SHOWN else "")
