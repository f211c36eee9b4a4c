"""Figures that were published for a study, to be compared with those of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from skdare.errors import InputError
from skdare.features.json_file import check_keys, check_shape, read_json
from skdare.files import whole_file
from skdare.paper.diagnostics import ALIGNMENTS, GUESSES
from skdare.paper.protocol import HEADS

# Lines that may have figures, by study, and what they can be: accuracies in percent, errors, and
# cosines.
_LINES = {"main": tuple(HEADS), "adjustment": GUESSES, "alignment": ALIGNMENTS}
_ENDS = {"main": (0.0, 100.0), "adjustment": (0.0, math.inf), "alignment": (-1.0, 1.0)}
_FILE = "published.json"

Figures = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Published:
    """Published figures of a study.

    Parameters
    ----------
    source : str
        Who published them.
    main : mapping from head to held-out domain to number
        Means over trials as they are printed, so accuracies in percent.
    adjustment : mapping, the same for "averaged adjustment" and "averaged scalar"
        Errors of the guessed adjustment.
    alignment : mapping, the same for "with adjustment" and "without adjustment"
        Cosines of the classifiers of single domains.
    """

    source: str
    main: Figures = field(default_factory=dict)
    adjustment: Figures = field(default_factory=dict)
    alignment: Figures = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Published:
        """Figures as a TOML or JSON file has them; errors are worded to follow its name."""
        check_keys(settings, [field.name for field in fields(cls)])
        studies = {study: {str: {str: float}} for study in _LINES if study in settings}
        check_shape(settings, {"source": str, **studies})
        for study in studies:
            check_keys(settings[study], _LINES[study], study)
            for line, figures in settings[study].items():
                for domain, value in figures.items():
                    _check_figure(f"{study}.{line}.{domain}", value, *_ENDS[study])
        published = cls(**settings)
        if not published.source.strip():
            raise ValueError("has an empty source; say who published the figures")
        if not published.domains:
            raise ValueError(f"has no figures; give some in {', '.join(_LINES)}, or leave it out")
        accuracies = [value for line in published.main.values() for value in line.values()]
        if accuracies and max(accuracies) <= 1:
            raise ValueError("has shares in main; give accuracies in percent")
        return published

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Studies, and the lines that have figures in them."""
        return [(study, line) for study in _LINES for line in getattr(self, study)]

    @property
    def domains(self) -> list[str]:
        """Held-out domains that have figures."""
        figures = [getattr(self, study)[line] for study, line in self.lines]
        return list(dict.fromkeys(domain for line in figures for domain in line))

    def mean(self, study: str, line: str, domains: Sequence[str]) -> Decimal:
        """Mean over held-out domains as it would be by hand; NaN if a figure is not known."""
        figures = getattr(self, study).get(line, {})
        known = [Decimal(repr(figures.get(domain, math.nan))) for domain in domains]
        return sum(known, Decimal(0)) / len(known)

    @classmethod
    def read(cls, run_folder: str | Path) -> Published | None:
        """Figures that were kept with the records of a run; None without them."""
        path = Path(run_folder) / _FILE
        if not path.exists():
            return None
        remedy = "remove it, or run the study again"
        try:
            return cls.of(read_json(path, remedy=remedy))
        except ValueError as error:
            what = str(error).partition("; ")[0]
            raise InputError(f"{path} {what}", remedy) from error

    def keep(self, run_folder: str | Path) -> None:
        """Keep the figures with the records of a run."""
        with whole_file(Path(run_folder) / _FILE) as file:
            file.write(json.dumps(asdict(self), ensure_ascii=False, indent=1).encode())


def _check_figure(name: str, value: float, lowest: float, highest: float) -> None:
    """Refuse a figure that is not finite, or not between the ends of what can be."""
    if not math.isfinite(value):
        raise ValueError(f"has {name} {value}; leave out what is not known")
    if not lowest <= value <= highest:
        ends = (
            f"from {lowest:g} to {highest:g}" if math.isfinite(highest) else f"at least {lowest:g}"
        )
        raise ValueError(f"has {name} {value:g}; it must be {ends}")
