"""Small problems of several domains, and heads fitted without one of them by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare import DAREClassifierCV, DARERegressorCV
from skdare.fitting.problem import Problem

TASKS = ("classes", "binary", "regression")


@dataclass(frozen=True)
class Table:
    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray

    @property
    def is_regression(self) -> bool:
        return self.y.dtype.kind == "f"

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.X, self.y, self.domains

    def without(self, *labels: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keep = ~np.isin(self.domains, labels)
        return self.X[keep], self.y[keep], self.domains[keep]

    def of(self, label: Any) -> tuple[np.ndarray, np.ndarray]:
        inside = self.domains == label
        return self.X[inside], self.y[inside]

    def choosing(self, **options: Any) -> Any:
        """A head that chooses, not fitted."""
        return (DARERegressorCV if self.is_regression else DAREClassifierCV)(**options)


def made(
    task: str = "classes", E: int = 6, n: int = 60, d: int = 5, seed: int = 0, spread: float = 1.0
) -> Table:
    """Domains with means and scales of their own."""
    rng = np.random.default_rng(seed)
    k = 2 if task == "binary" else 3
    B = rng.normal(size=(d, k))
    X, y = [], []
    for _ in range(E):
        Z = rng.normal(size=(n, d))
        scores = 2.0 * Z @ B + rng.gumbel(size=(n, k))
        y.append(scores[:, 0] if task == "regression" else scores.argmax(axis=1))
        X.append(Z * np.exp(0.3 * rng.normal(size=d)) + spread * rng.normal(size=d))
    return Table(np.concatenate(X), np.concatenate(y), np.repeat(np.arange(E), n))


def problem_of(table: Table, **options: Any) -> Problem:
    """The problem that a head is fitted to, as it reads the table."""
    groups = options.pop("groups", None)
    head = table.choosing(**options)
    return head._problem(*table.rows, None, groups)[0]
