"""What the rows of one domain are reduced to, once: moments, spectra, an adjustment."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from threading import RLock

import numpy as np

from skdare.arrays import Array, Index, is_foreign, to_numpy, work_dtype
from skdare.arrays.passes import RowPart, SpreadRows, visit_once
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import Spectrum
from skdare.whitening.roots.few_rows import FewRowsSpectrum
from skdare.whitening.roots.quick import quick_inverse_root
from skdare.whitening.sums import FeatureMoments
from skdare.whitening.whitening import Whitening

# The most that one pass brings back of moments from a worker.
_PASS_BYTES = 1 << 30


class DomainCache:
    """Moments, spectra and the last adjustment of one domain's rows, when first asked for.

    Several fits, in several threads, may share one: each thing is computed once.

    Parameters
    ----------
    X : array of shape (n, d)
    index : slice or array of int
        The rows of the domain.
    weight : array of shape (m,)
        One entry for each of these rows.
    """

    def __init__(self, X: Array, index: Index, weight: np.ndarray) -> None:
        self.X = X
        self.index = index
        self.weight = weight
        self._lock = RLock()
        self._moments: Moments | None = None
        self._feature_moments: FeatureMoments | None = None
        # Of the covariance and of the raw moment; every strength of shrinkage shares them.
        self._spectra: dict[bool, Spectrum | FewRowsSpectrum] = {}
        self._last: tuple[Whitening, Adjustment] | None = None

    @property
    def moments(self) -> Moments:
        """Moments, in the array library of X."""
        with self._lock:
            if self._moments is None:
                self._moments = _moments_of(self._part())
            return self._moments

    @property
    def mean_and_variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each feature, on the host; from the moments where they are known."""
        with self._lock:
            if self._moments is not None:
                return to_numpy(self._moments.mean), to_numpy(self._moments.variances)
            if self._feature_moments is None:
                self._feature_moments = FeatureMoments.of(self.X, self.index, self.weight)
            return self._feature_moments.mean, self._feature_moments.variances

    @property
    def knows_moments(self) -> bool:
        """Whether the moments have been computed."""
        return self._moments is not None

    @property
    def knows_means(self) -> bool:
        """Whether mean and variances have been computed."""
        return self._moments is not None or self._feature_moments is not None

    def _part(self) -> RowPart:
        """The rows with their weights, where these differ."""
        return RowPart(self.X, self.index, () if np.all(self.weight == 1.0) else (self.weight,))

    def adjustment(self, whitening: Whitening, common: Array | None = None) -> Adjustment:
        """The adjustment, in common coordinates where there are any.

        Only the last is kept: a search over options visits them one after the other.
        """
        with self._lock:
            if common is not None:
                return self._adjustment(whitening, None, common)
            if self._last is None or self._last[0] != whitening:
                self._last = whitening, self._adjustment_alone(whitening)
            return self._last[1]

    def _adjustment_alone(self, whitening: Whitening) -> Adjustment:
        """The adjustment without common coordinates, by the quickest way."""
        moments = self.moments
        centered = whitening.centered
        rho = whitening.strength(moments)
        if rho == 1.0 or whitening.target == "diagonal":
            return self._adjustment(whitening, None, None)
        if centered not in self._spectra and moments.factor is not None:
            self._spectra[centered] = FewRowsSpectrum.of_moments(moments, centered=centered)
        elif centered not in self._spectra:
            dtype = work_dtype(self.X)
            S = moments.second_moment(centered=centered)
            W = quick_inverse_root(S, rho, whitening.ridge(moments), dtype)
            if W is not None:
                return Adjustment(moments.d, 0.0, W)
            self._spectra[centered] = Spectrum.of_matrix(S, dtype)
        return self._adjustment(whitening, self._spectra[centered], None)

    def _adjustment(
        self,
        whitening: Whitening,
        spectrum: Spectrum | FewRowsSpectrum | None,
        common: Array | None,
    ) -> Adjustment:
        in_memory = not is_foreign(self.X) and not isinstance(self.X, SpreadRows)
        return whitening.adjustment(
            self.moments,
            spectrum,
            common,
            dtype=work_dtype(self.X),
            root_weight=self.weight**0.5 if in_memory else None,
        )


def _moments_of(part: RowPart, _: None = None) -> Moments:
    return Moments.of(part.X, part.index, part.columns[0] if part.columns else None)


def _feature_moments_of(part: RowPart, _: None) -> FeatureMoments:
    return FeatureMoments.of(part.X, part.index, part.columns[0])


def fetch_moments(domains: Sequence[DomainCache]) -> None:
    """Moments of domains whose rows lie with workers: all in one pass, where memory allows it."""
    new = [domain for domain in domains if not domain.knows_moments]
    for batch in _batches(new):
        results = visit_once(_moments_of, [domain._part() for domain in batch])
        for domain, moments in zip(batch, results, strict=True):
            domain._moments = moments


def fetch_feature_moments(domains: Sequence[DomainCache]) -> None:
    """Mean and variances of domains whose rows lie with workers, in one pass."""
    new = [domain for domain in domains if not domain.knows_means]
    parts = [RowPart(domain.X, domain.index, (domain.weight,)) for domain in new]
    for domain, moments in zip(new, visit_once(_feature_moments_of, parts), strict=True):
        domain._feature_moments = moments


def _batches(domains: Sequence[DomainCache]) -> Iterator[Sequence[DomainCache]]:
    """Batches of as many domains as a worker can add up at once."""
    d = domains[0].X.shape[1] if domains else 1
    step = max(1, _PASS_BYTES // (8 * d**2))
    return (domains[i : i + step] for i in range(0, len(domains), step))


SharedCaches = MutableMapping[Hashable, DomainCache]
"""Caches by domain label, for fits whose domains have the same rows in the same order."""
