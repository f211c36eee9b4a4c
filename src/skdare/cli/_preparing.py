"""Before a fit: options of head and rows, and which rows are left out or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import numpy as np

    from skdare.bench import Preparation
    from skdare.datasets import DomainData

SET = click.option(
    "--set",
    "options",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the head, such as shrinkage=0.5; may be repeated.",
)
PREPARATION = [
    click.option("--impute", type=click.Choice(["median"]), help="Fill missing values."),
    click.option("--standardize", is_flag=True, help="By the training rows' mean and spread."),
    click.option("--clip", type=float, help="Limit standardised values to this."),
]


def preparation_of(given: dict[str, Any]) -> Preparation:
    """What those options ask for."""
    from skdare.bench import Preparation

    return Preparation(given["impute"], given["standardize"], given["clip"])


def large_enough(table: DomainData, least: int) -> DomainData:
    """Without domains of fewer rows; features that lie on disk stay there."""
    import numpy as np

    from skdare.arrays import RowReader
    from skdare.datasets._lazy_rows import PreparedRows

    labels, counts = np.unique(table.domains, return_counts=True)
    kept = np.flatnonzero(np.isin(table.domains, labels[counts >= least]))
    if len(kept) == len(table.y):
        return table
    if not len(kept):
        raise ValueError(f"no domain has {least} rows, the largest {counts.max()}; --min-rows less")
    lazy = isinstance(table.X, RowReader)
    X: Any = PreparedRows(table.X, np.asarray, table.X.dtype, kept) if lazy else table.X[kept]
    return replace(table, X=X, y=table.y[kept], domains=table.domains[kept], split=None)


def check_whole(X: np.ndarray, what: str) -> None:
    """Missing values are told before a fit, with the option that fills them."""
    import numpy as np

    missing = int(np.isnan(X).any(axis=1).sum())
    if missing:
        raise ValueError(f"{missing} of the {what} rows have missing values; give --impute median")
