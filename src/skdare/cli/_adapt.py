"""`skdare adapt`: a saved head and rows of a new domain become a head for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from skdare._input_error import InputError
from skdare._safe_text import counted
from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._label_file import LabelFile
from skdare.cli._options import is_given
from skdare.cli._output import JSON, QUIET, as_object, say
from skdare.cli._quantities import number
from skdare.cli._saved_model import (
    SavedModel,
    check_adaptable,
    check_free,
    kind_of,
    same_file,
    size,
)
from skdare.cli._tables import FEATURE_KEY

_STREAM = (
    *("prior_rows", "half_life", "staleness", "min_rows", "force", "prior_labels"),
    "new_classes",
)


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.argument("rows", nargs=-1, required=True, metavar="ROWS...", type=click.Path())
@click.option("--out", type=click.Path(), help="File to write the adapted head to.")
@click.option(
    "--state",
    type=click.Path(),
    help="File of the stream: go on from it where it exists, and write it again.",
)
@FEATURE_KEY
@click.option(
    "--prior-rows",
    type=click.FloatRange(0),
    help="Rows that the training domains' averages count as  [default: by how much domains differ]",
)
@click.option(
    "--half-life", type=float, help="Rows after which a row counts half  [default: never]"
)
@click.option(
    "--staleness",
    type=click.FloatRange(0, 0.1),
    default=0.0,
    show_default=True,
    help="How far scores may lag behind the rows, relative, to save time.",
)
@click.option(
    "--min-rows",
    type=click.IntRange(2),
    default=2,
    show_default=True,
    help="Refuse to give a head for fewer rows.",
)
@click.option("--force", is_flag=True, help="Adapt even where rows or labels speak against it.")
@click.option(
    "--labels",
    type=click.Path(),
    help="CSV file with the columns id and label: labels of some rows, as `skdare suggest` lists.",
)
@click.option("--id", "id_key", help="Key or column that names rows  [default: their numbers]")
@click.option(
    "--prior-labels",
    type=click.FloatRange(0),
    help="Labels that the training domains count as  [default: by how labels predict each other]",
)
@click.option(
    "--new-classes", is_flag=True, help="Take labels of classes that the head was not fitted to."
)
@JSON
@QUIET
def adapt(
    head: str,
    rows: tuple[str, ...],
    out: str | None,
    state: str | None,
    labels: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Adapt a saved head to rows of a new domain, with labels of some of them or without.

    ROWS are files as for `skdare predict`, read some rows at a time. Labels are taken from the file
    of --labels alone, by the ids of rows: their numbers, counted over all files from 0 on, or the
    values of --id. HEAD is not changed, and the new head goes to --out. With --state a file keeps
    what is needed of the rows seen so far (sums, some of the rows, and all that are labelled), and
    the next call goes on from there; without --out nothing else is written. Calls with the same
    --state wait for each other; where the system has no locks (Windows, some network drives), run
    one at a time.

    \b
    Example:
      skdare adapt head.safetensors ward7.npz --out ward7.safetensors --state ward7.stream
      skdare adapt head.safetensors ward7.npz --labels labelled.csv --out ward7.safetensors
    """
    with mistakes():
        if out is None and state is None:
            raise InputError("nothing would be written", "name --out, --state, or both")
        for path in (out, state):
            if path is not None:
                check_writable(path)
                check_free(path, head, *rows, *([] if labels is None else [labels]))
        if out is not None and state is not None and same_file(out, state):
            raise InputError(f"--out and --state are both {out}", "name two files")
        if labels is None and options["id_key"]:
            raise InputError("--id is for --labels", "give it, or leave --id out")
        if labels is None and state is None and options["prior_labels"] is not None:
            raise InputError("--prior-labels is for --labels", "give it, or leave this out")
        if labels is None and state is None and options["new_classes"]:
            raise InputError("--new-classes is for --labels", "give it, or leave this out")
        import skdare

        with notes(), _turn(state, quiet):
            resumed = state is not None and Path(state).exists()
            if resumed:
                _check_stream(str(state), options)
            saved = SavedModel.read(head)
            _check_head(saved)
            if saved.head.temperature_ != 1.0 and not quiet:
                say(f"note: {head} is calibrated, which adapting undoes", err=True)
            stream = {name: options[name] for name in _STREAM}
            adapter = saved.head.resume(state) if resumed else saved.head.adapter(**stream)
            if options["new_classes"]:
                adapter.take_new_classes()
            before = adapter.n_seen_
            label_file = _label_file(saved, labels, new_classes=adapter._labels.takes_new_classes)
            if label_file is None:
                adapter._check_can_be_forced()
            beside = {"id": options["id_key"]} if options["id_key"] else {}
            sources = saved.sources(rows, options["feature_key"], beside=beside)
            for chunk, X in saved.chunks(sources):
                numbers = range(adapter.n_seen_ - before, adapter.n_seen_ - before + len(X))
                ids = chunk.beside.get("id", numbers)
                adapter.partial_fit(X, None if label_file is None else label_file.of(ids))
            if label_file is not None:
                label_file.check()
                adapter._check_labels()
            if adapter._labels.has_added_classes and not quiet:
                say(f"new classes: {adapter._labels.counts_of_added_classes()}", err=True)
            adapted_head = None if out is None else adapter.head_
            if out is not None:
                skdare.save(saved.with_head(adapted_head), out)
            if state is not None:
                adapter.save(state)
        summary = {
            "head": out,
            "state": state,
            "rows": adapter.n_seen_ - before,
            "rows_seen": adapter.n_seen_,
            "labels": 0 if label_file is None else len(label_file.labels),
            "bytes": None if out is None else size(out),
            "adapted": None if adapted_head is None else _is_adapted(adapted_head),
        }
        as_object(summary) if as_json else say(*_lines(summary))


def _is_adapted(head: Any) -> bool:
    """Whether a head predicts otherwise than before, by rows or by labels."""
    return head.adapted_rows_ is not None or head.labelled_rows_ is not None


def _label_file(saved: SavedModel, path: str | None, *, new_classes: bool) -> LabelFile | None:
    """The labels in a file, read and checked before any row is."""
    if path is None:
        return None
    classes = getattr(saved.head, "classes_", None)
    return LabelFile(path, None if classes is None else classes.tolist(), new_classes=new_classes)


@contextmanager
def _turn(state: str | None, quiet: bool) -> Iterator[None]:
    """Wait until no other call uses the stream: of two at once, one would lose its rows."""
    from skdare.persist import locked

    def waiting() -> None:
        if not quiet:
            say(f"waiting for another process that adapts with {state}", err=True)

    with nullcontext() if state is None else locked(Path(state), waiting):
        yield


def _check_head(saved: SavedModel) -> None:
    """Refuse a head that cannot adapt, by its class or by how it was saved."""
    from skdare.heads._adjusted import AdjustedHead

    if not isinstance(saved.head, AdjustedHead):
        raise InputError(
            f"{saved.path} holds {type(saved.head).__name__}, which cannot adapt",
            "fit one with --head dare-cv or dare",
        )
    check_adaptable(saved, "adapt")


def _check_stream(state: str, options: dict[str, Any]) -> None:
    """Refuse a file that is not the stream of one domain, and options other than its own."""
    from skdare import inspect_file

    kind = kind_of(state)
    if kind != "adapter":
        raise InputError(
            f"{state} holds {f'a {kind}' if kind else 'no stream'}, and --state needs the stream "
            "of one domain",
            "name another file, or go on in Python with head.resume",
        )
    begun_with = inspect_file(state)["options"]
    for name in _STREAM:
        if is_given(name) and name != "new_classes" and options[name] != begun_with.get(name):
            option = "--" + name.replace("_", "-")
            raise InputError(
                f"{option} is given, but the stream {state} was begun with its own",
                "leave it out, or name a new --state",
            )


def _lines(summary: dict[str, Any]) -> list[str]:
    rows = f"{counted(summary['rows_seen'], 'row')} seen"
    if summary["rows_seen"] != summary["rows"]:
        rows += f", {number(summary['rows'])} of them new"
    if summary["labels"]:
        rows += f", {counted(summary['labels'], 'label')} taken"
    return [rows, *(f"wrote {summary[name]}" for name in ("head", "state") if summary[name])]
