"""How predictions agree with labels, domain by domain, from sums over any number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from skdare._input_error import InputError
from skdare._safe_text import terminal_safe
from skdare._scale import scale_of
from skdare.cli._quantities import score_text

ALL = "(all rows)"


@dataclass(frozen=True)
class _Tally:
    """Sums over some rows.

    Parameters
    ----------
    rows : int
    mean : float
        Mean of the labels, where they are numbers.
    scatter : float
        Sum of the labels' squared distances from their mean.
    error : float
        Sum of squared errors, or the number of wrong classes.
    """

    rows: int
    mean: float
    scatter: float
    error: float

    def __add__(self, other: _Tally) -> _Tally:
        rows = self.rows + other.rows
        apart = other.mean - self.mean
        share = other.rows / rows
        # Scatters about the means, not sums of squares: those cancel far from zero.
        return _Tally(
            rows,
            self.mean + share * apart,
            self.scatter + other.scatter + self.rows * share * apart**2,
            self.error + other.error,
        )


class Agreement:
    """Accuracy or R² by domain, of rows that come in chunks.

    Parameters
    ----------
    classes : array, optional
        Classes of the head; None where it predicts numbers.
    """

    def __init__(self, classes: np.ndarray | None) -> None:
        self.classes = classes
        self._tallies: dict[Any, _Tally] = {}
        self._labels_known = 0
        self._first_label: Any = None

    def add(self, predicted: np.ndarray, y: np.ndarray, domains: np.ndarray | None) -> None:
        """Take more rows; those without domains count for all rows alone."""
        if domains is None:
            domains = np.full(len(y), ALL)
        names, place = np.unique(domains, return_inverse=True)
        if self.classes is not None:
            if self._first_label is None:
                self._first_label = y[0].item()
            y = like_classes(y, self.classes)
            self._labels_known += int(np.isin(y, self.classes).sum())
            errors = (predicted != y).astype(np.float64)
            y = np.zeros(len(y))
        else:
            y = np.asarray(y, dtype=np.float64)
            errors = (y - predicted) ** 2
        for j, name in enumerate(names.tolist()):
            tally = _tally(y[place == j], errors[place == j])
            self._tallies[name] = self._tallies[name] + tally if name in self._tallies else tally

    def check(self) -> None:
        """Refuse labels if the head knows none of them; a few unknown ones count as wrong."""
        if self.classes is not None and not self._labels_known:
            raise InputError(
                f"the first label is {self._first_label!r}, and the head has classes such as "
                f"{', '.join(map(repr, self.classes[:3].tolist()))}",
                "name the labels with --target",
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
                for name, tally in {**self._by_domain(), **everything}.items()
            ],
        }

    def _by_domain(self) -> dict[Any, _Tally]:
        return {name: tally for name, tally in self._tallies.items() if name != ALL}

    def _score(self, tally: _Tally) -> float | None:
        if self.classes is not None:
            return 1.0 - tally.error / tally.rows
        return 1.0 - tally.error / tally.scatter if tally.scatter > 0 else None

    def lines(self) -> list[str]:
        """Table with a line for each domain."""
        scores = self.to_dict()["scores"]
        names = [terminal_safe(str(row["domain"])) for row in scores]
        width = max(map(len, names))
        metric = "r2" if self.classes is None else "accuracy"
        lines = [f"{'domain':<{width}}  {'rows':>10}  {scale_of(metric).name}"]
        for name, row in zip(names, scores, strict=True):
            score = score_text(row["score"], metric)
            lines.append(f"{name:<{width}}  {row['rows']:>10,}  {score}")
        return lines


def _tally(y: np.ndarray, errors: np.ndarray) -> _Tally:
    # Distances from the first label, so that labels that are all the same have no scatter at all.
    apart = y - y[0]
    mean = float(apart.mean())
    scatter = float(((apart - mean) ** 2).sum())
    return _Tally(len(y), float(y[0]) + mean, scatter, float(errors.sum()))


def like_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels as text or numbers, whichever the head's classes are."""
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
