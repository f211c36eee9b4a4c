"""Trials and settings: everything that decides a result, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skdare._validation import InputError, check_choice, check_count, check_number
from skdare.bench._given import Given
from skdare.bench._preparation import Preparation, Projection
from skdare.bench._record import TESTED_ON
from skdare.bench._source import Source

FoldKey = tuple[Any, ...]

PROTOCOLS = ("default", "paper")
L2_RULES = ("matched", "own")
VALIDATE_WITH = ("own", "mean")
# What only one protocol looks at, so that a change of it leaves the other's results alone.
_OWN = {
    "default": ("l2", "l2_grid"),
    "paper": ("step", "inner", "memory", "patience", "max_epochs", "validate_with"),
}


@dataclass(frozen=True)
class Settings:
    """What all trials of a run have in common.

    Parameters
    ----------
    protocol : "default" or "paper"
        Solved to tolerance; or stopped early, as the paper does.
    aside : float
        Share of each domain that is set aside: at least one row, where there are two.
    test_on : "reserved", "rest" or "all"
        Which rows of the held-out domain are scored: those set aside, the others, or both.
        Default: "reserved" in the paper's protocol, else "all".
    l2 : "matched", "own" or float
        One ridge for all heads, chosen for ERM; one for each, chosen for itself; or this one.
        Either choice leaves one training domain out at a time.
    l2_grid : sequence of float
    impute : "median" or None
        Fill missing values by the training rows' median.
    standardize : bool
        Subtract the training rows' mean and divide by their standard deviation.
    clip : float, optional
        Then limit every value to this many standard deviations.
    step, inner, memory, patience, max_epochs
        The paper's rule: L-BFGS of this fixed step, so many iterations an epoch, so many pairs
        kept; stop after so many epochs without a new best accuracy on the training domains' rows
        set aside.
    validate_with : "own" or "mean"
        Whose adjustment scores those rows: their domain's own, or the averaged one.
    ceiling_l2 : float
        Ridge where the paper's protocol, which has none, needs one (ceiling, retraining), as
        separable classes have no optimum without; and of the alignment in both protocols.
    sgd_steps, momentum : int, float
        The paper's cheating head.
    """

    protocol: str = "default"
    aside: float = 0.2
    test_on: str | None = None
    l2: str | float = "matched"
    l2_grid: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    impute: str | None = None
    standardize: bool = False
    clip: float | None = None
    step: float = 0.2
    inner: int = 20
    memory: int = 100
    patience: int = 20
    max_epochs: int = 500
    validate_with: str = "own"
    ceiling_l2: float = 1e-3
    sgd_steps: int = 3000
    momentum: float = 0.9

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_choice("test_on", self.test_on, (*TESTED_ON, None))
        check_choice("validate_with", self.validate_with, VALIDATE_WITH)
        check_number("aside", self.aside, 0.0, 0.9)
        check_number("l2", self.l2, also=L2_RULES)
        for name in ("step", "ceiling_l2"):
            check_number(name, getattr(self, name))
        check_number("momentum", self.momentum, 0.0, 1.0)
        for name in ("inner", "memory", "patience", "max_epochs", "sgd_steps"):
            check_count(name, getattr(self, name), 1)
        if not self.l2_grid:
            raise InputError("l2_grid is empty", "pass at least one number", argument="l2_grid")
        for value in self.l2_grid:
            check_number("l2_grid", value)
        if self.protocol == "paper" and self.aside == 0:
            raise InputError(
                "the paper's protocol validates on rows set aside, and aside is 0",
                "raise aside above 0",
                argument="aside",
            )
        _ = self.preparation  # which checks its own

    @property
    def tested_on(self) -> str:
        """Which held-out rows are scored."""
        return self.test_on or ("reserved" if self.protocol == "paper" else "all")

    @property
    def preparation(self) -> Preparation:
        """What is done to the features before any head."""
        return Preparation(self.impute, self.standardize, self.clip)

    def deciding(self) -> dict[str, Any]:
        """The settings that this protocol looks at."""
        other = "paper" if self.protocol == "default" else "default"
        return {name: value for name, value in asdict(self).items() if name not in _OWN[other]}


@dataclass(frozen=True)
class Trial:
    """One thing to fit and to score.

    Parameters
    ----------
    study, head, held_out, number
        As in `Record`; ``number`` is the trial's.
    x : float, optional
    options : tuple of (name, value)
        Constructor options of the head.
    features : str
        Which source.
    projection : Projection, optional
    seen : tuple of str, optional
        The training domains; default: all others.
    given : Given, optional
        A score that was measured elsewhere.
    """

    study: str
    head: str
    held_out: str
    number: int
    x: float | None = None
    options: tuple[tuple[str, Any], ...] = ()
    features: str = "given"
    projection: Projection | None = None
    seen: tuple[str, ...] | None = None
    given: Given | None = None

    @property
    def fold_key(self) -> FoldKey:
        """Trials of equal key share a fold."""
        return self.features, self.held_out, self.number, self.projection, self.seen

    @property
    def cell(self) -> str:
        """Where it stands in its tables, whatever options or score it has."""
        place = (self.study, self.head, self.x, *self.fold_key)
        return "/".join(str(part) for part in place)


@dataclass(frozen=True, eq=False)
class Plan:
    """Trials to run on the same features under the same settings.

    Parameters
    ----------
    sources : mapping from name to Source
        "given", and "pretrained" where those are compared.
    settings : Settings
    trials : sequence of Trial
    """

    sources: Mapping[str, Source]
    settings: Settings
    trials: Sequence[Trial]

    @property
    def data(self) -> str:
        """Name of the data."""
        return self.sources["given"].name

    def table(self, features: str, held_out: str, number: int) -> str | None:
        """Hash of the features that a held-out domain has in a trial, where it has any."""
        source = self.sources.get(features)
        return None if source is None else source.fingerprint(held_out, number)

    @property
    def conditions(self) -> str:
        """Hash of what all trials of one table must have in common."""
        return _digest({"settings": self.settings.deciding(), "task": self.sources["given"].task})

    def key(self, trial: Trial) -> str:
        """Hash of everything that decides the trial's result."""
        table = self.table(trial.features, trial.held_out, trial.number)
        given = None if trial.given is None else trial.given.deciding()
        asked = {**asdict(trial), "given": given}
        return _digest({"trial": asked, "conditions": self.conditions, "table": table})


def _digest(what: dict[str, Any]) -> str:
    text = json.dumps(what, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
