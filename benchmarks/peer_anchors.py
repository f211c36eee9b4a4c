"""Anchor regression: ivmodels beside ours, where the two are the same problem.

That is so where all domains have as many rows (ours weighs domains alike, theirs rows), with the
domains' indicators as anchors. Their ridge has no unit, and their loss is divided by gamma.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from real_data import LOADERS, Rows, load_prsa
from skdare import AnchorRegressor
from tables import table

GAMMAS = (2.0, 10.0, 100.0)
L2 = 1e-2
REPEATS = 15
SETS = ("prsa", "prsa, more rows", "gas-log-ppm", "crime")
MANY = 25_000  # rows of each station


def measure(root: Path) -> Iterator[dict]:
    """Largest difference of coefficients, relative to the largest, and times in turn."""
    peer = _peer()
    for name in SETS:
        rows = balanced(root, name)
        labels = np.unique(rows.domains)
        anchors = (rows.domains[:, None] == labels[1:]).astype(np.float64)
        for gamma in GAMMAS:
            alpha = L2 * float(rows.X.var(axis=0).mean()) / gamma

            def ours(gamma: float = gamma, rows: Rows = rows) -> Any:
                head = AnchorRegressor(gamma=gamma, l2=L2)
                return head.fit(rows.X, rows.y, domains=rows.domains)

            def theirs(
                gamma: float = gamma, alpha: float = alpha, rows: Rows = rows, Z: Any = anchors
            ) -> Any:
                return peer(gamma=gamma, alpha=alpha).fit(rows.X, rows.y, Z=Z)

            (one, seconds), (other, their_seconds) = _timed(ours, theirs)
            gap = np.abs(one.coef_ - other.coef_).max() / np.abs(other.coef_).max()
            yield {
                "part": "anchors",
                "set": name,
                "gamma": gamma,
                "shape": [*rows.X.shape, len(labels)],
                "gap": float(gap),
                "ours": seconds,
                "theirs": their_seconds,
            }


def _peer() -> Any:
    """Their class. It brings numba, which would take this folder's coverage.py for the package."""
    sys.modules.setdefault("coverage", None)  # type: ignore[arg-type]
    from ivmodels.models import AnchorRegression

    return AnchorRegression


def balanced(root: Path, name: str) -> Rows:
    """Standardised float64 rows of a set, as many of each domain."""
    [dataset] = LOADERS[name](root) if name in LOADERS else load_prsa(root, MANY)
    labels, counts = np.unique(dataset.domains, return_counts=True)
    index = [np.flatnonzero(dataset.domains == label)[: counts.min()] for label in labels]
    kept = np.concatenate(index)
    X = dataset.X[kept].astype(np.float64)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    if dataset.limit is not None:
        X = np.clip(X, -dataset.limit, dataset.limit)
    return Rows(X, dataset.y[kept].astype(np.float64), dataset.domains[kept])


def _timed(*fits: Callable[[], Any]) -> list[tuple[Any, float]]:
    """What each fit gives, and the median of its times; the fits take turns."""
    times: list[list[float]] = [[] for _ in fits]
    for _ in range(REPEATS):
        given = []
        for taken, fit in zip(times, fits, strict=True):
            start = time.process_time()
            given.append(fit())
            taken.append(time.process_time() - start)
    return list(zip(given, map(statistics.median, times), strict=True))


def report(records: list[dict]) -> str:
    """A row for each set and gamma."""
    if not records:
        return ""
    rows = []
    for r in records:
        n, d, domains = r["shape"]
        cells = [f"{n:,} × {d}, {domains} domains", f"{r['gamma']:g}", f"{r['gap']:.0e}"]
        times = [f"{1000 * r['ours']:.1f} ms", f"{r['theirs'] / r['ours']:.1f} ×"]
        rows.append([r["set"], *cells, *times])
    header = ["set", "rows", "γ", "largest difference", "AnchorRegressor", "ivmodels"]
    return (
        "## Anchor regression beside ivmodels\n\n"
        f"{table(header, rows)}\n"
        "The difference is of coefficients, relative to the largest. Rows are cut to as many of "
        "each domain, where the two problems coincide: ours weighs domains alike, theirs rows. The "
        "last column is their time as a multiple of ours, processor seconds, medians of "
        f"{REPEATS} fits in turn. Below some ten thousand rows ours is bookkeeping, up to a "
        "millisecond a domain, and theirs is quicker.\n"
    )
