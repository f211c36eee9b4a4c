"""How many rows of a new domain the training domains are worth: by how much domains differ.

A quantity of a domain (its mean, its second moment) varies between domains by τ², and is known from
n rows up to σ²/n. The best blend of the two, n / (n + σ²/τ²) of the rows' own and the rest of the
training domains' average, is a prior of σ²/τ² rows. Means need few rows, matrices many: each has a
prior of its own. That average is no good guess where domains differ much: a handful of rows is
therefore blended with the head as it was.

Notation: c (d,) inverse scales of the features, S (d, d) covariance in units of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare.whitening.moments import Moments, weighted_second_moment
from skdare.whitening.whitening import Whitening

# Domains that cannot be told apart differ by nothing, and would be worth any number of rows.
_MOST_ROWS = 1000.0
# At this many rows of a new domain the adapted head counts as much as the unadapted one. With 2 and
# 5 rows, adapting alone lost up to 16 points where all rows gained 5 to 30; docs/decisions.md.
HALF_ADAPTED = 10.0


@dataclass(frozen=True)
class Trust:
    """The share of what a domain's own rows say; the rest is the training domains' average.

    Parameters
    ----------
    mean, adjustment : float
        In the mean that is subtracted, and in the adjustment.
    head : float
        The share of the adapted head beside the unadapted one.
    """

    mean: float
    adjustment: float
    head: float = 1.0


@dataclass(frozen=True)
class PriorRows:
    """How many rows of a new domain the average of the training domains counts as.

    Parameters
    ----------
    mean, adjustment : float
        For the mean that is subtracted, and for the adjustment.
    half_adapted : float
        The rows at which the adapted head counts as much as the unadapted one.
    """

    mean: float
    adjustment: float
    half_adapted: float = 0.0

    def trust(self, n: float) -> Trust:
        """What n rows of a new domain count beside it."""
        # The square lets go of the unadapted head soon: five rows count a fifth, twenty four.
        head = n**2 / (n**2 + self.half_adapted**2)
        return Trust(n / (n + self.mean), n / (n + self.adjustment), head)

    @classmethod
    def of_domains(cls, moments: Sequence[Moments], whitening: Whitening) -> PriorRows:
        """What the training domains are worth, by their moments on the host.

        One domain says nothing of how domains differ, and counts as d rows.
        """
        varying = [m for m in moments if m.varies()]
        if len(varying) < 2:
            return cls(float(moments[0].d), float(moments[0].d), HALF_ADAPTED)
        c = np.mean([m.variances for m in varying], axis=0)
        c = np.where(c > 0, c, 1.0) ** -0.5
        mean = _ratio(np.stack([m.mean * c for m in varying]), varying, _traces(varying, c))
        if whitening.target == "diagonal" and whitening.shrinkage == 1.0:
            return cls(mean, _scale_prior(varying), HALF_ADAPTED)
        return cls(mean, _matrix_prior(varying, c), HALF_ADAPTED)


def _traces(moments: Sequence[Moments], c: np.ndarray) -> np.ndarray:
    """Variance of a row of each domain, summed over features."""
    return np.array([(m.variances * c**2).sum() for m in moments])


def _scale_prior(moments: Sequence[Moments]) -> float:
    """Prior rows by the logarithms of variances.

    n times the variance of one is 2, and more with heavy tails.
    """
    present = np.min([m.variances for m in moments], axis=0) > 0
    if not present.any():
        return _MOST_ROWS
    logs = np.stack([np.log(m.variances[present]) for m in moments])
    noise = np.array([2.0 * present.sum() * _tails(m) for m in moments])
    return _ratio(logs, moments, noise)


def _matrix_prior(moments: Sequence[Moments], c: np.ndarray) -> float:
    """Prior rows by all entries of the covariances.

    By their squared norms, so that no matrix is made for each domain.
    """
    sizes = np.array([_squared_norm(m, c) for m in moments])
    traces = _traces(moments, c)
    n = np.array([m.n for m in moments])
    noise = np.array([_tails(m) for m in moments]) * (traces**2 + sizes)
    spread = (sizes.mean() - _squared_mean(moments, c)) * len(moments) / (len(moments) - 1)
    return _bounded(noise.mean(), spread - float(np.mean(noise / n)))


def _squared_mean(moments: Sequence[Moments], c: np.ndarray) -> float:
    """Squared norm of the average covariance; of fewer rows than features, through the rows."""
    E = len(moments)
    factors = [m.factor[:-1] * (c / (E * m.n) ** 0.5) for m in moments if m.factor is not None]
    if len(factors) == E and sum(map(len, factors)) < len(c):
        A = np.concatenate(factors).astype(np.float64)
        return float(np.sum((A @ A.T) ** 2))
    mean = c[:, None] * weighted_second_moment(moments, [1.0 / E] * E) * c[None, :]
    return float(np.sum(mean * mean))


def _squared_norm(moments: Moments, c: np.ndarray | float) -> float:
    """Sum of the squared entries of the covariance, with features in units of 1/c."""
    if moments.factor is None:
        S = moments.second_moment()
        return float(np.sum((c * S * np.asarray(c)[..., None]) ** 2))
    Z = moments.factor[:-1].astype(np.float64) * c
    return float(np.sum((Z @ Z.T / moments.n) ** 2))


def _tails(moments: Moments) -> float:
    """E‖z‖⁴ beside that of a Gaussian of the same covariance: one, or more with heavy tails."""
    total = (moments.trace / moments.n) ** 0.5
    gaussian = 1.0 + 2.0 * _squared_norm(moments, 1.0 / total)
    return max(1.0, moments.n * moments.concentration / gaussian)


def _ratio(values: np.ndarray, moments: Sequence[Moments], noise: np.ndarray) -> float:
    """σ²/τ² of values by domain, (E, d), whose variance in a domain of n rows is noise / n."""
    n = np.array([m.n for m in moments])
    spread = float(values.var(axis=0, ddof=1).sum())
    return _bounded(noise.mean(), spread - float(np.mean(noise / n)))


def _bounded(within: float, between: float) -> float:
    """At least one row: a single one never says all."""
    return float(np.clip(within / max(between, within / _MOST_ROWS), 1.0, _MOST_ROWS))
