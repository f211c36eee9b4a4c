"""What `skdare diagnose` looks at: a fitted head, and rows of a new domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdare import DAREClassifier, DARERegressor
from skdare.bench._feature_set import without_small_domains
from skdare.cli._options import is_given, set_options
from skdare.cli._output import say
from skdare.cli._saved_model import SavedModel, check_adaptable, is_saved
from skdare.cli._table_check import say_findings
from skdare.cli._tables import read_table, table_keys
from skdare.cli._training_rows import check_no_missing_values, preparation_of
from skdare.datasets import DomainData, guess_task, read_unlabelled
from skdare.diagnosis import MIN_ROWS
from skdare.fitting.domain_fit import domain_fit_of
from skdare.heads._adjusted import AdjustedHead

# The options that go with a saved head.
_WITH_SAVED_HEAD = ("features", "new", "feature_key", "label_cost", "acceptable", "as_json", "page")


@dataclass(frozen=True, eq=False)
class DiagnosisInput:
    """A fitted head, rows of a new domain, and their labels where a domain was held out.

    Parameters
    ----------
    head : fitted head
    X : array of shape (n, d)
        Rows of the new domain.
    y : array of shape (n,), optional
        Their labels, which the diagnosis does not use.
    """

    head: Any
    X: np.ndarray
    y: np.ndarray | None = None

    @classmethod
    def of(
        cls, features: str, options: dict[str, Any], progress: Callable[[str], None]
    ) -> DiagnosisInput:
        """Read a saved head, or fit one to a table, once all options have been checked."""
        if is_saved(features):
            return _with_saved_head(features, options)
        if options["new"] is None and options["held_out"] is None:
            raise ValueError("one of --new and --held-out is needed; name a file, or a domain")
        if options["new"] is not None and options["held_out"] is not None:
            raise ValueError("--new and --held-out both name the new domain; give one of them")
        train, X, y = _rows(features, options)
        check_no_missing_values(train.X, "training")
        check_no_missing_values(X, "new")
        if not options["no_rehearsal"] and len(np.unique(train.domains)) < 2:
            raise ValueError(
                "there is 1 training domain, and a rehearsal holds one out; give more, or "
                "--no-rehearsal"
            )
        task = options["task"] or guess_task(train.y)
        head = DARERegressor() if task == "regression" else DAREClassifier()
        head.set_params(**set_options(head, options["options"]))
        head.fit(train.X, train.y, domains=train.domains)
        # With too few rows the answer does not depend on a rehearsal.
        if not options["no_rehearsal"] and len(X) >= MIN_ROWS:
            head.rehearse(train.X, train.y, train.domains, progress=progress)
        return cls(head, X, y)

    def scores_by_labels(self) -> dict[str, Any] | None:
        """Scores of the head on the labels of a held-out domain, as it is and adapted."""
        if self.y is None:
            return None
        head = self.head
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            can_adapt = domain_fit_of(head).adaptation is not None
            adapted = head.adapt(self.X) if can_adapt else head
            # In the units of the expected score, where there is one.
            task = None if head.rehearsal_ is None else head.rehearsal_.task
            as_is, after = (
                each.score(self.X, self.y)
                if task is None
                else task.score(each.predict(self.X), self.y)
                for each in (head, adapted)
            )
        usual = "accuracy" if is_classifier(head) else "R²"
        unit = usual if task is None else task.unit
        return {"unit": unit, "use as is": as_is, "adapt": after}


def _with_saved_head(path: str, options: dict[str, Any]) -> DiagnosisInput:
    for name in options:
        if name not in _WITH_SAVED_HEAD and is_given(name):
            option = "--set" if name == "options" else "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} is given, but {path} is a head that was fitted already; leave it out"
            )
    if options["new"] is None:
        raise ValueError(f"{path} is a saved head; name rows of the new domain with --new")
    saved = SavedModel.read(path)
    if not isinstance(saved.head, AdjustedHead):
        kind = type(saved.head).__name__
        raise ValueError(f"{path} is a {kind}, which knows no domains; fit --head dare-cv or dare")
    check_adaptable(saved, "diagnose")
    sources = saved.sources([options["new"]], options["feature_key"])
    X = np.concatenate([rows for _, rows in saved.chunks(sources)])
    if saved.head.rehearsal_ is None:
        say(
            f"note: {path} was not rehearsed, so only distances are reported; "
            "fit it with --rehearse",
            err=True,
        )
    return DiagnosisInput(saved.head, X)


def _rows(
    features: str, options: dict[str, Any]
) -> tuple[DomainData, np.ndarray, np.ndarray | None]:
    """Training rows, rows of the new domain, and their labels where a domain is held out."""
    missing = "drop" if options["drop_missing"] else "refuse"
    table = read_table(features, table_keys(options), missing=missing)
    table = without_small_domains(table, options["min_rows"])
    say_findings(table, options["task"], features)
    preparation = preparation_of(options, table.X)
    held_out = options["held_out"]
    if held_out is not None:
        train = table.domains.astype(str) != held_out
        if train.all():
            names = ", ".join(f"`{name}`" for name in np.unique(table.domains))
            raise ValueError(f"held-out domain `{held_out}` is not in {features}; it has {names}")
        X = preparation(table.X, train)
        rest = replace(table, X=X[train], y=table.y[train], domains=table.domains[train])
        return rest, X[~train], table.y[~train]
    X = np.asarray(table.X)
    new = _unlabelled(options["new"], table, options["feature_key"])
    if preparation.is_fitted:
        train = np.arange(len(X) + len(new)) < len(X)
        both = preparation(np.concatenate([X, new.astype(X.dtype)]), train)
        X = both[train]
        new = both[~train]
    return replace(table, X=X), new, None


def _unlabelled(path: str, table: DomainData, key: str | None) -> np.ndarray:
    rows = read_unlabelled(path, names=table.feature_names, key=key)
    if rows.shape[1] != table.X.shape[1]:
        raise ValueError(
            f"{path} has {rows.shape[1]} features and the training rows {table.X.shape[1]}; "
            "give the same features"
        )
    return rows
