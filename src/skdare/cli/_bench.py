"""`skdare bench` and `skdare ablate`: run trials, print tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from skdare._safe_text import counted
from skdare._scale import SCALES
from skdare.cli._bench_choices import (
    ABLATIONS,
    DEFAULT_EXTRAS,
    DEFAULT_HEADS,
    EXTRAS,
    HEAD_NAMES,
    PROJECTIONS,
    TRIALS,
)
from skdare.cli._errors import mistakes
from skdare.cli._options import named_scores, names, numbers, plan_arguments, shared_options
from skdare.cli._output import as_object, say, show, statistics
from skdare.cli._progress import follow

if TYPE_CHECKING:
    from skdare.bench import DomainBedScores, Plan, Record

# Accuracy that is less than this above that of the most frequent class is hardly above it.
_MARGIN = 0.01


@click.command()
@shared_options
@click.option(
    "--heads",
    callback=names,
    help=f"Heads to compare, by commas: {', '.join(HEAD_NAMES)}  "
    f"[default: {','.join(DEFAULT_HEADS)}; with --protocol paper, the paper's]",
)
@click.option(
    "--with",
    "extras",
    callback=names,
    default=",".join(DEFAULT_EXTRAS),
    show_default=True,
    help=f"What to run beside them, by commas: {', '.join(EXTRAS)}, or none.",
)
@click.option("--end-to-end", multiple=True, help="DOMAIN=SCORE of a network trained on all.")
@click.option(
    "--network",
    multiple=True,
    help="DOMAIN=SCORE of the network that made the features, on the domain it has not seen.",
)
@click.option(
    "--domainbed",
    metavar="FOLDER",
    help="A DomainBed sweep (ERM) on the same domains: its networks' scores, beside --network.",
)
def bench(
    heads: list[str] | None,
    extras: list[str],
    end_to_end: tuple,
    network: tuple,
    domainbed: str | None,
    **options: Any,
) -> None:
    """Hold out each domain in turn, fit every head, and say which is better and how sure.

    FEATURES is an npz, Parquet, CSV, safetensors or .pt file, a feature store or a folder that
    Hugging Face's save_to_disk wrote; or several DOMAIN=PATH, one for each held-out domain, where
    features were fine-tuned without it; or a folder of feature stores, one for each held-out
    domain and trial. Records go to a folder as they finish: run the same command again to go on,
    `skdare report` to read. With --json: folder, trials, failed, advice (data, protocol, the head
    to use, that to use without_rows of the new domain, and text), and statistics, each with data,
    protocol, study, metric, x, head, held_out, statistic and value, as in the report's CSV.

    \b
    Example:
      skdare bench features.npz --heads erm,dare --trials 3
    """
    from skdare.bench import bench_plan

    with mistakes():
        ceilings: dict[Any, Any] = named_scores("--end-to-end", end_to_end)
        networks: dict[Any, Any] = named_scores("--network", network)
        arguments = plan_arguments(options)
        if domainbed is not None:
            scores = _domainbed_scores(domainbed, arguments)
            ceilings = ceilings or scores.end_to_end
            networks = networks or scores.networks
        plan = bench_plan(
            **arguments,
            heads=heads,
            extras=[] if extras == ["none"] else extras,
            end_to_end=ceilings,
            networks=networks,
        )
        run_and_show(plan, options)


def _domainbed_scores(folder: str, arguments: dict[str, Any]) -> DomainBedScores:
    """Scores of a DomainBed sweep on the domains and in the trials of a plan."""
    from skdare.bench import read_domainbed
    from skdare.datasets import DomainData

    data = arguments["data"]
    table = data if isinstance(data, DomainData) else next(iter(data.values()))
    # DomainBed numbers its domains by the sorted names of their folders.
    scores = read_domainbed(folder, sorted(set(map(str, table.domains.tolist()))))
    trials = arguments["trials"] or TRIALS
    held_out = arguments["held_out"]

    def in_plan(by_place: dict) -> dict:
        return {
            (domain, trial): score
            for (domain, trial), score in by_place.items()
            if trial < trials and (held_out is None or domain in held_out)
        }

    return replace(scores, networks=in_plan(scores.networks), end_to_end=in_plan(scores.end_to_end))


@click.command()
@click.argument("ablation", type=click.Choice(list(ABLATIONS)))
@shared_options
@click.option(
    "--projection",
    type=click.Choice(PROJECTIONS),
    default="random",
    show_default=True,
    help="dimension: how features are made fewer.",
)
@click.option("--values", callback=numbers, help="What a sweep visits, by commas.")
def ablate(ablation: str, projection: str, values: tuple | None, **options: Any) -> None:
    """Leave one thing out of DARE, or sweep one number, and show what that does.

    Records go to the same folder as those of `skdare bench`, and into the same report; --json
    prints the same fields.

    \b
    Example:
      skdare ablate lambda features.npz --trials 3
    """
    from skdare.bench import ablation_plan

    with mistakes():
        plan = ablation_plan(
            ablation, **plan_arguments(options), projection=projection, values=values
        )
        run_and_show(plan, options)


def run_and_show(plan: Plan, options: dict[str, Any]) -> None:
    """Run the plan with a bar, and print what it says."""
    from skdare.bench import Log

    quiet = options["quiet"]
    log = Log(options["out"] or f"{plan.data}.bench")
    follow(plan, log, jobs=options["jobs"], retry_failed=options["retry_failed"], quiet=quiet)
    keys = {plan.key(trial) for trial in plan.trials}
    records = [record for record in log.read() if record.key in keys]
    if not quiet:
        for note in (*_left_out(records), *_no_better_than_guessing(records)):
            say(f"note: {note}", err=True)
    if options["as_json"]:
        as_object({"folder": log.folder, **statistics(records)})
    else:
        show(records, details=options["details"])
    if not quiet:
        more = "tests, ceilings, method and figures" if not options["details"] else "figures"
        say("", f"records: {log.path}", f"{more}: skdare report {log.folder}", err=True)


def _left_out(records: Sequence[Record]) -> Iterator[str]:
    """How many training rows groups cost."""
    counts = [int(record.values.get("left_out_rows", 0)) for record in records]
    if any(counts):
        few = min(counts)
        many = max(counts)
        rows = (
            counted(many, "training row") if few == many else f"{few:,} to {many:,} training rows"
        )
        yield (
            f"{rows} of groups that are scored were left out of training, depending on the domain "
            "held out"
        )


def _no_better_than_guessing(records: Sequence[Record]) -> Iterator[str]:
    """Say when accuracy is hardly above that of always naming one class."""
    scores: dict[str, list[float]] = {}
    guesses: list[float] = []
    for record in records:
        guess = record.values.get("majority")
        if record.study != "main" or record.metric != "accuracy" or guess is None:
            continue
        if record.score is not None:
            scores.setdefault(record.head, []).append(record.score)
            guesses.append(float(guess))
    if not scores:
        return
    best = max(sum(each) / len(each) for each in scores.values())
    guess = sum(guesses) / len(guesses)
    if best < guess + _MARGIN:
        scale = SCALES["accuracy"]
        yield (
            f"always naming the most frequent class would score {scale.figure(guess)}, and the "
            f"best head scores {scale.figure(best)}: accuracy says little here; try --metric "
            "balanced_accuracy or --metric roc_auc"
        )
