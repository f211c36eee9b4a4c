"""Options that say what to learn from and how, and the study that they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare.cli._config import read_config
from skdare.cli._options import names
from skdare.cli._session import COLUMNS

if TYPE_CHECKING:
    from skdare.reproduce import Reproduction, Watcher

DTYPES = ("float32", "float16", "uint8")
CONFIG = click.option(
    "--config",
    callback=read_config,
    is_eager=True,
    expose_value=False,
    help="A TOML file with these options by name; the command line overrules it.",
)
QUIET = click.option("--quiet", is_flag=True, help="No progress.")
DEVICE = click.option(
    "--device", default="auto", show_default=True, help="cpu, cuda, cuda:1, or auto."
)
PRECISION = click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
    help="Of products inside the network; auto: bfloat16 on a GPU.",
)
DTYPE = click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default="float32",
    show_default=True,
    help="How features are kept; uint8: as 8-bit codes.",
)
SOURCE = [
    click.option(
        "--backbone",
        default="efficientnet-lite0",
        show_default=True,
        help="tiny, efficientnet-lite0 to 2, minilm, hf:FOLDER, timm:NAME or torchvision:NAME.",
    ),
    click.option(
        "--size",
        type=click.IntRange(1),
        help="Side of images, or tokens  [default: the network's]",
    ),
    click.option("--image-column", help="Of a table: paths of images."),
    click.option("--text-column", help="Of a table: texts."),
    click.option("--label-column", help="Of a table: labels."),
    click.option("--domain-column", help="Of a table: domains."),
    click.option("--skip-unreadable", is_flag=True, help="Leave out images that cannot be read."),
    click.option("--cache", help="Folder to keep decoded images in, and find them again."),
]
TRAINING = [
    click.option(
        "--trials",
        type=click.IntRange(1),
        default=3,
        show_default=True,
        help="Splits, each with networks of its own.",
    ),
    click.option("--held-out", callback=names, help="Domains to hold out, by commas."),
    click.option(
        "--ceilings/--no-ceilings",
        default=True,
        help="Also train on all domains, once a trial  [default: yes]",
    ),
    click.option(
        "--steps", type=click.IntRange(1), default=5001, show_default=True, help="Of Adam."
    ),
    click.option(
        "--check-every",
        type=click.IntRange(1),
        default=300,
        show_default=True,
        help="Steps from one checkpoint to the next.",
    ),
    click.option(
        "--draws",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Choices of hyperparameters for each network: those given, and random ones.",
    ),
    click.option("--lr", type=float, default=5e-5, show_default=True, help="Learning rate."),
    click.option(
        "--weight-decay", type=float, default=0.0, show_default=True, help="On all weights."
    ),
    click.option(
        "--batch", type=click.IntRange(1), default=32, show_default=True, help="Rows a domain."
    ),
    click.option(
        "--dropout", type=float, default=0.0, show_default=True, help="Before the last layer."
    ),
    click.option(
        "--augment/--no-augment",
        default=True,
        help="Random crops, flips and colours  [default: yes]",
    ),
    click.option("--flip/--no-flip", default=True, help="Flips among them  [default: yes]"),
    click.option("--aside", type=float, default=0.2, show_default=True, help="Share to validate."),
    click.option("--micro-batch", type=click.IntRange(1), help="Most rows at once in memory."),
    click.option(
        "--at-once",
        type=click.IntRange(1),
        help="Networks side by side  [default: 4 on a GPU, else 1]",
    ),
    PRECISION,
    DEVICE,
]


def asked_study(
    source: str, out: str | None, given: dict[str, Any], watcher: Watcher
) -> Reproduction:
    """What the options ask for; everything that can be checked without the data is checked."""
    from skdare.features.examples.source import ExampleSource
    from skdare.reproduce import Reproduction

    columns = {name: given[f"{name}_column"] for name in COLUMNS}
    if given.get("held_out") is not None:
        given["held_out"] = list(dict.fromkeys(given["held_out"]))
        if not given["held_out"]:
            raise ValueError("--held-out names no domain; name some, or leave it out for all")
    place = ExampleSource(
        source, **columns, skip_unreadable=given["skip_unreadable"], cache=given["cache"]
    )
    more = ("trials", "held_out", "ceilings", "at_once", "dtype")
    return Reproduction(
        Path(out or f"{name_of(source)}.run"),
        place,
        _placed(given["backbone"]),
        recipe_of(given),
        {} if given["size"] is None else {"size": given["size"]},
        device=given["device"],
        watcher=watcher,
        **{name: given[name] for name in more if given.get(name) is not None},
    )


def recipe_of(given: dict[str, Any]) -> Any:
    """The recipe that the options describe."""
    from skdare.features import Augmentation, Hyperparameters, Recipe

    if "steps" not in given:
        return Recipe(precision=given["precision"])
    hyper = {name: given[name] for name in ("lr", "weight_decay", "batch", "dropout")}
    augmentation = Augmentation(flip=0.5 if given["flip"] else 0.0)
    same = ("steps", "check_every", "draws", "aside", "micro_batch", "precision")
    return Recipe(
        augmentation=augmentation if given["augment"] else None,
        hyperparameters=Hyperparameters(**hyper),
        **{name: given[name] for name in same},
    )


def name_of(source: str) -> str:
    """What is made of a source is called after it."""
    path = Path(source).resolve()
    return path.name if path.is_dir() else path.name.split(".")[0] or path.name


def _placed(backbone: str) -> str:
    """The name of a backbone; where it is a folder, from wherever it is called later."""
    family, _, folder = backbone.partition(":")
    if family == "hf" and Path(folder).is_dir():
        return f"hf:{Path(folder).resolve()}"
    return backbone
