"""Findings about a table: what is odd, how grave it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

LEVELS = ("problem", "caution", "note")
"""From the gravest: results will be wrong; results may mislead; good to know."""

_NAMED = 4


@dataclass(frozen=True)
class DataFinding:
    """Something odd about a table, and its remedy.

    Parameters
    ----------
    name : str
        What kind of finding it is, in one or two words.
    level : "problem", "caution" or "note"
        Results will be wrong; results may mislead; good to know.
    text : str
        What was found, with the names of columns and domains.
    remedy : str
        What to do about it.
    columns : tuple of str
        All features that it is about.
    domains : tuple of str
        All domains that it is about.
    rows : tuple of int
        Rows that the text names, counted from 0.
    """

    name: str
    level: str
    text: str
    remedy: str
    columns: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Fields of the finding, ready for JSON."""
        return asdict(self)


def some(names: Sequence[Any]) -> str:
    """The first few names in quotes, and how many more there are."""
    quoted = [repr(str(name)) for name in names[:_NAMED]]
    more = len(names) - len(quoted)
    if more:
        return f"{', '.join(quoted)} and {more:,} more"
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def columns_of(names: Sequence[Any]) -> str:
    """Such as "column 'age'", or "columns 'age' and 'sex'"."""
    return f"column{'s' * (len(names) != 1)} {some(names)}"


def domains_of(names: Sequence[Any]) -> str:
    """Such as "domain 'a'", or "domains 'a' and 'b'"."""
    return f"domain{'s' * (len(names) != 1)} {some(names)}"


def other_target(y: np.ndarray) -> str:
    """What to do about a target that names rows."""
    or_numbers = ", or give task='regression'" if y.dtype.kind in "iuf" else ""
    return f"name another column with target={or_numbers}"


def significant(value: float) -> str:
    """Three digits of a number that matter."""
    return f"{value:.3g}".replace("-", "−")


def percentage(share: float) -> str:
    """A share in percent; small ones are not rounded to none."""
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def gravest_first(findings: Iterable[DataFinding]) -> tuple[DataFinding, ...]:
    """Findings by level; those of one level stay in order."""
    return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))
