"""How predictions agree with labels, domain by domain, from sums over any number of rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

ALL = "(all rows)"


class Agreement:
    """Accuracy, or R², as rows come.

    Parameters
    ----------
    classes : array, optional
        Of the head; None where it predicts numbers.
    """

    def __init__(self, classes: np.ndarray | None) -> None:
        self.classes = classes
        self._sums: dict[Any, np.ndarray] = {}

    def add(self, predicted: np.ndarray, y: np.ndarray, domains: np.ndarray) -> None:
        """Take more rows."""
        if self.classes is not None:
            right = predicted == self._as_classes(y)
            terms = np.column_stack([np.ones(len(y)), right])
        else:
            y = np.asarray(y, dtype=np.float64)
            terms = np.column_stack([np.ones(len(y)), y, y**2, (y - predicted) ** 2])
        names, place = np.unique(domains, return_inverse=True)
        for j, name in enumerate(names.tolist()):
            self._sums[name] = self._sums.get(name, 0.0) + terms[place == j].sum(axis=0)

    def _as_classes(self, y: np.ndarray) -> np.ndarray:
        """Labels of the kind that the head predicts, whether a file has text or numbers."""
        assert self.classes is not None
        if (self.classes.dtype.kind == "U") != (y.dtype.kind == "U"):
            with suppress(ValueError):
                y = y.astype(str if self.classes.dtype.kind == "U" else np.float64)
        if not np.isin(y, self.classes).any():
            raise ValueError(
                f"labels are such as {y[0].item()!r}, and the classes of the head "
                f"{', '.join(map(repr, self.classes[:3].tolist()))}; name the labels with --target"
            )
        return y

    @property
    def metric(self) -> str:
        return "r2" if self.classes is None else "accuracy"

    def to_dict(self) -> dict[str, Any]:
        """The metric, and for each domain and all rows its value and the number of rows."""
        everything = {ALL: np.sum(list(self._sums.values()), axis=0)}
        return {
            "metric": self.metric,
            "scores": [
                {"domain": name, "rows": int(sums[0]), "score": self._score(sums)}
                for name, sums in {**self._sums, **everything}.items()
            ],
        }

    def _score(self, sums: np.ndarray) -> float | None:
        if self.classes is not None:
            return float(sums[1] / sums[0])
        spread = sums[2] - sums[1] ** 2 / sums[0]
        return float(1.0 - sums[3] / spread) if spread > 0 else None

    def text(self) -> str:
        """A line a domain."""
        found = self.to_dict()["scores"]
        width = max(len(str(one["domain"])) for one in found)
        lines = [f"{'domain':<{width}}  {'rows':>10}  {self.metric}"]
        for one in found:
            score = "–" if one["score"] is None else f"{100 * one['score']:.1f} %"
            lines.append(f"{one['domain']!s:<{width}}  {one['rows']:>10,}  {score}")
        return "\n".join(lines)
