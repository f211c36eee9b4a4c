"""What looks wrong with new rows: the few warnings that were right more often than wrong.

Distances between domains say how unusual a domain is and little about what that costs: over 36
held-out domains of six sets, the error of the adjustment, the distance of means, the Fréchet
distance and a domain classifier's accuracy correlated with the loss of accuracy by 0.1 to 0.4. So
none of them is a warning, and what a shift costs is rehearsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skdare.fitting.safety_check import ClassShares
from skdare.whitening.moments import Moments

# Features that are this many times larger than in any training domain are in other units.
_OTHER_UNITS = 100.0
# Share of the sum of squares of squared lengths beyond which one or two rows hold most of them.
_DOMINATED = 0.25
_MANY_ROWS = 20


def about_rows(moments: Moments, training: Sequence[Moments]) -> Iterator[str]:
    """Rows that no model should be trusted on as they are."""
    scales = [m.scale(centered=False) ** 0.5 for m in training]
    scale = moments.scale(centered=False) ** 0.5
    if not min(scales) / _OTHER_UNITS <= scale <= max(scales) * _OTHER_UNITS:
        yield (
            f"The features are {scale / np.median(scales):,.2g} times as large as in training: "
            "their units or their preparation must differ. Correct that first; the scores "
            "above do not hold."
        )
    if moments.n < _MANY_ROWS:
        yield f"{moments.n:.0f} rows say little about a domain; {_MANY_ROWS} or more say enough."
    elif moments.quartic > _DOMINATED * moments.trace**2:
        yield "One or two rows hold most of the variance: look at them, and drop or clip them."


def about_classes(
    codes: np.ndarray, classes: Sequence[object], training: ClassShares
) -> Iterator[str]:
    """Predicted classes that are further from those in training than any training domain's."""
    shares = np.bincount(codes, minlength=len(classes)) / len(codes)
    distance = 0.5 * float(np.abs(shares - training.shares).sum())
    if distance > training.reach + 0.5 * np.sqrt(len(classes) / len(codes)):
        worst = int(np.argmax(np.abs(shares - training.shares)))
        yield (
            f"Classes look more or less common than in any training domain: class "
            f"{classes[worst]} {100 * shares[worst]:.0f} %, in training "
            f"{100 * training.shares[worst]:.0f} %. A few labels would tell; if they are, adapting "
            "can hurt."
        )
