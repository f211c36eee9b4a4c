"""How many rows of a new domain the average of the training domains counts as.

A quantity of a domain varies between domains by τ², and is known from n rows up to σ²/n. The best
blend of the two, n / (n + σ²/τ²) of the rows' own and the rest of the training domains' average,
is a prior of σ²/τ² rows. Means need few rows, matrices many: each has a prior of its own.

Notation: c (d,) inverse scales of the features, S (d, d) covariance in units of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdare.arrays import as_float64, beside, like, namespace, to_numpy
from skdare.whitening.adjustment import Adjustment, average, mean_shift
from skdare.whitening.moments import Moments
from skdare.whitening.whitening import Whitening

# The average of domains that do not differ would count as any number of rows.
_MOST_ROWS = 1000.0
# The average of the training domains is no good guess where domains differ much. At this many rows
# the adapted head counts as much as the unadapted one: with 2 and 5 rows, adapting alone lost up
# to 16 points where all rows gained 5 to 30.
_HALF_ADAPTED = 10.0


@dataclass(frozen=True)
class Trust:
    """Weight of n new rows relative to the training domains' average, and to the unadapted head."""

    mean: float
    adjustment: float
    head: float

    def blend(self, own: Adjustment, rest: Adjustment) -> Adjustment:
        """The rows' own adjustment and the average one, W and m each as far as trusted."""
        W = average([own, rest], [self.adjustment, 1.0 - self.adjustment])
        return replace(W, shift=mean_shift([own, rest], [self.mean, 1.0 - self.mean]))


@dataclass(frozen=True)
class PriorRows:
    """How many rows of a new domain the average of the training domains counts as."""

    mean: float
    adjustment: float
    half_adapted: float = 0.0

    def trust(self, n: float) -> Trust:
        # The square lets go of the unadapted head soon: weight 0.2 at 5 rows, 0.8 at 20.
        head = n**2 / (n**2 + self.half_adapted**2)
        return Trust(n / (n + self.mean), n / (n + self.adjustment), head)

    @classmethod
    def of_domains(cls, moments: Sequence[Moments], whitening: Whitening) -> PriorRows:
        """σ²/τ² of the means, and of the variances or covariances; one domain counts as d rows."""
        if not whitening.blends:
            return cls(0.0, 0.0)
        varying = [m for m in moments if m.trace > 0]
        if len(varying) < 2:
            d = float(moments[0].mean.shape[0])
            return cls(d, d, _HALF_ADAPTED)
        E = len(varying)
        n = np.array([m.n for m in varying])
        variances = np.stack([to_numpy(m.variances) for m in varying])
        c = variances.mean(axis=0)
        c = np.where(c > 0, c, 1.0) ** -0.5
        traces = (variances * c**2).sum(axis=1)
        means = np.stack([to_numpy(m.mean) * c for m in varying])
        mean = _rows(traces, n, means.var(axis=0, ddof=1).sum())
        # Sampling noise is that of normal rows. A factor for heavy tails, from fourth powers,
        # depended on the features' units, and over 14 sets gained nothing at 10 to 100 rows.
        if whitening.target == "diagonal" and whitening.shrinkage == 1.0:
            # By logarithms: n times the variance of one is 2.
            present = variances.min(axis=0) > 0
            logs = np.log(variances[:, present])
            noise = np.full(E, 2.0 * present.sum())
            return cls(mean, _rows(noise, n, logs.var(axis=0, ddof=1).sum()), _HALF_ADAPTED)
        sizes = np.array([_squared_norm(m, c) for m in varying])
        between = (sizes.mean() - _squared_norm(_mean(varying), c)) * E / (E - 1)
        return cls(mean, _rows(traces**2 + sizes, n, between), _HALF_ADAPTED)


def _rows(noise: np.ndarray, n: np.ndarray, spread: float) -> float:
    """σ²/τ² where domains of n rows spread by ``spread``, of which noise / n is sampling."""
    within = noise.mean()
    between = spread - np.mean(noise / n)
    # At least one row: a single one is never enough alone.
    return float(np.clip(within / max(between, within / _MOST_ROWS), 1.0, _MOST_ROWS))


def _squared_norm(moments: Moments, c: np.ndarray) -> float:
    """‖S‖² of the covariance with features in units of 1/c; of few rows, through their products."""
    scale = beside(c, moments.mean)
    if moments.rows is None:
        S = scale[:, None] * (moments.dense_scatter() / moments.n) * scale
        return float(namespace(S).sum(S * S))
    Z = as_float64(moments.rows[:-1, :]) * (scale / moments.n**0.5)
    return float(namespace(Z).sum((Z @ Z.T) ** 2))


def _mean(moments: Sequence[Moments]) -> Moments:
    """Moments of weight one whose covariance is the mean of the domains' covariances."""
    zero = 0.0 * moments[0].mean
    shares = [1.0 / (len(moments) * m.n) for m in moments]
    rows = [m.rows[:-1, :] for m in moments if m.rows is not None]
    if len(rows) == len(moments) and sum([Z.shape[0] for Z in rows]) < zero.shape[0]:
        parts = [Z * share**0.5 for Z, share in zip(rows, shares, strict=True)]
        parts.append(like(zero, rows[0])[None, :])
        return Moments(1.0, zero, None, namespace(zero).concat(parts, axis=0))
    scatter = 0.0  # one accumulator: a (d, d) matrix of each domain may be too much
    for m, share in zip(moments, shares, strict=True):
        scatter = scatter + share * m.dense_scatter()
    return Moments(1.0, zero, scatter, None)
