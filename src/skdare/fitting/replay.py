"""Rows like those in training, drawn from the moments that a head keeps in their place.

A head keeps no rows. Where some labels of a new domain change it, rows drawn from the mean and the
covariance of every training domain hold it to what it learnt there.

Notation: Z (n, d) rows in canonical coordinates, L (d, d) a root of a covariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skdare.arrays import to_numpy
from skdare.fitting.formulation import Formulation
from skdare.fitting.lagrangian import training_shift
from skdare.whitening.adjustment import Adjustment, back
from skdare.whitening.moments import Moments
from skdare.whitening.roots.cholesky import cholesky

# Twice as many rows as features, so that every direction is held; and enough to know it well.
_FEWEST_ROWS = 1000
_MOST_NUMBERS = 1 << 24


def replayed_rows(
    moments: Sequence[Moments], adjustments: Sequence[Adjustment], formulation: Formulation
) -> np.ndarray:
    """Rows as a formulation sees them in training, the same number from every domain.

    Of very many domains some are drawn from, evenly spread.

    Parameters
    ----------
    moments : sequence of Moments
        Of the training domains, on the host.
    adjustments : sequence of Adjustment
        One for each.
    formulation : Formulation
    """
    return np.concatenate(list(_drawn(moments, adjustments, formulation)))


def _drawn(
    moments: Sequence[Moments], adjustments: Sequence[Adjustment], formulation: Formulation
) -> Iterator[np.ndarray]:
    d = moments[0].d
    whole = min(max(_FEWEST_ROWS, 2 * d), max(_MOST_NUMBERS // d, 2))
    each = -(-whole // len(moments))
    chosen = np.unique(np.linspace(0, len(moments) - 1, min(len(moments), whole)).round())
    overall_mean = np.mean([m.mean for m in moments], axis=0)
    rng = np.random.default_rng(0)
    for e in chosen.astype(int):
        mean = moments[e].mean
        X = mean + _deviations(moments[e], each, rng)
        shift = training_shift(formulation, mean, overall_mean)
        yield back(adjustments[e], (X if shift is None else X - shift).T).T


def _deviations(moments: Moments, n: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian rows of mean zero and of the covariance of these moments."""
    if moments.factor is not None:
        rows = moments.factor[:-1].astype(np.float64)
        return rng.standard_normal((n, len(rows))) @ rows / moments.n**0.5
    L = np.tril(cholesky(to_numpy(moments.second_moment()))[0])
    return rng.standard_normal((n, moments.d)) @ L.T
