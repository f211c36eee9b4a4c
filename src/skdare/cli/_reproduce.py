"""`skdare reproduce`: the whole paper in one command."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from skdare._input_error import InputError
from skdare.cli._bench_choices import ABLATIONS, DEFAULT_EXTRAS, PROTOCOLS
from skdare.cli._config import load_config
from skdare.cli._dry_run import show_work
from skdare.cli._errors import notes
from skdare.cli._figure1 import FILES
from skdare.cli._learn import networks, table
from skdare.cli._options import JOBS, names, with_options
from skdare.cli._output import JSON, QUIET, as_object, say, show, statistics
from skdare.cli._progress import follow
from skdare.cli._session import learning, refuse_processes, watching
from skdare.cli._study import DTYPE, NORM_STATS, SOURCE, TRAINING, reproduction_of

if TYPE_CHECKING:
    from skdare.bench import Log, Plan, Record
    from skdare.features.examples.layout import Layout
    from skdare.report import Published
    from skdare.reproduce import Reproduction

Parsed = TypeVar("Parsed")

DIGITS = "digits"
# Tables of a study: what its images are like on disk, and what others measured on them.
LAYOUT = "data"
PUBLISHED = "published"


@dataclass(frozen=True)
class StudyFile:
    """A study by its name, and the tables of its file, empty where it has none."""

    name: str
    data: Mapping[str, Any]
    published: Mapping[str, Any]

    @property
    def stem(self) -> str:
        """Its name without folder and ending."""
        return Path(self.name).stem


def _embedded() -> dict[str, str]:
    """Files of the embedded studies by their names."""
    return {Path(str(f)).stem: str(f) for f in (files("skdare") / "studies").iterdir()}


def _study(context: click.Context, parameter: click.Parameter, value: str) -> StudyFile:
    """Take the defaults of all options from the study's file, or from an embedded one."""
    embedded = _embedded()
    if value not in embedded and not Path(value).is_file():
        raise click.BadParameter(
            f"there is no file {value!r}, and the embedded studies are "
            f"{', '.join(sorted(embedded))}"
        )
    tables = load_config(context, parameter, embedded.get(value, value), tables=(LAYOUT, PUBLISHED))
    defaults = context.default_map or {}
    # A file may name the embedded images too, unless a file or folder of that name is beside it.
    if defaults.get("source") == str(Path(value).parent / DIGITS):
        defaults["source"] = defaults["source"] if Path(defaults["source"]).exists() else DIGITS
    return StudyFile(value, tables[LAYOUT], tables[PUBLISHED])


def _protocols(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    chosen = names(context, parameter, value)
    if not chosen or not set(chosen) <= set(PROTOCOLS):
        raise click.BadParameter(f"{value!r} is not among {', '.join(PROTOCOLS)}")
    return chosen


def _names_or_none(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    chosen: list[str] = names(context, parameter, value)
    if "none" in chosen and len(chosen) > 1:
        raise click.BadParameter("none stands alone")
    return [] if chosen == ["none"] else chosen


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
    callback=_names_or_none,
    default=",".join((*DEFAULT_EXTRAS, "sgd")),
    show_default=True,
    help="What to run beside the heads, by commas, or none.",
)
@click.option(
    "--ablations",
    callback=_names_or_none,
    default="none",
    show_default=True,
    help=f"Ablations to run, by commas, or none: {', '.join(ABLATIONS)}. Under the protocol paper "
    "if it is run, else under the first.",
)
@click.option("--shrinkage", type=float, help="paper: shrinkage of covariances  [default: 0.1]")
@click.option("--as-found", is_flag=True, help="Take a known set though its numbers differ.")
@click.option("--dry-run", is_flag=True, help="Check all, say what would be done, and end.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="dry run: images a second  [default: as measured on one H200]",
)
@JOBS
@with_options([*SOURCE, *TRAINING, NORM_STATS, DTYPE, JSON, QUIET])
def reproduce(
    study: StudyFile,
    source: str | None,
    out: str | None,
    quick: bool,
    as_found: bool,
    dry_run: bool,
    rate: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train, extract, measure ceilings, bench every head and write the report, in one command.

    STUDY is `digits`, whose images are embedded; `pacs`, `office-home`, `vlcs`, `terra-incognita`,
    `domainnet` or `camelyon17`, whose images are in the folder --source; or a TOML file with
    options of this command by name. Run the same command again to go on where it was stopped. With
    --json: folder, networks as in `skdare train`, what `skdare bench --json` prints, and files,
    the paths of report and figure; with --dry-run: study, source, domains, classes, images,
    trained, networks, steps, passes (images through networks), disk, decoded (both in bytes), rate
    and hours (both from, to), protocols, ablations and published, whose figures will stand beside.

    \b
    Example:
      skdare reproduce digits --quick
      skdare reproduce office-home --source DIR --dry-run
    """
    if quick:
        options["trials"] = 1
        options["steps"] = max(1, options["steps"] // 2)
        options["check_every"] = min(options["check_every"], options["steps"])
    with learning():
        from skdare.report import write_report
        from skdare.report.summary.published import keep
        from skdare.reproduce import BENCH

        refuse_processes("reproduce")
        plans = _check_bench(options)
        run = _run_of(study, source, out or f"{study.stem}{'-quick' * quick}.run", options)
        with notes():
            published = _published(study, run, plans)
            # Where all networks are trained, their images have been checked.
            unfinished = dry_run or bool(run.waiting())
            if unfinished:
                # What is soon known before the ends of all images are read.
                run.check_backbone()
                run.check_images(as_found=as_found)
        if unfinished:
            work = run.workload(rate)
            if dry_run:
                compared = {name: options[name] for name in ("protocols", "ablations")}
                compared[PUBLISHED] = [published.source] if published else []
                show_work(study.name, run, work, compared, as_json=as_json)
            work.check_room(run.folder, run.source.cache)
        if dry_run:
            return
        trained = run.train()
        if not as_json:
            say(*table(trained))
        run.extract()
        keep(published, run.folder / BENCH)
        log, records = _bench(run, study.stem, options)
        if not as_json:
            show(records, published)
        files = [*write_report(log.folder), *_figure(log, options["quiet"])]
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


def _run_of(
    study: StudyFile, source: str | None, folder: str, options: dict[str, Any]
) -> Reproduction:
    """The run of a study, checked as far as that needs no images."""
    place = source or (DIGITS if study.name == DIGITS else None)
    if place is None:
        remedy = 'add source = "FOLDER", or --source'
        if study.name in _embedded():
            remedy = f"give --source, the folder of {', '.join(study.data['domains'])}"
        raise InputError(f"{study.name} names no source", remedy)
    run = reproduction_of(place, folder, options, watching(options["quiet"]), _layout(study))
    run.check()
    run.check_settings()
    return run


def _layout(study: StudyFile) -> Layout | None:
    """What the study says of its images on disk."""
    from skdare.features.examples.layout import Layout

    return _table_of(study, LAYOUT, study.data, Layout.of)


def _published(study: StudyFile, run: Reproduction, plans: Sequence[Plan]) -> Published | None:
    """Figures that the study puts beside its own; a warning names those that have none."""
    from skdare.report import Published

    published = _table_of(study, PUBLISHED, study.published, Published.of)
    if published is None:
        return None
    domains = list(run.source.counts())
    strange = [name for name in published.domains if name not in domains]
    if strange:
        raise InputError(
            f"`{PUBLISHED}` in {study.name} has figures of `{strange[0]}`, which is no domain",
            f"domains are {', '.join(domains)}",
        )
    _warn_of_figures_alone(published, plans)
    return published


def _warn_of_figures_alone(published: Published, plans: Sequence[Plan]) -> None:
    """Warn of published figures that will not be shown, as nothing here stands beside them."""
    from skdare.report.summary.published import PROTOCOL

    trials = [t for plan in plans if plan.settings.protocol == PROTOCOL for t in plan.trials]
    if not trials:
        warnings.warn(
            f"published figures will not be shown; they belong to the protocol {PROTOCOL}",
            stacklevel=2,
        )
        return
    measured = {(trial.study, trial.head) for trial in trials}
    alone = [
        f"`{study}.{line}`" for study, line in published.lines if (study, line) not in measured
    ]
    if alone:
        warnings.warn(
            f"published figures of {', '.join(alone)} will not be shown; the run does not "
            "measure them",
            stacklevel=2,
        )


def _table_of(
    study: StudyFile,
    name: str,
    settings: Mapping[str, Any],
    parse: Callable[[Mapping[str, Any]], Parsed],
) -> Parsed | None:
    """What a table of the study says; None where it has none."""
    if not settings:
        return None
    try:
        return parse(settings)
    except ValueError as error:
        what, _, remedy = str(error).partition("; ")
        raise InputError(f"`{name}` in {study.name} {what}", remedy) from error


def _check_bench(options: dict[str, Any]) -> list[Plan]:
    """Refuse options of the bench and the report before any network is trained.

    Returned are the plans as they would be for other data.
    """
    from skdare.bench import ablation_plan, bench_plan
    from skdare.datasets import make_latent_domains

    # A study may say it for the runs that have the paper's protocol.
    asked = click.get_current_context().get_parameter_source("shrinkage")
    if asked is ParameterSource.COMMANDLINE and "paper" not in options["protocols"]:
        raise InputError(
            "--shrinkage is that of the protocol paper, and --protocols is "
            f"{','.join(options['protocols'])}",
            "add paper to --protocols, or leave --shrinkage out",
        )
    stand_in = make_latent_domains(3, 20, random_state=0)
    plans = [bench_plan(stand_in, **arguments) for arguments in _benches(options)]
    for ablation, arguments in _ablation_studies(options):
        plans.append(ablation_plan(ablation, stand_in, **arguments))
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"the report needs {' and '.join(missing)}", "pip install 'skdare[report]'"
        )
    return plans


def _benches(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments of the plan under each protocol."""
    for protocol in options["protocols"]:
        extras = list(options["extras"])
        # The paper's descent is the same fit under both protocols.
        if protocol != "paper" and "paper" in options["protocols"] and "sgd" in extras:
            extras.remove("sgd")
        yield {**_shared_arguments(protocol, options), "heads": options["heads"], "extras": extras}


def _ablation_studies(options: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of the ablations, and arguments of their plans."""
    protocols = options["protocols"]
    protocol = "paper" if "paper" in protocols else protocols[0]
    for ablation in options["ablations"]:
        yield ablation, _shared_arguments(protocol, options)


def _shared_arguments(protocol: str, options: dict[str, Any]) -> dict[str, Any]:
    """Arguments that all plans under a protocol share."""
    from skdare.bench import Settings

    of_heads = {}
    if protocol == "paper" and options["shrinkage"] is not None:
        of_heads = {"dare": {"shrinkage": options["shrinkage"]}}
    return {"settings": Settings(protocol=protocol, aside=options["aside"]), "options": of_heads}


def _bench(run: Reproduction, name: str, options: dict[str, Any]) -> tuple[Log, list[Record]]:
    """Run the bench on the stores of a run; return its log, and the records asked for."""
    from skdare.bench import Log
    from skdare.reproduce import BENCH

    log = Log(run.folder / BENCH)
    earlier = log.read()
    # One run is one set of data, even where its study has another name by now.
    name = earlier[0].data if earlier else name
    keys = set()
    for plan in _plans(run, name, options):
        follow(plan, log, jobs=options["jobs"], retry_failed=False, quiet=options["quiet"])
        keys |= {plan.key(trial) for trial in plan.trials}
    return log, [record for record in log.read() if record.key in keys]


def _plans(run: Reproduction, name: str, options: dict[str, Any]) -> Iterator[Plan]:
    """Plans of the bench under each protocol, and of the ablations."""
    for arguments in _benches(options):
        yield run.plan(**arguments, name=name)
    for ablation, arguments in _ablation_studies(options):
        yield run.ablation(ablation, **arguments, name=name)


def _figure(log: Log, quiet: bool) -> list[Path]:
    """Draw the first figure; note where heads that it shows are missing."""
    from skdare.report import figure_one, read_records, summarise, write_figure

    summary = summarise(read_records(log.folder), log.unfinished())
    try:
        figure = figure_one(summary, data=None, protocol=None)
    except ValueError as error:
        if not quiet:
            say(f"note: no first figure: {error}", err=True)
        return []
    return write_figure(figure, [log.folder / file for file in FILES])
