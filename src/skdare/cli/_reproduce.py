"""`skdare reproduce`: the whole paper in one command."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare.cli._bench_choices import DEFAULT_EXTRAS, PROTOCOLS
from skdare.cli._config import load_config
from skdare.cli._figure1 import FILES
from skdare.cli._learn import networks, table
from skdare.cli._options import JOBS, names, with_options
from skdare.cli._output import JSON, QUIET, as_object, say, show, statistics
from skdare.cli._progress import follow
from skdare.cli._session import learning, refuse_processes, watching
from skdare.cli._study import DTYPE, NORM_STATS, SOURCE, TRAINING, reproduction_of

if TYPE_CHECKING:
    from skdare.bench import Log, Record, Settings
    from skdare.reproduce import Reproduction

DIGITS = "digits"


def _study(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Take the defaults of all options from the study's file, or from the embedded one."""
    if value != DIGITS and not Path(value).is_file():
        raise click.BadParameter(
            f"there is no file {value!r}, and the only embedded study is `{DIGITS}`"
        )
    embedded = str(files("skdare") / "studies" / "digits.toml")
    load_config(context, parameter, embedded if value == DIGITS else value)
    defaults = context.default_map or {}
    # A file may name the embedded images too, unless a file or folder of that name is beside it.
    if defaults.get("source") == str(Path(value).parent / DIGITS):
        defaults["source"] = defaults["source"] if Path(defaults["source"]).exists() else DIGITS
    return value


def _protocols(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    chosen = names(context, parameter, value)
    if not chosen or not set(chosen) <= set(PROTOCOLS):
        raise click.BadParameter(f"{value!r} is not among {', '.join(PROTOCOLS)}")
    return chosen


@click.command()
@click.argument("study", callback=_study, is_eager=True)
@click.option("--source", help="Images or a table  [default: as the study says]")
@click.option("--out", help="Folder of the run  [default: STUDY.run]")
@click.option("--quick", is_flag=True, help="One trial, and half of the steps.")
@click.option(
    "--protocols",
    callback=_protocols,
    default="paper,default",
    show_default=True,
    help="Protocols of the bench, by commas.",
)
@click.option("--heads", callback=names, help="Heads to compare, by commas.")
@click.option(
    "--with",
    "extras",
    callback=names,
    default=",".join((*DEFAULT_EXTRAS, "sgd")),
    show_default=True,
    help="What to run beside the heads, by commas, or none.",
)
@JOBS
@with_options([*SOURCE, *TRAINING, NORM_STATS, DTYPE, JSON, QUIET])
def reproduce(
    study: str, source: str | None, out: str | None, quick: bool, as_json: bool, **options: Any
) -> None:
    """Train, extract, measure ceilings, bench every head and write the report, in one command.

    STUDY is `digits`, which is embedded, or a TOML file with options of this command by name.
    Run the same command again to go on where it was stopped. With --json: folder, networks as in
    `skdare train`, what `skdare bench --json` prints, and files, the paths of report and figure.

    \b
    Example:
      skdare reproduce digits --quick
    """
    if quick:
        options["trials"] = 1
        options["steps"] = max(1, options["steps"] // 2)
        options["check_every"] = min(options["check_every"], options["steps"])
    with learning():
        from skdare.report import write_report

        refuse_processes("reproduce")
        place = source or (DIGITS if study == DIGITS else None)
        if place is None:
            raise InputError(f"{study} names no source", 'add source = "FOLDER", or --source')
        _check_bench(options)
        stem = Path(study).stem + ("-quick" if quick else "")
        run = reproduction_of(place, out or f"{stem}.run", options, watching(options["quiet"]))
        trained = run.train()
        if not as_json:
            say(*table(trained))
        run.extract()
        log, records = _bench(run, Path(study).stem, options)
        if not as_json:
            show(records)
        files = [*write_report(log.folder), *_figure(log, Path(study).stem, options["quiet"])]
        if as_json:
            as_object(
                {
                    "folder": log.folder,
                    "networks": networks(trained),
                    **statistics(records),
                    "files": files,
                }
            )
        else:
            say(*files)


def _check_bench(options: dict[str, Any]) -> None:
    """Refuse options of the bench and the report before any network is trained."""
    from skdare.bench import bench_plan
    from skdare.datasets import make_latent_domains

    for settings, extras in _benches(options):
        stand_in = make_latent_domains(3, 20, random_state=0)
        bench_plan(stand_in, settings=settings, heads=options["heads"], extras=extras)
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"the report needs {' and '.join(missing)}", "pip install 'skdare[report]'"
        )


def _benches(options: dict[str, Any]) -> Iterator[tuple[Settings, list[str]]]:
    """Settings and extras of the bench under each protocol."""
    from skdare.bench import Settings

    for protocol in options["protocols"]:
        extras = [] if options["extras"] == ["none"] else list(options["extras"])
        # The paper's descent is the same fit under both protocols.
        if protocol != "paper" and "paper" in options["protocols"] and "sgd" in extras:
            extras.remove("sgd")
        yield Settings(protocol=protocol, aside=options["aside"]), extras


def _bench(run: Reproduction, name: str, options: dict[str, Any]) -> tuple[Log, list[Record]]:
    """Run the bench on the stores of a run; return its log, and the records asked for."""
    from skdare.bench import Log
    from skdare.reproduce import BENCH

    log = Log(run.folder / BENCH)
    keys = set()
    for settings, extras in _benches(options):
        plan = run.plan(settings, heads=options["heads"], extras=extras, name=name)
        follow(plan, log, jobs=options["jobs"], retry_failed=False, quiet=options["quiet"])
        keys |= {plan.key(trial) for trial in plan.trials}
    return log, [record for record in log.read() if record.key in keys]


def _figure(log: Log, name: str, quiet: bool) -> list[Path]:
    """Draw the first figure; note where heads that it shows are missing."""
    from skdare.report import figure_one, read_records, summarise, write_figure

    summary = summarise(read_records(log.folder), log.unfinished())
    try:
        figure = figure_one(summary, data=name, protocol=None)
    except ValueError as error:
        if not quiet:
            say(f"note: no first figure: {error}", err=True)
        return []
    return write_figure(figure, [log.folder / file for file in FILES])
