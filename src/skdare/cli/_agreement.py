"""How predictions agree with labels, domain by domain, from sums over any number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from skdare._safe_text import terminal_safe

ALL = "(all rows)"


@dataclass(frozen=True)
class _Tally:
    """Some rows.

    Parameters
    ----------
    rows : int
    mean : float
        Of the labels, where they are numbers.
    scatter : float
        Sum of the labels' squared distances from their mean.
    lost : float
        Sum of squared errors, or the number of wrong classes.
    """

    rows: int
    mean: float
    scatter: float
    lost: float

    def __add__(self, other: _Tally) -> _Tally:
        rows, apart = self.rows + other.rows, other.mean - self.mean
        share = other.rows / rows
        # Scatters about the means, not sums of squares: those cancel far from zero.
        return _Tally(
            rows,
            self.mean + share * apart,
            self.scatter + other.scatter + self.rows * share * apart**2,
            self.lost + other.lost,
        )


class Agreement:
    """Accuracy, or R², as rows come.

    Parameters
    ----------
    classes : array, optional
        Of the head; None where it predicts numbers.
    """

    def __init__(self, classes: np.ndarray | None) -> None:
        self.classes = classes
        self._tallies: dict[Any, _Tally] = {}
        self._known = 0
        self._first: Any = None

    def add(self, predicted: np.ndarray, y: np.ndarray, domains: np.ndarray) -> None:
        """Take more rows."""
        names, place = np.unique(domains, return_inverse=True)
        if self.classes is not None:
            self._first = y[0].item() if self._first is None else self._first
            y = _of_kind(y, self.classes)
            self._known += int(np.isin(y, self.classes).sum())
            lost = (predicted != y).astype(np.float64)
            y = np.zeros(len(y))
        else:
            y = np.asarray(y, dtype=np.float64)
            lost = (y - predicted) ** 2
        for j, name in enumerate(names.tolist()):
            found = _tally(y[place == j], lost[place == j])
            self._tallies[name] = self._tallies[name] + found if name in self._tallies else found

    def check(self) -> None:
        """Refuse labels of which the head knows none; some that it does not know are wrong."""
        if self.classes is not None and not self._known:
            raise ValueError(
                f"labels are such as {self._first!r}, and the classes of the head "
                f"{', '.join(map(repr, self.classes[:3].tolist()))}; name the labels with --target"
            )

    @property
    def metric(self) -> str:
        return "r2" if self.classes is None else "accuracy"

    def to_dict(self) -> dict[str, Any]:
        """The metric, and for each domain and all rows its value and the number of rows."""
        everything = {ALL: reduce(add, self._tallies.values())}
        return {
            "metric": self.metric,
            "scores": [
                {"domain": name, "rows": tally.rows, "score": self._score(tally)}
                for name, tally in {**self._tallies, **everything}.items()
            ],
        }

    def _score(self, tally: _Tally) -> float | None:
        if self.classes is not None:
            return 1.0 - tally.lost / tally.rows
        return 1.0 - tally.lost / tally.scatter if tally.scatter > 0 else None

    def lines(self) -> list[str]:
        """A line a domain."""
        found = self.to_dict()["scores"]
        names = [terminal_safe(str(one["domain"])) for one in found]
        width = max(map(len, names))
        lines = [f"{'domain':<{width}}  {'rows':>10}  {self.metric}"]
        for name, one in zip(names, found, strict=True):
            score = "–" if one["score"] is None else f"{100 * one['score']:.1f} %"
            lines.append(f"{name:<{width}}  {one['rows']:>10,}  {score}")
        return lines


def _tally(y: np.ndarray, lost: np.ndarray) -> _Tally:
    # From the first one, so that labels that are all the same have no scatter at all.
    apart = y - y[0]
    mean = float(apart.mean())
    return _Tally(len(y), float(y[0]) + mean, float(((apart - mean) ** 2).sum()), float(lost.sum()))


def _of_kind(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels of the kind that the head predicts, whether a file has text or numbers."""
    if (classes.dtype.kind == "U") == (y.dtype.kind == "U"):
        return y
    if classes.dtype.kind == "U":
        return y.astype(str)
    values, place = np.unique(y, return_inverse=True)
    return np.array([_number(value) for value in values.tolist()])[place]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
