"""The heads that a bench compares, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from skdare import heads
from skdare.bench._record import NOTHING, UNLABELLED


@dataclass(frozen=True)
class Entry:
    """A head under a name.

    Parameters
    ----------
    family : str
        Class name, with braces where the task goes.
    options : dict
    adapts : bool
        It takes the unlabelled rows of the held-out domain.
    tasks : tuple of str
    in_paper : bool
        The paper's protocol has it.
    """

    family: str
    options: Mapping[str, Any] = field(default_factory=dict)
    adapts: bool = False
    tasks: tuple[str, ...] = ("classification", "regression")
    in_paper: bool = False

    @property
    def whitens(self) -> bool:
        """Whether it needs a covariance of every domain."""
        return self.family.startswith("DARE") and self.options.get("adjust", True)

    @property
    def uses(self) -> str:
        """What of the held-out domain it sees."""
        return UNLABELLED if self.adapts else NOTHING

    def make(self, task: str, **options: Any) -> Any:
        """A new estimator."""
        kind = "Regressor" if task == "regression" else "Classifier"
        return getattr(heads, self.family.format(kind))(**{**self.options, **options})


_ONE_SOLVE = {"adaptation": None}
HEADS: dict[str, Entry] = {
    "erm": Entry("ERM{}", in_paper=True),
    "reweighted": Entry("Reweighted{}", in_paper=True),
    "groupdro": Entry("GroupDRO{}", in_paper=True),
    "irm": Entry("IRM{}", in_paper=True),
    "anchor": Entry("Anchor{}", tasks=("regression",)),
    "dare": Entry("DARE{}", _ONE_SOLVE, in_paper=True),
    # The adapted head does not use the constrained solution; without the constraint both solves
    # are one.
    "adapted": Entry("DARE{}", {"mean_penalty": 0.0}, adapts=True, in_paper=True),
    "dare-cv": Entry("DARE{}CV"),
    "dare-cv-adapted": Entry("DARE{}CV", adapts=True),
    "no-whitening": Entry("DARE{}", {**_ONE_SOLVE, "adjust": False}, in_paper=True),
    "no-constraint": Entry("DARE{}", {**_ONE_SOLVE, "mean_penalty": 0.0}, in_paper=True),
    "exact-constraint": Entry("DARE{}", {**_ONE_SOLVE, "mean_penalty": "exact"}),
    "estimated-mean": Entry("DARE{}", {**_ONE_SOLVE, "estimate_mean": True}, in_paper=True),
}
DEFAULT_HEADS = {
    "classification": ("erm", "reweighted", "groupdro", "irm", "dare", "adapted"),
    "regression": ("erm", "reweighted", "groupdro", "irm", "anchor", "dare", "adapted"),
}


def check_head(name: str, task: str, protocol: str) -> Entry:
    """The head of this name, where task and protocol have it."""
    known = [n for n, e in HEADS.items() if task in e.tasks and (e.in_paper or protocol != "paper")]
    if name in known:
        return HEADS[name]
    if name in HEADS:
        why = "for regression only" if task not in HEADS[name].tasks else "not of the paper"
        raise ValueError(f"head `{name}` is {why}; use {', '.join(known)}")
    close = get_close_matches(name, known, n=1)
    raise ValueError(
        f"no head is called `{name}`"
        + (f"; did you mean `{close[0]}`? There are " if close else "; there are ")
        + ", ".join(known)
    )
