"""`skdare adapt`: a saved head and unlabelled rows of a new domain become a head for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._quantities import number
from skdare.cli._saved import Saved, check_adaptable, check_free, kind_of, same_file, size
from skdare.cli._show import as_object
from skdare.cli._table_options import FEATURE_KEY
from skdare.cli._terminal import say

_STREAM = ("prior_rows", "half_life", "staleness", "min_rows")


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.argument("rows", nargs=-1, required=True, metavar="ROWS...", type=click.Path())
@click.option("--out", type=click.Path(), help="File to write the adapted head to.")
@click.option(
    "--state",
    type=click.Path(),
    help="File of the stream: go on from it where it is there, and write it anew.",
)
@FEATURE_KEY
@click.option(
    "--prior-rows",
    type=click.FloatRange(0),
    help="The averaged adjustment counts as so many rows  [default: the number of features]",
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No notes on stderr.")
def adapt(
    head: str,
    rows: tuple[str, ...],
    out: str | None,
    state: str | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Adapt a saved head to unlabelled rows of a new domain; no retraining, no labels.

    ROWS are files as for `skdare predict`, read some rows at a time; labels in them are not looked
    at. HEAD stays as it is, and the new head goes to --out. With --state the rows seen so far are
    kept in a file, so that the next call goes on with more; without --out only that is done. Calls
    with the same --state wait for each other, but where the system has no locks (Windows, some
    network drives): run one at a time there.

    \b
    Example:
      skdare adapt head.safetensors ward7.npz --out ward7.safetensors --state ward7.stream
    """
    with mistakes():
        if out is None and state is None:
            raise ValueError("nothing would be written; name --out, --state, or both")
        for path in (out, state):
            if path is not None:
                check_writable(path)
                check_free(path, head, *rows)
        if out is not None and state is not None and same_file(out, state):
            raise ValueError(f"--out and --state are both {out}; name two files")
        import skdare

        with notes(quiet), _sole(state, quiet):
            resumed = state is not None and Path(state).exists()
            if resumed:
                _check_stream(str(state))
            saved = Saved.read(head)
            if not hasattr(saved.head, "adapter"):
                kind = type(saved.head).__name__
                raise ValueError(f"{head} is a {kind}, which cannot adapt; fit --head dare")
            check_adaptable(saved, "adapt")
            options = {name: given[name] for name in _STREAM}
            adapter = saved.head.resume(state) if resumed else saved.head.adapter(**options)
            before = adapter.n_seen_
            for _, X in saved.chunks(saved.sources(rows, given["feature_key"])):
                adapter.partial_fit(X)
            adapted = None if out is None else saved.with_head(adapter.head_)
            if out is not None:
                skdare.save(adapted, out)
            if state is not None:
                adapter.save(state)
        told = {
            "head": out,
            "state": state,
            "rows": adapter.n_seen_ - before,
            "rows_seen": adapter.n_seen_,
            "bytes": None if out is None else size(out),
        }
        as_object(told) if as_json else say(*_lines(told))


@contextmanager
def _sole(state: str | None, quiet: bool) -> Iterator[None]:
    """Within, no other call reads or writes the stream: one of them would lose its rows."""
    from skdare.persist import locked

    def told() -> None:
        if not quiet:
            say(f"waiting for another process that adapts with {state}", err=True)

    with nullcontext() if state is None else locked(Path(state), told):
        yield


def _check_stream(state: str) -> None:
    """It is of one domain, and goes on with the options that it was begun with."""
    kind = kind_of(state)
    if kind != "adapter":
        raise ValueError(
            f"{state} is a {kind}, and --state is the stream of one domain; name another file, or "
            "go on in Python with head.resume"
        )
    context = click.get_current_context()
    for name in _STREAM:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} is given, but {state} was begun with its own; leave it out, or name a "
                "new --state"
            )


def _lines(told: dict[str, Any]) -> list[str]:
    seen = f"{number(told['rows_seen'])} rows seen"
    if told["rows_seen"] != told["rows"]:
        seen += f", {number(told['rows'])} of them new"
    written = [f"wrote {told[name]}" for name in ("head", "state") if told[name]]
    return [seen, *written]
