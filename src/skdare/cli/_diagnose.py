"""`skdare diagnose`: whether a head can be trusted on a new domain."""

from __future__ import annotations

import html
import json
import shutil
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from skdare import DAREClassifier, DARERegressor
from skdare.bench import TASKS, Preparation
from skdare.cli._errors import check_writable, mistakes
from skdare.cli._options import head_options, read_table, table_keys, table_options
from skdare.datasets import DomainData, guess_task, read_unlabelled
from skdare.diagnosis import Diagnosis
from skdare.diagnosis._diagnose import MIN_ROWS
from skdare.diagnosis._recommendation import LABEL_COST
from skdare.diagnosis._task import read

_WIDEST = 100


@dataclass(frozen=True, eq=False)
class _Question:
    """Training rows, rows of the new domain, and their labels where these are known."""

    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    new: np.ndarray
    labels: np.ndarray | None


@click.command()
@click.argument("features", metavar="FEATURES")
@click.option(
    "--new", metavar="PATH", help="A file with rows of the new domain; labels not needed."
)
@click.option("--held-out", metavar="DOMAIN", help="Instead: take this domain of FEATURES as new.")
@click.option(
    "--min-rows",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Leave out training domains of fewer rows.",
)
@click.option("--task", type=click.Choice(TASKS), help="What y is  [default: guessed]")
@table_options
@click.option("--impute", type=click.Choice(["median"]), help="Fill missing values.")
@click.option("--standardize", is_flag=True, help="By the training rows' mean and spread.")
@click.option("--clip", type=float, help="Limit standardised values to this.")
@click.option(
    "--set",
    "options",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the head, such as shrinkage=0.5; may be repeated.",
)
@click.option(
    "--label-cost",
    type=click.FloatRange(0, 1),
    default=LABEL_COST,
    show_default=True,
    help="What a score must rise for labels to be worth collecting.",
)
@click.option(
    "--acceptable",
    type=click.FloatRange(max=1),
    help="Score below which predictions are worth nothing  [default: half way from guessing]",
)
@click.option(
    "--no-rehearsal", is_flag=True, help="Do not hold training domains out: distances only."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", "page", metavar="FILE", help="Write a page too.")
def diagnose(
    features: str,
    new: str | None,
    held_out: str | None,
    task: str | None,
    as_json: bool,
    page: str | None,
    **given: Any,
) -> None:
    """Fit DARE to the domains of FEATURES, and say whether to trust it on a new one.

    Every training domain is held out in turn to learn what a shift costs; then unlabelled rows of
    the new domain are looked at: how unusual they are, what accuracy to expect, and one
    recommendation: use the head as it is, adapt it, collect labels, or do not use it.

    \b
    Example:
      skdare diagnose features.npz --new ward7.npz
    """
    with mistakes():
        question = _question(features, new, held_out, given)
        _check_whole(question)
        if not given["no_rehearsal"] and len(np.unique(question.domains)) < 2:
            raise ValueError(
                "there is 1 training domain, and a rehearsal holds one out; give more, or "
                "--no-rehearsal"
            )
        if page is not None:
            check_writable(page)
        task = task or guess_task(question.y)
        head = {"classification": DAREClassifier, "regression": DARERegressor}[task]()
        head.set_params(**_head_options(head, given["options"]))
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            head.fit(question.X, question.y, domains=question.domains)
            # Too few rows are answered at once.
            if not given["no_rehearsal"] and len(question.new) >= MIN_ROWS:
                rows = (question.X, question.y, question.domains)
                head.rehearse(*rows, progress=_told)
            limits = {name: given[name] for name in ("label_cost", "acceptable")}
            found = head.diagnose(question.new, **limits)
        for message in dict.fromkeys(str(warning.message) for warning in heard):
            click.echo(f"note: {message}", err=True)
        labels = _known(head, question)
        width = min(shutil.get_terminal_size().columns - 1, _WIDEST)
        if as_json:
            click.echo(json.dumps({**found.to_dict(), "labels": labels}, ensure_ascii=False))
        else:
            click.echo(found.text(width))
            if labels is not None:
                click.echo(f"\nits labels, not used above: {_sentence(labels)}")
        if page is not None:
            title = f"{Path(new).name if new else held_out}: a new domain for {features}"
            Path(page).write_text(_page(found, title), encoding="utf-8")
            click.echo(f"wrote {page}", err=True)


def _check_whole(question: _Question) -> None:
    """Missing values are told before any work, with the option that fills them."""
    for what, X in (("training", question.X), ("new", question.new)):
        missing = int(np.isnan(X).any(axis=1).sum())
        if missing:
            raise ValueError(f"{missing} of the {what} rows have missing values; --impute median")


def _head_options(head: Any, given: tuple[str, ...]) -> dict[str, Any]:
    for item in given:
        if "=" not in item:
            raise ValueError(f"--set {item!r} is not OPTION=VALUE; write shrinkage=0.5")
    options = head_options([f"head.{item}" for item in given]).get("head", {})
    known = sorted(head.get_params())
    for name in options:
        if name not in known:
            raise ValueError(f"--set: the head has no option {name!r}; it has {', '.join(known)}")
    return options


def _question(features: str, new: str | None, held_out: str | None, given: dict) -> _Question:
    if (new is None) == (held_out is None):
        raise ValueError("one of --new and --held-out is needed; name a file, or a domain")
    table = _large_enough(read_table(features, table_keys(given)), given["min_rows"])
    preparation = Preparation(given["impute"], given["standardize"], given["clip"])
    if held_out is not None:
        train = table.domains.astype(str) != held_out
        if train.all():
            known = ", ".join(f"`{name}`" for name in np.unique(table.domains))
            raise ValueError(f"held-out domain `{held_out}` is not in {features}; it has {known}")
        X = preparation(table.X, train)
        return _Question(X[train], table.y[train], table.domains[train], X[~train], table.y[~train])
    assert new is not None
    rows = _unlabelled(new, table, given["feature_key"])
    train = np.arange(len(table.X) + len(rows)) < len(table.X)
    X = np.asarray(table.X)
    if preparation.is_fitted:
        both = preparation(np.concatenate([X, rows.astype(X.dtype)]), train)
        X, rows = both[train], both[~train]
    return _Question(X, table.y, table.domains, rows, None)


def _large_enough(table: DomainData, least: int) -> DomainData:
    """Without domains of fewer rows."""
    labels, counts = np.unique(table.domains, return_counts=True)
    kept = np.isin(table.domains, labels[counts >= least])
    if kept.all():
        return table
    return replace(table, X=table.X[kept], y=table.y[kept], domains=table.domains[kept])


def _unlabelled(path: str, table: DomainData, key: str | None) -> np.ndarray:
    rows = read_unlabelled(path, names=table.feature_names, key=key)
    if rows.shape[1] != table.X.shape[1]:
        raise ValueError(
            f"{path} has {rows.shape[1]} features and the training rows {table.X.shape[1]}; "
            "give the same features"
        )
    return rows


def _known(head: Any, question: _Question) -> dict[str, Any] | None:
    """What the labels of a held-out domain say, which the diagnosis has not seen."""
    if question.labels is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = head if head.adaptation_ is None else head.adapt(question.new)
    # In the units of the expected score, where there is one.
    task = None if head.rehearsal_ is None else head.rehearsal_.task
    scores = [
        one.score(question.new, question.labels)
        if task is None
        else task.score(read(one, question.new).values, question.labels)
        for one in (head, adapted)
    ]
    usual = "accuracy" if hasattr(head, "classes_") else "R²"
    unit = usual if task is None else task.unit
    return {"unit": unit, "use as is": scores[0], "adapt": scores[1]}


def _sentence(labels: dict[str, Any]) -> str:
    scores = (100 * labels[action] for action in ("use as is", "adapt"))
    return f"{labels['unit']} {next(scores):.1f} % as it is, {next(scores):.1f} % adapted"


def _told(domain: str) -> None:
    click.echo(f"rehearsing without {domain}", err=True)


def _page(found: Diagnosis, title: str) -> str:
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    heading = f'<h1 style="font:600 1.3em sans-serif">{html.escape(title)}</h1>'
    lines = ("<!doctype html>", f"<title>{html.escape(title)}</title>{head}", heading, found.html())
    return "\n".join((*lines, ""))
