"""Options that `bench` and `ablate` share, and what they stand for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare.cli._bench_choices import (
    PROTOCOLS,
    SETTINGS,
    TASKS,
    TESTED_ON,
    TRIALS,
    VALIDATE_WITH,
    jobs,
    usual,
)
from skdare.cli._config import read_config
from skdare.cli._show import JSON
from skdare.cli._table_options import TABLE, option_name, spelled, table_keys
from skdare.cli._terminal import say

if TYPE_CHECKING:
    from skdare.bench import Data
    from skdare.datasets import DomainData


def names(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Names separated by commas."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Numbers separated by commas."""
    if value is None:
        return None
    try:
        return tuple(float(number) for number in str(value).split(",") if number.strip())
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not numbers separated by commas") from error


def _ridge(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """A rule, or a number."""
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        return str(value)


JOBS = click.option(
    "--jobs",
    type=click.IntRange(1),
    default=jobs,
    show_default="2, or 1 on one core",
    help="Trials at once, in threads; each has its share of BLAS threads.",
)
_SHARED = [
    click.argument("features", nargs=-1, required=True, metavar="FEATURES..."),
    click.option(
        "--config",
        callback=read_config,
        is_eager=True,
        expose_value=False,
        help="A TOML file with these options by name; the command line overrules it.",
    ),
    click.option("--out", help="Folder of the run  [default: NAME.bench]"),
    click.option("--name", help="What to call the data  [default: the file's name]"),
    click.option(
        "--protocol",
        type=click.Choice(PROTOCOLS),
        default=SETTINGS["protocol"],
        show_default=True,
        help="How heads are fitted: to tolerance with one ridge, or as in the paper.",
    ),
    click.option(
        "--trials",
        type=click.IntRange(1),
        help="Splits to run, the first so many  "
        f"[default: {TRIALS}, or those there are feature stores for]",
    ),
    click.option("--held-out", callback=names, help="Domains to hold out, by commas."),
    click.option(
        "--min-rows",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Leave out domains of fewer rows, in training too.",
    ),
    JOBS,
    click.option("--task", type=click.Choice(TASKS), help="What y is  [default: guessed]"),
    *TABLE,
    click.option("--impute", type=click.Choice(["median"]), help="Fill missing values."),
    click.option("--standardize/--no-standardize", help="By the training rows' mean and spread."),
    click.option("--clip", type=float, help="Limit standardised values to this."),
    click.option("--aside", type=float, help="Share of each domain set aside" + usual("aside")),
    click.option(
        "--test-on",
        type=click.Choice(TESTED_ON),
        help="Held-out rows that are scored: those set aside, the others, or both  "
        "[default: reserved for paper, else all]",
    ),
    click.option(
        "--l2",
        callback=_ridge,
        help="matched (chosen for ERM), own (for each head), or a number" + usual("l2"),
    ),
    click.option(
        "--l2-grid",
        callback=numbers,
        help="Strengths to choose from, by commas" + usual("l2_grid"),
    ),
    click.option(
        "--set",
        multiple=True,
        metavar="HEAD.OPTION=VALUE",
        help="An option of a head, such as dare.shrinkage=0.5; may be repeated.",
    ),
    click.option("--pretrained", multiple=True, help="Features before fine-tuning, for ceilings."),
    click.option("--step", type=float, help="paper: length of each L-BFGS step" + usual("step")),
    click.option("--inner", type=int, help="paper: iterations an epoch" + usual("inner")),
    click.option("--patience", type=int, help="paper: epochs without a gain" + usual("patience")),
    click.option(
        "--validate-with",
        type=click.Choice(VALIDATE_WITH),
        help="paper: whose adjustment scores validation rows" + usual("validate_with"),
    ),
    click.option("--retry-failed", is_flag=True, help="Run again what failed before."),
    JSON,
    click.option("--quiet", is_flag=True, help="No progress."),
]


def shared_options(command: Callable) -> Callable:
    """Add the options that every run has."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


def tables(places: Sequence[str], given: dict[str, Any]) -> Data:
    """One table, one for each held-out domain (DOMAIN=PATH), or one for each trial too."""
    keys = table_keys(given)
    # A path may hold an equals sign of its own.
    pairs = [("", place) if Path(place).exists() else place.split("=", 1) for place in places]
    named = [pair for pair in pairs if len(pair) == 2 and pair[0]]
    if not named and len(places) == 1:
        reader = _read_stores if _has_stores(places[0]) else read_table
        return reader(places[0], keys)
    if len(named) != len(places):
        raise ValueError(
            f"{len(places)} files are given; name the held-out domain of each, as in art=a.npz"
        )
    return {domain: read_table(path, keys) for domain, path in named}


def _has_stores(place: str) -> bool:
    """Whether a path is no table, but a folder of feature stores."""
    from skdare.datasets._hugging_face import is_hugging_face
    from skdare.datasets._manifest import MANIFEST

    path = Path(place)
    return path.is_dir() and not (path / MANIFEST).exists() and not is_hugging_face(path)


def _read_stores(place: str, keys: dict[str, str | None]) -> Data:
    given = [key for key, value in keys.items() if value is not None]
    if given:
        raise ValueError(
            f"{option_name(given[0])} is given, but the feature stores in {place} know what is "
            "what; leave it out"
        )
    from skdare.datasets import read_fine_tuned

    return read_fine_tuned(place)


def read_table(path: str, keys: dict[str, str | None], *, streamed: bool = False) -> DomainData:
    """A table; advice about arguments is given in the words of the command line."""
    from skdare.datasets import read, stream_table

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            table = (stream_table if streamed else read)(path, **keys)
        except ValueError as error:
            raise ValueError(spelled(error)) from error
    for warning in heard:
        say(f"note: {spelled(warning.message)}", err=True)
    return table


def asked(given: dict[str, Any]) -> dict[str, Any]:
    """What the options ask of a plan; the features are read here."""
    from skdare.bench import Settings

    settings = {f.name: given[f.name] for f in fields(Settings) if given.get(f.name) is not None}
    found = {name: given[name] for name in ("trials", "name", "task", "held_out", "min_rows")}
    found |= {"settings": Settings(**settings), "options": head_options(given["set"])}
    found["data"] = tables(given["features"], given)
    if given["pretrained"]:
        found["pretrained"] = tables(given["pretrained"], given)
    # Several files have a folder in common, and no name; several stores are read under theirs.
    first = given["features"][0]
    if given["name"] is None and isinstance(found["data"], dict) and not _has_stores(first):
        folder = Path(first.split("=", 1)[1]).resolve().parent
        found["name"] = folder.name or None
    return found


def head_options(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``HEAD.OPTION=VALUE`` as options by head."""
    found: dict[str, dict[str, Any]] = {}
    for item in given:
        name, equals, value = item.partition("=")
        head, dot, option = name.partition(".")
        if not (equals and dot and head and option):
            raise ValueError(f"--set {item!r} is not HEAD.OPTION=VALUE, as in dare.shrinkage=0.5")
        found.setdefault(head, {})[option] = _value(value)
    return found


def set_options(head: Any, given: Sequence[str]) -> dict[str, Any]:
    """``OPTION=VALUE`` as options of one head."""
    for item in given:
        if "=" not in item:
            raise ValueError(f"--set {item!r} is not OPTION=VALUE; write shrinkage=0.5")
    options = head_options([f"head.{item}" for item in given]).get("head", {})
    known = sorted(head.get_params())
    for name in options:
        if name not in known:
            raise ValueError(f"--set: the head has no option {name!r}; it has {', '.join(known)}")
    return options


def named_scores(option: str, given: Sequence[str]) -> dict[str, float]:
    """``DOMAIN=SCORE`` as scores by domain; above one they are percent."""
    found = {}
    for item in given:
        name, _, value = item.rpartition("=")
        try:
            score = float(value)
        except ValueError:
            score = float("nan")
        if not name or not 0 <= score <= 100:
            raise ValueError(f"{option} {item!r} is not DOMAIN=SCORE, as in art=95.4")
        found[name] = score / 100 if score > 1 else score
    return found


def _value(text: str) -> Any:
    """A number, a switch, none, or text."""
    switches = {"true": True, "false": False, "none": None}
    if text.lower() in switches:
        return switches[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
