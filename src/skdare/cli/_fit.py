"""`skdare fit`: from a table of features to a saved head."""

from __future__ import annotations

import time
from typing import Any

import click

from skdare.cli._config import read_config
from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._options import with_options
from skdare.cli._output import as_object, say
from skdare.cli._preparing import PREPARATION, SET
from skdare.cli._quantities import amount, listed, number
from skdare.cli._saved_model import check_free
from skdare.cli._tables import WITHOUT_SPLIT

# By the name that the bench has for them; there `dare` is fitted without what adapting needs.
HEADS = {
    "erm": "ERM{}",
    "reweighted": "Reweighted{}",
    "groupdro": "GroupDRO{}",
    "irm": "IRM{}",
    "anchor": "Anchor{}",
    "dare": "DARE{}",
    "dare-cv": "DARE{}CV",
}


@click.command()
@click.argument("features", nargs=-1, required=True, metavar="FEATURES...", type=click.Path())
@click.option(
    "--config",
    callback=read_config,
    is_eager=True,
    expose_value=False,
    type=click.Path(),
    help="A TOML file with these options by name; the command line overrules it.",
)
@click.option(
    "--head",
    type=click.Choice(list(HEADS)),
    default="dare",
    show_default=True,
    help="Which head; dare-cv chooses among several by leaving domains out.",
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
    type=click.Choice(["classification", "regression"]),
    help="What the target is  [default: guessed]",
)
@SET
@with_options(WITHOUT_SPLIT)
@click.option(
    "--min-rows",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Leave out domains of fewer rows.",
)
@with_options(PREPARATION)
@click.option(
    "--rehearse", is_flag=True, help="Hold every domain out once, so that diagnose can foresee."
)
@click.option(
    "--adaptable/--not-adaptable",
    default=True,
    help="Keep what adapt and diagnose need, or predict only: a much smaller file  [default: keep]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No notes, no progress.")
def fit(features: tuple[str, ...], out: str, as_json: bool, quiet: bool, **given: Any) -> None:
    """Fit a head to a table of features, and save it with its preparation.

    FEATURES is an npz, Parquet, CSV, safetensors or .pt file, which is loaded, or a feature store,
    which is read from disk as it is needed however large it is; several are taken as one table. A
    file larger than memory is made a store first, with `skdare features convert`. Of a .npy file,
    which is also read as needed, --target and --domains are .npy files. Columns are kept by name.

    \b
    Example:
      skdare fit features.npz --head dare --out head.safetensors --rehearse
    """
    with mistakes():
        check_writable(out)
        check_free(out, *features)
        if given["rehearse"] and not given["head"].startswith("dare"):
            raise ValueError("--rehearse is for dare and dare-cv; choose one of them with --head")
        if given["rehearse"] and not given["adaptable"]:
            raise ValueError("--rehearse goes into what --not-adaptable leaves out; give one")
        from skdare.cli._fitting import Fitting

        began = time.perf_counter()
        with notes(quiet):
            fitting = Fitting.of(features, given)
            model = fitting(_silent if quiet else _told)
            import skdare

            skdare.save(model, out, adaptable=given["adaptable"])
        told = fitting.summary(out) | {"seconds": round(time.perf_counter() - began, 3)}
        as_object(told) if as_json else say(*_text(told))


def _text(told: dict[str, Any]) -> list[str]:
    """The summary for people."""
    lines = {
        "head": told["head"] + ("" if told["converged"] else " (not converged, see the note)"),
        "rows": f"{number(told['rows'])} of {amount(told['features'], 'feature')}",
        "domains": listed(f"{d['domain']} ({number(d['rows'])})" for d in told["domains"]),
        "target": "numbers" if told["classes"] is None else listed(map(str, told["classes"])),
        "seconds": f"{told['seconds']:.1f}",
        "file": f"{told['file']}, {amount(told['bytes'], 'byte')}",
    }
    if told["preparation"]:
        lines["prepared"] = ", ".join(told["preparation"])
    return [f"{name:<10}{text}" for name, text in lines.items()]


def _told(domain: str) -> None:
    say(f"rehearsing without {domain}", err=True)


def _silent(domain: str) -> None:
    """Nobody is told."""
