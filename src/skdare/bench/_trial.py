"""Trials: one thing to fit and to score, or the score of a network that was measured elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skdare.bench._preparation import Projection

FoldKey = tuple[Any, ...]


@dataclass(frozen=True)
class NetworkScore:
    """Score of a network on a held-out domain, measured elsewhere.

    Parameters
    ----------
    score : float
        Accuracy as a share of one, or R².
    tested_on : "reserved", "rest" or "all", optional
        The rows it was measured on: those set aside, the others, or both. None: unknown.
    """

    score: float
    tested_on: str | None = None


@dataclass(frozen=True)
class Trial:
    """One thing to fit and to score.

    Parameters
    ----------
    study, head, held_out, number
        As in `Record`; ``number`` is the record's ``trial``.
    x : float, optional
        Value of the number that a study varies.
    options : tuple of (name, value)
        Constructor options of the head.
    features : str
        Name of the feature set: "given" or "pretrained".
    projection : Projection, optional
    training_domains : tuple of str, optional
        Default: every domain but the held-out one.
    network_score : NetworkScore, optional
        The score to record; nothing is fitted then.
    """

    study: str
    head: str
    held_out: str
    number: int
    x: float | None = None
    options: tuple[tuple[str, Any], ...] = ()
    features: str = "given"
    projection: Projection | None = None
    training_domains: tuple[str, ...] | None = None
    network_score: NetworkScore | None = None

    @property
    def fold_key(self) -> FoldKey:
        """Trials with the same key share a fold."""
        return self.features, self.held_out, self.number, self.projection, self.training_domains

    @property
    def cell(self) -> str:
        """Place in the tables, whatever the options or the score."""
        place = (self.study, self.head, self.x, *self.fold_key)
        return "/".join(str(part) for part in place)
