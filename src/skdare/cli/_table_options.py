"""Options that say what is what in a table of features."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import click

FEATURE_KEY = click.option(
    "--feature-key", help="Key or columns of the features (a comma list, a glob)."
)
SPREADSHEET_SAFE = click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="In CSV, an apostrophe before text that a spreadsheet would run (=, +, -, @).",
)
TABLE = [
    FEATURE_KEY,
    click.option("--target", help="Key or column of the target."),
    click.option("--domains", help="Key or column of the domain labels."),
    click.option("--split", help="Key or column that marks the rows set aside in trial 0."),
]
# Where all rows are used, and a split is only no feature.
WITHOUT_SPLIT = [*TABLE[:-1], click.option("--split", help="Key or column to leave unused.")]


def table_options(command: Callable) -> Callable:
    """Add them all."""
    return with_options(TABLE)(command)


def with_options(options: Sequence) -> Callable:
    """Add options, in this order."""

    def decorated(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


KEYS = ("features", "target", "domains", "split")


def option_name(key: str) -> str:
    """What a key of the features is called on the command line."""
    return "--feature-key" if key == "features" else f"--{key}"


def spelled(message: object) -> str:
    """Advice about arguments of `read` in the words of the command line."""
    text = str(message)
    for key in (*KEYS, "id"):
        option = option_name(key)
        text = re.sub(rf"\b{key}=(?=['\"])", f"{option} ", text)
        text = re.sub(rf"\b{key}=", option, text)
    return text


def table_keys(given: dict[str, Any]) -> dict[str, str | None]:
    """What those options say, by the arguments of `read`."""
    keys = {key: given[key] for key in ("target", "domains", "split")}
    return {"features": given["feature_key"], **keys}
