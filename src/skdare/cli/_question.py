"""What `skdare diagnose` is asked: which head, and which rows of a new domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from skdare import DAREClassifier, DARERegressor
from skdare.cli._options import set_options
from skdare.cli._output import say
from skdare.cli._preparing import check_whole, large_enough, preparation_of
from skdare.cli._saved_model import SavedModel, check_adaptable, is_saved
from skdare.cli._tables import read_table, table_keys
from skdare.datasets import DomainData, guess_task, read_unlabelled
from skdare.diagnosis import MIN_ROWS

# What a saved head leaves to say.
_OF_A_HEAD = ("features", "new", "feature_key", "label_cost", "acceptable", "as_json", "page")


@dataclass(frozen=True, eq=False)
class Question:
    """A fitted head, rows of the new domain, and their labels where these are known."""

    head: Any
    new: np.ndarray
    labels: np.ndarray | None = None

    def known(self) -> dict[str, Any] | None:
        """What the labels of a held-out domain say, which the diagnosis has not seen."""
        if self.labels is None:
            return None
        head = self.head
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = head if head.adaptation_ is None else head.adapt(self.new)
            # In the units of the expected score, where there is one.
            task = None if head.rehearsal_ is None else head.rehearsal_.task
            scores = [
                one.score(self.new, self.labels)
                if task is None
                else task.score(one.predict(self.new), self.labels)
                for one in (head, adapted)
            ]
        usual = "accuracy" if hasattr(head, "classes_") else "R²"
        unit = usual if task is None else task.unit
        return {"unit": unit, "use as is": scores[0], "adapt": scores[1]}


def asked_of(features: str, given: dict[str, Any], told: Callable[[str], None]) -> Question:
    """The head that was saved, or one fitted to a table; what is asked is checked before."""
    if is_saved(features):
        return _of_saved(features, given)
    if (given["new"] is None) == (given["held_out"] is None):
        raise ValueError("one of --new and --held-out is needed; name a file, or a domain")
    train, new, labels = _rows(features, given)
    check_whole(train.X, "training")
    check_whole(new, "new")
    if not given["no_rehearsal"] and len(np.unique(train.domains)) < 2:
        raise ValueError(
            "there is 1 training domain, and a rehearsal holds one out; give more, or "
            "--no-rehearsal"
        )
    task = given["task"] or guess_task(train.y)
    head = {"classification": DAREClassifier, "regression": DARERegressor}[task]()
    head.set_params(**set_options(head, given["options"]))
    head.fit(train.X, train.y, domains=train.domains)
    # Too few rows are answered at once.
    if not given["no_rehearsal"] and len(new) >= MIN_ROWS:
        head.rehearse(train.X, train.y, train.domains, progress=told)
    return Question(head, new, labels)


def _of_saved(path: str, given: dict[str, Any]) -> Question:
    context = click.get_current_context()
    for name in given:
        source = context.get_parameter_source(name)
        if name not in _OF_A_HEAD and source is not ParameterSource.DEFAULT:
            option = "--set" if name == "options" else "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} is given, but {path} is a head that was fitted already; leave it out"
            )
    if given["new"] is None:
        raise ValueError(f"{path} is a saved head; name rows of the new domain with --new")
    saved = SavedModel.read(path)
    if not hasattr(saved.head, "diagnose"):
        kind = type(saved.head).__name__
        raise ValueError(f"{path} is a {kind}, which knows no domains; fit --head dare")
    check_adaptable(saved, "diagnose")
    parts = [X for _, X in saved.chunks(saved.sources([given["new"]], given["feature_key"]))]
    if getattr(saved.head, "rehearsal_", None) is None:
        say(
            f"note: {path} was not rehearsed, so distances are told only; fit it with --rehearse",
            err=True,
        )
    return Question(saved.head, np.concatenate(parts))


def _rows(features: str, given: dict[str, Any]) -> tuple[DomainData, np.ndarray, np.ndarray | None]:
    """Training rows, rows of the new domain, and labels of those where a domain is held out."""
    table = large_enough(read_table(features, table_keys(given)), given["min_rows"])
    preparation = preparation_of(given)
    held_out, new = given["held_out"], given["new"]
    if held_out is not None:
        train = table.domains.astype(str) != held_out
        if train.all():
            known = ", ".join(f"`{name}`" for name in np.unique(table.domains))
            raise ValueError(f"held-out domain `{held_out}` is not in {features}; it has {known}")
        X = preparation(table.X, train)
        rest = replace(table, X=X[train], y=table.y[train], domains=table.domains[train])
        return rest, X[~train], table.y[~train]
    rows = _unlabelled(new, table, given["feature_key"])
    X = np.asarray(table.X)
    if preparation.is_fitted:
        train = np.arange(len(X) + len(rows)) < len(X)
        both = preparation(np.concatenate([X, rows.astype(X.dtype)]), train)
        X, rows = both[train], both[~train]
    return replace(table, X=X), rows, None


def _unlabelled(path: str, table: DomainData, key: str | None) -> np.ndarray:
    rows = read_unlabelled(path, names=table.feature_names, key=key)
    if rows.shape[1] != table.X.shape[1]:
        raise ValueError(
            f"{path} has {rows.shape[1]} features and the training rows {table.X.shape[1]}; "
            "give the same features"
        )
    return rows
