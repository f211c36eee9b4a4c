"""The rows that a head is fitted to: options that prepare them, and checks before a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare.cli._table_check import standardizes

if TYPE_CHECKING:
    import numpy as np

    from skdare.bench._preparation import Preparation

SET = click.option(
    "--set",
    "options",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the head, such as shrinkage=0.5; may be repeated.",
)
PREPARATION = [
    click.option("--impute", type=click.Choice(["median"]), help="Fill missing values."),
    click.option(
        "--standardize/--no-standardize",
        default=None,
        help="By the training rows' mean and spread  [default: where one feature's spread is over "
        "a hundred times the median one]",
    ),
    click.option("--clip", type=float, help="Limit standardised values to this."),
]


def preparation_of(options: dict[str, Any], X: Any) -> Preparation:
    """The preparation that the options ask for, or else that the features need."""
    from skdare.bench._preparation import Preparation

    standardize = standardizes(options, X, quiet=bool(options.get("quiet")))
    return Preparation(options["impute"], standardize, options["clip"])


def check_domain_sizes(domains: np.ndarray, options: dict[str, Any]) -> None:
    """Refuse domains of one row where the head needs a covariance, and name the option for it.

    A head whose options were set may do with one row; it says so itself if it does not.
    """
    import numpy as np

    from skdare._validation import one_row_each
    from skdare.bench._heads import HEADS

    labels, counts = np.unique(domains, return_counts=True)
    if counts.min() > 1 or options["options"] or not HEADS[options["head"]].whitens:
        return
    what = one_row_each(labels[counts == 1].tolist())
    raise InputError(what, "leave such domains out with --min-rows 2, or merge them")


def check_no_missing_values(X: np.ndarray, which: str) -> None:
    """Refuse missing values before a fit, and name the option that fills them."""
    import numpy as np

    missing = int(np.isnan(X).any(axis=1).sum())
    if missing:
        have = "has" if missing == 1 else "have"
        raise ValueError(
            f"{missing} of the {which} rows {have} missing values; give --impute median"
        )
