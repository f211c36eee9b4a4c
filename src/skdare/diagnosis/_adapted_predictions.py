"""What a head, adapted to new rows, predicts for them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from skdare.arrays import Array
from skdare.diagnosis._score_scale import Reading, read
from skdare.fitting.domain_fit import domain_fit_of


@dataclass(frozen=True)
class AdaptedPredictions:
    """What the adapted head predicts for the new rows.

    Parameters
    ----------
    adapted : Reading, optional
        None where the head was not adapted.
    declined : str, optional
        Why it was not adapted, though it can adapt.
    """

    adapted: Reading | None
    declined: str | None


def adapted_predictions(head: Any, X: Array) -> AdaptedPredictions:
    """Adapt a head to rows, quietly, and read them."""
    if domain_fit_of(head).adaptation is None:
        return AdaptedPredictions(None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say, the caller says
        adapted = head.adapt(X)
    if adapted.adapted_rows_ is None:
        return AdaptedPredictions(None, "the rows speak against adapting, and it is declined")
    return AdaptedPredictions(read(adapted, X), None)
