"""Options that several commands share, and what those of `bench` and `ablate` stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from skdare._input_error import InputError
from skdare.cli._bench_choices import (
    METRICS,
    PROTOCOLS,
    SETTINGS,
    TASKS,
    TESTED_ON,
    TRIALS,
    VALIDATE_WITH,
    jobs,
    usual,
)
from skdare.cli._config import CONFIG
from skdare.cli._output import JSON, QUIET
from skdare.cli._table_check import check_target, say_findings, standardizes
from skdare.cli._tables import DROP_MISSING, GROUPS, TABLE, option_name, read_table, table_keys
from skdare.cli._training_rows import PREPARATION

if TYPE_CHECKING:
    from skdare.bench._feature_set import Data


def names(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Split a comma list of names."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Split a comma list of numbers."""
    if value is None:
        return None
    try:
        return tuple(float(number) for number in str(value).split(",") if number.strip())
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not numbers separated by commas") from error


def _ridge(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Number, or the name of a rule."""
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
METRIC = click.option(
    "--metric",
    "metrics",
    callback=names,
    help="What to score by, by commas, the first to compare by: "
    f"{', '.join(METRICS)}  [default: accuracy, or r2]",
)
CLASS_WEIGHT = click.option(
    "--class-weight",
    type=click.Choice(["balanced"]),
    help="balanced: all classes count the same in the loss.",
)
_SHARED = [
    click.argument("features", nargs=-1, required=True, metavar="FEATURES..."),
    CONFIG,
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
        help="How many splits to run  "
        f"[default: {TRIALS}, or as many as there are feature stores for]",
    ),
    click.option("--held-out", callback=names, help="Domains to hold out, a comma list."),
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
    GROUPS,
    DROP_MISSING,
    *PREPARATION,
    METRIC,
    CLASS_WEIGHT,
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
        help="Strengths to choose from, a comma list" + usual("l2_grid"),
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
    click.option(
        "--details", is_flag=True, help="Also print tests, ceilings and geometry, as in the report."
    ),
    QUIET,
]


def with_options(options: Sequence[Callable]) -> Callable:
    """Decorator that adds these options to a command, in this order."""

    def decorated(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


shared_options = with_options(_SHARED)


def is_given(name: str) -> bool:
    """Whether the running command was given this option, on its command line or in a file."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


def plan_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a plan that the options stand for; the features are read here."""
    from skdare.bench import Settings
    from skdare.bench._feature_set import without_small_domains
    from skdare.datasets import DomainData

    given = {f.name: options[f.name] for f in fields(Settings) if options.get(f.name) is not None}
    if "metrics" in given:
        given["metrics"] = tuple(given["metrics"])
    settings = Settings(**given)
    arguments = {name: options[name] for name in ("trials", "name", "task", "held_out", "min_rows")}
    arguments["options"] = head_options(options["set"])
    data = _tables(options["features"], options)
    table = data if isinstance(data, DomainData) else next(iter(data.values()))
    quiet = options["quiet"]
    check_target(table.y, options["task"])
    first = options["features"][0]
    if not quiet:
        place = first if Path(first).exists() else first.split("=", 1)[-1]
        known = None if _has_stores(place) else place
        large = without_small_domains(table, options["min_rows"])
        whole = large is table and not options["drop_missing"]
        say_findings(large, options, known, whole=whole)
    # The paper's features come from one network, and its protocol takes them as they are.
    if settings.protocol != "paper":
        settings = replace(settings, standardize=standardizes(options, table.X, quiet=quiet))
    arguments |= {"data": data, "settings": settings}
    if options["pretrained"]:
        arguments["pretrained"] = _tables(options["pretrained"], options)
    # Several files have no name in common but that of their folder; stores are read under theirs.
    if options["name"] is None and isinstance(arguments["data"], dict) and not _has_stores(first):
        folder = Path(first.split("=", 1)[1]).resolve().parent
        arguments["name"] = folder.name or None
    return arguments


def _tables(places: Sequence[str], options: dict[str, Any]) -> Data:
    """One table, one for each held-out domain (DOMAIN=PATH), or one for each trial too."""
    keys = table_keys(options)
    missing = "drop" if options["drop_missing"] else "refuse"
    # A path may hold an equals sign of its own.
    pairs = [("", place) if Path(place).exists() else place.split("=", 1) for place in places]
    named = [pair for pair in pairs if len(pair) == 2 and pair[0]]
    if not named and len(places) == 1:
        if _has_stores(places[0]):
            return _read_stores(places[0], keys)
        return read_table(places[0], keys, missing=missing)
    if len(named) != len(places):
        raise InputError(
            f"{len(places)} files are given", "name the held-out domain of each, as in art=a.npz"
        )
    return {domain: read_table(path, keys, missing=missing) for domain, path in named}


def _has_stores(place: str) -> bool:
    """Whether a path is a folder of feature stores, and not a table itself."""
    from skdare.datasets._hugging_face import is_hugging_face
    from skdare.datasets._manifest import MANIFEST

    path = Path(place)
    return path.is_dir() and not (path / MANIFEST).exists() and not is_hugging_face(path)


def _read_stores(place: str, keys: dict[str, str | None]) -> Data:
    from skdare.datasets import read_fine_tuned

    for key, value in keys.items():
        if value is not None:
            raise InputError(
                f"{option_name(key)} is given, but the feature stores in {place} already say "
                "which columns are which",
                "leave it out",
            )
    return read_fine_tuned(place)


def head_options(items: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options by head, from items such as ``HEAD.OPTION=VALUE``."""
    options: dict[str, dict[str, Any]] = {}
    for item in items:
        name, equals, value = item.partition("=")
        head, dot, option = name.partition(".")
        if not (equals and dot and head and option):
            raise InputError(
                f"--set {item!r} is not HEAD.OPTION=VALUE", "write it as in dare.shrinkage=0.5"
            )
        options.setdefault(head, {})[option] = _value(value)
        if head.startswith("dare-cv") and option in ("strategies", "l2", "shrinkage"):
            options[head][option] = tuple(map(_value, value.split(",")))
    return options


def set_options(head: Any, items: Sequence[str]) -> dict[str, Any]:
    """Options of one head, from items such as ``OPTION=VALUE``."""
    parameters = sorted(head.get_params())
    options = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"--set {item!r} is not OPTION=VALUE", "write it as in shrinkage=0.5")
        if name not in parameters:
            raise InputError(
                f"--set: the head has no option {name!r}", f"it has {', '.join(parameters)}"
            )
        options[name] = _value(value)
        if name == "strategies" or isinstance(head.get_params()[name], tuple):  # of a search
            options[name] = tuple(map(_value, value.split(",")))
    return options


def named_scores(option: str, items: Sequence[str]) -> dict[str, float]:
    """Scores by domain, from items such as ``DOMAIN=SCORE``; above one they are percent."""
    scores = {}
    for item in items:
        name, _, value = item.rpartition("=")
        try:
            score = float(value)
        except ValueError:
            score = float("nan")
        if not name or not 0 <= score <= 100:
            raise InputError(f"{option} {item!r} is not DOMAIN=SCORE", "write it as in art=95.4")
        scores[name] = score / 100 if score > 1 else score
    return scores


def _value(text: str) -> Any:
    """Number, true, false or none that a text stands for, or the text itself."""
    switches = {"true": True, "false": False, "none": None}
    if text.lower() in switches:
        return switches[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
