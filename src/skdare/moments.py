"""Weighted moments of rows: they add up, so chunks, workers and days reduce to one sum.

Notation: X (n, d) rows, S (d, d) second moment, Z rows minus a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy import sparse

from skdare._array import (
    Array,
    Index,
    chunks,
    float64,
    identity,
    like,
    namespace,
    same_place,
    to_numpy,
)
from skdare._validation import check_choice, check_number
from skdare.row_sums import (
    deviation_gram,
    deviation_sum,
    squared_distances,
    total,
    weighted_mean,
)

SHRINKAGE_RULES = ("ledoit-wolf", "oas")
# The square of the share that one row must hold of the total variance to be called an outlier.
_DOMINATED = 0.25
_MANY_ROWS = 20


@dataclass(frozen=True, eq=False)
class Moments:
    """Total weight, mean and scatter of rows; the sum of two is the moments of all their rows.

    Parameters
    ----------
    n : float
        Total weight: the number of rows, where rows are not weighted. A weight of two is a row
        given twice.
    mean : array of shape (d,)
    scatter : array of shape (d, d)
        Weighted sum of ``(x - mean)(x - mean)ᵀ``, in float64.
    cubic : array of shape (d,), optional
        Weighted sum of ``‖x - mean‖² (x - mean)``; with ``quartic``, what Ledoit–Wolf needs
        beyond the scatter in a form that still adds up.
    quartic : float, optional
        Weighted sum of ``‖x - mean‖⁴``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.moments import Moments
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> whole, parts = Moments.of(X), Moments.of(X[:4]) + Moments.of(X[4:])
    >>> bool(np.allclose(whole.scatter, parts.scatter))
    True
    """

    n: float
    mean: Array
    scatter: Array
    cubic: Array | None = None
    quartic: float | None = None

    @classmethod
    def of(
        cls, X: Array, index: Index | None = None, sample_weight: Array | None = None
    ) -> Moments:
        """Moments of the indexed rows of X, in one pass over chunks, accumulated in float64.

        X may be dense, memory-mapped, CSR or an array-API array; ``sample_weight`` has one
        entry for each indexed row.
        """
        index = slice(0, X.shape[0]) if index is None else index
        sums: RunningSums | None = None
        for place, rows in chunks(X, index):
            weight = None if sample_weight is None else like(sample_weight[place], X, float64(X))
            if sums is None:
                sums = RunningSums(weighted_mean(rows, weight))
            sums.add(rows, weight)
        if sums is None or sums.n == 0:
            raise ValueError("moments need at least one row of positive weight")
        return sums.moments()

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        n = self.n + other.n
        delta = (other.mean - self.mean) * (other.n / n)
        mean = self.mean + delta
        ours, theirs = self._about(mean), other._about(mean)
        cubic = quartic = None
        if ours.cubic is not None and theirs.cubic is not None:
            cubic = ours.cubic + theirs.cubic
            quartic = ours.quartic + theirs.quartic  # type: ignore[operator]
        return Moments(n, mean, ours.scatter + theirs.scatter, cubic, quartic)

    def _about(self, point: Array) -> Moments:
        """The same sums about another point (the ``mean`` field then holds that point)."""
        zero = self.mean * 0.0
        return _shift(self, zero, point - self.mean)

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.mean.shape[0])

    @property
    def trace(self) -> float:
        """Total scatter: the sum of squared distances from the mean."""
        return float(namespace(self.mean).linalg.trace(self.scatter))

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

    def scale(self, *, centered: bool = True) -> float:
        """Mean over features of their second moment, tr(S) / d."""
        xp = namespace(self.mean)
        square = 0.0 if centered else float(xp.sum(self.mean * self.mean))
        return (self.trace / self.n + square) / self.d

    def shrinkage(self, rule: float | str, *, centered: bool = True) -> float:
        """The strength of shrinkage towards ``(tr/d) I`` that a rule asks for.

        A number stands for itself; ``"ledoit-wolf"`` and ``"oas"`` are estimated from the
        moments alone and equal scikit-learn's on the rows.
        """
        check_number("shrinkage", rule, 0.0, 1.0, also=SHRINKAGE_RULES)
        if not isinstance(rule, str):
            return float(rule)
        xp = namespace(self.mean)
        S, d, n = self.second_moment(centered=centered), self.d, self.n
        scale, norm = self.scale(centered=centered), float(xp.sum(S * S))
        spread = norm - d * scale**2
        if spread <= 0:
            return 1.0
        if rule == "oas":
            alpha = norm / d**2
            return min(1.0, (alpha + scale**2) / ((n + 1.0) * (alpha - scale**2 / d)))
        quartic = self.quartic if centered else self._about(self.mean * 0.0).quartic
        if quartic is None:
            raise ValueError("Ledoit–Wolf needs the quartic moment; make these with Moments.of")
        return max(0.0, min(quartic / n - norm, n * spread) / (n * spread))

    def covariance(
        self,
        shrinkage: float | str = 0.0,
        target: str | Array = "scaled",
        *,
        centered: bool = True,
    ) -> Array:
        """Second moment shrunk towards a target: ``(1 - ρ) S + ρ target``.

        Parameters
        ----------
        shrinkage : float in [0, 1], "ledoit-wolf" or "oas"
        target : "scaled", "identity" or array of shape (d, d)
            ``(tr S / d) I``; the raw identity, as the paper prints it; or a matrix, such as
            the pooled covariance of other domains.
        centered : bool
            Covariance, or the raw second moment.
        """
        rho = self.shrinkage(shrinkage, centered=centered)
        S = self.second_moment(centered=centered)
        if isinstance(target, str):
            check_choice("target", target, ("scaled", "identity"))
            ridge = 1.0 if target == "identity" else self.scale(centered=centered)
            return (1.0 - rho) * S + (rho * ridge) * identity(S)
        return (1.0 - rho) * S + rho * target

    def to_numpy(self) -> Moments:
        """The same moments as NumPy arrays on the host."""
        cubic = None if self.cubic is None else to_numpy(self.cubic)
        return Moments(self.n, to_numpy(self.mean), to_numpy(self.scatter), cubic, self.quartic)


def pooled_second_moment(moments: Sequence[Moments], *, centered: bool = True) -> Array:
    """Equal-weight mean over domains of their second moments."""
    pool = moments[0].second_moment(centered=centered)
    for m in moments[1:]:
        pool = pool + m.second_moment(centered=centered)
    return pool / len(moments)


def _shift(sums: Moments, linear: Array, delta: Array) -> Moments:
    """Sums about ``point`` moved to ``point + δ``; ``linear`` is Σ z about the old point.

    With z' = z - δ and ‖z'‖² = ‖z‖² - 2 z·δ + ‖δ‖², expand each power and sum.
    """
    n, square, trace, Sd = sums.n, total(delta * delta), sums.trace, sums.scatter @ delta
    cross, point = total(linear * delta), sums.mean + delta
    # S - zδᵀ - δzᵀ + nδδᵀ as one product of rank two: it passes the (d, d) matrix once.
    xp, half = namespace(delta), linear - 0.5 * n * delta
    scatter = sums.scatter - xp.stack([half, delta], axis=1) @ xp.stack([delta, half])
    if sums.cubic is None or sums.quartic is None:
        return Moments(n, point, scatter)
    cubic = sums.cubic - 2 * Sd + square * linear - (trace - 2 * cross + n * square) * delta
    quartic = (
        sums.quartic
        + 4 * total(delta * Sd)
        + n * square * square
        - 4 * total(sums.cubic * delta)
        + 2 * square * trace
        - 4 * square * cross
    )
    return Moments(n, point, scatter, cubic, quartic)


class RunningSums:
    """Running sums about a fixed point near the mean: one (d, d) accumulator, added to in place.

    About the first chunk's mean, not the origin: the mean of ReLU features is as large as their
    spread, and subtracting n μμᵀ afterwards would cost those digits in float32.

    Parameters
    ----------
    point : array of shape (d,)
        In float64; the sums stay in its array library and on its device.
    """

    def __init__(self, point: Array) -> None:
        self.point, self.n, self.quartic = point, 0.0, 0.0
        self.linear, self.cubic = point * 0.0, point * 0.0
        self.square = self.linear[:, None] * self.linear[None, :]

    def add(self, rows: Array, weight: Array | None) -> None:
        """Add a chunk of rows; a sparse chunk stays sparse, a dense one is centred once."""
        point = self.point
        if not sparse.issparse(rows):
            rows, point = rows - like(point, rows), point * 0.0
        norms = squared_distances(rows, point)
        ones = norms * 0.0 + 1.0 if weight is None else weight
        heavy = ones * norms
        self.n += total(ones)
        self.linear = self.linear + deviation_sum(rows, point, ones)
        self.cubic = self.cubic + deviation_sum(rows, point, heavy)
        self.quartic += total(heavy * norms)
        # A float32 product is added as it is: a float64 copy would be one more (d, d) matrix.
        self.square += deviation_gram(rows, point, weight)

    def decay(self, factor: float) -> None:
        """Let every row so far count ``factor`` times what it did."""
        self.n, self.quartic = factor * self.n, factor * self.quartic
        self.linear, self.cubic = factor * self.linear, factor * self.cubic
        self.square *= factor

    def follow(self) -> None:
        """Move the point to the mean, once they are further apart than the rows are spread."""
        offset = total(self.linear * self.linear) / self.n
        if offset > 0.5 * float(namespace(self.point).linalg.trace(self.square)):
            moments = self.moments()
            self.point, self.linear = moments.mean, self.linear * 0.0
            self.square, self.cubic = moments.scatter, moments.cubic
            self.quartic = moments.quartic or 0.0

    def move_beside(self, rows: Array) -> None:
        """Go on in the array library and on the device of these rows."""
        if not same_place(self.point, rows):
            for name in ("point", "linear", "cubic", "square"):
                setattr(self, name, like(to_numpy(getattr(self, name)), rows, float64(rows)))

    def moments(self) -> Moments:
        """Move the sums to the mean they imply."""
        about = Moments(self.n, self.point, self.square, self.cubic, self.quartic)
        return _shift(about, self.linear, self.linear / self.n)
