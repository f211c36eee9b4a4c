"""A table of features: options that say what is what in it, and reading it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skdare.cli._errors import notes

if TYPE_CHECKING:
    from skdare.datasets import DomainData

FEATURE_KEY = click.option(
    "--feature-key", help="Key or columns of the features (a comma list, a glob)."
)
SPREADSHEET_SAFE = click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="In CSV, an apostrophe before text that a spreadsheet would run (=, +, -, @).",
)
GROUPS = click.option(
    "--groups",
    help="Key or column that says which patient, song or specimen a row is of: "
    "never trained on and scored.",
)
TABLE = [
    FEATURE_KEY,
    click.option("--target", help="Key or column of the target; beside arrays, also a .npy file."),
    click.option("--domains", help="Key or column of the domain labels; or a .npy file."),
    click.option("--split", help="Key or column that marks the rows set aside in trial 0."),
]
# Where all rows are used, and a split is named only so that it is not taken for a feature.
WITHOUT_SPLIT = [*TABLE[:-1], click.option("--split", help="Key or column to leave unused.")]
DROP_MISSING = click.option(
    "--drop-missing", is_flag=True, help="Leave out rows without a label or a domain."
)
# Names of columns that say what rows are of.
_OF_GROUPS = (
    *("unit", "patient", "patient_id", "subject", "subject_id", "participant", "person", "user"),
    *("animal", "specimen", "sample_id", "song", "recording", "speaker"),
)


def option_name(key: str) -> str:
    """Option that stands for a key of `table_keys`."""
    return "--feature-key" if key == "features" else f"--{key}"


def table_keys(options: dict[str, Any]) -> dict[str, str | None]:
    """Values of these options, by the arguments of `skdare.datasets.read`."""
    keys = {key: options[key] for key in ("target", "domains", "split")}
    if options.get("groups") is not None:
        keys["groups"] = options["groups"]
    return {"features": options["feature_key"], **keys}


def column_of_groups(path: str, keys: dict[str, str | None]) -> str | None:
    """The column that by its name says which patient or specimen a row is of, if there is one.

    In a table of columns only text is taken for it: numbers there are features.
    """
    from skdare.datasets._formats import open_stream

    contents = open_stream(path, lambda name: False)
    for name, entry in contents.entries.items():
        free = name not in keys.values() and len(entry.shape) == 1
        if free and name.lower() in _OF_GROUPS and not (contents.tabular and entry.numeric):
            return name
    return None


def read_table(
    path: str, keys: dict[str, str | None], *, streamed: bool = False, missing: str = "refuse"
) -> DomainData:
    """Table of features in a file, or a stream over it; warnings become notes."""
    from skdare.datasets import read, stream_table

    with notes():
        if streamed:
            return stream_table(path, **keys)
        return read(path, **keys, missing=missing)
