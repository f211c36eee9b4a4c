"""What `skdare diagnose` looks at: a fitted head, and rows of a new domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdare import DomainAdjusted
from skdare.bench._feature_set import without_small_domains
from skdare.bench._heads import HEADS
from skdare.bench._preparation import Preparation, PreparationStep
from skdare.cli._fitting import apart, labels_of
from skdare.cli._options import is_given, set_options
from skdare.cli._output import say
from skdare.cli._saved_model import SavedModel, check_adaptable, is_saved
from skdare.cli._table_check import check_target, say_findings
from skdare.cli._tables import read_table, table_keys
from skdare.cli._training_rows import (
    check_domain_sizes,
    check_no_missing_values,
    preparation_of,
)
from skdare.datasets import DomainData, guess_task, read_unlabelled
from skdare.diagnosis import MIN_ROWS, Diagnosis, diagnose, rehearse
from skdare.diagnosis._rehearsing import steps_and_head
from skdare.fitting.domain_fit import domain_fit_of
from skdare.heads._adjusted import AdjustedHead

# The options that go with a saved head.
_WITH_SAVED_HEAD = (
    "features",
    "new",
    "feature_key",
    "label_cost",
    "acceptable",
    "as_json",
    "page",
    "details",
)


@dataclass(frozen=True, eq=False)
class DiagnosisInput:
    """A fitted head, rows of a new domain, and their labels where a domain was held out.

    Parameters
    ----------
    model : fitted head, or pipeline that ends in one
    X : array of shape (n, d)
        Rows of the new domain.
    y : array of shape (n,), optional
        Their labels, which the diagnosis does not use.
    """

    model: Any
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
        preparation = preparation_of(options, train.X)
        if preparation.impute is None:
            check_no_missing_values(train.X, "training")
            check_no_missing_values(X, "new")
        if not options["no_rehearsal"] and len(np.unique(train.domains)) < 2:
            raise ValueError(
                "there is 1 training domain, and a rehearsal holds one out; give more, or "
                "--no-rehearsal"
            )
        task = options["task"] or guess_task(train.y)
        head = HEADS[options["head"]].estimator_class(task)()
        head.set_params(**set_options(head, options["options"]))
        check_domain_sizes(train.domains, options)
        labels = labels_of(train, head)
        model = _prepared(head, preparation).fit(train.X, train.y, **labels)
        # With too few rows the answer does not depend on a rehearsal.
        if not options["no_rehearsal"] and len(X) >= MIN_ROWS:
            rehearse(
                model,
                train.X,
                train.y,
                train.domains,
                groups=train.groups,
                progress=progress,
            )
        return cls(model, X, y)

    def diagnosis(self, **limits: float) -> Diagnosis:
        """What the unlabelled rows say."""
        return diagnose(self.model, self.X, **limits)

    def scores_by_labels(self) -> dict[str, Any] | None:
        """Scores of the head on the labels of a held-out domain, as it is and adapted."""
        if self.y is None:
            return None
        _, head = steps_and_head(self.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            can_adapt = domain_fit_of(head).adaptation is not None
            adapted = self.model.adapt(self.X) if can_adapt else self.model
            as_is = self._score(self.model, self.y)
            after = self._score(adapted, self.y)
        unit = "accuracy" if is_classifier(head) else "R²"
        if head.rehearsal_ is not None:
            unit = head.rehearsal_.task.unit
        return {"unit": unit, "use": as_is, "adapt": after}

    def _score(self, model: Any, y: np.ndarray) -> float:
        """The score of a head on the scale of its rehearsal, where it had one."""
        _, head = steps_and_head(model)
        if head.rehearsal_ is None or not is_classifier(head):
            return float(model.score(self.X, y))
        return head.rehearsal_.task.score(model.predict(self.X), y)


def _prepared(head: Any, preparation: Preparation) -> Any:
    """The head with a preparation that is fitted anew wherever domains are held out."""
    if not preparation.steps():
        return head
    steps = PreparationStep(preparation)
    if "preparation" in head.get_params():
        return head.set_params(preparation=steps)
    return DomainAdjusted([("prepare", steps), ("head", head)])


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
    whole = not options["drop_missing"] and options["min_rows"] == 1
    table = without_small_domains(table, options["min_rows"])
    check_target(table.y, options["task"])
    say_findings(table, options, features, whole=whole)
    if options["held_out"] is None:
        return table, _unlabelled(options["new"], table, options["feature_key"]), None
    train, [new] = apart(table, [options["held_out"]])
    return train, np.asarray(new.X), new.y


def _unlabelled(path: str, table: DomainData, key: str | None) -> np.ndarray:
    rows = read_unlabelled(path, names=table.feature_names, key=key)
    if rows.shape[1] != table.X.shape[1]:
        raise ValueError(
            f"{path} has {rows.shape[1]} features and the training rows {table.X.shape[1]}; "
            "give the same features"
        )
    return rows
