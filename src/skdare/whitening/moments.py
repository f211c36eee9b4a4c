"""Weighted moments of rows: they add up, so chunks, workers and days reduce to one sum.

Notation: X (n, d) rows, S (d, d) second moment, Z rows minus a point.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

import numpy as np
from scipy import sparse

from skdare._validation import check_number, warn
from skdare.arrays import (
    SMALLEST_SPREAD,
    Array,
    Index,
    as_float64,
    chunks,
    float64,
    gram,
    length,
    like,
    namespace,
    power_of_two_near,
    take,
    to_numpy,
)
from skdare.whitening.shrinkage import SHRINKAGE_RULES
from skdare.whitening.sums import (
    STACK,
    Powers,
    RunningSums,
    in_fitting_dtype,
    point_near_mean,
    shifted_powers,
    total,
    weighted_sum,
)

__all__ = ["Moments"]

# The square of the share that one row must hold of the total variance to be called an outlier.
_DOMINATED = 0.25
_MANY_ROWS = 20
# Second moments whose squares are normal numbers.
_SMALLEST_SQUARED = 1e-150
EPS = float(np.finfo(np.float64).eps)
NO_ROWS = "moments need at least one row of positive weight"


class Moments:
    """Total weight, mean and scatter of rows; the sum of two is the moments of all their rows.

    Fewer dense rows than features are kept as such, and no (d, d) matrix is made of them before
    it is asked for.

    Parameters
    ----------
    n : float
        Total weight: the number of rows, where rows are not weighted. A weight of two is a row
        given twice.
    mean : array of shape (d,)
    scatter : array of shape (d, d), optional
        Weighted sum of ``(x - mean)(x - mean)ᵀ``, in float64.
    cubic : array of shape (d,), optional
        Weighted sum of ``‖x - mean‖² (x - mean)``; with ``quartic``, what Ledoit–Wolf needs
        beyond the scatter in a form that still adds up.
    quartic : float, optional
        Weighted sum of ``‖x - mean‖⁴``.
    factor : array of shape (m + 1, d), optional
        In place of the scatter: rows that have it as their Gram matrix, such as deviations from
        the mean times the roots of their weights, and √n times the mean below them.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.whitening import Moments
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> whole, parts = Moments.of(X), Moments.of(X[:4]) + Moments.of(X[4:])
    >>> bool(np.allclose(whole.scatter, parts.scatter))
    True
    """

    def __init__(
        self,
        n: float,
        mean: Array,
        scatter: Array | None = None,
        cubic: Array | None = None,
        quartic: float | None = None,
        *,
        factor: Array | None = None,
    ) -> None:
        self.n = n
        self.mean = mean
        self.cubic = cubic
        self.quartic = quartic
        self.factor = factor
        self._scatter = scatter

    @classmethod
    def of(
        cls, X: Array, index: Index | None = None, sample_weight: Array | None = None
    ) -> Moments:
        """Moments of the indexed rows of X, in one pass over chunks, accumulated in float64.

        X may be dense, memory-mapped, CSR or an array-API array; ``sample_weight`` has one
        entry for each indexed row.
        """
        index = slice(0, X.shape[0]) if index is None else index
        if 0 < length(index) < X.shape[1] and not sparse.issparse(X):
            return _of_few_rows(take(X, index), sample_weight)
        sums: RunningSums | None = None
        for place, rows in chunks(X, index):
            weight = None if sample_weight is None else like(sample_weight[place], X, float64(X))
            if sums is None:
                sums = RunningSums(point_near_mean(rows, weight))
            sums.add(rows, weight)
        if sums is None or sums.n == 0:
            raise ValueError(NO_ROWS)
        return Moments(*sums.about_mean())

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        n = self.n + other.n
        mean = self.mean + (other.mean - self.mean) * (other.n / n)
        cubic = quartic = None
        if self.cubic is not None and other.cubic is not None:
            ours = self._powers(mean - self.mean)
            theirs = other._powers(mean - other.mean)
            cubic = ours.cubic + theirs.cubic
            quartic = ours.quartic + theirs.quartic
        # The means differ by a row of their own, of weight n₁ n₂ / n.
        apart = (other.mean - self.mean) * (self.n * other.n / n) ** 0.5
        if self.factor is not None and other.factor is not None:
            parts = [self.factor[:-1, :], other.factor[:-1, :], apart[None, :]]
            if sum(part.shape[0] for part in parts) < self.d:
                stacked = _stack([*parts, mean[None, :] * n**0.5], self.factor)
                return Moments(n, mean, None, cubic, quartic, factor=stacked)
        scatter = self.scatter + other.scatter + apart[:, None] * apart[None, :]
        return Moments(n, mean, scatter, cubic, quartic)

    def _powers(self, delta: Array) -> Powers:
        """The cubic and quartic sums about a point δ away from the mean."""
        if self.cubic is None or self.quartic is None:
            raise ValueError("Ledoit–Wolf needs the quartic moment; make these with Moments.of")
        Sd = self._scatter_times(delta)
        return shifted_powers(
            Powers(self.cubic, self.quartic), self.n, self.trace, delta * 0.0, Sd, delta
        )

    def _scatter_times(self, v: Array) -> Array:
        if self.factor is None:
            return self.scatter @ v
        Z = as_float64(self.factor[:-1, :])
        return namespace(Z).matrix_transpose(Z) @ (Z @ v)

    @property
    def scatter(self) -> Array:
        """Weighted sum of ``(x - mean)(x - mean)ᵀ``, in float64; of few rows made when asked."""
        if self.factor is None:
            return self._scatter
        return gram(as_float64(self.factor[:-1, :]))

    @cached_property
    def variances(self) -> Array:
        """Variance of each feature, with divisor n."""
        if self.factor is None:
            return namespace(self.mean).linalg.diagonal(self.scatter) / self.n
        Z = as_float64(self.factor[:-1, :])
        return namespace(Z).sum(Z * Z, axis=0) / self.n

    @property
    def d(self) -> int:
        """Number of features of a row."""
        return int(self.mean.shape[0])

    @cached_property
    def trace(self) -> float:
        """Total scatter: the sum of squared distances from the mean."""
        if self.factor is None:
            return float(namespace(self.mean).linalg.trace(self.scatter))
        Z = as_float64(self.factor[:-1, :])
        return total(Z * Z)

    @property
    def concentration(self) -> float:
        """Σ‖x - μ‖⁴ / (Σ‖x - μ‖²)²: about 1/n for rows alike, 1 where one row has it all."""
        if self.quartic is None or not self.trace > 0:
            return 0.0
        return self.quartic / self.trace / self.trace

    @property
    def dominated(self) -> bool:
        """Whether one or two of many rows hold most of the variance, and decide adjustments."""
        return self.n >= _MANY_ROWS and self.concentration > _DOMINATED

    def second_moment(self, *, centered: bool = True) -> Array:
        """Covariance with divisor n, or the raw second moment about the origin."""
        S = self.scatter / self.n
        return S if centered else S + self.mean[:, None] * self.mean[None, :]

    def feature_moments(self, *, centered: bool = True) -> Array:
        """The diagonal of the second moment, without the matrix."""
        return self.variances if centered else self.variances + as_float64(self.mean) ** 2

    def scale(self, *, centered: bool = True) -> float:
        """Mean over features of their second moment, tr(S) / d."""
        xp = namespace(self.mean)
        square = 0.0 if centered else float(xp.sum(self.mean * self.mean))
        return (self.trace / self.n + square) / self.d

    def varies(
        self, *, centered: bool = True, eps: float = EPS, smallest: float = SMALLEST_SPREAD
    ) -> bool:
        """Whether there is a second moment to invert, and it is more than rounding.

        Rows that are all the same have no covariance, and zeros no second moment. ``eps`` is the
        rounding unit of the rows, ``smallest`` what they must differ by.
        """
        square = float(namespace(self.mean).sum(self.mean * self.mean)) / self.d
        return self.scale(centered=centered) > max(smallest**2, eps**2 * square)

    def shrinkage(self, rule: float | str, *, centered: bool = True) -> float:
        """The strength of shrinkage towards ``(tr/d) I`` that a rule asks for.

        A number stands for itself; ``"ledoit-wolf"`` and ``"oas"`` are estimated from the
        moments alone and equal scikit-learn's on the rows.
        """
        check_number("shrinkage", rule, 0.0, 1.0, also=SHRINKAGE_RULES)
        if not isinstance(rule, str):
            return float(rule)
        d = self.d
        n = self.n
        if 0 < self.scale(centered=centered) < _SMALLEST_SQUARED:
            raise ValueError(
                f"the squares of second moments vanish, and shrinkage={rule!r} is made of them; "
                "multiply the features by a constant, or set shrinkage to a number"
            )
        scale = self.scale(centered=centered)
        norm = self._squared_norm(centered)
        spread = norm - d * scale**2
        if spread <= 0:
            return 1.0
        if rule == "oas":
            alpha = norm / d**2
            return min(1.0, (alpha + scale**2) / ((n + 1.0) * (alpha - scale**2 / d)))
        quartic = self._powers(self.mean * (0.0 if centered else -1.0)).quartic
        return max(0.0, min(quartic / n - norm, n * spread) / (n * spread))

    def _squared_norm(self, centered: bool) -> float:
        """Sum of the squared entries of the second moment; of few rows, through their products."""
        if self.factor is None:
            S = self.second_moment(centered=centered)
            return total(S * S)
        R = as_float64(self.factor[:-1, :] if centered else self.factor)
        K = R @ namespace(R).matrix_transpose(R) / self.n
        return total(K * K)

    def to_numpy(self) -> Moments:
        """The moments as NumPy arrays on the host."""
        if isinstance(self.mean, np.ndarray):
            return self
        cubic, scatter, factor = (
            None if a is None else to_numpy(a) for a in (self.cubic, self._scatter, self.factor)
        )
        return Moments(self.n, to_numpy(self.mean), scatter, cubic, self.quartic, factor=factor)


def warn_of_outliers(moments: Mapping[Hashable, Moments]) -> None:
    """Say where one or two rows decide a domain's second moment."""
    dominated = [label for label, m in moments.items() if m.dominated]
    if dominated:
        more = f" (and of {len(dominated) - 1} more)" if len(dominated) > 1 else ""
        warn(
            f"one or two of the rows of domain {dominated[0]}{more} hold most of their variance, "
            "and decide how the others are adjusted; look for outliers, or clip the features"
        )


def covariance_times(moments: Moments, V: Array) -> Array:
    """Covariance times vectors; of few rows, through the rows."""
    return moments._scatter_times(V) / moments.n


def pooled_second_moment(moments: Sequence[Moments], *, centered: bool = True) -> Array:
    """Equal-weight mean over domains of their second moments."""
    return weighted_second_moment(moments, [1.0 / len(moments)] * len(moments), centered=centered)


def weighted_second_moment(
    moments: Sequence[Moments], weights: Sequence[float], *, centered: bool = True
) -> Array:
    """``Σ w S`` in float64, in one (d, d) accumulator; domains of few rows many at a time."""
    first = moments[0].mean
    pool = as_float64(first[:, None] * first[None, :]) * 0.0
    pairs = list(zip(moments, weights, strict=True))
    # In a unit in which float32 holds the squares.
    scale = sum(w * m.scale(centered=centered) for m, w in pairs if m.factor is not None)
    unit = power_of_two_near(scale**0.5)
    factors: list[Array] = []
    for m, w in pairs:
        if m.factor is None:
            pool += w * m.second_moment(centered=centered)
            continue
        rows = m.factor[:-1, :] if centered else m.factor
        factors.append(rows * ((w / m.n) ** 0.5 / unit))
        if sum(part.shape[0] for part in factors) >= STACK:
            pool += unit**2 * as_float64(gram(_stack(factors, factors[0])))
            factors = []
    return pool + unit**2 * as_float64(gram(_stack(factors, factors[0]))) if factors else pool


def _stack(parts: Sequence[Array], beside: Array) -> Array:
    """Rows of several arrays in one, in the dtype of another."""
    xp = namespace(beside)
    return xp.concat([xp.astype(part, beside.dtype, copy=False) for part in parts], axis=0)


def _of_few_rows(rows: Array, sample_weight: Array | None) -> Moments:
    """Moments of fewer rows than features, which hold the rows' deviations."""
    weight = None if sample_weight is None else like(sample_weight, rows, float64(rows))
    ones = like(np.ones(rows.shape[0]), rows, float64(rows)) if weight is None else weight
    n = total(ones)
    if not n > 0:
        raise ValueError(NO_ROWS)
    # From a point that the rows' dtype has, and twice: the rounding of a large mean comes off.
    mean = point_near_mean(rows, weight)
    Z = rows - like(mean, rows)
    rest = weighted_sum(Z, ones) / n
    Z = Z - like(rest, rows)
    mean = mean + rest
    fitting, norms = in_fitting_dtype(Z)
    cubic = weighted_sum(fitting, ones * norms)
    quartic = total(ones * norms * norms)
    if weight is not None:
        Z = Z * like(weight**0.5, rows)[:, None]
    factor = _stack([Z, mean[None, :] * n**0.5], Z)
    return Moments(n, mean, None, cubic, quartic, factor=factor)
