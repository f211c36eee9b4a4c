"""`skdare train` and `skdare extract`: from images or text to features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare._safe_text import terminal_safe
from skdare.cli._config import CONFIG
from skdare.cli._options import is_given, with_options
from skdare.cli._output import JSON, QUIET, as_object, say
from skdare.cli._session import COLUMNS, learning, leave_processes, rank, refuse_processes, watching
from skdare.cli._study import (
    DEVICE,
    DTYPE,
    NORM_STATS,
    PRECISION,
    SOURCE,
    TRAINING,
    name_of,
    reproduction_of,
)

if TYPE_CHECKING:
    from skdare.features.training.folder import TrainingRecord
    from skdare.reproduce import Watcher


@click.command()
@click.argument("source", metavar="SOURCE", type=click.Path())
@CONFIG
@click.option("--out", help="Folder of the run  [default: NAME.run]")
@with_options([*SOURCE, *TRAINING, JSON, QUIET])
def train(source: str, out: str | None, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fine-tune a network by ERM for each held-out domain, and one on all domains, in each trial.

    SOURCE is a folder or zip of domain/class/image, a folder of such zips, or a table (CSV or
    Parquet) with columns path or text, label and domain. Run the same command again to go on
    where it was stopped; `torchrun --nproc-per-node 2 -m skdare.cli train …` shares the batches
    of each network among processes. With --json: folder, and networks, each with held_out, trial,
    draw, step, value (on validation rows) and accuracy (on the held-out domain).

    \b
    Example:
      skdare train PACS --backbone efficientnet-lite0 --out pacs.run
    """
    with learning():
        quiet |= rank() > 0
        study = reproduction_of(source, out, options, watching(quiet))
        records = study.train()
        leave_processes()
        if rank() == 0 and as_json:
            as_object({"folder": study.folder, "networks": networks(records)})
        elif rank() == 0:
            say(*table(records))
        if not quiet:
            say("", f"networks: {study.folder}", err=True)
            say(f"features: skdare extract {study.folder}", err=True)


@click.command()
@click.argument("place", metavar="RUN|SOURCE")
@CONFIG
@click.option("--out", help="The store, where no run is given  [default: NAME.features]")
@click.option("--source", help="Where the images or the table of the run are now, if moved.")
@with_options([*SOURCE, NORM_STATS, PRECISION, DEVICE, DTYPE, JSON, QUIET])
def extract(
    place: str, out: str | None, source: str | None, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Write features of every row, by the networks of a run or by a pretrained network.

    RUN is what `skdare train` wrote: its features go to RUN/features, a store for each network
    that held a domain out, and those of the network before fine-tuning to RUN/pretrained. SOURCE
    is images or a table, as for `train`: one store is written, with features of the pretrained
    network. The paths of the stores are printed, with --json as stores. With --norm-stats domain,
    batch norms use means and variances measured on all rows of a domain, without labels.

    \b
    Example:
      skdare extract pacs.run --dtype uint8
    """
    with learning():
        refuse_processes("extract")
        from skdare.features.examples.listing import RUN_SETTINGS

        watcher = watching(quiet)
        if (Path(place) / RUN_SETTINGS).exists():
            columns = (f"{name}_column" for name in COLUMNS)
            _refuse_options(
                f"{place} is a run, which has its own",
                *("out", "backbone", "size", "bottleneck", *columns),
            )
            paths = _extract_run(place, source, options, watcher)
        else:
            _refuse_options(f"{place} is not a run", "source")
            paths = [_extract_pretrained(place, out, options, watcher)]
        if as_json:
            as_object({"stores": paths})
        else:
            say(*paths)


def _refuse_options(reason: str, *names: str) -> None:
    """Refuse options that would change nothing."""
    for name in names:
        if is_given(name):
            raise InputError(f"--{name.replace('_', '-')} is given, but {reason}", "leave it out")


# Where the examples of a run are, and its backbone, as `skdare train` writes them down.
_SOURCE_SHAPE = {
    "path": str,
    "backbone": str,
    "options": dict,
    "skip_unreadable": bool,
    **dict.fromkeys(("cache", "image", "text", "label", "domain"), str | None),
}


def _source_settings(run: str, settings: dict[str, Any]) -> dict[str, Any]:
    from skdare.features.examples.listing import RUN_SETTINGS
    from skdare.persist import check_shape

    try:
        check_shape(settings, {"source": _SOURCE_SHAPE})
    except ValueError as error:
        raise InputError(
            f"{run} does not say where its examples are: {RUN_SETTINGS} {error}",
            "train it with `skdare train`",
        ) from error
    return {name: settings["source"][name] for name in _SOURCE_SHAPE}


def _extract_run(
    run: str, moved_to: str | None, options: dict[str, Any], watcher: Watcher
) -> list[Path]:
    """Stores of a run, whose examples may have been moved."""
    from skdare.features import Recipe
    from skdare.features.examples.layout import Layout
    from skdare.features.examples.source import ExampleSource
    from skdare.features.training.folder import TrainingFolder
    from skdare.reproduce import Reproduction

    settings = TrainingFolder(run).settings()
    written = _source_settings(run, settings)
    backbone = written.pop("backbone")
    backbone_options = written.pop("options")
    written["skip_unreadable"] |= options["skip_unreadable"]
    written["cache"] = options["cache"] or written["cache"]
    known = settings["source"].get("layout")
    layout = None if known is None else Layout.of(known)
    source = ExampleSource(**{**written, "path": moved_to or written["path"], "layout": layout})
    precision = (options if is_given("precision") else settings["recipe"])["precision"]
    study = Reproduction(
        Path(run),
        source,
        backbone,
        Recipe(precision=precision),
        backbone_options,
        device=options["device"],
        dtype=options["dtype"],
        norm_stats=options["norm_stats"],
        watcher=watcher,
    )
    try:
        return study.extract()
    except FileNotFoundError as error:
        if moved_to is not None or Path(source.path).exists():
            raise
        raise InputError(
            f"{source.path}, which {run} was trained on, does not exist",
            "if it was moved, give its new place with --source",
        ) from error


def _extract_pretrained(
    source: str, out: str | None, options: dict[str, Any], watcher: Watcher
) -> Path:
    """Store of features by a pretrained network."""
    from skdare.datasets._manifest import MANIFEST
    from skdare.features import Extractor
    from skdare.features.norm_statistics import PASSES

    target = Path(out or f"{name_of(source)}.features")
    if target.exists() and not (target / MANIFEST).exists():
        raise InputError(f"{target} exists and is not a feature store", "give another --out")
    study = reproduction_of(source, str(target), options, watcher)
    study.check()
    study.is_finished(target)
    inputs = study.inputs
    total = PASSES[study.norm_stats] * len(inputs.examples.labels)
    with watcher.meter("extracting", "rows", total) as meter:
        extractor = Extractor(
            inputs.examples,
            inputs.backbone,
            device=options["device"],
            precision=options["precision"],
            dtype=options["dtype"],
            norm_stats=options["norm_stats"],
            progress=meter,
        )
        return extractor.pretrained(target)


def networks(records: list[TrainingRecord]) -> list[dict[str, Any]]:
    """Trained networks, one object each."""
    names = ("held_out", "trial", "draw", "step", "value", "accuracy")
    return [{name: getattr(record, name) for name in names} for record in records]


def table(records: list[TrainingRecord]) -> list[str]:
    """Trained networks, one line each."""
    from skdare.features.training.folder import ceiling_scores

    held_out = [
        "(none: a ceiling)" if r.held_out is None else terminal_safe(r.held_out) for r in records
    ]
    width = max(map(len, [*held_out, "held out"]))
    lines = [f"{'held out':<{width}}  trial  draw   step  validation  new, rest  new, aside"]
    for name, r in zip(held_out, records, strict=True):
        rest, aside = (
            f"{100 * r.accuracy[rows]:.1f}" if r.accuracy else "–" for rows in ("rest", "reserved")
        )
        lines.append(
            f"{name:<{width}}  {r.trial:>5}  {r.draw:>4}  {r.step:>5}  {100 * r.value:>10.1f}  "
            f"{rest:>9}  {aside:>10}"
        )
    trials: dict[int, list[str]] = {}
    for (domain, trial), score in ceiling_scores(records).items():
        trials.setdefault(trial, []).append(f"{domain} {100 * score:.1f}")
    lines += [f"trained on all domains, trial {t}: {', '.join(s)}" for t, s in trials.items()]
    return lines
