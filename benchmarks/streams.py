"""Streams: speed beside a bare Gram product, roots that are not computed, many devices.

    OPENBLAS_NUM_THREADS=1 python benchmarks/streams.py [PART ...] [--data DIR]

``speed`` times `Adapter.partial_fit` and ``X.T @ X`` on the same chunks in turn, and takes medians.
``refreshes`` feeds 1,000 chunks of one domain and asks for the head after each. ``fleet`` has
10,000 devices. ``rank`` compares fleets with exact adapters on real data, a held-out domain a
device. Default: all of them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import product

import numpy as np

from real_data import Fold, data_root, standardized_folds
from skdare import Adapter, DAREClassifier, LabelShiftWarning
from tables import percent, table

CLASSES, ROUNDS = 10, 25
# Rows fed before any is timed: the first of a stream are all predicted for the label-shift warning.
WARM_ROWS = 10_000
RANKS = (4, 8, 16, 32)
# Features, half-life, staleness.
STALENESS = (
    *product((768,), (None, 1e5), (0.0, 0.001, 0.01, 0.05)),
    *product((2048,), (None,), (0.0, 0.01)),
)
SETS = ("wisdm", "gas", "office", "pacs")


class Domains:
    """Rows with a decaying spectrum and a mean, stretched by every domain in its own way."""

    def __init__(self, d: int, seed: int = 0) -> None:
        self.d, self._rng = d, np.random.default_rng(seed)
        self._spectrum = np.arange(1, d + 1) ** -0.4

    def new(self) -> np.ndarray:
        """The stretch of another domain."""
        return (self._spectrum * np.exp(self._rng.uniform(-0.7, 0.7, self.d))).astype(np.float32)

    def rows(self, n: int, stretch: np.ndarray) -> np.ndarray:
        """Some of its rows."""
        return (self._rng.standard_normal((n, self.d), dtype=np.float32) + 0.5) * stretch

    def head(self, k: int = CLASSES, **options) -> DAREClassifier:
        """A head fitted to three of them."""
        rows = [self.rows(self.d, self.new()) for _ in range(3)]
        X, domains = np.concatenate(rows), np.repeat(np.arange(3), self.d)
        scores = X @ self._rng.normal(size=(self.d, k)) + self._rng.gumbel(size=(len(X), k))
        return DAREClassifier(**options).fit(X, scores.argmax(axis=1), domains=domains)


def speed() -> str:
    """Rows a second of partial_fit and of a bare Gram product."""
    lines = []
    for d, m in product((768, 2048), (1024, 4096)):
        for k, half_life in ((10, None), (100, None), (10, 1e5)):
            domains = Domains(d)
            adapter = domains.head(k, max_iter=5).adapter(half_life=half_life)
            stretch = domains.new()
            gram, ours = _in_turn(adapter, [domains.rows(m, stretch) for _ in range(4)])
            speeds = [f"{m / gram:,.0f}", f"{m / ours:,.0f}", f"{gram / ours:.2f}"]
            lines.append([f"{d:,}", f"{m:,}", str(k), "yes" if half_life else "no", *speeds])
    header = ["features", "rows a chunk", "classes", "forgets", "Gram, rows/s", "ours", "share"]
    return table(header, lines)


def _in_turn(adapter: Adapter, chunks: list[np.ndarray]) -> tuple[float, float]:
    """Median seconds of a Gram product and of partial_fit, on the same chunks in turn."""
    times: tuple[list[float], list[float]] = [], []
    while adapter.n_seen_ < WARM_ROWS:
        adapter.partial_fit(chunks[0])
    for i in range(ROUNDS):
        X = chunks[i % len(chunks)]
        begin = time.perf_counter()
        _ = X.T @ X
        between = time.perf_counter()
        adapter.partial_fit(X)
        times[0].append(between - begin)
        times[1].append(time.perf_counter() - between)
    return float(np.median(times[0])), float(np.median(times[1]))


def refreshes(m: int = 1024) -> str:
    """Inverse roots computed, and milliseconds a chunk with the head after it."""
    lines = []
    for d, half_life, staleness in STALENESS:
        count = (1000 if d < 1000 else 100) if staleness else 10
        domains = Domains(d)
        adapter = domains.head().adapter(staleness=staleness, half_life=half_life)
        stretch, feeding, asking = domains.new(), [], []
        for _ in range(count):
            X = domains.rows(m, stretch)
            begin = time.perf_counter()
            adapter.partial_fit(X)
            between = time.perf_counter()
            _ = adapter.head_
            feeding.append(between - begin)
            asking.append(time.perf_counter() - between)
        feed, ask = (f"{1e3 * float(np.median(t)):.1f}" for t in (feeding, asking))
        memory = "all rows" if half_life is None else f"{half_life:,.0f}"
        ratio = f"{adapter.n_refreshes_} of {count:,}"
        lines.append([f"{d:,}", memory, f"{staleness:g}", ratio, feed, ask])
    header = ["features", "half-life", "staleness", "roots", "partial_fit, ms", "head_, ms"]
    return table(header, lines)


def fleet(d: int = 768, devices: int = 10_000, m: int = 16) -> str:
    """Memory and speed of many devices, a thousand of them in a call."""
    lines = []
    for rank in RANKS:
        domains = Domains(d)
        many = domains.head().fleet(rank=rank)
        seconds = {"partial_fit": 0.0, "again": 0.0, "predict": 0.0}
        for call, start in product(seconds, range(0, devices, 1000)):
            labels = np.repeat(np.arange(start, start + 1000), m)
            X = domains.rows(len(labels), domains.new())
            order = np.random.default_rng(start).permutation(len(labels))
            method = many.predict if call == "predict" else many.partial_fit
            begin = time.perf_counter()
            method(X[order], labels[order])
            seconds[call] += time.perf_counter() - begin
        speeds = [f"{devices * m / s:,.0f}" for s in seconds.values()]
        size = f"{many.bytes_per_device:,}"
        lines.append([str(rank), f"{len(many.devices_):,}", size, *speeds])
    header = ["rank", "devices", "bytes each", "first rows/s", "further rows/s", "predicted rows/s"]
    return table(header, lines)


def rank(root, names=SETS) -> str:
    """Accuracy on held-out domains of exact adapters, and of fleets by rank."""
    lines = []
    for name in names:
        data = standardized_folds(name, root)
        for form, shrinkage in product(("raw", "centered"), (0.9, 0.1)):
            scores = [list(_scores(fold, form, shrinkage)) for fold in data]
            d, mean = data[0].test.X.shape[1], np.mean(scores, axis=0)
            first = f"{name}, {len(data)} × {d}"
            lines.append([first, form, f"{shrinkage:g}", *map(percent, mean)])
    ranks = [f"rank {r}" for r in RANKS]
    header = ["set, held-out domains × features", "form", "shrinkage", "head", "adapter", *ranks]
    return table(header, lines)


def _scores(fold: Fold, form: str, shrinkage: float) -> Iterator[float]:
    """Of the head, of its adapter, and of fleets, fed 32 rows at a time."""
    head = DAREClassifier(adaptation=form, shrinkage=shrinkage, max_iter=3000)
    head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    X, y, devices = fold.test.X, fold.test.y, fold.test.domains
    yield head.score(X, y)
    yield head.adapt(X, prior_rows=0).score(X, y)
    for r in RANKS:
        many = head.fleet(rank=r, prior_rows=0)
        for start in range(0, len(X), 32):
            many.partial_fit(X[start : start + 32], devices[start : start + 32])
        yield float(np.mean(many.predict(X, devices) == y))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = {"speed": speed, "refreshes": refreshes, "fleet": fleet, "rank": rank}
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--data")
    args = parser.parse_args()
    unknown = [part for part in args.parts if part not in known]
    if unknown:
        parser.error(f"no part is called {unknown[0]}; there are {', '.join(known)}")
    warnings.simplefilter("ignore", LabelShiftWarning)
    for part in args.parts or known:
        print(f"{part}\n")
        print(rank(data_root(args.data)) if part == "rank" else known[part](), flush=True)


if __name__ == "__main__":
    main()
