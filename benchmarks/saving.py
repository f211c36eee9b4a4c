"""Saving and loading heads: size and time, beside pickle (joblib) and skops.

    python benchmarks/saving.py

Heads of 2,048 features and 65 classes, fitted to four domains of 1,500 random rows each, written
to a folder of the system's temporary files and read back; the median of five. Time to load
includes the checksum of every byte.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import skops.io

import skdare

REPEATS = 5


def fitted() -> skdare.DAREClassifier:
    """A head of the size that fine-tuned networks of Office-Home have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2048)).astype(np.float32)
    y, domains = rng.integers(0, 65, size=6000), np.repeat(np.arange(4), 1500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return skdare.DAREClassifier(max_iter=5).fit(X, y, domains=domains)


def median(call: Callable[[], object]) -> float:
    """Seconds."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def main() -> None:
    """Print the table."""
    head = fitted()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head"
        unknown = skops.io.get_untrusted_types(data=skops.io.dumps(head))
        ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "`head.save`": (lambda: head.save(path), lambda: skdare.load(path)),
            "`head.save`, adaptable=False": (
                lambda: head.save(path, adaptable=False),
                lambda: skdare.load(path),
            ),
            "pickle (joblib)": (lambda: joblib.dump(head, path), lambda: joblib.load(path)),
            "skops": (
                lambda: skops.io.dump(head, path),
                lambda: skops.io.load(path, trusted=unknown),
            ),
        }
        print("| | MB | save, s | load, s |\n|---|---:|---:|---:|")
        for name, (save, load) in ways.items():
            seconds = median(save), median(load)
            size = path.stat().st_size / 1e6
            print(f"| {name} | {size:.1f} | {seconds[0]:.2f} | {seconds[1]:.2f} |")


if __name__ == "__main__":
    main()
