"""`skdare train` and `skdare extract`: from images or text to features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from skdare._safe_text import terminal_safe
from skdare.cli._session import COLUMNS, learning, leave_processes, rank, refuse_processes, watching
from skdare.cli._show import JSON, as_object
from skdare.cli._study import (
    CONFIG,
    DEVICE,
    DTYPE,
    PRECISION,
    QUIET,
    SOURCE,
    TRAINING,
    asked_study,
    name_of,
)
from skdare.cli._table_options import with_options
from skdare.cli._terminal import say

if TYPE_CHECKING:
    from skdare.reproduce import Watcher


@click.command()
@click.argument("source", metavar="SOURCE", type=click.Path())
@CONFIG
@click.option("--out", help="Folder of the run  [default: NAME.run]")
@with_options([*SOURCE, *TRAINING, JSON, QUIET])
def train(source: str, out: str | None, as_json: bool, quiet: bool, **given: Any) -> None:
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
        study = asked_study(source, out, given, watching(quiet))
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
@with_options([*SOURCE, PRECISION, DEVICE, DTYPE, JSON, QUIET])
def extract(
    place: str, out: str | None, source: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Write features of every row: of the networks of a run, or of a pretrained network.

    RUN is what `skdare train` wrote: its features go to RUN/features, a store for each network
    that held a domain out, and those of the network before fine-tuning to RUN/pretrained. SOURCE
    is images or a table, as for `train`: one store is written, of the backbone as it is. The
    stores are printed, with --json as stores.

    \b
    Example:
      skdare extract pacs.run --dtype uint8
    """
    with learning():
        refuse_processes("extract")
        from skdare.reproduce import SETTINGS

        watcher = watching(quiet)
        if (Path(place) / SETTINGS).exists():
            columns = (f"{name}_column" for name in COLUMNS)
            _refuse_given(
                f"{place} is a run, which has its own", "out", "backbone", "size", *columns
            )
            paths = _of_run(place, source, given, watcher)
        else:
            _refuse_given(f"{place} is no run; what it names is read", "source")
            paths = [_of_backbone(place, out, given, watcher)]
        as_object({"stores": paths}) if as_json else say(*paths)


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


def _refuse_given(why: str, *names: str) -> None:
    """Refuse options that would change nothing."""
    for name in names:
        if _is_given(name):
            raise ValueError(f"--{name.replace('_', '-')} is given, but {why}; leave it out")


# Where the examples of a run lie, and its backbone, as `skdare train` writes them down.
_SOURCE = {
    "path": str,
    "backbone": str,
    "options": dict,
    "skip_unreadable": bool,
    **dict.fromkeys(("cache", "image", "text", "label", "domain"), str | None),
}


def _written_source(run: str, settings: dict[str, Any]) -> dict[str, Any]:
    from skdare.persist import check_shape
    from skdare.reproduce import SETTINGS

    try:
        check_shape(settings, {"source": _SOURCE})
    except ValueError as error:
        raise ValueError(
            f"{run} does not say where its examples are: {SETTINGS} {error}; train it with "
            "`skdare train`"
        ) from error
    return {name: settings["source"][name] for name in _SOURCE}


def _of_run(run: str, moved: str | None, given: dict[str, Any], watcher: Watcher) -> list[Path]:
    from skdare.features import Recipe, Source, TrainingFolder
    from skdare.reproduce import Reproduction

    settings = TrainingFolder(run).settings()
    written = _written_source(run, settings)
    name, options = written.pop("backbone"), written.pop("options")
    written["skip_unreadable"] |= given["skip_unreadable"]
    written["cache"] = given["cache"] or written["cache"]
    source = Source(**{**written, "path": moved or written["path"]})
    own = given if _is_given("precision") else settings["recipe"]
    study = Reproduction(
        Path(run),
        source,
        name,
        Recipe(precision=own["precision"]),
        options,
        device=given["device"],
        dtype=given["dtype"],
        watcher=watcher,
    )
    try:
        return study.extract()
    except FileNotFoundError as error:
        if moved is not None or Path(source.path).exists():
            raise
        raise ValueError(
            f"{source.path}, which {run} was trained on, does not exist; "
            "if it was moved, give its new place with --source"
        ) from error


def _of_backbone(source: str, out: str | None, given: dict[str, Any], watcher: Watcher) -> Path:
    from skdare.datasets._manifest import MANIFEST
    from skdare.features import Extractor

    target = Path(out or f"{name_of(source)}.features")
    if target.exists() and not (target / MANIFEST).exists():
        raise ValueError(f"{target} exists and is no feature store; give another --out")
    study = asked_study(source, str(target), given, watcher)
    study.check()
    study.is_whole(target)
    inputs = study.inputs
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


def networks(records: list) -> list[dict[str, Any]]:
    """What was trained, an object a network."""
    told = ("held_out", "trial", "draw", "step", "value", "accuracy")
    return [{name: getattr(record, name) for name in told} for record in records]


def table(records: list) -> list[str]:
    """What was trained, a line a network."""
    from skdare.features import ceiling_scores

    held = [
        "(none: a ceiling)" if r.held_out is None else terminal_safe(r.held_out) for r in records
    ]
    width = max(map(len, [*held, "held out"]))
    lines = [f"{'held out':<{width}}  trial  draw   step  validation  new, rest  new, aside"]
    for name, r in zip(held, records, strict=True):
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
