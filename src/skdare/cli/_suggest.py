"""`skdare suggest`: which rows of a new domain to label, as a table to fill in."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare._safe_text import counted
from skdare.cli._errors import mistakes, notes
from skdare.cli._output import QUIET, output, say
from skdare.cli._saved_model import SavedModel, check_table
from skdare.cli._tables import FEATURE_KEY, SPREADSHEET_SAFE

if TYPE_CHECKING:
    import numpy as np


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.argument("rows", nargs=-1, required=True, metavar="ROWS...", type=click.Path())
@click.option("-n", "n", type=click.IntRange(1), required=True, help="How many rows to label.")
@click.option(
    "--out",
    type=click.Path(),
    help="File to write, .csv, .csv.gz, .jsonl or .parquet  [default: CSV on stdout]",
)
@click.option("--id", "id_key", help="Key or column that names rows  [default: their numbers]")
@FEATURE_KEY
@click.option("--target", help="Key or column of labels that some of ROWS have already.")
@SPREADSHEET_SAFE
@click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout, one a row.")
@QUIET
def suggest(head: str, rows: tuple[str, ...], out: str | None, quiet: bool, **options: Any) -> None:
    """Say which rows of a new domain to label, so that the head learns most from them.

    HEAD is a file that `skdare fit`, `skdare adapt` or head.save wrote. ROWS are files as for
    `skdare predict`, and are read into memory. The columns written are id, prediction (that of
    HEAD), and label, which is empty and to be filled in. The row that helps most comes first, so
    that one may stop anywhere. With --target, rows that have a label are not suggested again, and
    rows near them come later; an empty entry is no label.

    \b
    Example:
      skdare suggest head.safetensors ward7.npz -n 20 --out to_label.csv
    """
    with mistakes():
        as_json = options["as_json"]
        safe = options["spreadsheet_safe"]
        check_table(out, head, *rows, as_json=as_json, spreadsheet_safe=safe)
        _refuse_labels(out)
        from skdare.datasets import rows_to

        with notes():
            saved = SavedModel.read(head)
            _check_head(saved)
            keys = {"id": options["id_key"], "target": options["target"]}
            beside = {role: key for role, key in keys.items() if key is not None}
            sources = saved.sources(rows, options["feature_key"], beside=beside)
            kind = ".jsonl" if as_json else ".csv"
            with rows_to(out or output(), kind=kind, spreadsheet_safe=safe) as writer:
                writer.write(_columns(saved, list(saved.chunks(sources)), options["n"]))
        if out is not None and not quiet:
            say(f"wrote {out}: {counted(options['n'], 'row')} to label", err=True)


def _refuse_labels(out: str | None) -> None:
    """Refuse to replace a table that somebody has filled in."""
    if out is None or not out.lower().endswith(".csv") or not Path(out).is_file():
        return
    with Path(out).open(newline="", encoding="utf-8", errors="replace") as file:
        filled = any((row.get("label") or "").strip() for row in csv.DictReader(file))
    if filled:
        raise InputError(f"{out} has labels already", "name another file, or remove it first")


def _check_head(saved: SavedModel) -> None:
    """Refuse a head that knows no domains."""
    from skdare.heads._adjusted import AdjustedHead

    if not isinstance(saved.head, AdjustedHead):
        raise InputError(
            f"{saved.path} holds {type(saved.head).__name__}, which cannot suggest rows",
            "fit one with --head dare-cv or dare",
        )


def _columns(saved: SavedModel, chunks: list[Any], n: int) -> dict[str, np.ndarray]:
    """Columns to write for the rows suggested."""
    import numpy as np

    from skdare.cli._agreement import like_classes

    X = np.concatenate([rows for _, rows in chunks])
    beside = {
        role: np.concatenate([chunk.beside[role] for chunk, _ in chunks])
        for role in chunks[0][0].beside
    }
    known = beside.get("target")
    if known is not None and hasattr(saved.head, "classes_"):
        known = like_classes(known, saved.head.classes_)
    suggested = saved.head.suggest(X, n, known)
    return {
        "id": beside["id"][suggested] if "id" in beside else suggested,
        "prediction": np.asarray(saved.head.predict(X[suggested])),
        "label": np.full(n, None),
    }
