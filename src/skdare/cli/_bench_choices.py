"""Names and defaults of the bench for help, which is quick because it does not import the bench.

The test `test_help_offers_what_the_bench_has` fails where the two differ.
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
HEAD_NAMES = (
    *("erm", "dare-cv", "dare-cv-adapted", "reweighted", "groupdro", "irm", "anchor"),
    *("dare", "adapted", "no-whitening", "no-constraint", "exact-constraint", "estimated-mean"),
)
DEFAULT_HEADS = ("erm", "dare-cv", "dare-cv-adapted", "dare", "adapted")
METRICS = (
    *("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "neg_log_loss"),
    *("r2", "neg_root_mean_squared_error", "neg_mean_absolute_error"),
)
# The heads of `skdare fit`, which fits `dare` with all that adapting needs.
FIT_HEADS = ("erm", "reweighted", "groupdro", "irm", "anchor", "dare", "dare-cv")
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
    """The default of a setting, as help shows it."""
    return f"  [default: {SETTINGS[name]}]"


def jobs() -> int:
    """Default number of threads: more than two only wait for each other on all but huge tables."""
    from joblib import cpu_count

    return min(2, cpu_count())
