"""`skdare diagnose`: whether a head can be trusted on a new domain."""

from __future__ import annotations

import html
import shutil
from pathlib import Path
from typing import Any

import click

from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._saved import refuse_inputs
from skdare.cli._show import as_object
from skdare.cli._table_options import table_options, with_options
from skdare.cli._terminal import say, say_all
from skdare.cli._training_rows import PREPARATION, SET

_WIDEST = 100


@click.command()
@click.argument("features", metavar="FEATURES|HEAD", type=click.Path())
@click.option(
    "--new",
    metavar="PATH",
    type=click.Path(),
    help="A file with rows of the new domain; labels not needed.",
)
@click.option("--held-out", metavar="DOMAIN", help="Instead: take this domain of FEATURES as new.")
@click.option(
    "--min-rows",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Leave out training domains of fewer rows.",
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="What y is  [default: guessed]",
)
@table_options
@with_options(PREPARATION)
@SET
@click.option(
    "--label-cost",
    type=click.FloatRange(0, 1),
    help="What a score must rise for labels to be worth collecting  [default: 0.05]",
)
@click.option(
    "--acceptable",
    type=click.FloatRange(max=1),
    help="Score below which predictions are worth nothing  [default: half way from guessing]",
)
@click.option(
    "--no-rehearsal", is_flag=True, help="Do not hold training domains out: distances only."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Write a page too.")
def diagnose(features: str, as_json: bool, page: str | None, **given: Any) -> None:
    """Say whether to trust a head on a new domain, from unlabelled rows of it.

    HEAD is what `skdare fit --rehearse` wrote, and is not fitted again; rows are prepared as it
    was fitted. FEATURES is a table: DARE is fitted to its domains, and every one of them held out
    in turn to learn what a shift costs. Then the new rows are looked at: how unusual they are,
    what accuracy to expect, and one recommendation: use the head as it is, adapt it, collect
    labels, or do not use it.

    \b
    Example:
      skdare diagnose head.safetensors --new ward7.npz
      skdare diagnose features.npz --new ward7.npz
    """
    with mistakes():
        if page is not None:
            check_writable(page)
            refuse_inputs(page, features, *filter(None, [given["new"]]))
        from skdare.cli._diagnosis_input import DiagnosisInput
        from skdare.persist import whole_file

        with notes():
            inputs = DiagnosisInput.of(features, given, _told)
            limits = {name: given[name] for name in ("label_cost", "acceptable")}
            set_limits = {name: value for name, value in limits.items() if value is not None}
            found = inputs.head.diagnose(inputs.X, **set_limits)
            labels = inputs.scores_by_labels()
        if as_json:
            as_object({**found.to_dict(), "labels": labels})
        else:
            say_all(found.text(min(shutil.get_terminal_size().columns - 1, _WIDEST)))
            if labels is not None:
                say("", f"its labels, not used above: {_sentence(labels)}")
        if page is not None:
            new = Path(given["new"]).name if given["new"] else given["held_out"]
            title = f"{new}: a new domain for {features}"
            with whole_file(Path(page)) as file:
                file.write(_page(found, title).encode())
            say(f"wrote {page}", err=True)


def _sentence(labels: dict[str, Any]) -> str:
    scores = (100 * labels[action] for action in ("use as is", "adapt"))
    return f"{labels['unit']} {next(scores):.1f} % as it is, {next(scores):.1f} % adapted"


def _told(domain: str) -> None:
    say(f"rehearsing without {domain}", err=True)


def _page(found: Any, title: str) -> str:
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    heading = f'<h1 style="font:600 1.3em sans-serif">{html.escape(title)}</h1>'
    lines = ("<!doctype html>", f"<title>{html.escape(title)}</title>{head}", heading, found.html())
    return "\n".join((*lines, ""))
