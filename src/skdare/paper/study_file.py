"""The file of a study: how its networks are trained, where its images lie, what others measured."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from skdare.errors import InputError, listed, unknown
from skdare.features.examples.layout import Layout
from skdare.features.json_file import check_shape
from skdare.paper.published import Published

# What a study's file may set, and the type of it.
_SHAPE: dict[str, Any] = {
    "backbone": str,
    "size": int,
    "trials": int,
    "draws": int,
    "steps": int,
    "check-every": int,
    "lr": float,
    "flip": bool,
    "batch-exponents": list,
    "shrinkage": float,
    "dtype": str,
    "ablations": str,
    "source": str,
    "data": dict,
    "published": dict,
}


def embedded_studies() -> dict[str, Path]:
    """Files of the embedded studies by their names."""
    folder = Path(str(files("skdare.paper").joinpath("studies")))
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


@dataclass(frozen=True, eq=False)
class StudyFile:
    """What a TOML file says of a study.

    Parameters
    ----------
    name : str
    settings : mapping
        Options of the run, by their names in the file.
    layout : Layout, optional
        What its images are like on disk.
    published : Published, optional
        What others measured on them.
    """

    name: str
    settings: Mapping[str, Any]
    layout: Layout | None
    published: Published | None

    @classmethod
    def read(cls, name: str) -> StudyFile:
        """An embedded study by its name, or one in a file of one's own."""
        embedded = embedded_studies()
        path = embedded.get(name, Path(name))
        if name not in embedded and path.suffix != ".toml":
            raise unknown("study", name, list(embedded))
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"'{name}' is not TOML: {error}", "correct it") from error
        for key in settings:
            if key not in _SHAPE:
                raise unknown("option of a study", key, list(_SHAPE))
        try:
            check_shape(settings, {key: _SHAPE[key] for key in settings})
        except ValueError as error:
            raise InputError(f"'{name}' {error}", "correct it") from error
        layout = _table(name, "data", settings, Layout.of)
        published = _table(name, "published", settings, Published.of)
        if published is not None and layout is not None:
            for domain in published.domains:
                if domain not in layout.domains:
                    raise InputError(
                        f"`published` in '{name}' has figures of `{domain}`, which is no domain",
                        f"domains are {listed(layout.domains)}",
                    )
        return cls(path.stem, settings, layout, published)


def _table(name: str, key: str, settings: Mapping[str, Any], parse: Any) -> Any:
    """What a table of the study says; None where it has none."""
    if key not in settings:
        return None
    try:
        return parse(settings[key])
    except ValueError as error:
        what, _, remedy = str(error).partition("; ")
        raise InputError(f"`{key}` in '{name}' {what}", remedy) from error
