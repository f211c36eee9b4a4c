"""Validated training data, and what is computed from it once: moments and spectra by domain."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdare._array import (
    Array,
    Index,
    float64,
    is_foreign,
    length,
    like,
    namespace,
    take,
    to_numpy,
    work_dtype,
)
from skdare._validation import check_choice, check_number
from skdare.adjustment import Adjustment, Spectrum
from skdare.deflation import MIN_FEATURES, MIN_SHRINKAGE, deflated_inverse_root
from skdare.losses import Loss
from skdare.moments import SHRINKAGE_RULES, Moments, mean_and_variances, pooled_second_moment
from skdare.objective import Rows

SHRINKAGE_TARGETS = ("scaled", "identity", "pooled")


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, targets and weights by domain, as every head sees them.

    Parameters
    ----------
    X : array of shape (n, d)
    T : array of shape (n,)
        Class numbers, or targets.
    weight : array of shape (n,)
    labels : list of domain labels
    index : list of the rows of each domain
    loss : Loss
    k : int
        Columns of the weights.
    """

    X: Array
    T: np.ndarray
    weight: np.ndarray
    labels: Sequence[Hashable]
    index: Sequence[Index]
    loss: Loss
    k: int

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def with_targets(self, T: np.ndarray, loss: Loss, k: int) -> Problem:
        """The same rows with these targets."""
        return replace(self, T=T, loss=loss, k=k)

    def check_covariances(self, shrinkages: Sequence[float | str], remedy: str) -> None:
        """Refuse domains of one row, unless every shrinkage leaves nothing of a covariance."""
        if all(shrinkage == 1.0 for shrinkage in shrinkages):
            return
        pairs = zip(self.labels, self.index, strict=True)
        single = [label for label, index in pairs if length(index) < 2]
        if single:
            more = f" (and {len(single) - 1} more)" if len(single) > 1 else ""
            raise ValueError(
                f"domain {single[0]!r}{more} has 1 row, and a covariance needs 2; "
                f"merge it, or set {remedy}"
            )

    def domain_weight(self, e: int) -> np.ndarray:
        """Sample weights of the rows of a domain."""
        return self.weight[self.index[e]]

    def domain_rows(self, e: int, total: float, shift: Array | None = None) -> Rows:
        """The rows of a domain, weighing ``total`` together."""
        weight = self.domain_weight(e)
        return self._rows(self.index[e], total * weight / weight.sum(), shift)

    def all_rows(self, weight: np.ndarray) -> Rows:
        """Every row of every domain, in the caller's order, so that none is gathered."""
        whole = slice(0, self.X.shape[0])
        if sum(length(i) for i in self.index) == whole.stop:
            return self._rows(whole, weight)
        kept = np.concatenate([np.arange(self.X.shape[0])[i] for i in self.index])
        kept.sort()
        return self._rows(kept, weight[kept])

    def _rows(self, index: Index, weight: np.ndarray, shift: Array | None = None) -> Rows:
        whole = isinstance(index, slice) and index == slice(0, len(self.T))
        T = self.T if whole else self.T[index]
        if is_foreign(self.X):
            xp = namespace(self.X)
            T = like(T, self.X, xp.int64 if np.issubdtype(T.dtype, np.integer) else xp.float64)
            weight = like(weight, self.X, xp.float64)
        return Rows(self.X, index, T, weight, shift)

    def mean_row(self, mean: Array, target: float, weight: float) -> Rows:
        """A domain mean as one more row, the same target in every column, no intercept."""
        X = like(mean[None, :], self.X)
        T = like(np.full((1, self.k), target), X, float64(X))
        return Rows(X, slice(0, 1), T, like(np.array([weight]), X, float64(X)), intercept=False)


@dataclass(frozen=True)
class Whitening:
    """How a second moment becomes an adjustment.

    Parameters
    ----------
    adjust : bool
        False: one scalar for all domains, so that l2 means the same with and without whitening.
    centered : bool
        Covariance, or the raw second moment.
    shrinkage : float, "ledoit-wolf" or "oas"
    target : "scaled", "identity" or "pooled"
    """

    adjust: bool
    centered: bool
    shrinkage: float | str
    target: str

    @classmethod
    def of_head(cls, head: Any) -> Whitening:
        """As a head's options say."""
        return cls(head.adjust, head.centered, head.shrinkage, head.shrinkage_target)

    def of_moments(
        self, moments: Moments, spectrum: Spectrum | None, pool: Array | None, dtype: object
    ) -> Adjustment:
        """The adjustment of one domain."""
        rho = moments.shrinkage(self.shrinkage, centered=self.centered)
        if not moments.scale(centered=self.centered) > 0:
            raise ValueError("these rows are all the same; adjusting needs rows that differ")
        if self.target == "pooled" and pool is not None:
            S = moments.covariance(rho, pool, centered=self.centered)
            return Spectrum.of_matrix(S, dtype).inverse_root()
        if spectrum is None and rho < 1.0:
            spectrum = Spectrum.of_matrix(moments.second_moment(centered=self.centered), dtype)
        if spectrum is None:
            ridge = 1.0 if self.target == "identity" else moments.scale(centered=self.centered)
            return Adjustment(moments.d, ridge**-0.5)
        return spectrum.inverse_root(rho, self.target)


def check_whitening(head: Any) -> None:
    """Check the constructor values that make a `Whitening`."""
    check_number("shrinkage", head.shrinkage, 0.0, 1.0, also=SHRINKAGE_RULES)
    check_choice("shrinkage_target", head.shrinkage_target, SHRINKAGE_TARGETS)
    check_choice("centered", head.centered, (True, False))
    check_choice("adjust", head.adjust, (True, False))


class Statistics:
    """Moments and spectra of a problem's domains, each computed once and when first asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._moments: dict[int, Moments] = {}
        self._spectra: dict[tuple[int, bool], Spectrum] = {}
        self._lights: dict[int, tuple[np.ndarray, ...]] = {}

    def moments(self, e: int) -> Moments:
        """Moments of a domain, in the array library of X."""
        if e not in self._moments:
            problem = self.problem
            weight: np.ndarray | None = problem.domain_weight(e)
            if np.all(weight == 1.0):
                weight = None
            self._moments[e] = Moments.of(problem.X, problem.index[e], weight)
        return self._moments[e]

    def variances(self, chosen: Sequence[int]) -> np.ndarray:
        """Variance of each feature over all rows of the chosen domains."""
        n = np.array([self.problem.domain_weight(e).sum() for e in chosen])
        means = np.stack([self.domain_mean(e) for e in chosen])
        within = np.stack([self._light(e)[1] for e in chosen])
        return n @ (within + (means - n @ means / n.sum()) ** 2) / n.sum()

    def unit(self, chosen: Sequence[int]) -> float:
        """Mean variance of a feature over all rows of the chosen domains: the unit of l2."""
        unit = float(self.variances(chosen).mean())
        if not np.isfinite(unit):
            raise ValueError("the squares of the features overflow; divide the features first")
        if unit == 0:
            raise ValueError(
                "every feature is constant, or too small for its square; nothing can be learnt"
            )
        return unit

    def ridge(self, chosen: Sequence[int], whitening: Whitening, l2: float) -> float:
        """The ridge on canonical weights that is l2 in the common unit.

        Adjustments shrunk towards (tr/d) I divide by the root of a second moment of their own,
        with or without the means; where all domains are alike and ρ = 1, this makes every head
        the same problem. The raw identity has no unit to convert from.
        """
        if not whitening.adjust or whitening.target == "identity":
            return l2
        own = [self.moments(e).scale(centered=whitening.centered) for e in chosen]
        return l2 * self.unit(chosen) / float(np.mean(own))

    def domain_mean(self, e: int) -> np.ndarray:
        """Mean of a domain, on the host."""
        return self._light(e)[0]

    def mean(self, chosen: Sequence[int]) -> np.ndarray:
        """Equal-weight mean of the chosen domains' means."""
        return np.mean([self._light(e)[0] for e in chosen], axis=0)

    def _light(self, e: int) -> tuple[np.ndarray, ...]:
        """Mean and variances of a domain, from its moments where they are known."""
        if e in self._moments:
            m = self._moments[e]
            xp = namespace(m.scatter)
            return to_numpy(m.mean), to_numpy(xp.linalg.diagonal(m.scatter)) / m.n
        if e not in self._lights:
            data = (self.problem.X, self.problem.index[e], self.problem.domain_weight(e))
            self._lights[e] = mean_and_variances(*data)
        return self._lights[e]

    def spectrum(self, e: int, *, centered: bool) -> Spectrum:
        """Spectrum of a domain's second moment, through its thin side where it has one."""
        if (e, centered) not in self._spectra:
            problem, moments = self.problem, self.moments(e)
            if length(problem.index[e]) < problem.d and not _is_sparse(problem.X):
                spectrum = Spectrum.of_rows(self._deviations(e, moments, centered), moments.n)
            else:
                S = moments.second_moment(centered=centered)
                spectrum = Spectrum.of_matrix(S, work_dtype(problem.X))
            self._spectra[e, centered] = spectrum
        return self._spectra[e, centered]

    def _deviations(self, e: int, moments: Moments, centered: bool) -> Array:
        """Rows of a domain minus its mean (or not), times the roots of their weights."""
        X, index = self.problem.X, self.problem.index[e]
        root = like(self.problem.domain_weight(e) ** 0.5, X)
        rows = take(X, index)
        return (rows - like(moments.mean, X) if centered else rows) * root[:, None]

    def adjustments(self, chosen: Sequence[int], whitening: Whitening) -> list[Adjustment]:
        """One adjustment for each chosen domain; without whitening, one scalar for all."""
        if not whitening.adjust:
            return [Adjustment(self.problem.d, self.unit(chosen) ** -0.5)] * len(chosen)
        return [self._adjustment(e, chosen, whitening) for e in chosen]

    def _adjustment(self, e: int, chosen: Sequence[int], whitening: Whitening) -> Adjustment:
        moments, centered = self.moments(e), whitening.centered
        if not moments.scale(centered=centered) > 0:
            # Rows that do not differ say nothing of their scale: take the other domains'.
            return Adjustment(moments.d, self.unit(chosen) ** -0.5)
        pool = spectrum = None
        if whitening.target == "pooled":
            others = [self.moments(o) for o in chosen if o != e] or [moments]
            pool = pooled_second_moment(others, centered=centered)
        elif moments.shrinkage(whitening.shrinkage, centered=centered) < 1.0:
            W = self._deflated(e, whitening)
            if W is not None:
                return Adjustment(moments.d, 0.0, W)
            spectrum = self.spectrum(e, centered=centered)
        return whitening.of_moments(moments, spectrum, pool, work_dtype(self.problem.X))

    def _deflated(self, e: int, whitening: Whitening) -> Array | None:
        """The inverse root from part of the spectrum, where that is quicker and float32 anyway."""
        X, moments, centered = self.problem.X, self.moments(e), whitening.centered
        rho = moments.shrinkage(whitening.shrinkage, centered=centered)
        known = (e, centered) in self._spectra or length(self.problem.index[e]) < self.problem.d
        if known or self.problem.d < MIN_FEATURES or rho < MIN_SHRINKAGE:
            return None
        if work_dtype(X) != namespace(X).float32:
            return None
        ridge = rho * (1.0 if whitening.target == "identity" else moments.scale(centered=centered))
        S = moments.second_moment(centered=centered)
        return deflated_inverse_root(S, rho, ridge, work_dtype(X))


def _is_sparse(X: Array) -> bool:
    return not is_foreign(X) and not isinstance(X, np.ndarray)
