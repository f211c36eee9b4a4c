"""State of a fitted head: what a file holds, and what its attributes show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from skdare.adapting.new_domain import Adapted
from skdare.checks import Label
from skdare.choosing.rule import Choice
from skdare.diagnosis.rehearsal import Rehearsal
from skdare.fitting.domain_fit import DomainFit
from skdare.fitting.problem import Targets
from skdare.solvers.lbfgs import Solution
from skdare.whitening.adjustment import Adjustment


@dataclass(frozen=True)
class Names:
    """What the columns of the training data were called, where they had a name."""

    features: list[str] | None = None
    target: str | None = None
    domains: str | None = None


@dataclass(frozen=True, eq=False)
class HeadState:
    targets: Targets
    V: Annotated[np.ndarray, "d k"]  # on prepared features
    b: Annotated[np.ndarray, "k"]
    fit: DomainFit | None = None  # None where the head only predicts
    choice: Choice | None = None  # of a head that chooses
    rehearsal: Rehearsal | None = None
    adapted: Adapted | None = None
    adjustment: Adjustment | None = None  # in use: guessed, or of the domain adapted to
    preparation: Any = None  # a fitted transformer
    names: Names = Names()
    domains: list[Label] = field(default_factory=list)
    solution: Solution | None = None  # without its parameters
    domain_weights: list[float] | None = None  # of GroupDRO's worst case
    grouped: bool = False  # whether domains that share a group were held out together
