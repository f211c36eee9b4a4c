"""`skdare diagnose`: whether a head can be trusted on a new domain."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._options import with_options
from skdare.cli._output import JSON, as_object, say, say_all, say_rehearsing
from skdare.cli._saved_model import refuse_inputs
from skdare.cli._tables import DROP_MISSING, GROUPS, TABLE
from skdare.cli._training_rows import PREPARATION, SET

_WIDEST = 100


@click.command()
@click.argument("features", metavar="FEATURES|HEAD", type=click.Path())
@click.option(
    "--new",
    metavar="PATH",
    type=click.Path(),
    help="A file with rows of the new domain; labels are not needed.",
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
@with_options([*TABLE, GROUPS, DROP_MISSING, *PREPARATION])
@click.option(
    "--head",
    type=click.Choice(["dare-cv", "dare"]),
    default="dare-cv",
    show_default=True,
    help="The head to fit to FEATURES; dare-cv chooses how to deal with domains.",
)
@SET
@click.option(
    "--label-cost",
    type=click.FloatRange(0, 1),
    help="Gain in the score that makes labels worth collecting  [default: 0.05]",
)
@click.option(
    "--acceptable",
    type=click.FloatRange(max=1),
    help="Score below which predictions are useless  [default: half way from guessing]",
)
@click.option(
    "--no-rehearsal", is_flag=True, help="Do not hold training domains out; report distances only."
)
@click.option(
    "--details", is_flag=True, help="Also distances, class shares and the paper's assumptions."
)
@JSON
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
def diagnose(features: str, as_json: bool, page: str | None, details: bool, **options: Any) -> None:
    """Say what to do on a new domain, and what score to expect, from unlabelled rows of it.

    HEAD is a file that `skdare fit` wrote; it is not fitted again, and rows are prepared
    as for its fit. FEATURES is a table: a head is fitted to its domains, and each of them is held
    out in turn to learn what a new domain costs. The answer is one of four: use the head as it is,
    adapt it, label some rows, or do not use it. It comes with the expected score, and with a range
    in which four out of five new domains should score.

    \b
    Example:
      skdare diagnose head.safetensors --new ward7.npz
      skdare diagnose features.npz --new ward7.npz
    """
    with mistakes():
        if page is not None:
            check_writable(page)
            _check_can_draw()
            refuse_inputs(page, features, *filter(None, [options["new"]]))
        from skdare.cli._diagnosis_input import DiagnosisInput
        from skdare.report import write_diagnosis

        with notes():
            inputs = DiagnosisInput.of(features, options, say_rehearsing)
            limits = {name: options[name] for name in ("label_cost", "acceptable")}
            limits = {name: value for name, value in limits.items() if value is not None}
            diagnosis = inputs.diagnosis(**limits)
            labels = inputs.scores_by_labels()
        if as_json:
            as_object({**diagnosis.to_dict(), "labels": labels})
        else:
            width = min(shutil.get_terminal_size().columns - 1, _WIDEST)
            # Without a rehearsal the findings are all there is.
            findings = details or diagnosis.rehearsal is None
            say_all(diagnosis.text(width, details=findings))
            if labels is not None:
                say("", f"its labels, not used above: {_sentence(labels)}")
        if page is not None:
            new = Path(options["new"]).name if options["new"] else options["held_out"]
            write_diagnosis(diagnosis, page, f"{new}: a new domain for {Path(features).name}")
            say(f"wrote {page}", err=True)


def _check_can_draw() -> None:
    for package in ("jinja2", "matplotlib"):
        if find_spec(package) is None:
            raise ValueError(f"--html needs {package}; pip install 'skdare[report]'")


def _sentence(labels: dict[str, Any]) -> str:
    return f"{labels['unit']} {_score(labels, 'use')} as it is, {_score(labels, 'adapt')} adapted"


def _score(labels: dict[str, Any], action: str) -> str:
    from skdare._scale import SCALES

    scale = SCALES["r2" if labels["unit"] == "R²" else "accuracy"]
    return scale.figure(labels[action])
