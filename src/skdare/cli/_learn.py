"""`skdare train` and `skdare extract`: from images or text to features."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from skdare.cli._config import read_config
from skdare.cli._errors import mistakes
from skdare.cli._meter import Meter
from skdare.cli._options import names
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
    click.option("--size", type=int, help="Side of images, or tokens  [default: the network's]"),
    click.option("--image-column", help="Of a table: paths of images."),
    click.option("--text-column", help="Of a table: texts."),
    click.option("--label-column", help="Of a table: labels."),
    click.option("--domain-column", help="Of a table: domains."),
    click.option("--skip-unreadable", is_flag=True, help="Leave out images that cannot be read."),
    click.option("--cache", help="Folder to keep decoded images in, and find them again."),
]
TRAINING = [
    click.option("--trials", type=click.IntRange(1), default=3, show_default=True),
    click.option("--held-out", callback=names, help="Domains to hold out, by commas."),
    click.option(
        "--ceilings/--no-ceilings",
        default=True,
        help="Also train on all domains, once a trial  [default: yes]",
    ),
    click.option("--steps", type=click.IntRange(1), default=5001, show_default=True),
    click.option("--check-every", type=click.IntRange(1), default=300, show_default=True),
    click.option(
        "--draws",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Choices of hyperparameters for each network: those given, and random ones.",
    ),
    click.option("--lr", type=float, default=5e-5, show_default=True),
    click.option("--weight-decay", type=float, default=0.0, show_default=True),
    click.option(
        "--batch", type=click.IntRange(1), default=32, show_default=True, help="Rows a domain."
    ),
    click.option("--dropout", type=float, default=0.0, show_default=True),
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


def with_options(options: list) -> Callable:
    """Add options, in this order."""

    def decorated(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


@click.command()
@click.argument("source", metavar="SOURCE")
@CONFIG
@click.option("--out", help="Folder of the run  [default: NAME.run]")
@with_options([*SOURCE, *TRAINING, QUIET])
def train(source: str, out: str | None, quiet: bool, **given: Any) -> None:
    """Fine-tune a network by ERM for each held-out domain, and one on all domains, in each trial.

    SOURCE is a folder or zip of domain/class/image, a folder of such zips, or a table (CSV or
    Parquet) with columns path or text, label and domain. Run the same command again to go on
    where it was stopped; `torchrun --nproc-per-node 2 -m skdare.cli train …` shares the batches
    of each network among processes.

    \b
    Example:
      skdare train PACS --backbone efficientnet-lite0 --out pacs.run
    """
    with mistakes(), interrupted():
        records = asked_study(source, out, given, watching(quiet)).train()
        if records:
            click.echo(table(records))


@click.command()
@click.argument("source", metavar="SOURCE")
@CONFIG
@click.option("--out", help="The store, where SOURCE is no run  [default: NAME.features]")
@with_options([*SOURCE, PRECISION, DEVICE, DTYPE, QUIET])
def extract(source: str, out: str | None, quiet: bool, **given: Any) -> None:
    """Write features of every row: of the networks of a run, or of a pretrained network.

    SOURCE is the run of `skdare train`: its features go to RUN/features, a store for each network
    that held a domain out, and those of the network before fine-tuning to RUN/pretrained. Or it
    is images or a table, as for `train`: then one store is written, of the backbone as it is.

    \b
    Example:
      skdare extract pacs.run --dtype uint8
    """
    with mistakes(), interrupted():
        watcher = watching(quiet)
        if (Path(source) / "run.json").exists():
            if out is not None:
                raise ValueError("--out is for one store; the stores of a run go into its folder")
            paths = _of_run(source, given, watcher)
        else:
            paths = [_of_backbone(source, out, given, watcher)]
        for path in paths:
            click.echo(path)


def _of_run(source: str, given: dict[str, Any], watcher: Watcher) -> list[Path]:
    from skdare.features import Recipe, Source, TrainingFolder

    written = dict(TrainingFolder(source).settings()["source"])
    name, options = written.pop("backbone"), written.pop("options")
    columns = {"skip_unreadable": given["skip_unreadable"] or written["skip_unreadable"]}
    place = Source(**{**written, **columns, "cache": given["cache"] or written["cache"]})
    study = Reproduction(
        Path(source),
        place,
        name,
        Recipe(precision=given["precision"]),
        options,
        device=given["device"],
        dtype=given["dtype"],
        watcher=watcher,
    )
    return study.extract()


def _of_backbone(source: str, out: str | None, given: dict[str, Any], watcher: Watcher) -> Path:
    from skdare.features import Extractor

    target = Path(out or f"{_name(source)}.features")
    inputs = asked_study(source, str(target), given, watcher).inputs
    with watcher.meter("extracting", "rows", len(inputs.examples.labels)) as meter:
        extractor = Extractor(
            inputs.examples,
            inputs.backbone,
            device=given["device"],
            precision=given["precision"],
            dtype=given["dtype"],
            progress=meter,
        )
        return extractor.pretrained(target)


def asked_study(
    source: str, out: str | None, given: dict[str, Any], watcher: Watcher
) -> Reproduction:
    """What the options ask for; everything that can be checked without the data is checked."""
    from skdare.features import Source

    columns = {name: given[f"{name}_column"] for name in ("image", "text", "label", "domain")}
    place = Source(
        source, **columns, skip_unreadable=given["skip_unreadable"], cache=given["cache"]
    )
    more = ("trials", "held_out", "ceilings", "at_once", "dtype")
    return Reproduction(
        Path(out or f"{_name(source)}.run"),
        place,
        given["backbone"],
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


def _name(source: str) -> str:
    return Path(source).resolve().name.split(".")[0]


def watching(quiet: bool) -> Watcher:
    """Sentences and bars on stderr."""

    def say(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    return Watcher(say, lambda what, unit, total: Meter(what, unit, total, not quiet))


@contextmanager
def interrupted() -> Iterator[None]:
    """Ctrl-C ends a run with what is done on file."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("stopped; the same command goes on from what is on file", err=True)
        sys.exit(130)


def table(records: list) -> str:
    """What was trained, a line a network."""
    held = [record.held_out or "(none: a ceiling)" for record in records]
    width = max(map(len, [*held, "held out"]))
    lines = [f"{'held out':<{width}}  trial  draw   step  validation  new 80 %  new 20 %"]
    for name, r in zip(held, records, strict=True):
        new = [
            f"{100 * r.accuracy[s]:8.1f}" if r.accuracy else "       –"
            for s in ("rest", "reserved")
        ]
        lines.append(
            f"{name:<{width}}  {r.trial:>5}  {r.draw:>4}  {r.step:>5}  {100 * r.value:>10.1f}  "
            + "  ".join(new)
        )
    for r in records:
        if r.ceilings:
            scores = ", ".join(f"{d} {100 * s:.1f}" for d, s in r.ceilings.items())
            lines.append(f"trained on all domains, trial {r.trial}, draw {r.draw}: {scores}")
    return "\n".join(lines)
