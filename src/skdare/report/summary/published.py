"""Figures that were published for the study of a run, to stand beside its own."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from skdare.bench._diagnostics import ALIGNMENTS, GUESSES
from skdare.bench._heads import HEADS
from skdare.persist import check_keys, check_shape, read_json, whole_file

# Lines that may have figures, by study.
_LINES = {"main": tuple(HEADS), "adjustment": GUESSES, "alignment": ALIGNMENTS}
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
                    if not math.isfinite(value):
                        raise ValueError(
                            f"has {study}.{line}.{domain} {value}; leave out what is not known"
                        )
        return cls(**settings)

    @property
    def domains(self) -> list[str]:
        """Held-out domains that have figures."""
        studies = (self.main, self.adjustment, self.alignment)
        lines = [figures for study in studies for figures in study.values()]
        return list(dict.fromkeys(domain for figures in lines for domain in figures))

    @classmethod
    def read(cls, run_folder: str | os.PathLike[str]) -> Published | None:
        """Figures that were kept with a run; None where there are none."""
        path = Path(run_folder) / _FILE
        if not path.exists():
            return None
        remedy = "remove it, or run the study again"
        settings = read_json(path, remedy=remedy)
        try:
            return cls.of(settings)
        except ValueError as error:
            what = str(error).partition("; ")[0]
            raise ValueError(f"{path} {what}; {remedy}") from error


def keep(published: Published | None, run_folder: str | os.PathLike[str]) -> None:
    """Write the figures beside the records of a run for its reports, or remove earlier ones."""
    path = Path(run_folder) / _FILE
    if published is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {field.name: getattr(published, field.name) for field in fields(published)}
    with whole_file(path) as file:
        file.write(json.dumps(settings, ensure_ascii=False, indent=1).encode())
