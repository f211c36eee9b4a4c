"""Inverse roots of second moments of fewer rows than features, through the products of the rows.

With ``R`` (m, d), ``RᵀR = n S`` and ``K = R C² Rᵀ``, the symmetric root in common coordinates is
``W̃ = s I + C Rᵀ M R C`` with ``M = Q diag(f) Qᵀ`` a function of the (m, m) matrix K: no (d, d)
matrix is made, and what W̃ does to the scores of the rows themselves is an (m, m) matrix, too.

Notation: R (m, d) rows, C (d, d) what domains share, K (m, m) products, Q (m, m) eigenvectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.arrays import Array, as_float64, like, namespace, power_of_two_near, symmetric_eigen
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import cut_off

# Weights in float32 that leave room for their products.
_FLOAT32_RANGE = 1e-25, 1e25


@dataclass(frozen=True, eq=False)
class FewRowsSpectrum:
    """Eigenvalues of ``C S C`` by way of rows; directions that they do not span have value zero.

    Every strength of shrinkage shares it.

    Parameters
    ----------
    values : array of shape (m,)
        In float64, not negative.
    Q : array of shape (m, m)
    rows : array of shape (m, d)
        On raw features.
    n : float
    cross : array of shape (m,), optional
        Products of the rows with √n times the mean, where that is not the last of them.
    common : array of shape (d, d), optional
    """

    values: Array
    Q: Array
    rows: Array
    n: float
    cross: Array | None = None
    common: Array | None = None

    @classmethod
    def of_rows(cls, rows: Array, n: float, common: Array | None = None) -> FewRowsSpectrum:
        """Spectrum of ``RᵀR / n``: m² d in place of d³."""
        values, Q = _decompose(_in_common_coordinates(rows, common), n)
        return cls(values, like(Q, rows, rows.dtype), rows, n, None, common)

    @classmethod
    def of_moments(
        cls, moments: Moments, *, centered: bool, common: Array | None = None
    ) -> FewRowsSpectrum:
        """Spectrum by way of the rows that moments of few rows hold."""
        factor = moments.factor
        n = moments.n
        assert factor is not None
        if not centered:
            return cls.of_rows(factor, n, common)
        transformed = _in_common_coordinates(factor, common)
        rows = factor[:-1, :]
        values, Q = _decompose(transformed[:-1, :], n)
        cross = transformed[:-1, :] @ transformed[-1, :]
        return cls(values, like(Q, rows, rows.dtype), rows, n, cross, common)

    @property
    def scale(self) -> float:
        """tr(C S C) / d."""
        return float(namespace(self.values).sum(self.values)) / int(self.rows.shape[1])

    def inverse_root(
        self,
        shrinkage: float = 0.0,
        ridge: float = 0.0,
        *,
        rtol: float | None = None,
        root_weight: np.ndarray | None = None,
    ) -> Adjustment:
        """Symmetric pseudo-inverse square root of ``(1 - ρ) C S C + ridge I``.

        As `Spectrum.inverse_root`; where the roots of the rows' weights are given, the adjustment
        says what it does to the scores of these rows.
        """
        xp = namespace(self.values)
        d = self.rows.shape[1]
        if shrinkage == 1.0:
            return Adjustment(d, ridge**-0.5, common=self.common)
        values = (1.0 - shrinkage) * self.values + ridge
        cut = cut_off(values, d, ridge, self.rows.dtype, rtol)
        present = self.values > xp.max(self.values) * (self.values.shape[0] * 2.3e-16)
        if ridge > cut:
            # ((aλ + t)^{-1/2} - t^{-1/2}) / λ without the difference, so that small λ are harmless.
            scale = ridge**-0.5
            v = values**0.5
            f = -(1.0 - shrinkage) * scale / (v * (v + ridge**0.5))
        else:
            scale = 0.0
            one = xp.ones_like(values)
            present = present & (values > cut)
            f = xp.where(present, values, one) ** -0.5 / xp.where(present, self.values, one)
        f = xp.where(present, f, 0.0 * f) / self.n
        score_map = None if root_weight is None else self._score_map(scale, f, root_weight)
        U, weights = self._columns(f)
        return Adjustment(d, scale, None, U, weights, self.Q, self.common, score_map)

    def _columns(self, f: Array) -> tuple[Array, Array]:
        """The rows as columns, and f in their dtype.

        Where float32 cannot hold f, which goes with the third power of the rows' unit, columns
        are a copy in a unit in which it can.
        """
        rows = self.rows
        unit = 1.0
        top = float(namespace(f).max(namespace(f).abs(f)))
        if (
            rows.dtype != self.values.dtype
            and not _FLOAT32_RANGE[0] < top < _FLOAT32_RANGE[1]
            and top > 0
        ):
            unit = power_of_two_near((self.scale * self.n) ** 0.5)
            rows = rows / unit
        return namespace(rows).matrix_transpose(rows), like(f * unit**2, rows, rows.dtype)

    def _score_map(self, scale: float, f: np.ndarray, root: np.ndarray) -> np.ndarray:
        """``A`` with ``X W B = A (X C B)``: ``s I + L K M N``.

        ``R = N X`` centres and weighs the rows, ``X = L R`` undoes it.
        """
        m = len(root)
        n = self.n
        Q = self.Q
        T: np.ndarray = (Q * (n * self.values * f)) @ Q.T
        last = T[m] if self.cross is None else ((self.cross @ Q) * f) @ Q.T
        T = T[:m] / root[:, None] + last / n**0.5
        inside = T[:, :m] * root
        beside = -inside.sum(axis=1)
        if self.cross is None:
            beside += T[:, m] * n**0.5
        A: np.ndarray = inside + beside[:, None] * (root * root / n)
        A[np.arange(m), np.arange(m)] += scale
        return A.astype(self.rows.dtype)


def _in_common_coordinates(rows: Array, common: Array | None) -> Array:
    """Rows in common coordinates, in float64; the product in their own dtype."""
    return as_float64(rows if common is None else rows @ common)


def _decompose(rows: Array, n: float) -> tuple[Array, Array]:
    xp = namespace(rows)
    values, Q = symmetric_eigen(rows @ xp.matrix_transpose(rows) / n)
    return xp.where(values > 0, values, xp.zeros_like(values)), Q
