"""Scores that were measured elsewhere: of networks, which no linear head can stand in for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skdare._validation import check_choice, check_number
from skdare.bench._record import TESTED_ON


@dataclass(frozen=True)
class Given:
    """A score, and the rows of the held-out domain that it was measured on.

    Parameters
    ----------
    score : float
        Accuracy as a share of one, or R².
    tested_on : "reserved", "rest" or "all", optional
        The rows set aside, the others, or both; None where nobody knows.
    """

    score: float
    tested_on: str | None = None

    def deciding(self) -> float | list[Any]:
        """What of it decides a result: the score alone where its rows are the usual ones."""
        return self.score if self.tested_on == "reserved" else [self.score, self.tested_on]

    def values(self) -> dict[str, Any]:
        """Its score as a record has it."""
        rows = {} if self.tested_on is None else {"tested_on": self.tested_on}
        return {"score": self.score, **rows, **{f"score_{on}": self.score for on in rows.values()}}


Score = float | Given
Scores = Mapping[str, Score] | Mapping[tuple[str, int], Score]
Place = tuple[str, int]


def scores_by_trial(
    name: str, scores: Scores | None, folds: Sequence[Place], low: float, usual: str | None = None
) -> dict[Place, Given]:
    """Scores by held-out domain and trial; without a trial, they are of the first.

    Parameters
    ----------
    name : str
        What the scores are called in an error.
    scores : mapping from held-out domain, or (held-out domain, trial), to float or Given
    folds : sequence of (held-out domain, trial)
        Those that there are.
    low : float
        The lowest score that can be.
    usual : str, optional
        Which rows a plain number was measured on.
    """
    found: dict[Place, Given] = {}
    first = folds[0][1]
    for key, score in (scores or {}).items():
        domain, number = key if isinstance(key, tuple) else (key, first)
        _check_place(name, str(domain), number, folds)
        given = score if isinstance(score, Given) else Given(score, usual)
        check_choice(f"tested_on of {name} for {domain!r}", given.tested_on, (*TESTED_ON, None))
        check_number(f"{name} for {domain!r}", given.score, low, 1.0)
        if (str(domain), number) in found:
            raise ValueError(f"{name} names trial {number} of {domain!r} twice; leave one out")
        found[str(domain), number] = replace(given, score=float(given.score))
    return found


def _check_place(name: str, domain: str, number: Any, folds: Sequence[Place]) -> None:
    domains, numbers = (list(dict.fromkeys(part)) for part in zip(*folds, strict=True))
    if domain not in domains:
        names = ", ".join(map(str, domains))
        raise ValueError(f"{name} names domain {domain!r}; held out are {names}")
    if number not in numbers:
        raise ValueError(
            f"{name} names trial {number!r} of {domain!r}; the trials are "
            f"{', '.join(map(str, numbers))}"
        )
