"""Figures that were published for the study of a run, to stand beside its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from skdare.persist import check_shape, read_json, whole_file

# Studies of a run that may have published figures.
STUDIES = ("main", "adjustment", "alignment")
_FILE = "published.json"
_LINES = {str: {str: float}}


@dataclass(frozen=True)
class Published:
    """Published figures of a study.

    Parameters
    ----------
    source : str
        Who published them.
    main, adjustment, alignment : mapping from line to held-out domain to number
        Means over trials as they are printed, so accuracies in percent. A line is a head, a guess
        of the adjustment, or "with adjustment" and "without adjustment".
    """

    source: str
    main: Mapping[str, Mapping[str, float]]
    adjustment: Mapping[str, Mapping[str, float]]
    alignment: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Published:
        """Figures as a TOML or JSON file has them; an error continues a sentence about it."""
        names = [field.name for field in fields(cls)]
        unknown = [name for name in settings if name not in names]
        if unknown:
            raise ValueError(f"has an unknown key `{unknown[0]}`; keys are {', '.join(names)}")
        complete = {**{study: {} for study in STUDIES}, **settings}
        check_shape(complete, {"source": str, **dict.fromkeys(STUDIES, _LINES)})
        return cls(**complete)

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

    def write(self, run_folder: str | os.PathLike[str]) -> None:
        """Keep the figures with the records of a run, where its report finds them."""
        folder = Path(run_folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        with whole_file(folder / _FILE) as file:
            file.write(json.dumps(settings, ensure_ascii=False, indent=1).encode())
