"""`skdare calibrate`: a saved head with calibrated probabilities."""

from __future__ import annotations

from typing import Any

import click

from skdare._input_error import InputError
from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._output import JSON, QUIET, as_object, say
from skdare.cli._partly_labelled_rows import ID, LABELS, PartlyLabelledRows
from skdare.cli._saved_model import (
    SavedModel,
    check_adjusted_classifier,
    check_free,
    size,
)
from skdare.cli._tables import FEATURE_KEY


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.argument("rows", nargs=-1, metavar="[ROWS...]", type=click.Path())
@click.option("--out", type=click.Path(), required=True, help="File to write the head to.")
@LABELS
@ID
@FEATURE_KEY
@JSON
@QUIET
def calibrate(
    head: str, rows: tuple[str, ...], out: str, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Calibrate the probabilities of a classifier for a new domain; predictions do not change.

    HEAD is a file that `skdare fit`, `skdare adapt` or head.save wrote, and is not changed. Its
    scores are divided by one number, the temperature. With --labels it is found by labels of some
    of ROWS, drawn at random, and not those that HEAD was adapted with. Without, it is the one that
    suited training domains that were left out; HEAD must have been rehearsed, as
    `skdare fit --rehearse` does. Adapt first, and calibrate last.

    \b
    Example:
      skdare calibrate head.safetensors --out calibrated.safetensors
      skdare calibrate head.safetensors ward7.npz --labels checked.csv --out ward7.safetensors
    """
    with mistakes():
        labels = options["labels"]
        if bool(rows) != (labels is not None):
            absent = "ROWS are given and no --labels" if rows else "--labels is given and no ROWS"
            raise InputError(absent, "give both, or neither")
        if labels is None and options["id_key"]:
            raise InputError("--id is for --labels", "give it, or leave --id out")
        check_writable(out)
        check_free(out, head, *rows, *([] if labels is None else [labels]))
        import skdare

        with notes():
            saved = SavedModel.read(head)
            check_adjusted_classifier(saved, "calibrated")
            if rows:
                new = PartlyLabelledRows.read(saved, rows, **options)
                calibrated = saved.head.calibrate(new.X, new.y)
            else:
                calibrated = saved.head.calibrate()
            skdare.save(saved.with_head(calibrated), out)
        summary = {"head": out, "temperature": calibrated.temperature_, "bytes": size(out)}
        if as_json:
            as_object(summary)
        elif not quiet:
            say(_sentence(calibrated.temperature_), f"wrote {out}")


def _sentence(temperature: float) -> str:
    if temperature == 1.0:
        return "probabilities are as they were"
    how = "less sure" if temperature > 1.0 else "surer"
    return f"temperature {temperature:.2f}: {how} than before"
