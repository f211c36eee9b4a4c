"""`skdare measure`: how accurate a head is in a new domain, by some labels or without any."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from skdare.cli._errors import mistakes, notes
from skdare.cli._output import JSON, as_object, say_all
from skdare.cli._partly_labelled_rows import ID, LABELS, PartlyLabelledRows
from skdare.cli._saved_model import SavedModel, check_adjusted_classifier
from skdare.cli._tables import FEATURE_KEY


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.argument("rows", nargs=-1, required=True, metavar="ROWS...", type=click.Path())
@LABELS
@ID
@FEATURE_KEY
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="How often what is said has to hold.",
)
@JSON
def measure(
    head: str, rows: tuple[str, ...], confidence: float, as_json: bool, **options: Any
) -> None:
    """Say how accurate a classifier is in a new domain, by labels of some rows or without any.

    HEAD is a file that `skdare fit`, `skdare adapt` or head.save wrote. ROWS are files as for
    `skdare predict`, and are read into memory. With --labels the answer is an interval. Its rows
    must be drawn at random, and not be those that HEAD was adapted with. Without labels it is the
    least accuracy that can be counted on, which is little, and two estimates; HEAD must have been
    rehearsed, as `skdare fit --rehearse` does.

    \b
    Example:
      skdare measure head.safetensors ward7.npz --labels checked.csv
    """
    with mistakes():
        with notes():
            saved = SavedModel.read(head)
            check_adjusted_classifier(saved, "measured")
            # A row of a class that the head does not know is one that it gets wrong.
            new = PartlyLabelledRows.read(saved, rows, **options, new_classes=True)
            answer: Any
            if new.y is None:
                answer = saved.head.bound(new.X, confidence=confidence)
                found = answer.to_dict()
            else:
                answer = saved.head.score_interval(new.X, new.y, coverage=confidence)
                found = asdict(answer)
        as_object(found) if as_json else say_all(str(answer))
