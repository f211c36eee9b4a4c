"""Options of a study: what to learn from, and how to train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare.cli._options import names
from skdare.cli._session import COLUMNS

if TYPE_CHECKING:
    from skdare.features.examples.layout import Layout
    from skdare.reproduce import Reproduction, Watcher

DTYPES = ("float32", "float16", "uint8")
DEVICE = click.option(
    "--device", default="auto", show_default=True, help="cpu, cuda, cuda:1, or auto."
)
PRECISION = click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
    help="Precision inside the network; auto: bfloat16 on a GPU.",
)
DTYPE = click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default="float32",
    show_default=True,
    help="How features are stored; uint8: as 8-bit codes.",
)
NORM_STATS = click.option(
    "--norm-stats",
    type=click.Choice(["network", "domain"]),
    default="network",
    show_default=True,
    help="Statistics of batch norms: the network's own, or of each domain's rows.",
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
    click.option(
        "--bottleneck",
        type=click.IntRange(1),
        metavar="K",
        help="Fewer features: K, by a linear layer trained with the network, random before.",
    ),
    click.option("--image-column", help="Column of a table with paths of images."),
    click.option("--text-column", help="Column of a table with texts."),
    click.option("--label-column", help="Column of a table with labels."),
    click.option("--domain-column", help="Column of a table with domains."),
    click.option("--skip-unreadable", is_flag=True, help="Leave out images that cannot be read."),
    click.option("--cache", help="Folder for decoded images, to read them again quickly."),
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
        "--steps", type=click.IntRange(1), default=5001, show_default=True, help="Steps of Adam."
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
    click.option(
        "--batch-exponents",
        type=float,
        nargs=2,
        default=(3.0, 5.5),
        show_default=True,
        help="Random ones have a batch of 2 to a power between these.",
    ),
    click.option("--lr", type=float, default=5e-5, show_default=True, help="Learning rate."),
    click.option(
        "--weight-decay", type=float, default=0.0, show_default=True, help="Decay of all weights."
    ),
    click.option(
        "--batch",
        type=click.IntRange(1),
        default=32,
        show_default=True,
        help="Rows of each domain in a batch.",
    ),
    click.option(
        "--dropout",
        type=float,
        default=0.0,
        show_default=True,
        help="Dropout before the last layer.",
    ),
    click.option(
        "--augment/--no-augment",
        default=True,
        help="Random crops, flips and colours  [default: yes]",
    ),
    click.option("--flip/--no-flip", default=True, help="Flips among these  [default: yes]"),
    click.option(
        "--aside", type=float, default=0.2, show_default=True, help="Share of rows to validate on."
    ),
    click.option("--micro-batch", type=click.IntRange(1), help="Most rows at once in memory."),
    click.option(
        "--at-once",
        type=click.IntRange(1),
        help="Networks side by side  [default: 4 on a GPU, else 1]",
    ),
    PRECISION,
    DEVICE,
]


def reproduction_of(
    source: str,
    out: str | None,
    options: dict[str, Any],
    watcher: Watcher,
    layout: Layout | None = None,
) -> Reproduction:
    """The study that the options describe, checked as far as that needs no data."""
    from skdare.features.examples.source import ExampleSource
    from skdare.reproduce import Reproduction

    columns = {name: options[f"{name}_column"] for name in COLUMNS}
    if options.get("held_out") is not None:
        options["held_out"] = list(dict.fromkeys(options["held_out"]))
        if not options["held_out"]:
            raise ValueError("--held-out names no domain; name one, or leave it out for all")
    place = ExampleSource(
        source,
        **columns,
        skip_unreadable=options["skip_unreadable"],
        cache=options["cache"],
        layout=layout,
    )
    optional = ("trials", "held_out", "ceilings", "at_once", "dtype", "norm_stats")
    return Reproduction(
        Path(out or f"{name_of(source)}.run"),
        place,
        _with_full_path(options["backbone"]),
        recipe_of(options),
        {name: options[name] for name in ("size", "bottleneck") if options[name] is not None},
        device=options["device"],
        watcher=watcher,
        **{name: options[name] for name in optional if options.get(name) is not None},
    )


def recipe_of(options: dict[str, Any]) -> Any:
    """The recipe that the options describe."""
    from skdare.features import Augmentation, Hyperparameters, Recipe

    if "steps" not in options:
        return Recipe(precision=options["precision"])
    augmentation = Augmentation(flip=0.5 if options["flip"] else 0.0)
    hyperparameters = Hyperparameters(
        **{name: options[name] for name in ("lr", "weight_decay", "batch", "dropout")}
    )
    alike = (
        "steps",
        "check_every",
        "draws",
        "batch_exponents",
        "aside",
        "micro_batch",
        "precision",
    )
    return Recipe(
        augmentation=augmentation if options["augment"] else None,
        hyperparameters=hyperparameters,
        **{name: options[name] for name in alike},
    )


def name_of(source: str) -> str:
    """Name for what is made of a source: its folder's, or its file's without the ending."""
    path = Path(source).resolve()
    return path.name if path.is_dir() else path.name.split(".")[0] or path.name


def _with_full_path(backbone: str) -> str:
    """Name of a backbone; that of a folder with its full path, which stays valid elsewhere."""
    family, _, folder = backbone.partition(":")
    if family == "hf" and Path(folder).is_dir():
        return f"hf:{Path(folder).resolve()}"
    return backbone
