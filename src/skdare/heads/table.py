"""One table of the heads: the names in commands, their classes, and their options.

The public names, the classes that a file may name, and the choices of ``skdare fit`` and ``skdare
bench`` come from here. A class is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from skdare.errors import InputError

TASKS = ("classification", "regression")
_AUTO = {"preparation": "auto"}


@dataclass(frozen=True)
class HeadKind:
    """A head as commands name it."""

    module: str  # of `skdare.heads`
    classifier: str | None  # the class for a task; None where there is none
    regressor: str | None
    options: Mapping[str, Any] = field(default_factory=lambda: dict(_AUTO))

    @property
    def tasks(self) -> tuple[str, ...]:
        names = zip(TASKS, (self.classifier, self.regressor), strict=True)
        return tuple(task for task, name in names if name is not None)

    def estimator(self, task: str, **options: Any) -> Any:
        """The head, not fitted, with its options and these."""
        name = self.classifier if task == TASKS[0] else self.regressor
        if name is None:
            raise InputError(
                f"there is no {self.classifier or self.regressor} for {task}",
                "choose another head",
            )
        return class_named(name)(**{**self.options, **options})


HEADS = {
    "dare-cv": HeadKind("dare_cv", "DAREClassifierCV", "DARERegressorCV"),
    "by-hand": HeadKind(
        "dare_cv", "DAREClassifierCV", "DARERegressorCV", _AUTO | {"strategies": ("by-hand",)}
    ),
    "dare": HeadKind("dare", "DAREClassifier", "DARERegressor", _AUTO | {"mean_penalty": 1.0}),
    "erm": HeadKind("baselines", "ERMClassifier", "ERMRegressor"),
    "reweighted": HeadKind("baselines", "ReweightedClassifier", None),
    "groupdro": HeadKind("baselines", "GroupDROClassifier", None),
    "irm": HeadKind("baselines", "IRMClassifier", None),
    "anchor": HeadKind("anchor", None, "AnchorRegressor"),
}
# The module of `skdare.heads` in which each class is.
CLASSES = {
    name: kind.module
    for kind in HEADS.values()
    for name in (kind.classifier, kind.regressor)
    if name is not None
}


def class_named(name: str) -> Any:
    """The class of a head."""
    return getattr(import_module(f"skdare.heads.{CLASSES[name]}"), name)
