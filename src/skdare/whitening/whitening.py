"""How moments become an adjustment: which second moment, how shrunk, and what is subtracted.

    rows become Wᵀ(x - m),    W = ((1 - ρ) S + ρ · target)^{-1/2}

Notation: S (d, d) second moment, D its diagonal, m (d,) shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from skdare.arrays import Array, beside, like, namespace, to_numpy
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import AnyMoments, Moments, mean_variance, pooled_variances
from skdare.whitening.roots import inverse_scales, root_of_matrix, root_of_rows

Target = Literal["scaled", "identity", "diagonal"]
"""(tr S / d) I, which has no unit; the raw identity, as in the paper; the domain's own diagonal."""

Shift = Literal["none", "own mean", "own mean in training", "mean of means"]
"""m: nothing; the domain's mean, or in equation (3) only in training; the mean of all means."""


@dataclass(frozen=True)
class Whitening:
    # False: one for all domains, a scalar or, towards the diagonal, the features' own scales. With
    # a scalar, l2 means the same as with whitening.
    adjusts: bool
    centered: bool  # the covariance, or the raw second moment
    shrinkage: float  # ρ
    target: Target
    shift: Shift = "none"
    blends: bool = True  # with what is usual in training; else a domain's rows alone decide

    def usual(self, moments: Sequence[Moments]) -> Array:
        """Mean squares of the features in a usual training domain: see `root`.

        The median over the domains where a feature varies: one that records it in another unit
        decides a mean, and the feature vanishes elsewhere.
        """
        squares = np.stack([to_numpy(self._squares(m)) for m in moments])
        middle = np.ma.median(np.ma.masked_less_equal(squares, 0.0), axis=0)
        return beside(np.ma.filled(middle, 0.0), moments[0].mean)

    def _squares(self, moments: Moments) -> Array:
        return moments.variances + (0.0 if self.centered else moments.mean**2)

    def root(self, moments: Moments, usual: Array, dtype: object) -> Adjustment:
        """W of one domain, decomposed in ``dtype``; ``usual`` is what training domains have."""
        rho = self.shrinkage
        if self.target == "diagonal":
            # D^{-1/2} ((1 - ρ) R + ρ I)^{-1/2} with the correlations R: unlike the symmetric root
            # of (1 - ρ) S + ρ D, it commutes with a change of the features' units. What is usual
            # counts as one row, so that the noise of a feature that is all but constant here is not
            # amplified. A floor by the other features would depend on their units: on music in its
            # raw ones standardising gained 31 points without one.
            squares = self._squares(moments)
            if self.blends:
                squares = (moments.n * squares + usual) / (moments.n + 1.0)
            c = inverse_scales(squares)
            if rho == 1.0:
                return Adjustment(c)
            if moments.rows is not None:
                W = root_of_rows(self._rows(moments) * like(c, moments.rows), moments.n, rho, rho)
                return Adjustment(c * W.diagonal, None, like(c, W.U)[:, None] * W.U, W.core, W.U)
            R = c[:, None] * moments.second_moment(self.centered) * c[None, :]
            root = root_of_matrix(R, rho, rho, dtype).matrix
            return Adjustment(0.0, namespace(c).astype(c, dtype)[:, None] * root)
        ridge = rho * (1.0 if self.target == "identity" else moments.scale(self.centered))
        if rho == 1.0:
            return Adjustment(ridge**-0.5)
        if moments.rows is not None:
            return root_of_rows(self._rows(moments), moments.n, rho, ridge)
        return root_of_matrix(moments.second_moment(self.centered), rho, ridge, dtype)

    def _rows(self, moments: Moments) -> Array:
        """Rows R whose second moment is RᵀR / n."""
        assert moments.rows is not None
        return moments.rows[:-1, :] if self.centered else moments.rows

    def adjustments(self, moments: Sequence[AnyMoments], dtype: object) -> list[Adjustment]:
        """One for each domain."""
        variances = pooled_variances(moments)
        overall = Adjustment(float(variances.mean()) ** -0.5)
        if not self.adjusts:
            if self.target == "diagonal":
                overall = Adjustment(beside(inverse_scales(variances), moments[0].mean))
            return self.shifted([overall] * len(moments), moments)
        moments = cast("Sequence[Moments]", moments)
        usual = self.usual(moments)
        # Rows that are all the same have no scale of their own: take that of all domains.
        roots = [self.root(m, usual, dtype) if self.can_adjust(m) else overall for m in moments]
        return self.shifted(roots, moments)

    def shifted(
        self, adjustments: Sequence[Adjustment], moments: Sequence[AnyMoments]
    ) -> list[Adjustment]:
        """The same W for each domain, with the shift that belongs to its moments."""
        shifts: list[Array] = [m.mean for m in moments]
        if self.shift == "none":
            shifts = [None] * len(moments)
        elif self.shift == "mean of means":
            shifts = [sum(shifts) / len(moments)] * len(moments)
        return [replace(W, shift=m) for W, m in zip(adjustments, shifts, strict=True)]

    def can_adjust(self, moments: Moments) -> bool:
        """Whether there is more than rounding to invert."""
        if self.target == "identity" and self.shrinkage > 0:
            return True
        square = float(moments.mean @ moments.mean) / moments.mean.shape[0]
        eps = float(np.finfo(np.float64).eps)
        return moments.scale(self.centered) > eps**2 * square

    def ridge(self, moments: Sequence[AnyMoments], l2: float) -> float:
        """The ridge on canonical weights that is ``l2`` in the unit of the features.

        Each W divides by the root of a second moment of its own; where all domains are alike and
        ρ = 1, DARE without its penalty is then the same problem as ERM. The raw identity has no
        unit to convert from, and by its own scales a feature has none either.
        """
        if not self.adjusts or self.target != "scaled":
            return l2
        unit = mean_variance(moments)
        moments = cast("Sequence[Moments]", moments)
        scales = [m.scale(self.centered) if self.can_adjust(m) else unit for m in moments]
        return l2 * unit / float(np.mean(scales))
