"""What help says of the bench, said here once more so that help need not import the bench.

The test `test_help_offers_what_the_bench_has` holds both together.
"""

from __future__ import annotations

from typing import Any

PROTOCOLS = ("default", "paper")
TASKS = ("classification", "regression")
TESTED_ON = ("reserved", "rest", "all")
VALIDATE_WITH = ("own", "mean")
EXTRAS = ("ceilings", "sgd", "curve", "diagnostics")
DEFAULT_EXTRAS = ("ceilings", "diagnostics")
PROJECTIONS = ("random", "pca")
ABLATIONS = ("whitening", "constraint", "mean", "lambda", "shrinkage", "dimension", "domains")
TRIALS = 3
FORMATS = ("html", "md", "tex", "csv")
SETTINGS: dict[str, Any] = {
    "protocol": "default",
    "aside": 0.2,
    "l2": "matched",
    "l2_grid": (0.001, 0.01, 0.1),
    "step": 0.2,
    "inner": 20,
    "patience": 20,
    "validate_with": "own",
}


def usual(name: str) -> str:
    """The default of a setting, as help tells it."""
    return f"  [default: {SETTINGS[name]}]"


def jobs() -> int:
    """More threads than two only wait for each other, but where features are very large."""
    from joblib import cpu_count

    return min(2, cpu_count())
