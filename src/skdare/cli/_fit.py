"""`skdare fit`: from a table of features to a saved head."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import click

from skdare._safe_text import counted
from skdare._scale import scale_of
from skdare.cli._bench_choices import FIT_HEADS, METRICS, TASKS
from skdare.cli._config import CONFIG
from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._options import CLASS_WEIGHT, names, with_options
from skdare.cli._output import JSON, QUIET, as_object, say, say_rehearsing
from skdare.cli._quantities import file_size, listed, number, score_text
from skdare.cli._saved_model import check_free
from skdare.cli._tables import DROP_MISSING, GROUPS, WITHOUT_SPLIT
from skdare.cli._training_rows import PREPARATION, SET


@click.command()
@click.argument("features", nargs=-1, required=True, metavar="FEATURES...", type=click.Path())
@CONFIG
@click.option(
    "--head",
    type=click.Choice(FIT_HEADS),
    default="dare-cv",
    show_default=True,
    help="Which head; dare-cv tries several adjustments on left-out domains, and chooses.",
)
@click.option(
    "--out",
    default="head.safetensors",
    show_default=True,
    type=click.Path(),
    help="File to write; whole or not at all, in place of a saved head or stream only.",
)
@click.option(
    "--task",
    type=click.Choice(TASKS),
    help="What the target is  [default: guessed]",
)
@SET
@click.option(
    "--metric",
    "metrics",
    type=click.Choice(METRICS),
    help="What dare-cv chooses by, and held-out domains are scored by  [default: accuracy, or r2]",
)
@CLASS_WEIGHT
@with_options([*WITHOUT_SPLIT, GROUPS, DROP_MISSING])
@click.option(
    "--min-rows",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Leave out domains of fewer rows.",
)
@with_options(PREPARATION)
@click.option(
    "--held-out",
    callback=names,
    help="Domains to leave out of the fit and to score it on, a comma list.",
)
@click.option(
    "--on-disk/--in-memory",
    default=None,
    help="Where the features of a file are during the fit  "
    "[default: on disk where memory is too small for them]",
)
@click.option(
    "--rehearse/--no-rehearse",
    default=None,
    help="Hold every domain out once, to say what to expect on a new one, here and in "
    "`skdare diagnose`  [default: dare and dare-cv do, with rows in memory and up to 100 domains]",
)
@click.option(
    "--adaptable/--not-adaptable",
    default=True,
    help="Keep what adapt and diagnose need, or predict only: a much smaller file  [default: keep]",
)
@JSON
@QUIET
def fit(features: tuple[str, ...], out: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit a head to a table of features, and save it with its preparation.

    FEATURES is an npz, Parquet, CSV, safetensors or .pt file, which is loaded, or a feature store,
    which is read from disk as it is needed however large it is; several are taken as one table. A
    file that does not go into memory is copied to a store beside --out during the fit; for several
    fits make one with `skdare features convert`. Of a .npy file, which is also read as needed,
    --target and --domains are .npy files. Columns are kept by name, those of target and domains
    too. --head erm needs no domains.

    With --held-out, domains are left out of the fit, and the head is scored on each: as it is, and
    adapted to its rows without their labels.

    Rows in memory are prepared anew for every domain that is left out or held out; those on disk
    once, by all training rows.

    \b
    Example:
      skdare fit features.npz --standardize --out head.safetensors
    """
    with mistakes():
        check_writable(out)
        check_free(out, *features)
        if options["rehearse"] and not options["head"].startswith("dare"):
            raise ValueError("--rehearse is for dare and dare-cv; choose one of them with --head")
        if options["rehearse"] and not options["adaptable"]:
            raise ValueError(
                "--rehearse prepares a diagnosis, which --not-adaptable leaves out; leave one out"
            )
        import skdare
        from skdare.cli._fitting import Fitting, Room

        start = time.perf_counter()
        with notes(), ExitStack() as stack:
            fitting = Fitting.of(features, {**options, "quiet": quiet}, Room(out, stack))
            model = fitting.fit(say_rehearsing if options["rehearse"] and not quiet else _ignore)
            skdare.save(model, out, adaptable=options["adaptable"])
            summary = fitting.summary(model, out) | {"held_out": fitting.held_out_scores(model)}
        summary["seconds"] = round(time.perf_counter() - start, 3)
        if as_json:
            as_object(summary)
        else:
            say(*_text(summary))


def _text(summary: dict[str, Any]) -> list[str]:
    """Lines of the summary for people."""
    head = summary["head"] + ("" if summary["converged"] else " (not converged, see the note)")
    domains = (f"{each['domain']} ({number(each['rows'])})" for each in summary["domains"])
    classes = summary["classes"]
    lines = {"head": head}
    if summary["choice"] is not None:
        lines["choice"] = summary["choice"]
    lines |= {
        "rows": f"{number(summary['rows'])} of {counted(summary['features'], 'feature')}",
        "domains": listed(domains),
        "target": "numbers" if classes is None else listed(map(str, classes)),
        "seconds": f"{summary['seconds']:.1f}",
        "file": f"{summary['file']}, {file_size(summary['bytes'])}",
    }
    if summary["preparation"]:
        lines["prepared"] = ", ".join(summary["preparation"])
    texts = [f"{name:<10}{text}" for name, text in lines.items()]
    if summary["expected"] is not None:
        texts.append(f"{'expect':<10}{summary['expected']['text']}")
    held_out = map(_held_out_text, summary["held_out"])
    return [*texts, *(f"{'held out':<10}{text}" for text in held_out)]


def _held_out_text(row: dict[str, Any]) -> str:
    """How good the head is on a domain that it was not fitted to."""
    metric = row["metric"]
    text = f"{row['domain']} ({counted(row['rows'], 'row')}): {scale_of(metric).name} "
    if row["adapted"] is None:
        return text + score_text(row["score"], metric)
    adapted = score_text(row["adapted"], metric)
    return text + f"{score_text(row['score'], metric)}, adapted to its rows {adapted}"


def _ignore(domain: str) -> None:
    """Say nothing of how far work has come."""
